/* One of two workers of a job behind a descriptor: the body of worker 1 fails, and worker 0 hears of it. */
#include "test.h"

enum { N = 400 };

/* Fails on worker 1, where there is something to do. */
static int failing(const ha_block *block, void *argument)
{
    (void)argument;
    return block->worker == 1 ? 7 : 0;
}

static int fine(const ha_block *block, void *argument)
{
    (void)block;
    (void)argument;
    return 0;
}

int main(int argc, char **argv)
{
    const int64_t first = 0, last = N;
    const size_t extent = N;
    const ha_subscript each = {0, {1}, 1};
    ha_job *job;
    ha_worker *worker;
    ha_area *area;
    ha_area_options options;
    ha_loop *loop;
    uint32_t rank;
    /* Its job is another program's. */
    (void)test_job;
    if (argc != 4)
        return 2;
    rank = (uint32_t)atoi(argv[2]);
    OK(ha_job_from_descriptor(atoi(argv[1]), &job));
    OK(ha_worker_join_at(job, rank, &worker));
    OK(ha_wait_for_workers(worker, 2, 120 * HA_SECOND));
    ha_area_options_init(&options);
    options.no_copies = 1;
    if (rank == 0)
        OK(ha_area_create(worker, "model", HA_F64, N, &options, &area));
    else
        OK(ha_area_attach(worker, "model", HA_F64, 120 * HA_SECOND, &area));
    OK(ha_loop_new(worker, "steps", HA_ORDERED, &first, &last, 1, 2, &loop));
    OK(ha_loop_area(loop, area, &extent, 1));
    OK(ha_loop_update(loop, area, &each, 1));
    FAILS(rank == 1 ? HA_CALLBACK : HA_WORKER_LEFT, ha_loop_run(loop, failing, NULL));
    if (strcmp(argv[3], "again") == 0)
        OK(ha_loop_run(loop, fine, NULL));
    OK(ha_worker_leave(worker));
    OK(ha_job_close(job));
    return test_end();
}
