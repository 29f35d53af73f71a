/* Reducers, and arrays of several writers. */
#include "test.h"
#include <math.h>

#define WORKERS 3
#define LEN 1000

static ha_job *job;

static int add_one(void *out, const void *const *inputs, size_t input_count, size_t first, size_t count, void *argument)
{
    size_t i, k;
    double *to = (double *)out;
    (void)argument;
    for (i = 0; i < count; i++) {
        to[i] = (double)(first + i);
        for (k = 0; k < input_count; k++)
            to[i] += ((const double *)inputs[k])[i];
    }
    return 0;
}

static int reducers(ha_worker *worker, void *argument)
{
    static const uint32_t members[WORKERS] = {0, 1, 2};
    ha_area *mine, *inputs[WORKERS];
    const ha_area *list[WORKERS];
    ha_reducer *reducer;
    double out[LEN];
    char name[32];
    void *data;
    uint32_t rank, other;
    size_t i;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    snprintf(name, sizeof name, "gradient/%u", rank);
    OK(ha_area_create(worker, name, HA_F64, LEN, NULL, &mine));
    for (other = 0; other < WORKERS; other++) {
        snprintf(name, sizeof name, "gradient/%u", other);
        OK(ha_area_attach(worker, name, HA_F64, 120 * HA_SECOND, &inputs[other]));
        list[other] = inputs[other];
    }
    OK(ha_reducer_create(worker, "sum", HA_F64, members, WORKERS, list, WORKERS, &reducer));
    OK(ha_area_writer(mine, &data));
    for (i = 0; i < LEN; i++)
        ((double *)data)[i] = (double)i * (rank + 1);
    OK(ha_log_all(mine));
    OK(ha_reducer_run(reducer, HA_SUM));
    OK(ha_reducer_load(reducer, out, sizeof out));
    for (i = 0; i < LEN; i++)
        CHECK(out[i] == (double)i * 6.0);
    OK(ha_reducer_run(reducer, HA_MEAN));
    OK(ha_reducer_load(reducer, out, sizeof out));
    CHECK(out[0] == 0.0 && out[999] == 1998.0);
    OK(ha_reducer_run(reducer, HA_MAX));
    OK(ha_reducer_load(reducer, out, sizeof out));
    CHECK(out[999] == 2997.0);
    OK(ha_reducer_run_with(reducer, add_one, NULL));
    OK(ha_reducer_load(reducer, out, sizeof out));
    CHECK(out[1] == 7.0 && out[999] == 999.0 * 7.0);
    ((double *)data)[5] = NAN;
    OK(ha_log(mine, 5, 1));
    OK(ha_reducer_run(reducer, HA_LAST));
    OK(ha_reducer_run(reducer, HA_MAX));
    OK(ha_reducer_load(reducer, out, sizeof out));
    CHECK(isnan(out[5]));
    OK(ha_reducer_close(reducer));
    return 0;
}

/* The array against a model in the program: the same ranges, combined serially. */
static int arrays(ha_worker *worker, void *argument)
{
    static const uint32_t members[WORKERS] = {2, 0, 1};
    static const ha_operation operations[4] = {HA_SUM, HA_MEAN, HA_MAX, HA_LAST};
    ha_array *array;
    ha_area *mine;
    ha_range named[WORKERS][8];
    int32_t *local, *model, *values[WORKERS], *counts;
    const int32_t *master;
    const void *seen;
    void *data;
    uint32_t rank, place;
    uint64_t random = 12345;
    size_t i, n;
    int round;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    OK(ha_array_create(worker, "model", HA_I32, LEN, NULL, members, WORKERS, 8, &array));
    OK(ha_array_local(array, &mine));
    OK(ha_area_writer(mine, &data));
    local = (int32_t *)data;
    model = (int32_t *)calloc(LEN, sizeof *model);
    counts = (int32_t *)calloc(LEN, sizeof *counts);
    for (place = 0; place < WORKERS; place++)
        values[place] = (int32_t *)calloc(LEN, sizeof *values[0]);
    for (round = 0; round < 24; round++) {
        ha_operation operation = operations[round % 4];
        size_t many = (size_t)round % 9;
        /* Everybody draws the same numbers, and writes its own part of them. */
        for (place = 0; place < WORKERS; place++) {
            size_t end = 0;
            for (n = 0; n < many; n++) {
                random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
                named[place][n].first = end + (size_t)(random >> 33) % 60;
                named[place][n].count = (size_t)(random >> 50) % 60;
                end = named[place][n].first + named[place][n].count;
                for (i = named[place][n].first; i < end; i++) {
                    random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
                    values[place][i] = (int32_t)(random >> 48) - 30000;
                    if (members[place] == rank) {
                        local[i] = values[place][i];
                        OK(ha_log(mine, i, 1));
                    }
                }
            }
        }
        memset(counts, 0, LEN * sizeof *counts);
        for (place = 0; place < WORKERS; place++)
            for (n = 0; n < many; n++)
                for (i = named[place][n].first; i < named[place][n].first + named[place][n].count; i++) {
                    int32_t value = values[place][i];
                    if (counts[i]++ == 0 || operation == HA_LAST)
                        model[i] = value;
                    else if (operation == HA_MAX)
                        model[i] = model[i] > value ? model[i] : value;
                    else
                        model[i] += value;
                }
        if (operation == HA_MEAN)
            for (i = 0; i < LEN; i++)
                if (counts[i] != 0)
                    model[i] /= counts[i];
        for (place = 0; place < WORKERS; place++)
            if (members[place] == rank)
                OK(ha_array_reduce(array, operation, named[place], many));
        OK(ha_array_master(array, &seen));
        master = (const int32_t *)seen;
        CHECK(memcmp(master, model, LEN * sizeof *model) == 0);
        OK(ha_array_barrier(array));
    }
    /* What others wrote comes into the own copy. */
    named[0][0].first = 3;
    named[0][0].count = 500;
    OK(ha_array_map(array, named[0], 1));
    CHECK(memcmp(local + 3, model + 3, 500 * sizeof *model) == 0);
    OK(ha_array_map(array, NULL, 0));
    named[0][0].first = 900;
    named[0][0].count = 101;
    FAILS(HA_OUT_OF_RANGE, ha_array_map(array, named[0], 1));

    /* Wrong arguments of one: it is told so, the others that there was something; the next time all is well. */
    if (rank == 1)
        FAILS(HA_OUT_OF_RANGE, ha_array_reduce(array, HA_SUM, named[0], 1));
    else
        FAILS(HA_CALLBACK, ha_array_reduce(array, HA_SUM, NULL, 0));
    memset(named, 0, sizeof named);
    if (rank == 0)
        FAILS(HA_LIMIT, ha_array_reduce(array, HA_SUM, named[0], 9));
    else
        FAILS(HA_CALLBACK, ha_array_reduce(array, HA_SUM, NULL, 0));
    OK(ha_array_reduce(array, HA_SUM, named[0], 8));
    /* Members that want different operations: all are told. */
    FAILS(HA_BAD_ARGUMENT, ha_array_reduce(array, rank == 1 ? HA_MAX : HA_SUM, NULL, 0));
    OK(ha_array_reduce(array, HA_MAX, NULL, 0));
    OK(ha_array_close(array));
    free(model);
    free(counts);
    for (place = 0; place < WORKERS; place++)
        free(values[place]);
    return 0;
}

/* Members that made an array of different lists: all are told. */
static int lists(ha_worker *worker, void *argument)
{
    static const uint32_t members[2][WORKERS] = {{0, 1, 2}, {0, 2, 1}};
    ha_array *array;
    uint32_t rank;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    OK(ha_array_create(worker, "lists", HA_F32, 10, NULL, members[rank == 1], WORKERS, 0, &array));
    FAILS(HA_BAD_ARGUMENT, ha_array_reduce(array, HA_SUM, NULL, 0));
    OK(ha_array_close(array));
    return 0;
}

/* A member leaves: the others are told. */
static int deserted(ha_worker *worker, void *argument)
{
    static const uint32_t members[2] = {0, 1};
    ha_array *array;
    uint32_t rank;
    ha_status status;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    OK(ha_array_create(worker, "deserted", HA_F32, 10, NULL, members, 2, 0, &array));
    OK(ha_array_reduce(array, HA_SUM, NULL, 0));
    if (rank == 1)
        return 0;
    status = ha_array_reduce(array, HA_SUM, NULL, 0);
    CHECK(status == HA_NO_SUCH_WORKER);
    return 0;
}

/* Runs the function on so many workers: on threads, or on processes that a launcher has started. */
static void on_all(uint32_t count, ha_worker *worker, int (*function)(ha_worker *, void *))
{
    uint32_t rank = 0;
    if (worker == NULL) {
        OK(ha_run(job, count, function, NULL));
        return;
    }
    OK(ha_worker_rank(worker, &rank));
    if (rank < count)
        function(worker, NULL);
}

int main(void)
{
    ha_worker *worker = NULL;
    uint32_t rank, size;
    OK(ha_launch(&rank, &size));
    if (size > 1) {
        OK(ha_job_open(NULL, &job));
        OK(ha_worker_join_at(job, rank, &worker));
        OK(ha_wait_for_workers(worker, size, 120 * HA_SECOND));
    } else {
        job = test_job(0);
    }
    on_all(WORKERS, worker, reducers);
    on_all(WORKERS, worker, arrays);
    on_all(WORKERS, worker, lists);
    on_all(2, worker, deserted);
    OK(ha_worker_leave(worker));
    OK(ha_job_close(job));
    return test_end();
}
