/* Several workers: threads of ha_run, threads of the program's own, processes; barriers, clocks, hand-overs, deaths. */
#include "test.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static ha_job *job;

/* Fewer turns where the program runs a hundred times slower. */
static int turns(int count)
{
    return getenv("TEST_SHORT") != NULL ? count / 10 : count;
}

/* Everybody writes its own area, and sees what all have written. */
static int exchange(ha_worker *worker, void *argument)
{
    ha_area *mine, *theirs[3];
    ha_view view;
    char name[32];
    uint32_t rank, other;
    void *data;
    int round;
    int before = failures;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    snprintf(name, sizeof name, "part/%u", rank);
    OK(ha_area_create(worker, name, HA_I64, 500, NULL, &mine));
    OK(ha_area_writer(mine, &data));
    for (other = 0; other < 3; other++) {
        snprintf(name, sizeof name, "part/%u", other);
        OK(ha_area_attach(worker, name, HA_I64, 120 * HA_SECOND, &theirs[other]));
    }
    for (round = 1; round <= turns(20); round++) {
        size_t at = (size_t)(round * 7 + (int)rank) % 500;
        ((int64_t *)data)[at] = round;
        OK(ha_log(mine, at, 1));
        OK(ha_barrier(worker));
        for (other = 0; other < 3; other++) {
            OK(ha_view_open(theirs[other], (size_t)(round * 7 + (int)other) % 500, 1, &view));
            CHECK(*(const int64_t *)view.data == round);
            OK(ha_view_close(&view));
        }
        OK(ha_barrier(worker));
    }
    OK(ha_area_delete(mine));
    return failures != before;
}

/* An area goes to and fro, and everybody adds to it. */
static int ping_pong(ha_worker *worker, void *argument)
{
    ha_area *ball;
    uint32_t rank;
    void *data;
    int i;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    if (rank == 0) {
        ha_area_options options;
        ha_area_options_init(&options);
        options.no_copies = 1;
        OK(ha_area_create(worker, "ball", HA_U64, 8, &options, &ball));
    } else {
        OK(ha_area_attach(worker, "ball", HA_U64, 120 * HA_SECOND, &ball));
    }
    for (i = 0; i < turns(100); i++) {
        if (rank != 0 || i != 0)
            OK(ha_area_take(ball, 120 * HA_SECOND));
        OK(ha_area_writer(ball, &data));
        CHECK(((uint64_t *)data)[0] == (uint64_t)(2 * i) + rank);
        ((uint64_t *)data)[0]++;
        if (rank == 0 || i != turns(100) - 1)
            OK(ha_area_give(ball, 1 - rank));
    }
    OK(ha_barrier(worker));
    if (rank == 1) {
        OK(ha_area_lend(ball));
        OK(ha_barrier(worker));
        OK(ha_barrier(worker));
        OK(ha_area_recall(ball));
        OK(ha_area_delete(ball));
    } else {
        const void *seen;
        OK(ha_barrier(worker));
        OK(ha_area_lent_reader(ball, &seen));
        CHECK(*(const uint64_t *)seen == 2 * (uint64_t)turns(100));
        OK(ha_barrier(worker));
    }
    return 0;
}

/* Threads of the program's own, with bounded staleness. */
static void *stale(void *argument)
{
    ha_worker *worker;
    uint64_t clock;
    int i;
    (void)argument;
    OK(ha_worker_join(job, &worker));
    OK(ha_wait_for_workers(worker, 2, 120 * HA_SECOND));
    for (i = 0; i < turns(50); i++) {
        OK(ha_tick(worker, &clock));
        OK(ha_wait_clocks(worker, 2, 120 * HA_SECOND));
        OK(ha_service(worker));
    }
    OK(ha_wait_clocks(worker, 0, 120 * HA_SECOND));
    OK(ha_worker_leave(worker));
    return NULL;
}

/* A process of its own. It gives an area, and dies with another. */
static void child(int descriptor)
{
    ha_job *mine;
    ha_worker *worker;
    ha_area *gift, *estate;
    ha_synced synced;
    double value = 2.5;
    OK(ha_job_from_descriptor(descriptor, &mine));
    OK(ha_worker_join(mine, &worker));
    OK(ha_area_create(worker, "gift", HA_F64, 10, NULL, &gift));
    OK(ha_area_create(worker, "estate", HA_F64, 10, NULL, &estate));
    OK(ha_area_store(gift, 0, 1, &value, sizeof value));
    OK(ha_area_store(estate, 0, 1, &value, sizeof value));
    /* While the other waits for the gift, and so comes to rounds. */
    synced.size = sizeof synced;
    do
        OK(ha_sync(worker, &synced));
    while (synced.put_off != 0);
    OK(ha_area_store(estate, 1, 1, &value, sizeof value));
    OK(ha_area_give_published(gift, 0));
    if (failures != 0)
        _exit(1);
    raise(SIGKILL);
}

static void processes(void)
{
    ha_worker *worker;
    ha_area *gift, *estate;
    ha_loss loss;
    ha_worker_info info[4];
    const void *seen;
    int descriptor, status;
    size_t count;
    pid_t pid;

    OK(ha_worker_join(job, &worker));
    OK(ha_job_descriptor(job, &descriptor));
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        /* What the parent opened is refused here. */
        FAILS(HA_FORKED, ha_service(worker));
        FAILS(HA_FORKED, ha_worker_join(job, &worker));
        child(descriptor);
    }
    OK(ha_area_attach(worker, "gift", HA_F64, 120 * HA_SECOND, &gift));
    OK(ha_area_take(gift, 120 * HA_SECOND));
    OK(ha_area_reader(gift, &seen));
    CHECK(*(const double *)seen == 2.5);
    while (waitpid(pid, &status, 0) < 0)
        ;
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    OK(ha_job_workers(job, info, sizeof info[0], 4, &count));
    CHECK(count == 2 && info[1].state == HA_WORKER_DEAD);
    FAILS(HA_NO_SUCH_WORKER, ha_area_give(gift, 1));
    OK(ha_area_attach(worker, "estate", HA_F64, 0, &estate));
    FAILS(HA_OWNER_GONE, ha_area_take(estate, 120 * HA_SECOND));
    OK(ha_area_detach(estate));
    OK(ha_barrier(worker));
    loss.size = sizeof loss;
    OK(ha_area_claim(worker, "estate", HA_F64, &estate, &loss));
    CHECK(loss.lost_writers == 1 && loss.first_lost_writer == 1);
    OK(ha_area_reader(estate, &seen));
    CHECK(((const double *)seen)[0] == 2.5 && ((const double *)seen)[1] == 0.0);
    OK(ha_area_delete(estate));
    OK(ha_area_delete(gift));
    OK(ha_worker_leave(worker));
}

int main(void)
{
    pthread_t threads[2];
    job = test_job(0);
    OK(ha_run(job, 3, exchange, NULL));
    OK(ha_run(job, 2, ping_pong, NULL));
    pthread_create(&threads[0], NULL, stale, NULL);
    pthread_create(&threads[1], NULL, stale, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    processes();
    OK(ha_job_close(job));
    return test_end();
}
