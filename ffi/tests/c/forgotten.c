/* Workers write what the first of them sums up; one forgets to log some of it: argv[1] says how. */
#include "test.h"

enum { WORKERS = 2, LEN = 1000 };

static const char *forgets;

static int is(const char *way)
{
    return strcmp(forgets, way) == 0;
}

static void wrote(ha_area *area, double *data, size_t at, uint32_t rank, int forget)
{
    data[at] += 1.0;
    if (forget && rank == 1)
        return;
    if (is("all"))
        OK(ha_log_all(area));
    else
        OK(ha_log(area, at, 1));
}

static int member(ha_worker *worker, void *argument)
{
    ha_area_options options;
    ha_area *mine, *theirs[WORKERS];
    double sum = 0.0, wanted = 0.0;
    char name[32];
    uint32_t rank, other;
    ha_status status;
    void *data;
    size_t at;
    int turn;
    (void)argument;
    OK(ha_worker_rank(worker, &rank));
    snprintf(name, sizeof name, "part/%u", rank);
    ha_area_options_init(&options);
    if (is("all"))
        options.tracking = HA_TRACK_WHOLE;
    OK(ha_area_create(worker, name, HA_F64, LEN, &options, &mine));
    OK(ha_area_writer(mine, &data));
    for (other = 0; other < WORKERS; other++) {
        snprintf(name, sizeof name, "part/%u", other);
        OK(ha_area_attach(worker, name, HA_F64, 120 * HA_SECOND, &theirs[other]));
    }
    for (turn = 0; turn < 3; turn++) {
        int forget = turn == 2 && !is("none");
        wrote(mine, (double *)data, 320, rank, forget);
        wanted += WORKERS;
        if (is("lines")) {
            wrote(mine, (double *)data, 500, rank, forget);
            wrote(mine, (double *)data, 900, rank, forget);
            wanted += 2 * WORKERS;
        }
        status = ha_barrier(worker);
        if (status == HA_UNLOGGED)
            printf("HA_UNLOGGED for %u: %s: %s\n", rank, ha_status_message(status), ha_last_error());
        else if (status != HA_OK)
            failed(__FILE__, __LINE__, "ha_barrier", ha_last_error());
    }
    OK(ha_barrier(worker));
    for (other = 0; other < WORKERS; other++) {
        const void *seen;
        OK(ha_area_reader(theirs[other], &seen));
        for (at = 0; at < LEN; at++)
            sum += ((const double *)seen)[at];
    }
    if (rank == 0)
        printf("%s sum: %g of %g\n", sum == wanted ? "right" : "wrong", sum, wanted);
    OK(ha_barrier(worker));
    return 0;
}

int main(int count, char **arguments)
{
    ha_job *job;
    forgets = count == 2 ? arguments[1] : "none";
    job = test_job(0);
    OK(ha_run(job, WORKERS, member, NULL));
    OK(ha_job_close(job));
    return test_end();
}
