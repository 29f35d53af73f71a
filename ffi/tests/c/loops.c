/* Loops that are described and run by several workers: the bits of the serial loop, and what is refused. */
#include "test.h"

#define N 320
#define SWEEPS 2

static ha_job *job;
static uint32_t workers;
/* Whether workers may be on several hosts, where areas are found that are sent on demand. */
static uint32_t is_apart;

static double start(size_t i, size_t j)
{
    return (double)((i * 31 + j * 17) % 101) / 7.0;
}

/* One sweep over part of a grid, in the order of the loop. */
static void seidel(double *a, const int64_t *first, const int64_t *last)
{
    int64_t i, j;
    for (i = first[0]; i < last[0]; i++)
        for (j = first[1]; j < last[1]; j++)
            a[i * N + j] = (a[(i - 1) * N + j] + a[i * N + j - 1] + a[i * N + j] + a[i * N + j + 1] +
                            a[(i + 1) * N + j]) / 5.0;
}

static void skewed(double *a, const int64_t *first, const int64_t *last)
{
    int64_t i, j;
    for (i = first[0]; i < last[0]; i++)
        for (j = first[1]; j < last[1]; j++)
            a[i * N + j] = a[i * N + j] / 2.0 + a[(i - 1) * N + j + 1] / 3.0 + a[i * N + j - 1] / 7.0;
}

static void prefix(double *a, const int64_t *first, const int64_t *last)
{
    int64_t i, j;
    for (i = first[0]; i < last[0]; i++)
        for (j = 1; j < N; j++)
            a[i * N + j] += a[i * N + j - 1];
}

static void odd_from_even(double *a, const int64_t *first, const int64_t *last)
{
    int64_t i;
    for (i = first[0]; i < last[0]; i++)
        a[2 * i + 1] = (a[2 * i] + a[2 * i + 2]) / 2.0;
}

static void even_from_odd(double *a, const int64_t *first, const int64_t *last)
{
    int64_t i;
    for (i = first[0]; i < last[0]; i++)
        a[2 * i + 2] = (a[2 * i + 1] + a[2 * i + 3]) / 2.0;
}

typedef void (*part)(double *a, const int64_t *first, const int64_t *last);

static int run_part(const ha_block *block, void *argument)
{
    CHECK(block->size == sizeof *block && block->area_count == 1);
    (*(part *)argument)((double *)block->areas[0], block->first, block->last);
    return 0;
}

static ha_area *grid_of(ha_worker *worker, const char *name, size_t len)
{
    ha_area *grid = NULL;
    ha_area_options options;
    uint32_t rank;
    void *data;
    size_t at;
    OK(ha_worker_rank(worker, &rank));
    ha_area_options_init(&options);
    options.no_copies = !is_apart;
    options.on_demand = is_apart;
    if (rank == 0) {
        OK(ha_area_create(worker, name, HA_F64, len, &options, &grid));
        OK(ha_area_writer(grid, &data));
        for (at = 0; at < len; at++)
            ((double *)data)[at] = start(at / N, at % N);
    } else {
        OK(ha_area_attach(worker, name, HA_F64, 120 * HA_SECOND, &grid));
    }
    OK(ha_barrier(worker));
    return grid;
}

static ha_loop *loop_of(ha_worker *worker, const char *name, ha_loop_order order, size_t dims, int64_t from, int64_t to)
{
    ha_loop *made = NULL;
    const int64_t first[2] = {from, from}, last[2] = {to, to};
    OK(ha_loop_new(worker, name, order, first, last, dims, workers, &made));
    return made;
}

/* Explains the loop, in which this stands. */
static void explains(ha_loop *loop, const char *said)
{
    char text[4000], little[8];
    size_t length, again;
    OK(ha_loop_explain(loop, text, sizeof text, &length));
    CHECK(strlen(text) == length);
    if (strstr(text, said) == NULL)
        failed(__FILE__, __LINE__, said, text);
    OK(ha_loop_explain(loop, little, sizeof little, &again));
    CHECK(again == length && strlen(little) == sizeof little - 1);
    OK(ha_loop_explain(loop, NULL, 0, &again));
}

/* Runs parts one after the other, some times, and compares with the serial program. */
static void compare(ha_worker *worker, ha_area *grid, ha_loop *const *loops, part *parts, size_t count,
                    const int64_t *first, const int64_t *last)
{
    const size_t len = ha_area_len(grid);
    double *expected = malloc(len * sizeof *expected);
    uint32_t rank;
    void *data;
    size_t at, sweep;
    OK(ha_worker_rank(worker, &rank));
    if (expected == NULL)
        exit(1);
    for (at = 0; at < len; at++)
        expected[at] = start(at / N, at % N);
    for (sweep = 0; sweep < SWEEPS; sweep++)
        for (at = 0; at < count; at++) {
            OK(ha_loop_run(loops[at], run_part, &parts[at]));
            parts[at](expected, first, last);
        }
    if (rank == 0) {
        OK(ha_area_writer(grid, &data));
        CHECK(memcmp(data, expected, len * sizeof *expected) == 0);
    }
    free(expected);
    for (at = 0; at < count; at++)
        OK(ha_loop_close(loops[at]));
    OK(ha_barrier(worker));
    if (rank == 0)
        OK(ha_area_delete(grid));
    else
        OK(ha_area_detach(grid));
    OK(ha_barrier(worker));
}

/* Nothing is run of a loop without iterations. */
static int never(const ha_block *block, void *argument)
{
    (void)block;
    (void)argument;
    return 1;
}

static void empty(ha_worker *worker)
{
    const size_t square[2] = {N, N};
    const ha_subscript here[2] = {{0, {1}, 0}, {0, {0, 1}, 0}};
    const int64_t first[2] = {1, 5}, last[2] = {N - 1, 5};
    ha_area *grid = grid_of(worker, "empty", N * N);
    ha_loop *loop;
    OK(ha_loop_new(worker, "empty", HA_UNORDERED, first, last, 2, workers, &loop));
    OK(ha_loop_area(loop, grid, square, 2));
    OK(ha_loop_update(loop, grid, here, 2));
    OK(ha_loop_run(loop, never, NULL));
    OK(ha_loop_close(loop));
    loop = loop_of(worker, "none", HA_UNORDERED, 2, 5, 5);
    OK(ha_loop_area(loop, grid, square, 2));
    OK(ha_loop_update(loop, grid, here, 2));
    OK(ha_loop_run(loop, never, NULL));
    OK(ha_loop_close(loop));
    OK(ha_barrier(worker));
}

static int runs(ha_worker *worker, void *argument)
{
    const size_t square[2] = {N, N}, line = N * N;
    const int64_t first[2] = {1, 1}, last[2] = {N - 1, N - 1}, top = 1, bottom = N, zero = 0, half = N * N / 2 - 2;
    const ha_subscript here[2] = {{0, {1}, 0}, {0, {0, 1}, 0}}, above[2] = {{-1, {1}, 0}, {0, {0, 1}, 0}};
    const ha_subscript below[2] = {{1, {1}, 0}, {0, {0, 1}, 0}}, left[2] = {{0, {1}, 0}, {-1, {0, 1}, 3}};
    const ha_subscript before[2] = {{0, {1}, 0}, {-1, {0, 1}, 0}}, right[2] = {{-1, {1}, 0}, {1, {0, 1}, 0}};
    const ha_subscript row[2] = {{0, {1}, 0}, {0, {0}, HA_WHOLE}};
    const ha_subscript even = {0, {2}, 3}, odd = {1, {2}, 0}, later = {1, {2}, 3}, second = {2, {2}, 0};
    part parts[2] = {seidel, NULL};
    ha_loop *loops[2] = {NULL, NULL};
    ha_area *grid;
    (void)argument;

    empty(worker);
    /* Five neighbours: a pipelined wavefront. */
    grid = grid_of(worker, "grid", N * N);
    loops[0] = loop_of(worker, "seidel", HA_ORDERED, 2, 1, N - 1);
    OK(ha_loop_area(loops[0], grid, square, 2));
    OK(ha_loop_update(loops[0], grid, here, 2));
    OK(ha_loop_read(loops[0], grid, above, 2));
    OK(ha_loop_read(loops[0], grid, below, 2));
    OK(ha_loop_read(loops[0], grid, left, 2));
    if (workers > 1)
        explains(loops[0], "* wavefront: i in turn");
    compare(worker, grid, loops, parts, 1, first, last);

    /* What lies further on in the row above: rows of one index. */
    parts[0] = skewed;
    grid = grid_of(worker, "skewed", N * N);
    loops[0] = loop_of(worker, "skewed", HA_ORDERED, 2, 1, N - 1);
    OK(ha_loop_area(loops[0], grid, square, 2));
    OK(ha_loop_update(loops[0], grid, here, 2));
    OK(ha_loop_read(loops[0], grid, right, 2));
    OK(ha_loop_read(loops[0], grid, before, 2));
    if (workers > 2)
        explains(loops[0], "* wavefront: i in turn");
    compare(worker, grid, loops, parts, 1, first, last);

    /* Sums along rows: each row by itself. */
    parts[0] = prefix;
    grid = grid_of(worker, "prefix", N * N);
    OK(ha_loop_new(worker, "prefix", HA_ORDERED, &top, &bottom, 1, workers, &loops[0]));
    OK(ha_loop_area(loops[0], grid, square, 2));
    OK(ha_loop_update(loops[0], grid, row, 2));
    if (workers > 1)
        explains(loops[0], "* fully parallel, in blocks of i");
    compare(worker, grid, loops, parts, 1, &top, &bottom);

    /* Red and black: elements of one array beside each other, at once. */
    parts[0] = odd_from_even;
    parts[1] = even_from_odd;
    grid = grid_of(worker, "red and black", N * N);
    OK(ha_loop_new(worker, "red", HA_UNORDERED, &zero, &half, 1, workers, &loops[0]));
    OK(ha_loop_area(loops[0], grid, &line, 1));
    OK(ha_loop_write(loops[0], grid, &odd, 1));
    {
        const ha_subscript near = {0, {2}, 0};
        OK(ha_loop_read(loops[0], grid, &near, 1));
        OK(ha_loop_read(loops[0], grid, &second, 1));
    }
    if (workers > 1)
        explains(loops[0], "* fully parallel, in blocks of i, arrays in place");
    OK(ha_loop_new(worker, "black", HA_UNORDERED, &zero, &half, 1, workers, &loops[1]));
    OK(ha_loop_area(loops[1], grid, &line, 1));
    OK(ha_loop_write(loops[1], grid, &second, 1));
    OK(ha_loop_read(loops[1], grid, &odd, 1));
    {
        const ha_subscript far = {3, {2}, 0};
        OK(ha_loop_read(loops[1], grid, &far, 1));
    }
    compare(worker, grid, loops, parts, 2, &zero, &half);

    /* Ranges that overlap are dependences: serial, and right. */
    parts[0] = odd_from_even;
    grid = grid_of(worker, "overlapping", N * N);
    OK(ha_loop_new(worker, "overlapping", HA_ORDERED, &zero, &half, 1, workers, &loops[0]));
    OK(ha_loop_area(loops[0], grid, &line, 1));
    OK(ha_loop_update(loops[0], grid, &even, 1));
    OK(ha_loop_update(loops[0], grid, &later, 1));
    explains(loops[0], "* serial");
    compare(worker, grid, loops, parts, 1, &zero, &half);
    return 0;
}

/* What is wrong with a description. */
static void descriptions(ha_worker *worker)
{
    const size_t square[2] = {N, N}, wrong[2] = {N, N - 1};
    const int64_t first[2] = {0, 1}, last[2] = {N, N}, far[2] = {0, (int64_t)1 << 41};
    const ha_subscript above[2] = {{-1, {1}, 0}, {0, {0, 1}, 0}}, beyond[2] = {{0, {1}, 0}, {0, {0, 1}, 2}};
    const ha_subscript third[2] = {{0, {0, 0, 1}, 0}, {0, {0, 1}, 0}}, large[2] = {{0, {INT64_MAX}, 0}, {0, {0}, 0}};
    ha_area *grid = grid_of(worker, "described", N * N), *other = grid_of(worker, "other", N);
    ha_loop *loop = NULL;
    size_t length;
    FAILS(HA_NULL, ha_loop_new(NULL, "loop", HA_ORDERED, first, last, 2, workers, &loop));
    FAILS(HA_NULL, ha_loop_new(worker, NULL, HA_ORDERED, first, last, 2, workers, &loop));
    FAILS(HA_NULL, ha_loop_new(worker, "loop", HA_ORDERED, NULL, last, 2, workers, &loop));
    FAILS(HA_NULL, ha_loop_new(worker, "loop", HA_ORDERED, first, last, 2, workers, NULL));
    FAILS(HA_BAD_ARGUMENT, ha_loop_new(worker, "no order", (ha_loop_order)7, first, last, 2, workers, &loop));
    SAYS("loop \"no order\": 7 is no ha_loop_order");
    FAILS(HA_BAD_ARGUMENT, ha_loop_new(worker, "flat", HA_ORDERED, first, last, 0, workers, &loop));
    FAILS(HA_BAD_ARGUMENT, ha_loop_new(worker, "deep", HA_ORDERED, first, last, HA_LOOP_DIMS + 1, workers, &loop));
    FAILS(HA_BAD_ARGUMENT, ha_loop_new(worker, "alone", HA_ORDERED, first, last, 2, 0, &loop));
    FAILS(HA_BAD_ARGUMENT, ha_loop_new(worker, "long", HA_ORDERED, first, far, 2, workers, &loop));
    SAYS("loop \"long\": j from 1");
    SAYS("at most 2^40 from 0");
    FAILS(HA_BAD_ARGUMENT, ha_loop_new(worker, "wide", HA_ORDERED, first, last, 2, UINT32_MAX, &loop));
    SAYS("4294967295 workers: it has 1 to 65535");
    loop = loop_of(worker, "sweep", HA_ORDERED, 2, 0, N);
    FAILS(HA_BAD_PLAN, ha_loop_explain(loop, NULL, 0, &length));
    SAYS("loop \"sweep\": it touches no area");
    FAILS(HA_BAD_ARGUMENT, ha_loop_read(loop, grid, above, 2));
    SAYS("loop \"sweep\": it has no area \"described\"");
    FAILS(HA_BAD_ARGUMENT, ha_loop_area(loop, grid, wrong, 2));
    SAYS("area \"described\" has 102400 elements");
    FAILS(HA_BAD_ARGUMENT, ha_loop_area(loop, grid, square, 0));
    FAILS(HA_NULL, ha_loop_area(loop, grid, NULL, 2));
    FAILS(HA_BAD_HANDLE, ha_loop_area(loop, (ha_area *)loop, square, 2));
    OK(ha_loop_area(loop, grid, square, 2));
    FAILS(HA_BAD_ARGUMENT, ha_loop_area(loop, grid, square, 2));
    FAILS(HA_BAD_ARGUMENT, ha_loop_read(loop, other, above, 1));
    FAILS(HA_BAD_ARGUMENT, ha_loop_read(loop, grid, above, 1));
    SAYS("1 subscripts for area \"described\"");
    FAILS(HA_NULL, ha_loop_write(loop, grid, NULL, 2));
    FAILS(HA_OUT_OF_RANGE, ha_loop_read(loop, grid, above, 2));
    SAYS("loop \"sweep\": it reads area \"described\" at index -1 of dimension 0, which has 320, in iteration i = 0, j = 0");
    FAILS(HA_OUT_OF_RANGE, ha_loop_write(loop, grid, beyond, 2));
    SAYS("it writes area \"described\" at index 320 of dimension 1, which has 320, in iteration i = 0, j = 319");
    FAILS(HA_OUT_OF_RANGE, ha_loop_update(loop, grid, large, 2));
    FAILS(HA_BAD_ARGUMENT, ha_loop_read(loop, grid, third, 2));
    SAYS("a variable that the loop does not have");
    OK(ha_loop_explain(loop, NULL, 0, &length));
    FAILS(HA_BAD_PLAN, ha_loop_area(loop, other, square, 1));
    SAYS("it is planned");
    FAILS(HA_NULL, ha_loop_explain(loop, NULL, 9, &length));
    FAILS(HA_NULL, ha_loop_explain(loop, NULL, 0, NULL));
    OK(ha_loop_close(loop));
    FAILS(HA_BAD_HANDLE, ha_loop_close(loop));
    OK(ha_loop_close(NULL));
    FAILS(HA_NULL, ha_loop_run(NULL, run_part, NULL));
    OK(ha_barrier(worker));
}

struct stopper {
    ha_worker *worker;
    ha_loop *loop;
    ha_area *area;
    int64_t row; /* the body fails here */
};

/* The worker whose body has failed last; the others read it when they have met. */
static uint32_t failed_rank;

static int stopping(const ha_block *block, void *argument)
{
    struct stopper *stop = argument;
    FAILS(HA_BUSY, ha_service(stop->worker));
    FAILS(HA_BUSY, ha_loop_close(stop->loop));
    FAILS(HA_BUSY, ha_area_detach(stop->area));
    if (block->first[0] > stop->row || stop->row >= block->last[0])
        return 0;
    failed_rank = block->worker;
    return 7;
}

/* A body that fails on one worker is an error on all, which name that one, whether or not they wait for its blocks. */
static void stops(ha_loop *loop, struct stopper *stop)
{
    char names[64];
    const ha_status status = ha_loop_run(loop, stopping, stop);
    CHECK(status == HA_CALLBACK || status == HA_WORKER_LEFT);
    SAYS("loop \"stops\"");
    /* Another process knows its own failures alone. */
    if (is_apart)
        snprintf(names, sizeof names, status == HA_CALLBACK ? "the body returned 7 on worker" : "has left a run");
    else
        snprintf(names, sizeof names,
                 status == HA_CALLBACK ? "the body returned 7 on worker %u" : "worker %u has left a run", failed_rank);
    CHECK(strstr(ha_last_error(), names) != NULL);
}

/* What is wrong with one worker is an error on all, and they can go on. */
static int refusals(ha_worker *worker, void *argument)
{
    const size_t square[2] = {N, N};
    const ha_subscript here[2] = {{0, {1}, 0}, {0, {0, 1}, 0}}, above[2] = {{-1, {1}, 0}, {0, {0, 1}, 0}};
    const ha_subscript before[2] = {{0, {1}, 0}, {-1, {0, 1}, 0}};
    struct stopper stop;
    ha_area *grid, *copied = NULL;
    ha_loop *loop;
    uint32_t rank;
    void *data;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    descriptions(worker);
    grid = grid_of(worker, "refused", N * N);
    if (rank == 0)
        OK(ha_area_create(worker, "copied", HA_F64, N * N, NULL, &copied));
    else
        OK(ha_area_attach(worker, "copied", HA_F64, 120 * HA_SECOND, &copied));

    loop = loop_of(worker, "copied", HA_ORDERED, 2, 1, N);
    OK(ha_loop_area(loop, copied, square, 2));
    OK(ha_loop_update(loop, copied, here, 2));
    FAILS(HA_INVALID_AREA, ha_loop_run(loop, run_part, NULL));
    SAYS("loop \"copied\"");
    OK(ha_loop_close(loop));

    /* One worker thinks that it is alone. */
    if (workers > 1) {
        const int64_t from[2] = {1, 1}, to[2] = {N, N};
        OK(ha_loop_new(worker, "alone", HA_ORDERED, from, to, 2, rank == 0 ? 1 : workers, &loop));
        OK(ha_loop_area(loop, grid, square, 2));
        OK(ha_loop_update(loop, grid, here, 2));
        FAILS(HA_BAD_ARGUMENT, ha_loop_run(loop, run_part, NULL));
        SAYS("loop \"alone\"");
        OK(ha_loop_close(loop));
    }

    /* Loops that differ. */
    loop = loop_of(worker, "different", HA_ORDERED, 2, 1, rank == 1 ? N - 1 : N);
    OK(ha_loop_area(loop, grid, square, 2));
    OK(ha_loop_update(loop, grid, here, 2));
    CHECK(ha_loop_run(loop, run_part, NULL) != HA_OK);
    SAYS("loop \"different\"");
    OK(ha_loop_close(loop));

    loop = loop_of(worker, "stops", HA_ORDERED, 2, 1, N);
    OK(ha_loop_area(loop, grid, square, 2));
    OK(ha_loop_update(loop, grid, here, 2));
    OK(ha_loop_read(loop, grid, above, 2));
    OK(ha_loop_read(loop, grid, before, 2));
    if (rank == 2) {
        FAILS(HA_NULL, ha_loop_run(loop, NULL, NULL));
    } else {
        FAILS(HA_WORKER_LEFT, ha_loop_run(loop, run_part, NULL));
        SAYS("worker 2");
    }
    stop.worker = worker;
    stop.loop = loop;
    stop.area = grid;
    stop.row = N / 2;
    stops(loop, &stop);
    stop.row = 1; /* of the worker for which all wait, one by way of the other */
    stops(loop, &stop);
    stop.row = -1;
    OK(ha_loop_run(loop, stopping, &stop));
    OK(ha_loop_close(loop));

    /* Blocks that nobody waits for. */
    loop = loop_of(worker, "stops", HA_UNORDERED, 2, 1, N);
    OK(ha_loop_area(loop, grid, square, 2));
    OK(ha_loop_update(loop, grid, here, 2));
    stop.loop = loop;
    for (stop.row = 1; stop.row < N; stop.row += N - 2)
        stops(loop, &stop);
    stop.row = -1;
    OK(ha_loop_run(loop, stopping, &stop));
    if (rank == 0)
        OK(ha_area_writer(grid, &data));
    OK(ha_loop_close(loop));
    OK(ha_barrier(worker));
    return 0;
}

int main(void)
{
    ha_worker *worker;
    uint32_t rank, size;
    OK(ha_launch(&rank, &size));
    if (size > 1) {
        is_apart = 1;
        workers = size;
        OK(ha_job_open(NULL, &job));
        OK(ha_worker_join_at(job, rank, &worker));
        OK(ha_wait_for_workers(worker, size, 120 * HA_SECOND));
        runs(worker, NULL);
        refusals(worker, NULL);
        OK(ha_worker_leave(worker));
        OK(ha_job_close(job));
        return test_end();
    }
    for (workers = 1; workers <= 3; workers++) {
        job = test_job(0);
        OK(ha_run(job, workers, runs, NULL));
        OK(ha_job_close(job));
    }
    workers = 3;
    job = test_job(0);
    OK(ha_run(job, workers, refusals, NULL));
    OK(ha_job_close(job));
    return test_end();
}
