/* HogWild (Niu, Recht, Re and Wright, 2011): all threads write one vector, without locks; now and then an update is
 * lost, and with sparse features that does little harm. Kept for comparison: this is the program that areas.c is the
 * port of. */
#include "logistic.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct thread {
    pthread_t handle;
    const struct samples *samples;
    double *weights;
    double rate;
    size_t first, last;
};

/* Relaxed atomics: a race on plain doubles would be undefined. They cost what plain loads and stores do. */
static double load(const double *from)
{
    double value;
    __atomic_load(from, &value, __ATOMIC_RELAXED);
    return value;
}

static void *work(void *argument)
{
    struct thread *me = argument;
    const struct samples *samples = me->samples;
    for (size_t sample = me->first; sample < me->last; sample++) {
        size_t begin = samples_begin(samples, sample), end = samples->ends[sample];
        double margin = 0.0;
        for (size_t at = begin; at < end; at++)
            margin += load(&me->weights[samples->features[at].index]) * (double)samples->features[at].value;
        double step = me->rate * slope(margin, samples->labels[sample]);
        for (size_t at = begin; at < end; at++) {
            double *weight = &me->weights[samples->features[at].index];
            double moved = load(weight) + step * (double)samples->features[at].value;
            __atomic_store(weight, &moved, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

int train_shared(const struct samples *samples, const struct settings *settings, epoch_function on_epoch, char *error,
                 size_t room)
{
    double *weights = calloc(samples->dimension, sizeof *weights);
    struct thread *threads = calloc(settings->workers, sizeof *threads);
    int failed = weights == NULL || threads == NULL;
    if (failed)
        snprintf(error, room, "there is not enough memory");
    double rate = settings->lr;
    for (size_t epoch = 0; !failed && epoch < settings->epochs; epoch++, rate *= settings->decay) {
        uint64_t begin = now_ns();
        size_t started = 0;
        for (; started < settings->workers; started++) {
            struct thread *thread = &threads[started];
            thread->samples = samples;
            thread->weights = weights;
            thread->rate = rate;
            thread->first = part_begin(samples, started, settings->workers);
            thread->last = part_begin(samples, started + 1, settings->workers);
            int code = pthread_create(&thread->handle, NULL, work, thread);
            if (code != 0) {
                snprintf(error, room, "cannot start a thread: %s", strerror(code));
                failed = 1;
                break;
            }
        }
        while (started > 0)
            pthread_join(threads[--started].handle, NULL);
        if (!failed)
            on_epoch(samples, weights, epoch, (double)(now_ns() - begin) / 1e9);
    }
    free(threads);
    free(weights);
    return failed ? -1 : 0;
}
