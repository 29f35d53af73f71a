/* Wrong calls: a status and a text, never a crash. */
#include "test.h"

static ha_job *job;

static void null(void)
{
    ha_worker *worker;
    ha_area *area;
    ha_view view;
    ha_stats stats;
    ha_version version = {0, 0};
    size_t count;
    uint32_t rank;
    uint64_t number;
    void *data;
    const void *seen;
    int descriptor;

    FAILS(HA_NULL, ha_job_embedded(NULL, NULL));
    FAILS(HA_NULL, ha_job_open(NULL, NULL));
    FAILS(HA_NULL, ha_job_connect("x", NULL));
    FAILS(HA_NULL, ha_job_from_descriptor(0, NULL));
    FAILS(HA_NULL, ha_job_descriptor(NULL, &descriptor));
    FAILS(HA_NULL, ha_job_descriptor(job, NULL));
    FAILS(HA_NULL, ha_job_delete_area(NULL, "x"));
    FAILS(HA_NULL, ha_job_delete_area(job, NULL));
    FAILS(HA_NULL, ha_job_stats(NULL, &stats));
    FAILS(HA_NULL, ha_job_stats(job, NULL));
    FAILS(HA_NULL, ha_job_areas(job, NULL, sizeof(ha_area_info), 1, &count));
    FAILS(HA_NULL, ha_job_areas(job, NULL, 0, 0, NULL));
    FAILS(HA_NULL, ha_job_workers(NULL, NULL, 0, 0, &count));
    FAILS(HA_NULL, ha_run(NULL, 1, NULL, NULL));
    FAILS(HA_NULL, ha_run(job, 1, NULL, NULL));
    FAILS(HA_NULL, ha_worker_join(NULL, &worker));
    FAILS(HA_NULL, ha_worker_join(job, NULL));
    FAILS(HA_NULL, ha_worker_rank(NULL, &rank));
    FAILS(HA_NULL, ha_service(NULL));
    FAILS(HA_NULL, ha_sync(NULL, NULL));
    FAILS(HA_NULL, ha_barrier(NULL));
    FAILS(HA_NULL, ha_tick(NULL, NULL));
    FAILS(HA_NULL, ha_wait_clocks(NULL, 0, 0));
    FAILS(HA_NULL, ha_area_create(NULL, "a", HA_F64, 1, NULL, &area));
    FAILS(HA_NULL, ha_area_attach(NULL, "a", HA_F64, 0, &area));
    FAILS(HA_NULL, ha_area_writer(NULL, &data));
    FAILS(HA_NULL, ha_area_reader(NULL, &seen));
    FAILS(HA_NULL, ha_area_give(NULL, 0));
    FAILS(HA_NULL, ha_area_take(NULL, 0));
    FAILS(HA_NULL, ha_area_lend(NULL));
    FAILS(HA_NULL, ha_area_version(NULL, &version));
    FAILS(HA_NULL, ha_area_age(NULL, &number));
    FAILS(HA_NULL, ha_log(NULL, 0, 1));
    FAILS(HA_NULL, ha_log_row(NULL, 0));
    FAILS(HA_NULL, ha_log_rows(NULL, 0, 1));
    FAILS(HA_NULL, ha_log_all(NULL));
    FAILS(HA_NULL, ha_view_open(NULL, 0, 0, &view));
    FAILS(HA_NULL, ha_view_close(NULL));
    FAILS(HA_NULL, ha_array_barrier(NULL));
    FAILS(HA_NULL, ha_reducer_run(NULL, HA_SUM));
    FAILS(HA_NULL, ha_observer_load(NULL, "a", HA_F64, 0, 0, NULL, 0, NULL));
    CHECK(ha_area_len(NULL) == 0 && ha_area_row_len(NULL) == 0 && ha_area_is_owned(NULL) == 0);
    /* Closing nothing is allowed, as with free. */
    OK(ha_job_close(NULL));
    OK(ha_worker_leave(NULL));
    OK(ha_area_detach(NULL));
    OK(ha_array_close(NULL));
    OK(ha_reducer_close(NULL));
    OK(ha_observer_close(NULL));

    OK(ha_worker_join(job, &worker));
    FAILS(HA_NULL, ha_worker_rank(worker, NULL));
    FAILS(HA_NULL, ha_clock(worker, NULL));
    FAILS(HA_NULL, ha_area_create(worker, NULL, HA_F64, 1, NULL, &area));
    FAILS(HA_NULL, ha_area_create(worker, "a", HA_F64, 1, NULL, NULL));
    FAILS(HA_NULL, ha_area_attach(worker, NULL, HA_F64, 0, &area));
    FAILS(HA_NULL, ha_area_claim(worker, "a", HA_F64, NULL, NULL));
    OK(ha_area_create(worker, "a", HA_F64, 1, NULL, &area));
    FAILS(HA_NULL, ha_area_writer(area, NULL));
    FAILS(HA_NULL, ha_area_reader(area, NULL));
    FAILS(HA_NULL, ha_area_load(area, 0, 1, NULL, 8));
    FAILS(HA_NULL, ha_area_store(area, 0, 1, NULL, 8));
    FAILS(HA_NULL, ha_area_changed_since(area, version, NULL, 1, &count));
    FAILS(HA_NULL, ha_area_changed_since(area, version, NULL, 0, NULL));
    FAILS(HA_NULL, ha_view_open(area, 0, 1, NULL));
    OK(ha_area_delete(area));
    OK(ha_worker_leave(worker));
}

static void dangling(void)
{
    ha_worker *worker, *second;
    ha_area *area, *other;
    ha_job *closed;
    ha_observer *observer;
    void *data;
    uint64_t memory[16] = {0};
    uint32_t rank;
    int i;

    closed = test_job(0);
    OK(ha_job_close(closed));
    FAILS(HA_BAD_HANDLE, ha_job_close(closed));
    SAYS("closed before");
    FAILS(HA_BAD_HANDLE, ha_worker_join(closed, &worker));
    FAILS(HA_BAD_HANDLE, ha_observer_open(closed, &observer));

    OK(ha_worker_join(job, &worker));
    OK(ha_area_create(worker, "a", HA_F64, 100, NULL, &area));
    OK(ha_area_attach(worker, "a", HA_F64, 0, &other));
    /* Handles of another kind, memory that is none, and a pointer that is not aligned. */
    FAILS(HA_BAD_HANDLE, ha_service((ha_worker *)(void *)area));
    SAYS("no such handle");
    FAILS(HA_BAD_HANDLE, ha_log((ha_area *)(void *)memory, 0, 1));
    FAILS(HA_BAD_HANDLE, ha_area_writer((ha_area *)(void *)job, &data));
    FAILS(HA_BAD_HANDLE, ha_worker_rank((ha_worker *)(void *)memory, &rank));
    FAILS(HA_BAD_HANDLE, ha_job_close((ha_job *)(void *)((char *)job + 1)));

    OK(ha_area_detach(other));
    FAILS(HA_BAD_HANDLE, ha_area_detach(other));
    FAILS(HA_BAD_HANDLE, ha_log(other, 0, 1));
    FAILS(HA_BAD_HANDLE, ha_log_row(other, 0));
    FAILS(HA_BAD_HANDLE, ha_area_writer(other, &data));
    /* A handle is not taken for one that was opened after it was closed. */
    for (i = 0; i < 200; i++) {
        ha_area *next;
        OK(ha_area_attach(worker, "a", HA_F64, 0, &next));
        CHECK(next != other);
        OK(ha_area_detach(next));
    }
    FAILS(HA_BAD_HANDLE, ha_area_detach(other));

    /* Leaving closes what the worker has. */
    OK(ha_worker_leave(worker));
    FAILS(HA_BAD_HANDLE, ha_worker_leave(worker));
    FAILS(HA_BAD_HANDLE, ha_service(worker));
    FAILS(HA_BAD_HANDLE, ha_area_writer(area, &data));
    FAILS(HA_BAD_HANDLE, ha_log(area, 0, 1));
    FAILS(HA_BAD_HANDLE, ha_area_detach(area));
    CHECK(ha_area_len(area) == 0);
    OK(ha_worker_join(job, &second));
    FAILS(HA_BAD_HANDLE, ha_service(worker));
    OK(ha_job_delete_area(job, "a"));
    OK(ha_worker_leave(second));
}

static void sizes(void)
{
    ha_job *made;
    ha_worker *worker;
    ha_area *area;
    ha_job_options options;
    ha_area_options spec;
    ha_synced synced;
    ha_stats stats;
    double values[4];
    struct {
        ha_area_options known;
        uint64_t later;
    } newer;

    ha_job_options_init(&options);
    options.size = 0;
    FAILS(HA_BAD_SIZE, ha_job_embedded(&options, &made));
    SAYS("ha_job_options");
    options.size = 7;
    FAILS(HA_BAD_SIZE, ha_job_embedded(&options, &made));
    options.size = SIZE_MAX;
    FAILS(HA_BAD_SIZE, ha_job_embedded(&options, &made));
    ha_job_options_init(&options);
    options.reserved = 1;
    FAILS(HA_BAD_ARGUMENT, ha_job_embedded(&options, &made));
    options.reserved = 0;
    options.generations = 1;
    FAILS(HA_INVALID_CONFIG, ha_job_embedded(&options, &made));
    options.generations = 0;
    options.stall_policy = (ha_stall_policy)9;
    FAILS(HA_BAD_ARGUMENT, ha_job_embedded(&options, &made));

    OK(ha_worker_join(job, &worker));
    synced.size = 3;
    FAILS(HA_BAD_SIZE, ha_sync(worker, &synced));
    stats.size = 8;
    FAILS(HA_BAD_SIZE, ha_job_stats(job, &stats));
    /* A program with a newer header: fine as long as it does not use what this library does not know. */
    memset(&newer, 0, sizeof newer);
    newer.known.size = sizeof newer;
    OK(ha_area_create(worker, "newer", HA_F64, 4, &newer.known, &area));
    OK(ha_area_delete(area));
    newer.later = 1;
    FAILS(HA_BAD_SIZE, ha_area_create(worker, "newer", HA_F64, 4, &newer.known, &area));
    SAYS("older");

    ha_area_options_init(&spec);
    spec.tracking = (ha_tracking)77;
    FAILS(HA_BAD_ARGUMENT, ha_area_create(worker, "b", HA_F64, 4, &spec, &area));
    ha_area_options_init(&spec);
    spec.copies = 65;
    FAILS(HA_INVALID_AREA, ha_area_create(worker, "b", HA_F64, 4, &spec, &area));
    spec.copies = 1;
    spec.no_copies = 1;
    FAILS(HA_INVALID_AREA, ha_area_create(worker, "b", HA_F64, 4, &spec, &area));
    FAILS(HA_BAD_ARGUMENT, ha_area_create(worker, "b", (ha_type)0, 4, NULL, &area));
    FAILS(HA_BAD_ARGUMENT, ha_area_create(worker, "b", (ha_type)11, 4, NULL, &area));
    FAILS(HA_BAD_ARGUMENT, ha_area_create(worker, "\xff", HA_F64, 4, NULL, &area));
    FAILS(HA_INVALID_NAME, ha_area_create(worker, "", HA_F64, 4, NULL, &area));
    FAILS(HA_INVALID_NAME, ha_area_create(worker, "a//b", HA_F64, 4, NULL, &area));
    FAILS(HA_OUT_OF_MEMORY, ha_area_create(worker, "b", HA_F64, SIZE_MAX, NULL, &area));
    FAILS(HA_OUT_OF_MEMORY, ha_area_create(worker, "b", HA_F64, SIZE_MAX / 8, NULL, &area));
    SAYS("longer than any can be");
    FAILS(HA_OUT_OF_MEMORY, ha_area_create(worker, "b", HA_F64, 1u << 28, NULL, &area));
    FAILS(HA_NO_SUCH_AREA, ha_area_attach(worker, "nowhere", HA_F64, 0, &area));
    SAYS("nowhere");
    FAILS(HA_TIMED_OUT, ha_area_attach(worker, "nowhere", HA_F64, HA_MILLISECOND, &area));
    FAILS(HA_NO_SUCH_AREA, ha_job_delete_area(job, "nowhere"));

    /* An area that is never published, after a write. */
    ha_area_options_init(&spec);
    spec.no_copies = 1;
    OK(ha_area_create(worker, "b", HA_F64, 4, &spec, &area));
    OK(ha_log_all(area));
    FAILS(HA_NO_READER_COPY, ha_area_sync(area, NULL));
    SAYS("\"b\" has no reader copy");
    OK(ha_area_request_sync(area));
    OK(ha_service(worker));
    OK(ha_barrier(worker));
    OK(ha_area_delete(area));

    OK(ha_area_create(worker, "b", HA_F64, 4, NULL, &area));
    FAILS(HA_NAME_TAKEN, ha_area_create(worker, "b", HA_F64, 4, NULL, &area));
    FAILS(HA_WRONG_TYPE, ha_area_attach(worker, "b", HA_F32, 0, &area));
    FAILS(HA_OUT_OF_RANGE, ha_area_load(area, 1, 4, values, sizeof values));
    FAILS(HA_OUT_OF_RANGE, ha_area_load(area, SIZE_MAX, 2, values, sizeof values));
    FAILS(HA_BAD_SIZE, ha_area_load(area, 0, 4, values, 31));
    SAYS("31 bytes");
    CHECK(strstr(ha_status_message(HA_BAD_SIZE), "the bytes are not those of the elements") != NULL);
    FAILS(HA_BAD_SIZE, ha_area_store(area, 0, 2, values, 8));
    FAILS(HA_OUT_OF_RANGE, ha_area_store(area, 4, 1, values, 8));
    FAILS(HA_NOT_A_JOB, ha_job_from_descriptor(0, &made));
    FAILS(HA_BAD_ARGUMENT, ha_job_from_descriptor(-1, &made));
    FAILS(HA_SYSTEM, ha_job_from_descriptor(999, &made));
    FAILS(HA_BAD_ARGUMENT, ha_job_connect(NULL, &made));
    FAILS(HA_DAEMON, ha_job_connect("job", &made));
    FAILS(HA_BAD_ARGUMENT, ha_job_connect("\xff", &made));
    FAILS(HA_ABI_MISMATCH, ha_check_abi(HA_ABI_VERSION + 1));
    FAILS(HA_ABI_MISMATCH, ha_check_abi(HA_ABI_VERSION + 1000));
    OK(ha_area_delete(area));
    OK(ha_worker_leave(worker));
}

/* A program of the first version of the header, before structs grew: it knows less of each. */
static void old_header(void)
{
    struct {
        size_t size;
        uint64_t round;
        uint32_t given_up, put_off;
        unsigned char canary[64];
    } synced;
    ha_job *made;
    ha_worker *worker;
    ha_worker_info info[2];
    size_t count, i;
    struct {
        size_t size;
        uint64_t reserve_bytes, patience_ns;
        uint32_t max_workers, max_areas, max_observers, stall_policy;
        uint64_t stall_after_ns;
        uint32_t pin_cores, check, no_huge_pages, generations, seal_every, reserved;
    } options;

    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.reserve_bytes = 1u << 24;
    options.max_workers = 1;
    OK(ha_job_embedded((const ha_job_options *)(const void *)&options, &made));
    OK(ha_worker_join(made, &worker));
    memset(&synced, 0x55, sizeof synced);
    synced.size = 24;
    OK(ha_sync(worker, (ha_synced *)(void *)&synced));
    CHECK(synced.size == 24 && synced.given_up == 0);
    for (i = 0; i < sizeof synced.canary; i++)
        CHECK(synced.canary[i] == 0x55);
    /* A newer program's list: the items' stride is its own, and what the library does not know is zero. */
    memset(info, 0x55, sizeof info);
    OK(ha_job_workers(made, info, sizeof info, 1, &count));
    CHECK(count == 1 && info[0].rank == 0 && info[1].rank == 0 && info[1].clock == 0);
    FAILS(HA_BAD_SIZE, ha_job_workers(made, info, 8, 1, &count));
    OK(ha_worker_leave(worker));
    OK(ha_job_close(made));
}

struct borrowed {
    ha_worker *worker;
    ha_area *area;
    ha_observer *observer;
};

static void *other_thread(void *argument)
{
    struct borrowed *borrowed = (struct borrowed *)argument;
    void *data;
    double value;
    FAILS(HA_WRONG_THREAD, ha_service(borrowed->worker));
    FAILS(HA_WRONG_THREAD, ha_worker_leave(borrowed->worker));
    FAILS(HA_WRONG_THREAD, ha_area_writer(borrowed->area, &data));
    FAILS(HA_WRONG_THREAD, ha_area_detach(borrowed->area));
    FAILS(HA_WRONG_THREAD, ha_log(borrowed->area, 50, 1));
    FAILS(HA_WRONG_THREAD, ha_area_give(borrowed->area, 0));
    FAILS(HA_WRONG_THREAD,
          ha_observer_load(borrowed->observer, "a", HA_F64, 0, 1, &value, sizeof value, NULL));
    FAILS(HA_WRONG_THREAD, ha_observer_close(borrowed->observer));
    return NULL;
}

/* A thread that leaves with an area: others may claim it, and its handles are refused. */
static void *testator(void *argument)
{
    struct borrowed *borrowed = (struct borrowed *)argument;
    void *data;
    OK(ha_worker_join(job, &borrowed->worker));
    OK(ha_area_create(borrowed->worker, "orphan", HA_F64, 10, NULL, &borrowed->area));
    OK(ha_area_writer(borrowed->area, &data));
    ((double *)data)[0] = 4.0;
    OK(ha_log(borrowed->area, 0, 1));
    OK(ha_sync(borrowed->worker, NULL));
    ((double *)data)[0] = 5.0;
    OK(ha_log(borrowed->area, 0, 1));
    OK(ha_worker_leave(borrowed->worker));
    return NULL;
}

static void threads(void)
{
    struct borrowed borrowed;
    pthread_t thread;
    ha_worker *worker;
    ha_area *area;
    ha_loss loss;
    double value = 0.0;
    const void *seen;

    OK(ha_worker_join(job, &borrowed.worker));
    OK(ha_area_create(borrowed.worker, "a", HA_F64, 100, NULL, &borrowed.area));
    OK(ha_observer_open(job, &borrowed.observer));
    pthread_create(&thread, NULL, other_thread, &borrowed);
    pthread_join(thread, NULL);
    OK(ha_observer_load(borrowed.observer, "a", HA_F64, 0, 1, &value, sizeof value, NULL));
    FAILS(HA_BAD_SIZE, ha_observer_load(borrowed.observer, "a", HA_F64, 0, 1, &value, 4, NULL));
    FAILS(HA_OUT_OF_RANGE, ha_observer_load(borrowed.observer, "a", HA_F64, 100, 1, &value, 8, NULL));
    FAILS(HA_WRONG_TYPE, ha_observer_load(borrowed.observer, "a", HA_F32, 0, 1, &value, 4, NULL));
    FAILS(HA_NO_SUCH_AREA, ha_observer_load(borrowed.observer, "none", HA_F32, 0, 1, &value, 4, NULL));
    OK(ha_observer_close(borrowed.observer));
    FAILS(HA_BAD_HANDLE, ha_observer_close(borrowed.observer));
    OK(ha_area_delete(borrowed.area));
    OK(ha_worker_leave(borrowed.worker));

    pthread_create(&thread, NULL, testator, &borrowed);
    pthread_join(thread, NULL);
    FAILS(HA_BAD_HANDLE, ha_service(borrowed.worker));
    FAILS(HA_BAD_HANDLE, ha_area_detach(borrowed.area));
    OK(ha_worker_join(job, &worker));
    OK(ha_area_attach(worker, "orphan", HA_F64, 0, &area));
    FAILS(HA_OWNER_GONE, ha_area_take(area, HA_SECOND));
    OK(ha_area_detach(area));
    loss.size = sizeof loss;
    OK(ha_area_claim(worker, "orphan", HA_F64, &area, &loss));
    CHECK(loss.last_version.counter == 1 && loss.lost_writers == 1);
    OK(ha_area_reader(area, &seen));
    CHECK(*(const double *)seen == 4.0);
    FAILS(HA_OWNER_ALIVE, ha_area_claim(worker, "orphan", HA_F64, &area, NULL));
    FAILS(HA_NO_SUCH_AREA, ha_area_claim(worker, "none", HA_F64, &area, NULL));
    OK(ha_area_delete(area));
    OK(ha_worker_leave(worker));
}

static void views(void)
{
    ha_worker *worker;
    ha_area *area;
    ha_view view, copy, far;
    OK(ha_worker_join(job, &worker));
    OK(ha_area_create(worker, "a", HA_F64, 100, NULL, &area));
    OK(ha_view_open(area, 10, 5, &view));
    CHECK(view.count == 5 && *(const double *)view.data == 0.0);
    FAILS(HA_VIEW_OPEN, ha_service(worker));
    FAILS(HA_VIEW_OPEN, ha_barrier(worker));
    FAILS(HA_VIEW_OPEN, ha_sync(worker, NULL));
    FAILS(HA_VIEW_OPEN, ha_area_detach(area));
    FAILS(HA_VIEW_OPEN, ha_area_delete(area));
    FAILS(HA_OUT_OF_RANGE, ha_view_open(area, 99, 2, &far));
    FAILS(HA_OUT_OF_RANGE, ha_view_open(area, SIZE_MAX, 2, &far));
    copy = view;
    OK(ha_view_close(&view));
    FAILS(HA_BAD_HANDLE, ha_view_close(&view));
    OK(ha_service(worker));
    FAILS(HA_BAD_HANDLE, ha_view_close(&copy));
    OK(ha_view_open(area, 0, 100, &view));
    /* Leaving ends views too. */
    OK(ha_worker_leave(worker));
    FAILS(HA_BAD_HANDLE, ha_view_close(&view));
    OK(ha_job_delete_area(job, "a"));
}

static void ownership(void)
{
    ha_worker *worker, *second;
    ha_area *area, *reader, *theirs, *again;
    void *data;
    const void *seen;
    uint32_t rank;
    ha_job *other;
    ha_worker *stranger;

    /* One thread may be two workers, as long as neither waits for the other. */
    OK(ha_worker_join(job, &worker));
    OK(ha_worker_join(job, &second));
    OK(ha_worker_rank(second, &rank));
    OK(ha_area_create(worker, "a", HA_F64, 100, NULL, &area));
    OK(ha_area_attach(worker, "a", HA_F64, 0, &reader));
    FAILS(HA_NOT_OWNER, ha_area_writer(reader, &data));
    FAILS(HA_NOT_OWNER, ha_log(reader, 0, 1));
    FAILS(HA_NOT_OWNER, ha_log_row(reader, 0));
    FAILS(HA_NOT_OWNER, ha_area_give(reader, rank));
    FAILS(HA_NOT_OWNER, ha_area_lend(reader));
    FAILS(HA_NOT_LENT, ha_area_recall(reader));
    FAILS(HA_NOT_LENT, ha_area_lent_reader(reader, &seen));
    FAILS(HA_NOT_OWNER, ha_area_delete(reader));
    FAILS(HA_ALREADY_OWNER, ha_area_take(area, 0));
    FAILS(HA_ALREADY_OWNER, ha_area_take(reader, 0));
    FAILS(HA_ALREADY_OWNER, ha_area_take(reader, HA_FOREVER));
    SAYS("owns area \"a\" already");
    FAILS(HA_NO_SUCH_WORKER, ha_area_give(area, 77));
    FAILS(HA_NO_SUCH_WORKER, ha_area_give(area, UINT32_MAX));
    FAILS(HA_NO_SUCH_WORKER, ha_area_give_published(area, 77));
    OK(ha_log(area, 0, 1));
    OK(ha_area_give(area, rank));
    FAILS(HA_NOT_OWNER, ha_area_give(area, rank));
    FAILS(HA_NOT_OWNER, ha_area_writer(area, &data));
    FAILS(HA_NOT_OWNER, ha_log(area, 0, 1));
    FAILS(HA_NOT_OWNER, ha_log_row(area, 0));
    FAILS(HA_TIMED_OUT, ha_area_take(area, 0));
    OK(ha_area_attach(second, "a", HA_F64, 0, &theirs));
    OK(ha_area_take(theirs, 120 * HA_SECOND));
    FAILS(HA_ALREADY_OWNER, ha_area_take(theirs, 120 * HA_SECOND));
    OK(ha_log(theirs, 0, 1));
    OK(ha_area_lend(theirs));
    FAILS(HA_NOT_OWNER, ha_log(theirs, 0, 1));
    FAILS(HA_ALREADY_OWNER, ha_area_take(theirs, HA_SECOND));
    OK(ha_area_attach(second, "a", HA_F64, 0, &again));
    FAILS(HA_ALREADY_OWNER, ha_area_take(again, HA_SECOND));
    OK(ha_area_lent_reader(area, &seen));
    OK(ha_service(worker));
    /* Deleted by its name, while it is owned. */
    OK(ha_job_delete_area(job, "a"));
    FAILS(HA_DELETED, ha_area_lent_reader(area, &seen));
    FAILS(HA_DELETED, ha_area_recall(theirs));
    FAILS(HA_DELETED, ha_area_take(area, HA_SECOND));

    other = test_job(0);
    OK(ha_worker_join(other, &stranger));
    FAILS(HA_RANK_TAKEN, ha_worker_join_at(other, 0, &stranger));
    FAILS(HA_LIMIT, ha_worker_join_at(other, 1u << 20, &stranger));
    OK(ha_job_close(other));
    /* The job's handle is closed; its workers go on. */
    OK(ha_area_create(stranger, "a", HA_F64, 100, NULL, &area));
    OK(ha_barrier(stranger));
    OK(ha_worker_leave(stranger));
    OK(ha_worker_leave(second));
    OK(ha_worker_leave(worker));
}

static int callback(void *out, const void *const *inputs, size_t input_count, size_t first, size_t count, void *argument)
{
    struct borrowed *borrowed = (struct borrowed *)argument;
    (void)out, (void)inputs, (void)first;
    CHECK(input_count == 1 && count == 100);
    FAILS(HA_BUSY, ha_service(borrowed->worker));
    FAILS(HA_BUSY, ha_barrier(borrowed->worker));
    FAILS(HA_BUSY, ha_worker_leave(borrowed->worker));
    return 42;
}

static int leaving(ha_worker *worker, void *argument)
{
    uint32_t rank;
    *(ha_worker **)argument = worker;
    FAILS(HA_BUSY, ha_worker_leave(worker));
    OK(ha_worker_rank(worker, &rank));
    return rank == 0 ? 0 : 3;
}

static void callbacks(void)
{
    struct borrowed borrowed;
    ha_reducer *reducer;
    ha_array *array;
    const ha_area *input;
    ha_range range = {90, 20}, share;
    uint32_t me = 0, nobody = 5, twice[2] = {0, 0};
    double out[100];

    OK(ha_worker_join(job, &borrowed.worker));
    OK(ha_area_create(borrowed.worker, "a", HA_F64, 100, NULL, &borrowed.area));
    input = borrowed.area;
    FAILS(HA_INVALID_AREA, ha_reducer_create(borrowed.worker, "r", HA_F64, &nobody, 1, &input, 1, &reducer));
    FAILS(HA_INVALID_AREA, ha_reducer_create(borrowed.worker, "r", HA_F64, twice, 2, &input, 1, &reducer));
    FAILS(HA_INVALID_AREA, ha_reducer_create(borrowed.worker, "r", HA_F64, &me, 1, NULL, 0, &reducer));
    FAILS(HA_NULL, ha_reducer_create(borrowed.worker, "r", HA_F64, &me, 1, NULL, 1, &reducer));
    FAILS(HA_WRONG_TYPE, ha_reducer_create(borrowed.worker, "r", HA_F32, &me, 1, &input, 1, &reducer));
    OK(ha_reducer_create(borrowed.worker, "r", HA_F64, &me, 1, &input, 1, &reducer));
    FAILS(HA_CALLBACK, ha_reducer_run_with(reducer, callback, &borrowed));
    SAYS("42");
    FAILS(HA_NULL, ha_reducer_run_with(reducer, NULL, NULL));
    FAILS(HA_BAD_ARGUMENT, ha_reducer_run(reducer, (ha_operation)9));
    FAILS(HA_BAD_SIZE, ha_reducer_load(reducer, out, 8));
    OK(ha_reducer_load(reducer, out, sizeof out));
    OK(ha_reducer_share(reducer, &share));
    CHECK(share.first == 0 && share.count == 100);
    OK(ha_reducer_close(reducer));
    FAILS(HA_BAD_HANDLE, ha_reducer_run(reducer, HA_SUM));

    FAILS(HA_INVALID_AREA, ha_array_create(borrowed.worker, "x", HA_F64, 100, NULL, &nobody, 1, 0, &array));
    FAILS(HA_INVALID_AREA, ha_array_create(borrowed.worker, "x", HA_F64, 100, NULL, NULL, 0, 0, &array));
    FAILS(HA_NULL, ha_array_create(borrowed.worker, "x", HA_F64, 100, NULL, NULL, 1, 0, &array));
    OK(ha_array_create(borrowed.worker, "x", HA_F64, 100, NULL, &me, 1, 1, &array));
    FAILS(HA_OUT_OF_RANGE, ha_array_reduce(array, HA_SUM, &range, 1));
    FAILS(HA_OUT_OF_RANGE, ha_array_map(array, &range, 1));
    range.first = SIZE_MAX;
    FAILS(HA_OUT_OF_RANGE, ha_array_reduce(array, HA_SUM, &range, 1));
    FAILS(HA_NULL, ha_array_reduce(array, HA_SUM, NULL, 1));
    FAILS(HA_BAD_ARGUMENT, ha_array_reduce(array, (ha_operation)0, NULL, 0));
    OK(ha_array_close(array));
    FAILS(HA_BAD_HANDLE, ha_array_barrier(array));
    OK(ha_worker_leave(borrowed.worker));
    OK(ha_job_delete_area(job, "a"));

    FAILS(HA_CALLBACK, ha_run(job, 2, leaving, &borrowed.worker));
    SAYS("worker 1 returned 3");
    FAILS(HA_BAD_HANDLE, ha_service(borrowed.worker));
    FAILS(HA_LIMIT, ha_run(job, 100000, leaving, &borrowed.worker));
}

static int untouched(const ha_block *block, void *argument)
{
    (void)block;
    (void)argument;
    return 1;
}

/* What is written by a loop, or in a run of rows, cannot be checked where it is published afterwards: the error says so. */
static void checked_runs(void)
{
    ha_job *checked = test_job(1);
    ha_worker *worker;
    ha_area *area;
    ha_area_options spec;
    ha_loop *loop;
    const int64_t first = 0, last = 8;
    const size_t extent = 8;
    const ha_subscript each = {0, {1}, 1};
    OK(ha_worker_join(checked, &worker));
    ha_area_options_init(&spec);
    spec.on_demand = 1;
    OK(ha_area_create(worker, "model", HA_F64, 8, &spec, &area));
    OK(ha_loop_new(worker, "steps", HA_ORDERED, &first, &last, 1, 1, &loop));
    OK(ha_loop_area(loop, area, &extent, 1));
    OK(ha_loop_update(loop, area, &each, 1));
    FAILS(HA_INVALID_AREA, ha_loop_run(loop, untouched, NULL));
    SAYS("in a job whose writes are checked (`HECTARE_CHECK=1`, or `ha_job_options.check`)");
    OK(ha_worker_leave(worker));
    OK(ha_job_close(checked));
}

int main(void)
{
    CHECK(strcmp(ha_status_message(HA_OK), "success") == 0);
    CHECK(strcmp(ha_status_message(-5), "unknown status") == 0);
    job = test_job(0);
    null();
    dangling();
    sizes();
    old_header();
    threads();
    views();
    ownership();
    callbacks();
    checked_runs();
    OK(ha_job_close(job));
    return test_end();
}
