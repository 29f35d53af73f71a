/* Rank 0 of a job on two hosts, whose memory comes as a descriptor: what cannot cross hosts is refused. */
#include "test.h"
#include <time.h>

int main(int count, char **arguments)
{
    ha_job *job;
    ha_worker *worker;
    ha_area *mine, *grouped, *theirs, *claimed;
    ha_area_options options;
    double value = 4.5, seen = 0;
    time_t end = time(NULL) + 60;
    ha_status status;
    int named = 0, mistaken = 0;

    /* Its job is another program's. */
    (void)test_job;
    if (count != 2)
        return 2;
    OK(ha_job_from_descriptor(atoi(arguments[1]), &job));
    OK(ha_worker_join(job, &worker));
    OK(ha_area_create(worker, "mine", HA_F64, 10, NULL, &mine));
    ha_area_options_init(&options);
    options.group = "g";
    OK(ha_area_create(worker, "grouped", HA_F64, 10, &options, &grouped));
    FAILS(HA_INVALID_AREA, ha_area_give(grouped, 1));
    SAYS("host b (10.0.0.2:7400)");
    FAILS(HA_INVALID_AREA, ha_area_give_published(grouped, 1));
    SAYS("of a group");
    FAILS(HA_NO_SUCH_WORKER, ha_area_give(mine, 2));
    FAILS(HA_WRONG_TYPE, ha_area_attach(worker, "theirs", HA_U64, 0, &theirs));
    SAYS("host b (10.0.0.2:7400)");
    OK(ha_area_attach(worker, "theirs", HA_F64, 0, &theirs));
    FAILS(HA_NOT_SHARED, ha_area_attach(worker, "kept", HA_F64, 0, &claimed));
    SAYS("b (10.0.0.2:7400) alone");
    FAILS(HA_NOT_SHARED, ha_area_attach(worker, "kept", HA_F64, 60 * HA_SECOND, &claimed));
    SAYS("`ha_area_options.copies` of 1 or more");
    FAILS(HA_OUT_OF_MEMORY, ha_area_attach(worker, "large", HA_F64, 60 * HA_SECOND, &claimed));
    SAYS("4711 bytes");
    /* Nobody has given it. */
    FAILS(HA_TIMED_OUT, ha_area_take(theirs, 0));
    FAILS(HA_TIMED_OUT, ha_area_take(theirs, HA_SECOND / 100));
    FAILS(HA_OWNER_ALIVE, ha_area_claim(worker, "theirs", HA_F64, &claimed, NULL));
    SAYS("host b (10.0.0.2:7400)");
    /* It is still this worker's. */
    OK(ha_area_store(mine, 0, 1, &value, sizeof value));
    /* The agent says that the other host has an area of the name, too, and that somebody there took this one for one of other
       elements: each once, after what was asked for was done. */
    while (named + mistaken < 2 && time(NULL) < end) {
        status = ha_sync(worker, NULL);
        named += status == HA_NAME_TAKEN;
        mistaken += status == HA_WRONG_TYPE;
        if (status != HA_OK)
            SAYS("b (10.0.0.2:7400)");
    }
    CHECK(named == 1 && mistaken == 1);
    OK(ha_sync(worker, NULL));
    OK(ha_area_load(mine, 0, 1, &seen, sizeof seen));
    CHECK(seen == value);
    OK(ha_worker_leave(worker));
    OK(ha_job_close(job));
    return test_end();
}
