/* Samples with sparse features, in the format of LIBSVM: a label, then index:value pairs. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* One feature of a sample that is not zero; indices count from 0. */
struct feature {
    uint32_t index;
    float value;
};

/* All samples, one after the other: sample i has the features from ends[i - 1] (0 for the first) to ends[i] - 1. */
struct samples {
    size_t count;
    size_t dimension; /* one more than the largest index */
    struct feature *features;
    size_t *ends;
    float *labels; /* 1 or -1 */
};

/* A small seeded generator (SplitMix64: Steele, Lea and Flood, 2014). */
struct random {
    uint64_t state;
};

uint64_t random_bits(struct random *random);
double random_unit(struct random *random);

/* Reads a file; labels above 0 are 1, others -1. Returns 0, or -1 with a line about what is wrong in `error`. */
int samples_read(const char *file, struct samples *samples, char *error, size_t room);

/* Makes samples up: sparse features with a long tail, and labels that a noisy linear model gives. */
int samples_generate(size_t count, size_t dimension, uint64_t seed, struct samples *samples, char *error, size_t room);

/* Puts the samples into a random order: the same for the same seed, in every process. Returns 0, or -1 without
 * memory. */
int samples_shuffle(struct samples *samples, uint64_t seed);

void samples_free(struct samples *samples);

/* Where the features of a sample begin. */
static inline size_t samples_begin(const struct samples *samples, size_t sample)
{
    return sample == 0 ? 0 : samples->ends[sample - 1];
}

#endif
