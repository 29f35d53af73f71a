/* Rows that change owners in batches: plans, runs, and what is refused. */
#include "test.h"
#include <unistd.h>

#define WORKERS 3
#define ROWS 12
#define BATCHES 8
#define PASSES 20

static ha_job *job;
static ha_row_plan *plan;
/* Whether workers may be on several hosts, where areas are found that are sent on demand. */
static uint32_t is_apart;

/* Worker `worker` writes three rows in a batch, and reads one that nobody writes in it. */
static uint32_t written(uint32_t worker, size_t batch, uint32_t which)
{
    return (uint32_t)((worker + which * WORKERS + 5 * batch) % (ROWS - 2));
}

static uint32_t read_only(size_t batch)
{
    return (uint32_t)((9 + 5 * batch) % (ROWS - 2));
}

/* What happens to a row. */
static void act(uint64_t *row, const uint64_t *other, uint32_t worker)
{
    row[0] = row[0] * 3 + other[1] + worker;
    row[1] = row[1] * 5 + row[0];
}

static ha_row_plan *make_plan(void)
{
    struct entry {
        double value;
        uint32_t row;
    } entries[3];
    const size_t rows = ROWS;
    ha_row_plan *made = NULL;
    size_t batch;
    uint32_t worker, which;
    OK(ha_row_plan_new(&rows, 1, BATCHES, WORKERS, &made));
    for (batch = 0; batch < BATCHES; batch++) {
        const uint32_t other = read_only(batch);
        for (worker = 0; worker < WORKERS; worker++) {
            for (which = 0; which < 3; which++) {
                entries[which].value = 0.5;
                entries[which].row = written(worker, batch, which);
            }
            OK(ha_row_plan_add(made, worker, 0, batch, HA_ROWS_WRITE, &entries[0].row, 3, sizeof entries[0]));
            OK(ha_row_plan_add(made, worker, 0, batch, HA_ROWS_READ, &other, 1, 0));
        }
    }
    return made;
}

static ha_area *model_of(ha_worker *worker, uint32_t rank, const char *name, size_t len, int copies)
{
    ha_area *model = NULL;
    ha_area_options options;
    ha_area_options_init(&options);
    options.no_copies = !copies && !is_apart;
    options.on_demand = !copies && is_apart;
    if (rank == 0)
        OK(ha_area_create(worker, name, HA_U64, len, &options, &model));
    else
        OK(ha_area_attach(worker, name, HA_U64, 120 * HA_SECOND, &model));
    return model;
}

static int untouched(const ha_block *block, void *argument)
{
    (void)block;
    (void)argument;
    return 1;
}

/* A worker that begins another run, or runs a loop, in the middle of one is refused alone, and at once: the others wait for its rows. */
static void begins_in_a_run(ha_worker *worker, ha_area *model)
{
    const int64_t first = 0, last = 2 * ROWS;
    const size_t extent = 2 * ROWS;
    const ha_subscript each = {0, {1}, 1};
    ha_rows *second = NULL;
    ha_loop *loop;
    FAILS(HA_BUSY, ha_rows_begin(worker, plan, 1, &model, 1, &second));
    SAYS("in a run of rows");
    CHECK(second == NULL);
    OK(ha_loop_new(worker, "within", HA_ORDERED, &first, &last, 1, WORKERS, &loop));
    OK(ha_loop_area(loop, model, &extent, 1));
    OK(ha_loop_update(loop, model, &each, 1));
    FAILS(HA_BUSY, ha_loop_run(loop, untouched, NULL));
    SAYS("loop \"within\": this worker is in a run of rows");
    OK(ha_loop_close(loop));
}

static int runs(ha_worker *worker, void *argument)
{
    ha_area *model;
    ha_rows *rows;
    uint32_t rank, which;
    void *data;
    size_t i;
    int round;
    uint64_t expected[ROWS][2];
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    model = model_of(worker, rank, "model", 2 * ROWS, 0);
    memset(expected, 0, sizeof expected);
    expected[ROWS - 1][1] = 1;
    if (rank == 0) {
        OK(ha_area_writer(model, &data));
        memcpy(data, expected, sizeof expected);
    }
    /* The same plan twice: each time, the area goes back to its owner. */
    for (round = 0; round < 2; round++) {
        OK(ha_rows_begin(worker, plan, PASSES, &model, 1, &rows));
        OK(ha_rows_data(rows, 0, &data));
        FAILS(HA_NOT_OWNER, ha_area_writer(model, &data));
        FAILS(HA_OUT_OF_RANGE, ha_rows_data(rows, 1, &data));
        if (rank == 0) {
            FAILS(HA_BUSY, ha_area_delete(model));
            FAILS(HA_NOT_OWNER, ha_area_give(model, 1));
        }
        OK(ha_rows_data(rows, 0, &data));
        for (i = 0; i < PASSES * BATCHES; i++) {
            uint64_t(*row)[2] = (uint64_t(*)[2])data;
            OK(ha_rows_next(rows));
            if (rank == 1 && i == BATCHES)
                begins_in_a_run(worker, model);
            for (which = 0; which < 3; which++)
                act(row[written(rank, i % BATCHES, which)], row[read_only(i % BATCHES)], rank);
        }
        FAILS(HA_OUT_OF_RANGE, ha_rows_next(rows));
        OK(ha_rows_end(rows));
        FAILS(HA_BAD_HANDLE, ha_rows_next(rows));
        for (i = 0; i < PASSES * BATCHES; i++) {
            uint32_t other;
            for (other = 0; other < WORKERS; other++)
                for (which = 0; which < 3; which++)
                    act(expected[written(other, i % BATCHES, which)], expected[read_only(i % BATCHES)], other);
        }
        if (rank == 0) {
            OK(ha_area_writer(model, &data));
            CHECK(memcmp(data, expected, sizeof expected) == 0);
        }
        if (is_apart) {
            /* What the workers wrote is published, on all hosts. */
            const void *seen;
            OK(ha_sync(worker, NULL));
            OK(ha_barrier(worker));
            OK(ha_area_sync(model, NULL));
            OK(ha_area_reader(model, &seen));
            CHECK(memcmp(seen, expected, sizeof expected) == 0);
            OK(ha_barrier(worker));
        }
    }
    OK(ha_barrier(worker));
    return 0;
}

/* What is wrong with one worker is an error on all, and they can go on. */
static int refusals(ha_worker *worker, void *argument)
{
    ha_area *model, *copied, *odd, *list[2];
    ha_rows *rows = NULL;
    uint32_t rank;
    int batch;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    model = model_of(worker, rank, "refused", 2 * ROWS, 0);
    copied = model_of(worker, rank, "copied", 2 * ROWS, 1);
    odd = model_of(worker, rank, "odd", 2 * ROWS + 1, 0);
    OK(ha_barrier(worker));
    FAILS(HA_INVALID_AREA, ha_rows_begin(worker, plan, 1, &copied, 1, &rows));
    FAILS(HA_BAD_ARGUMENT, ha_rows_begin(worker, plan, 1, &odd, 1, &rows));
    SAYS("are not 12 rows");
    list[0] = list[1] = model;
    FAILS(HA_BAD_ARGUMENT, ha_rows_begin(worker, plan, 1, list, 2, &rows));
    FAILS(HA_BAD_ARGUMENT, ha_rows_begin(worker, plan, (size_t)1 << 24, &model, 1, &rows));
    if (rank == 1) {
        FAILS(HA_BAD_HANDLE, ha_rows_begin(worker, (ha_row_plan *)model, 1, &model, 1, &rows));
    } else {
        FAILS(HA_WORKER_LEFT, ha_rows_begin(worker, plan, 1, &model, 1, &rows));
        SAYS("worker 1");
    }
    /* Another number of passes is another run. */
    if (rank == 2) {
        CHECK(ha_rows_begin(worker, plan, 2, &model, 1, &rows) != HA_OK);
    } else {
        CHECK(ha_rows_begin(worker, plan, 3, &model, 1, &rows) != HA_OK);
    }
    OK(ha_rows_begin(worker, plan, 1, &model, 1, &rows));
    for (batch = 0; batch < BATCHES; batch++)
        OK(ha_rows_next(rows));
    OK(ha_rows_end(rows));
    OK(ha_barrier(worker));
    return 0;
}

/* Who leaves is named also to those who do not wait for it. */
static int leaves_alone(ha_worker *worker, void *argument)
{
    const size_t rows_of[1] = {3};
    ha_row_plan *apart;
    ha_area *model;
    ha_rows *rows;
    uint32_t rank, row;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    OK(ha_row_plan_new(rows_of, 1, 1, 3, &apart));
    for (row = 0; row < 3; row++)
        OK(ha_row_plan_add(apart, row, 0, 0, HA_ROWS_WRITE, &row, 1, 0));
    OK(ha_row_plan_build(apart));
    model = model_of(worker, rank, "apart", 3, 0);
    OK(ha_rows_begin(worker, apart, 1, &model, 1, &rows));
    OK(ha_rows_next(rows));
    OK(ha_rows_end(rows));
    OK(ha_rows_begin(worker, apart, 2, &model, 1, &rows));
    OK(ha_rows_next(rows));
    if (rank == 1) {
        OK(ha_rows_close(rows));
    } else {
        OK(ha_rows_next(rows));
        FAILS(HA_OUT_OF_RANGE, ha_rows_next(rows));
        FAILS(HA_WORKER_LEFT, ha_rows_end(rows));
        SAYS("worker 1 has left a run");
    }
    OK(ha_row_plan_close(apart));
    return 0;
}

/* Who leaves is named to those who wait. */
static int deserted(ha_worker *worker, void *argument)
{
    ha_area *model;
    ha_rows *rows;
    uint32_t rank;
    ha_status status = HA_OK;
    int i;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    model = model_of(worker, rank, "left", 2 * ROWS, 0);
    OK(ha_rows_begin(worker, plan, PASSES, &model, 1, &rows));
    for (i = 0; i < PASSES * BATCHES && status == HA_OK; i++) {
        if (rank == 2 && i == 5) {
            OK(ha_rows_close(rows));
            return 0;
        }
        status = ha_rows_next(rows);
    }
    CHECK(status == HA_WORKER_LEFT);
    SAYS("worker 2 has left a run");
    OK(ha_rows_end(rows));
    if (rank == 0) {
        void *data;
        OK(ha_area_writer(model, &data));
    }
    return 0;
}

static void plans(void)
{
    const size_t rows[2] = {4, 2};
    const uint32_t some[2] = {1, 3}, none[1] = {2};
    ha_row_plan *bad;
    OK(ha_row_plan_new(rows, 2, 3, 2, &bad));
    OK(ha_row_plan_add(bad, 0, 0, 1, HA_ROWS_WRITE, some, 2, 0));
    OK(ha_row_plan_add(bad, 1, 0, 1, HA_ROWS_READ, some, 1, 2 * sizeof some[0]));
    FAILS(HA_OUT_OF_RANGE, ha_row_plan_add(bad, 0, 0, 0, HA_ROWS_WRITE, some, 2, 0));
    FAILS(HA_OUT_OF_RANGE, ha_row_plan_add(bad, 0, 0, 3, HA_ROWS_WRITE, some, 2, 0));
    FAILS(HA_OUT_OF_RANGE, ha_row_plan_add(bad, 2, 0, 1, HA_ROWS_WRITE, some, 2, 0));
    FAILS(HA_OUT_OF_RANGE, ha_row_plan_add(bad, 0, 2, 1, HA_ROWS_WRITE, some, 2, 0));
    FAILS(HA_BAD_ARGUMENT, ha_row_plan_add(bad, 0, 0, 1, 7, some, 2, 0));
    FAILS(HA_NULL, ha_row_plan_add(bad, 0, 0, 1, HA_ROWS_WRITE, NULL, 2, 0));
    FAILS(HA_BAD_PLAN, ha_row_plan_build(bad));
    SAYS("row 1 of array 0 is written by worker 0 in batch 1, in which worker 1 reads it");
    FAILS(HA_BAD_PLAN, ha_row_plan_build(bad));
    FAILS(HA_BAD_PLAN, ha_row_plan_add(bad, 0, 0, 2, HA_ROWS_WRITE, some, 2, 0));
    OK(ha_row_plan_close(bad));
    FAILS(HA_BAD_HANDLE, ha_row_plan_close(bad));
    OK(ha_row_plan_close(NULL));
    OK(ha_row_plan_new(rows, 2, 3, 2, &bad));
    OK(ha_row_plan_add(bad, 1, 1, 2, HA_ROWS_READ, none, 1, 0));
    FAILS(HA_BAD_PLAN, ha_row_plan_build(bad));
    SAYS("worker 1 touches row 2 of array 1 in batch 2: it has 2 rows");
    OK(ha_row_plan_close(bad));
    FAILS(HA_NULL, ha_row_plan_new(NULL, 2, 3, 2, &bad));
    FAILS(HA_NULL, ha_row_plan_new(rows, 2, 3, 2, NULL));
    FAILS(HA_BAD_PLAN, ha_row_plan_new(rows, 2, 3, 1u << 20, &bad));
    FAILS(HA_NULL, ha_rows_next(NULL));
    FAILS(HA_NULL, ha_rows_end(NULL));
    OK(ha_rows_close(NULL));
}

/* What no plan can have is refused by the first call that hears of it. */
static void sizes(void)
{
    const size_t rows[2] = {4, 2}, endless[1] = {SIZE_MAX}, many = (size_t)1 << 21;
    const uint32_t some[2] = {1, 3};
    ha_row_plan *made;
    FAILS(HA_BAD_PLAN, ha_row_plan_new(rows, 2, (size_t)5000000001, 2, &made));
    SAYS("5000000001 batches, 2 workers");
    SAYS("at most 16777215 batches");
    FAILS(HA_BAD_PLAN, ha_row_plan_new(rows, 2, SIZE_MAX, 2, &made));
    FAILS(HA_BAD_PLAN, ha_row_plan_new(endless, 1, 3, 2, &made));
    SAYS("4294967295 rows");
    FAILS(HA_BAD_PLAN, ha_row_plan_new(rows, 0, 3, 2, &made));
    SAYS("over 0 arrays");
    FAILS(HA_BAD_PLAN, ha_row_plan_new(rows, 2, 3, 0, &made));
    SAYS("of 0 workers");
    FAILS(HA_BAD_PLAN, ha_row_plan_new(rows, many, 3, 1, &made));
    SAYS("over 2097152 arrays");
    FAILS(HA_BAD_PLAN, ha_row_plan_new(rows, SIZE_MAX, 3, 65535, &made));
    OK(ha_row_plan_new(rows, 2, 16777215, 2, &made));
    FAILS(HA_OUT_OF_RANGE, ha_row_plan_add(made, 0, 0, (size_t)5000000000, HA_ROWS_WRITE, some, 2, 0));
    SAYS("batch 5000000000: it has 16777215");
    FAILS(HA_OUT_OF_RANGE, ha_row_plan_add(made, 0, 0, SIZE_MAX - 1, HA_ROWS_WRITE, some, 2, 0));
    SAYS("it has 16777215");
    FAILS(HA_BAD_ARGUMENT, ha_row_plan_add(made, 0, 0, 1, HA_ROWS_WRITE, some, 2, 3));
    SAYS("rows 3 bytes apart");
    OK(ha_row_plan_add(made, 0, 0, 16777214, HA_ROWS_WRITE, some, 2, 4));
    OK(ha_row_plan_close(made));
}

/* The last worker ends without a word in the middle of a run: all others hear of it, whoever they wait for. */
static void ends(uint32_t rank, uint32_t size)
{
    const size_t count = 2 * (size_t)size;
    ha_row_plan *made = NULL;
    ha_worker *worker;
    ha_area *model;
    ha_rows *rows = NULL;
    ha_status status = HA_OK;
    uint32_t of, batch, written[2];
    char name[64];
    int i;
    OK(ha_row_plan_new(&count, 1, 8, size, &made));
    for (of = 0; of < size; of++)
        for (batch = 0; batch < 8; batch++) {
            written[0] = (of + batch) % size;
            written[1] = size + (of + 2 * batch) % size;
            OK(ha_row_plan_add(made, of, 0, batch, HA_ROWS_WRITE, written, 2, 0));
        }
    OK(ha_row_plan_build(made));
    is_apart = 1;
    OK(ha_job_open(NULL, &job));
    OK(ha_worker_join_at(job, rank, &worker));
    OK(ha_wait_for_workers(worker, size, 120 * HA_SECOND));
    model = model_of(worker, rank, "model", count * 100, 0);
    OK(ha_rows_begin(worker, made, 20, &model, 1, &rows));
    for (i = 0; i < 160 && status == HA_OK; i++) {
        if (rank == size - 1 && i == 80)
            _exit(0);
        status = ha_rows_next(rows);
    }
    CHECK(status == HA_WORKER_LEFT);
    snprintf(name, sizeof name, "worker %u has left a run", size - 1);
    CHECK(strstr(ha_last_error(), name) != NULL);
    ha_rows_end(rows);
    OK(ha_row_plan_close(made));
    OK(ha_worker_leave(worker));
    OK(ha_job_close(job));
}

/* As processes, each a worker. */
static void apart(uint32_t rank, uint32_t size)
{
    ha_worker *worker;
    int i;
    CHECK(size == WORKERS);
    is_apart = 1;
    plan = make_plan();
    OK(ha_row_plan_build(plan));
    OK(ha_job_open(NULL, &job));
    OK(ha_worker_join_at(job, rank, &worker));
    OK(ha_wait_for_workers(worker, size, 120 * HA_SECOND));
    runs(worker, NULL);
    refusals(worker, NULL);
    /* Who leaves early meets the others where they end: twice. */
    deserted(worker, NULL);
    for (i = 0; rank == 2 && i < 2; i++)
        OK(ha_barrier(worker));
    leaves_alone(worker, NULL);
    for (i = 0; rank == 1 && i < 2; i++)
        OK(ha_barrier(worker));
    OK(ha_row_plan_close(plan));
    OK(ha_worker_leave(worker));
    OK(ha_job_close(job));
}

int main(int count, char **arguments)
{
    ha_rows *rows;
    ha_worker *worker;
    uint32_t rank, size;
    OK(ha_launch(&rank, &size));
    if (count > 1 && strcmp(arguments[1], "ends") == 0) {
        ends(rank, size);
        return test_end();
    }
    if (size > 1) {
        apart(rank, size);
        return test_end();
    }
    plans();
    sizes();
    plan = make_plan();
    job = test_job(0);
    OK(ha_worker_join(job, &worker));
    FAILS(HA_BAD_PLAN, ha_rows_begin(worker, plan, 1, NULL, 0, &rows));
    SAYS("has not been built");
    OK(ha_worker_leave(worker));
    OK(ha_row_plan_build(plan));
    OK(ha_run(job, WORKERS, runs, NULL));
    OK(ha_job_close(job));
    /* Areas that are sent on demand are opened on one host, too. */
    job = test_job(0);
    is_apart = 1;
    OK(ha_run(job, WORKERS, runs, NULL));
    is_apart = 0;
    OK(ha_job_close(job));
    job = test_job(0);
    OK(ha_run(job, WORKERS, refusals, NULL));
    OK(ha_run(job, WORKERS, deserted, NULL));
    OK(ha_run(job, WORKERS, leaves_alone, NULL));
    OK(ha_row_plan_close(plan));
    OK(ha_job_close(job));
    return test_end();
}
