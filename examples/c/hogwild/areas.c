/* HogWild over areas. Each worker owns one area, the sum of all steps that it ever made; the weights are the sum of all
 * workers' areas. A worker keeps the weights in memory of its own: its own steps are there at once, and those of the
 * others from the version of their areas that it saw last. No update is lost, and how old the others' steps may be is
 * bounded: an epoch has periods, each a tick of a worker's clock, and nobody is more than so many periods ahead of the
 * slowest (stale synchronous parallel: Ho et al., 2013). Without a bound, workers that share a core would learn for
 * milliseconds from weights that the others have long left, and training would diverge. */
#include "logistic.h"

#include <hectare/hectare.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranges of changes that are asked for at once. */
enum { RANGES = 64 };

/* The steps of another worker, as far as they are in the weights. */
struct other {
    ha_area *area;
    ha_version seen;
    double *steps;
};

struct worker {
    const struct samples *samples;
    ha_worker *handle;
    uint32_t rank;
    double *weights;
    ha_area *area; /* the own steps */
    double *steps; /* its elements */
    struct other *others;
};

/* What all workers know, and what the first that fails has to say. */
struct run {
    const struct samples *samples;
    const struct settings *settings;
    epoch_function on_epoch;
    char *error;
    size_t room;
    int failed;
};

/* Goes on to `failed` of the function if a call did not succeed. */
#define TRY(call)                \
    do {                         \
        if ((call) != HA_OK)     \
            goto failed;         \
    } while (0)

static void add(struct worker *me, struct other *other, const double *steps, size_t first, size_t count)
{
    for (size_t at = first; at < first + count; at++) {
        me->weights[at] += steps[at] - other->steps[at];
        other->steps[at] = steps[at];
    }
}

/* Brings what another worker published since the last time into the weights: only what changed is looked at. */
static int catch_up(struct worker *me, struct other *other)
{
    ha_version version;
    const void *steps;
    ha_range ranges[RANGES];
    size_t count;
    TRY(ha_area_version(other->area, &version));
    if (version.term == other->seen.term && version.counter == other->seen.counter)
        return 0;
    TRY(ha_area_reader(other->area, &steps));
    TRY(ha_area_changed_since(other->area, other->seen, ranges, RANGES, &count));
    if (count > RANGES) {
        /* So many that it is as well to look at all. */
        ranges[0].first = 0;
        ranges[0].count = me->samples->dimension;
        count = 1;
    }
    for (size_t range = 0; range < count; range++)
        add(me, other, steps, ranges[range].first, ranges[range].count);
    other->seen = version;
    return 0;
failed:
    return -1;
}

/* Brings in what all others published. */
static int catch_up_with_all(struct worker *me, const struct settings *settings)
{
    for (size_t other = 0; other < settings->workers; other++)
        if (other != me->rank && catch_up(me, &me->others[other]) != 0)
            return -1;
    return 0;
}

static void learn(struct worker *me, double rate, size_t first, size_t last)
{
    const struct samples *samples = me->samples;
    for (size_t sample = first; sample < last; sample++) {
        size_t begin = samples_begin(samples, sample), end = samples->ends[sample];
        double margin = 0.0;
        for (size_t at = begin; at < end; at++)
            margin += me->weights[samples->features[at].index] * (double)samples->features[at].value;
        double step = rate * slope(margin, samples->labels[sample]);
        for (size_t at = begin; at < end; at++) {
            size_t index = samples->features[at].index;
            double change = step * (double)samples->features[at].value;
            me->weights[index] += change;
            me->steps[index] += change;
            /* Cannot fail: the area is this worker's, and as long as the weights. */
            ha_log(me->area, index, 1);
        }
    }
}

static int learn_epoch(struct worker *me, const struct settings *settings, double rate)
{
    size_t workers = settings->workers, count = me->samples->count;
    size_t first = part_begin(me->samples, me->rank, workers);
    size_t mine = part_begin(me->samples, (size_t)me->rank + 1, workers) - first;
    /* The same for all: clocks have to agree at the end of the epoch. */
    size_t periods = ((count + workers - 1) / workers + settings->every - 1) / settings->every;
    for (size_t period = 0; period < periods; period++) {
        learn(me, rate, first + mine * period / periods, first + mine * (period + 1) / periods);
        TRY(ha_tick(me->handle, NULL));
        TRY(ha_wait_clocks(me->handle, settings->staleness, HA_FOREVER));
        if (catch_up_with_all(me, settings) != 0)
            return -1;
    }
    TRY(ha_barrier(me->handle));
    return catch_up_with_all(me, settings);
failed:
    return -1;
}

static int attach(struct worker *me, const struct settings *settings)
{
    char name[32];
    void *steps;
    snprintf(name, sizeof name, "steps/%u", (unsigned)me->rank);
    TRY(ha_area_create(me->handle, name, HA_F64, me->samples->dimension, NULL, &me->area));
    TRY(ha_area_writer(me->area, &steps));
    me->steps = steps;
    for (size_t other = 0; other < settings->workers; other++) {
        if (other == me->rank)
            continue;
        snprintf(name, sizeof name, "steps/%u", (unsigned)other);
        TRY(ha_area_attach(me->handle, name, HA_F64, HA_FOREVER, &me->others[other].area));
        TRY(ha_area_version(me->others[other].area, &me->others[other].seen));
    }
    return 0;
failed:
    return -1;
}

/* Returns 0, or -1 after a failed call: ha_last_error says more. */
static int train(struct worker *me, const struct run *run)
{
    const struct settings *settings = run->settings;
    TRY(ha_worker_rank(me->handle, &me->rank));
    if (attach(me, settings) != 0)
        return -1;
    TRY(ha_barrier(me->handle));
    double rate = settings->lr;
    for (size_t epoch = 0; epoch < settings->epochs; epoch++, rate *= settings->decay) {
        uint64_t begin = now_ns();
        if (learn_epoch(me, settings, rate) != 0)
            return -1;
        if (me->rank == 0)
            run->on_epoch(me->samples, me->weights, epoch, (double)(now_ns() - begin) / 1e9);
        TRY(ha_barrier(me->handle));
    }
    return 0;
failed:
    return -1;
}

static int work(ha_worker *handle, void *argument)
{
    struct run *run = argument;
    size_t dimension = run->samples->dimension, workers = run->settings->workers;
    struct worker me = {run->samples, handle, 0, NULL, NULL, NULL, NULL};
    me.weights = calloc(dimension, sizeof *me.weights);
    me.others = calloc(workers, sizeof *me.others);
    int enough = me.weights != NULL && me.others != NULL;
    for (size_t other = 0; enough && other < workers; other++)
        enough = (me.others[other].steps = calloc(dimension, sizeof *me.weights)) != NULL;
    int failed = !enough || train(&me, run) != 0;
    /* The others fail because this one is gone: the first has the reason. */
    if (failed && !__atomic_exchange_n(&run->failed, 1, __ATOMIC_ACQ_REL))
        snprintf(run->error, run->room, "%s", enough ? ha_last_error() : "there is not enough memory");
    for (size_t other = 0; me.others != NULL && other < workers; other++)
        free(me.others[other].steps);
    free(me.others);
    free(me.weights);
    return failed;
}

int train_areas(const struct samples *samples, const struct settings *settings, epoch_function on_epoch, char *error,
                size_t room)
{
    struct run run = {samples, settings, on_epoch, error, room, 0};
    ha_job *job = NULL;
    ha_worker *worker = NULL;
    ha_status status;
    /* Also under `hectare run`: then the job is the one that HECTARE_JOB names. */
    TRY(ha_job_open(NULL, &job));
    if (settings->processes > 1) {
        TRY(ha_worker_join_at(job, settings->process, &worker));
        TRY(ha_wait_for_workers(worker, settings->processes, HA_FOREVER));
        status = work(worker, &run) == 0 ? HA_OK : HA_CALLBACK;
        ha_worker_leave(worker);
    } else {
        status = ha_run(job, settings->workers, work, &run);
    }
    if (status != HA_OK && !run.failed)
        goto failed;
    ha_job_close(job);
    return status == HA_OK ? 0 : -1;
failed:
    snprintf(error, room, "%s", ha_last_error());
    ha_job_close(job);
    return -1;
}
