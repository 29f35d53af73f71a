/* A thread that ends in one of several ways, while it is a worker or an observer, or after it has left: argv[1]. */
#include "test.h"

static ha_job *job;
static pthread_key_t key;

static ha_worker *join(void)
{
    ha_worker *worker;
    ha_area *area;
    void *data;
    OK(ha_worker_join(job, &worker));
    OK(ha_area_create(worker, "w", HA_F64, 100, NULL, &area));
    OK(ha_area_writer(area, &data));
    ((double *)data)[0] = 1.0;
    return worker;
}

/* With a view open, which another thread might read. */
static void *as_worker(void *argument)
{
    ha_worker *worker = join();
    ha_area *area;
    OK(ha_area_attach(worker, "w", HA_F64, 0, &area));
    OK(ha_view_open(area, 0, 100, (ha_view *)argument));
    return NULL;
}

static void *as_observer(void *argument)
{
    ha_observer *observer;
    (void)argument;
    OK(ha_observer_open(job, &observer));
    return NULL;
}

static void *by_exit(void *argument)
{
    (void)argument;
    join();
    pthread_exit(NULL);
}

static void *by_cancellation(void *argument)
{
    int state;
    (void)argument;
    /* Not in the middle of the library. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    join();
    pthread_setcancelstate(state, &state);
    while (pthread_self() != 0)
        pthread_testcancel();
    return NULL;
}

static void *after_leaving(void *argument)
{
    ha_observer *observer;
    (void)argument;
    OK(ha_worker_leave(join()));
    OK(ha_observer_open(job, &observer));
    OK(ha_observer_close(observer));
    return NULL;
}

static void leave(void *worker)
{
    OK(ha_worker_leave((ha_worker *)worker));
}

/* The destructor of the program's own key leaves. */
static void *by_a_key(void *argument)
{
    (void)argument;
    CHECK(pthread_setspecific(key, join()) == 0);
    return NULL;
}

int main(int count, char **arguments)
{
    static ha_view view;
    static const struct {
        const char *name;
        void *(*body)(void *);
    } ways[] = {{"worker", as_worker},       {"observer", as_observer},       {"exit", by_exit},
                {"cancel", by_cancellation}, {"left", after_leaving},         {"key", by_a_key}};
    size_t at;
    pthread_t thread;
    job = test_job(0);
    CHECK(pthread_key_create(&key, leave) == 0);
    for (at = 0; at < sizeof ways / sizeof *ways; at++)
        if (count == 2 && strcmp(arguments[1], ways[at].name) == 0) {
            CHECK(pthread_create(&thread, NULL, ways[at].body, &view) == 0);
            if (ways[at].body == by_cancellation)
                CHECK(pthread_cancel(thread) == 0);
            CHECK(pthread_join(thread, NULL) == 0);
            OK(ha_job_close(job));
            return test_end();
        }
    return 2;
}
