/* Areas from creation to deletion: writing, logging, publishing, reading. */
#include "test.h"

static ha_job *job;

static void one_worker(void)
{
    ha_worker *worker;
    ha_area *area, *reader;
    ha_area_options options;
    ha_synced synced;
    ha_version version, before;
    ha_range ranges[4];
    void *data;
    const void *seen;
    double *w, copy[3], value = 7.0;
    size_t count, i;
    uint64_t age, clock, time;
    uint32_t rank;

    OK(ha_worker_join(job, &worker));
    OK(ha_worker_rank(worker, &rank));
    CHECK(rank == 0);
    ha_area_options_init(&options);
    options.row = 100;
    OK(ha_area_create(worker, "model/users", HA_F64, 1000, &options, &area));
    CHECK(ha_area_len(area) == 1000 && ha_area_row_len(area) == 100 && ha_area_is_owned(area) == 1);
    OK(ha_area_attach(worker, "model/users", HA_F64, 0, &reader));
    CHECK(ha_area_is_owned(reader) == 0);

    OK(ha_area_writer(area, &data));
    CHECK(((uintptr_t)data & 63) == 0);
    w = (double *)data;
    for (i = 0; i < 1000; i++)
        w[i] = (double)i;
    OK(ha_log_all(area));
    OK(ha_area_version(reader, &before));
    synced.size = sizeof synced;
    OK(ha_sync(worker, &synced));
    CHECK(synced.size == sizeof synced && synced.round > 0 && synced.given_up == 0 && synced.put_off == 0);
    OK(ha_area_reader(reader, &seen));
    CHECK(memcmp(seen, data, 8000) == 0);
    OK(ha_area_version(reader, &version));
    CHECK(version.counter == before.counter + 1 && version.term >= before.term);

    /* Rows, lines, and what is not logged. */
    w[250] = -1.0;
    OK(ha_log_row(area, 2));
    w[999] = -2.0;
    OK(ha_log(area, 999, 1));
    OK(ha_log(area, 999, 1));
    w[500] = -3.0;
    OK(ha_sync(worker, NULL));
    OK(ha_area_load(reader, 250, 1, copy, sizeof copy[0]));
    CHECK(copy[0] == -1.0);
    OK(ha_area_load(reader, 999, 1, copy, sizeof copy[0]));
    CHECK(copy[0] == -2.0);
    OK(ha_area_load(reader, 500, 1, copy, sizeof copy[0]));
    CHECK(copy[0] == 500.0);
    OK(ha_log(area, 500, 1));
    OK(ha_sync(worker, NULL));
    OK(ha_area_load(reader, 499, 3, copy, sizeof copy));
    CHECK(copy[0] == 499.0 && copy[1] == -3.0 && copy[2] == 501.0);

    /* What changed since. */
    OK(ha_area_version(reader, &before));
    OK(ha_area_seal(reader));
    w[0] = 1.5;
    OK(ha_log(area, 0, 1));
    OK(ha_sync(worker, NULL));
    OK(ha_area_version(reader, &before));
    OK(ha_area_store(area, 600, 1, &value, sizeof value));
    OK(ha_sync(worker, NULL));
    OK(ha_area_changed_since(reader, before, ranges, 4, &count));
    CHECK(count == 1 && ranges[0].first <= 600 && ranges[0].first + ranges[0].count > 600);
    /* A row, and the rest of its lines. */
    CHECK(ranges[0].count <= 112);
    OK(ha_area_load(reader, 600, 1, copy, sizeof copy[0]));
    CHECK(copy[0] == 7.0);

    OK(ha_area_age(reader, &age));
    CHECK(age < UINT64_C(60) * HA_SECOND);
    OK(ha_area_timestamp(reader, &time));
    CHECK(time > 0);
    OK(ha_area_clock(reader, &clock));
    CHECK(clock == 0);
    OK(ha_tick(worker, &clock));
    CHECK(clock == 1);
    OK(ha_wait_clocks(worker, 0, HA_FOREVER));
    OK(ha_clock(worker, &clock));
    CHECK(clock == 1);
    OK(ha_area_newest_version(reader, &before));
    OK(ha_area_wait_version(reader, before, 120 * HA_SECOND, &version));
    CHECK(memcmp(&version, &before, sizeof version) == 0);
    OK(ha_area_wait_fresh(reader, 10 * HA_SECOND, 120 * HA_SECOND));
    OK(ha_area_wait_clock(reader, 1, 120 * HA_SECOND));
    OK(ha_area_request_sync(reader));
    OK(ha_service(worker));
    OK(ha_area_sync(reader, NULL));
    OK(ha_leave_clocks(worker));
    OK(ha_rejoin_clocks(worker));
    OK(ha_barrier_within(worker, 120 * HA_SECOND));

    OK(ha_area_delete(area));
    FAILS(HA_DELETED, ha_area_reader(reader, &seen));
    OK(ha_area_detach(reader));
    OK(ha_worker_leave(worker));
}

/* Each of the ways to mark agrees with the others, whatever the rows. */
static void marks(void)
{
    static const size_t rows[] = {1, 3, 8, 16, 25, 100, 512};
    static const ha_type types[] = {HA_U8, HA_F32, HA_F64};
    static const size_t sizes[] = {1, 4, 8};
    ha_worker *worker;
    size_t r, t, i, step;
    OK(ha_worker_join(job, &worker));
    for (r = 0; r < 7; r++) {
        for (t = 0; t < 3; t++) {
            ha_area *area;
            ha_area_options options;
            void *data;
            const void *seen;
            unsigned char *bytes;
            size_t row_bytes = rows[r] * sizes[t], len = rows[r] * 40 + rows[r] / 2;
            ha_area_options_init(&options);
            options.row = rows[r];
            OK(ha_area_create(worker, "marks", types[t], len, &options, &area));
            OK(ha_area_writer(area, &data));
            bytes = (unsigned char *)data;
            for (step = 1; step < 8; step++) {
                for (i = step % 3; i < 40; i += step) {
                    /* The first and the last byte of the row, so that both of its lines have to be found. */
                    bytes[i * row_bytes] = (unsigned char)(step + i);
                    bytes[(i + 1) * row_bytes - 1] = (unsigned char)(step + 2 * i);
                    if (step == 1)
                        OK(ha_log_rows(area, i, 40 - i));
                    else if (step % 2)
                        OK(ha_log(area, i * rows[r], rows[r]));
                    else
                        OK(ha_log_row(area, i));
                }
                OK(ha_sync(worker, NULL));
                OK(ha_area_reader(area, &seen));
                CHECK(memcmp(seen, data, len * sizes[t]) == 0);
            }
            /* The half row at the end is no row, but its elements are elements. */
            FAILS(HA_OUT_OF_RANGE, ha_log_row(area, rows[r] > 1 ? 40 : 41));
            FAILS(HA_OUT_OF_RANGE, ha_log(area, len, 1));
            FAILS(HA_OUT_OF_RANGE, ha_log(area, 1, len));
            FAILS(HA_OUT_OF_RANGE, ha_log(area, 1, SIZE_MAX));
            FAILS(HA_OUT_OF_RANGE, ha_log_rows(area, 1, SIZE_MAX / 2));
            OK(ha_log(area, len, 0));
            OK(ha_log_rows(area, 40, 0));
            bytes[len * sizes[t] - 1]++;
            OK(ha_log(area, len - 1, 1));
            OK(ha_sync(worker, NULL));
            OK(ha_area_reader(area, &seen));
            CHECK(memcmp(seen, data, len * sizes[t]) == 0);
            OK(ha_area_delete(area));
        }
    }
    OK(ha_worker_leave(worker));
}

static void trackings(void)
{
    ha_worker *worker;
    ha_area *whole, *automatic, *empty;
    ha_area_options options;
    void *data, *other;
    const void *seen;
    OK(ha_worker_join(job, &worker));
    ha_area_options_init(&options);
    options.tracking = HA_TRACK_WHOLE;
    OK(ha_area_create(worker, "whole", HA_I32, 5000, &options, &whole));
    options.tracking = HA_TRACK_AUTOMATIC;
    OK(ha_area_create(worker, "automatic", HA_I32, 5000, &options, &automatic));
    OK(ha_area_writer(whole, &data));
    OK(ha_area_writer(automatic, &other));
    for (int round = 1; round < 4; round++) {
        ((int32_t *)data)[round * 1000] = round;
        ((int32_t *)other)[round * 1000] = round;
        OK(ha_log_all(whole));
        OK(ha_sync(worker, NULL));
        OK(ha_area_reader(whole, &seen));
        CHECK(memcmp(seen, data, 20000) == 0);
        OK(ha_area_reader(automatic, &seen));
        CHECK(memcmp(seen, other, 20000) == 0);
    }
    OK(ha_area_create(worker, "empty", HA_F64, 0, NULL, &empty));
    OK(ha_log_all(empty));
    OK(ha_area_load(empty, 0, 0, NULL, 0));
    OK(ha_sync(worker, NULL));
    OK(ha_worker_leave(worker));
}

static int unlogged(void)
{
    ha_job *checked = test_job(1);
    ha_worker *worker;
    ha_area *area;
    void *data;
    ha_unlogged found[4];
    ha_stats stats;
    size_t count;
    OK(ha_worker_join(checked, &worker));
    OK(ha_area_create(worker, "w", HA_F32, 1000, NULL, &area));
    OK(ha_area_writer(area, &data));
    OK(ha_sync(worker, NULL));
    ((float *)data)[320] = 1.0f;
    ((float *)data)[640] = 1.0f;
    OK(ha_log(area, 640, 1));
    OK(ha_sync(worker, NULL));
    OK(ha_unlogged_writes(worker, found, sizeof found[0], 4, &count));
    CHECK(count == 1 && strcmp(found[0].area, "w") == 0 && found[0].first_byte == 1280 && found[0].bytes == 64);
    OK(ha_unlogged_writes(worker, NULL, 0, 0, &count));
    CHECK(count == 0);
    stats.size = sizeof stats;
    OK(ha_job_stats(checked, &stats));
    CHECK(stats.unlogged_lines == 1 && stats.published >= 1 && stats.rounds >= 2);
    OK(ha_worker_leave(worker));
    return (int)ha_job_close(checked);
}

static void on_demand(ha_worker *worker)
{
    ha_area *area, *none = NULL;
    ha_area_options options;
    uint16_t *values;
    const uint16_t *seen;
    ha_area_options_init(&options);
    options.on_demand = 1;
    OK(ha_area_create(worker, "on demand", HA_U16, 77, &options, &area));
    /* Here it is published like any other. */
    OK(ha_area_writer(area, (void **)&values));
    values[76] = 7;
    OK(ha_log(area, 76, 1));
    OK(ha_area_sync(area, NULL));
    OK(ha_area_reader(area, (const void **)&seen));
    CHECK(seen[76] == 7);
    options.group = "g";
    FAILS(HA_INVALID_AREA, ha_area_create(worker, "with a group", HA_U16, 77, &options, &none));
    options.group = NULL;
    options.no_copies = 1;
    FAILS(HA_INVALID_AREA, ha_area_create(worker, "without copies", HA_U16, 77, &options, &none));
    options.no_copies = 0;
    options.reserved_2 = 1;
    FAILS(HA_BAD_ARGUMENT, ha_area_create(worker, "of a later version", HA_U16, 77, &options, &none));
    /* What was compiled before there was the option does not ask for it. */
    options.reserved_2 = 0;
    options.group = "g";
    options.size = offsetof(ha_area_options, on_demand);
    OK(ha_area_create(worker, "of an earlier version", HA_U16, 77, &options, &none));
}

static void lists(void)
{
    ha_worker *worker;
    ha_area *area;
    ha_area_info infos[8];
    ha_worker_info workers[2];
    ha_area_options options;
    uint64_t free_bytes, resident;
    size_t count, i, at = 8;
    OK(ha_worker_join(job, &worker));
    ha_area_options_init(&options);
    options.group = "g";
    options.copies = 2;
    options.interval_ns = 5 * HA_MILLISECOND;
    options.external_interval_ns = 50 * HA_MILLISECOND;
    OK(ha_area_create(worker, "listed", HA_U16, 77, &options, &area));
    OK(ha_job_areas(job, infos, sizeof infos[0], 8, &count));
    for (i = 0; i < count && i < 8; i++)
        if (strcmp(infos[i].name, "listed") == 0)
            at = i;
    CHECK(at < 8);
    if (at < 8) {
        CHECK(infos[at].len == 77 && infos[at].bytes == 154 && infos[at].copies == 2 && infos[at].owner == 0);
        CHECK(strcmp(infos[at].group, "g") == 0 && strncmp(infos[at].element, "u16", 3) == 0);
        CHECK(infos[at].interval_ns == 5 * HA_MILLISECOND && infos[at].size == sizeof infos[0]);
    }
    OK(ha_job_workers(job, workers, sizeof workers[0], 2, &count));
    CHECK(count == 1 && workers[0].rank == 0 && workers[0].state == HA_WORKER_LIVE && workers[0].pid != 0);
    OK(ha_job_memory(job, &free_bytes, &resident));
    CHECK(free_bytes > 0 && resident > 0);
    OK(ha_job_delete_area(job, "listed"));
    on_demand(worker);
    FAILS(HA_DELETED, ha_log(area, 0, 1));
    OK(ha_wait_for_workers(worker, 1, 120 * HA_SECOND));
    OK(ha_worker_leave(worker));
}

int main(void)
{
    uint32_t rank, size;
    OK(ha_check_abi(HA_ABI_VERSION));
    CHECK(strcmp(ha_library_version(), "0.1.0") == 0);
    CHECK(*ha_last_error() == '\0');
    OK(ha_launch(&rank, &size));
    CHECK(rank == 0 && size == 1);
    job = test_job(0);
    one_worker();
    marks();
    trackings();
    lists();
    CHECK(unlogged() == HA_OK);
    OK(ha_job_close(job));
    return test_end();
}
