/* Logistic regression: the loss of a sample with label y and features x is log(1 + exp(-y w.x)). */
#ifndef LOGISTIC_H
#define LOGISTIC_H

#include "samples.h"

#include <math.h>

/* How a program's threads or processes train. */
struct settings {
    size_t epochs, workers;
    double lr, decay;
    size_t every;                /* samples in a period */
    size_t staleness;            /* how many periods a worker may be ahead of the slowest */
    uint32_t process, processes; /* which process this is, of how many */
};


/* Called by one worker after each epoch with the weights. */
typedef void (*epoch_function)(const struct samples *samples, const double *weights, size_t epoch, double seconds);

/* Where a worker's part of the samples begins. */
static inline size_t part_begin(const struct samples *samples, size_t worker, size_t workers)
{
    return samples->count / workers * worker + (worker < samples->count % workers ? worker : samples->count % workers);
}

/* The negative derivative of the loss of a sample by its margin, y / (1 + exp(y w.x)). */
static inline double slope(double margin, float label)
{
    return (double)label / (1.0 + exp((double)label * margin));
}

/* Both return 0, or -1 with a line about what went wrong in `error`. */
int train_shared(const struct samples *samples, const struct settings *settings, epoch_function on_epoch, char *error,
                 size_t room);
int train_areas(const struct samples *samples, const struct settings *settings, epoch_function on_epoch, char *error,
                size_t room);

/* Nanoseconds of a clock that only goes forward. */
uint64_t now_ns(void);

#endif
