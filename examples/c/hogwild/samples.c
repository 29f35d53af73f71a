#include "samples.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t random_bits(struct random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double random_unit(struct random *random)
{
    return (double)(random_bits(random) >> 11) / 9007199254740992.0;
}

/* Arrays that grow. */
struct growing {
    struct samples *samples;
    size_t sample_room, feature_count, feature_room;
};

static int add_feature(struct growing *to, uint32_t index, float value)
{
    if (to->feature_count == to->feature_room) {
        size_t room = to->feature_room == 0 ? 1024 : 2 * to->feature_room;
        struct feature *features = realloc(to->samples->features, room * sizeof *features);
        if (features == NULL)
            return -1;
        to->samples->features = features;
        to->feature_room = room;
    }
    to->samples->features[to->feature_count].index = index;
    to->samples->features[to->feature_count].value = value;
    to->feature_count++;
    if (index >= to->samples->dimension)
        to->samples->dimension = (size_t)index + 1;
    return 0;
}

/* Ends the sample that the features since the last call make. */
static int add_sample(struct growing *to, float label)
{
    if (to->samples->count == to->sample_room) {
        size_t room = to->sample_room == 0 ? 256 : 2 * to->sample_room;
        size_t *ends = realloc(to->samples->ends, room * sizeof *ends);
        if (ends == NULL)
            return -1;
        to->samples->ends = ends;
        float *labels = realloc(to->samples->labels, room * sizeof *labels);
        if (labels == NULL)
            return -1;
        to->samples->labels = labels;
        to->sample_room = room;
    }
    to->samples->ends[to->samples->count] = to->feature_count;
    to->samples->labels[to->samples->count] = label;
    to->samples->count++;
    return 0;
}

static const char *const NO_MEMORY = "there is not enough memory";

/* Reads a line without its comment. Returns what is wrong with it, or null. */
static const char *parse_line(char *line, struct growing *to)
{
    line[strcspn(line, "#\r\n")] = '\0';
    char *at = line + strspn(line, " \t");
    if (*at == '\0')
        return NULL;
    char *end;
    float label = strtof(at, &end);
    if (end == at || !isfinite(label) || (*end != '\0' && *end != ' ' && *end != '\t'))
        return "it does not begin with a label";
    for (at = end + strspn(end, " \t"); *at != '\0'; at = end + strspn(end, " \t")) {
        errno = 0;
        unsigned long long index = strtoull(at, &end, 10);
        if (end == at || *at == '-' || *end != ':')
            return "a feature is not of the form index:value";
        if (errno != 0 || index == 0 || index > (UINT32_MAX >> 4))
            return "an index is not from 1 to 268435455";
        at = end + 1;
        float value = strtof(at, &end);
        if (end == at || !isfinite(value) || (*end != '\0' && *end != ' ' && *end != '\t'))
            return "a value is not a finite number";
        if (add_feature(to, (uint32_t)(index - 1), value) != 0)
            return NO_MEMORY;
    }
    return add_sample(to, label > 0 ? 1.0f : -1.0f) == 0 ? NULL : NO_MEMORY;
}

/* Reads a line of any length, without getline, which C99 does not have. Returns 1, 0 at the end, or -1 without
 * memory. */
static int read_line(FILE *in, char **line, size_t *room)
{
    size_t used = 0;
    for (;;) {
        if (*room - used < 2) {
            size_t more = *room == 0 ? 4096 : 2 * *room;
            char *larger = realloc(*line, more);
            if (larger == NULL)
                return -1;
            *line = larger;
            *room = more;
        }
        size_t part = *room - used;
        if (fgets(*line + used, part > 65536 ? 65536 : (int)part, in) == NULL)
            return used > 0;
        used += strlen(*line + used);
        if (used > 0 && (*line)[used - 1] == '\n')
            return 1;
    }
}

int samples_read(const char *file, struct samples *samples, char *error, size_t room)
{
    memset(samples, 0, sizeof *samples);
    struct growing to = {samples, 0, 0, 0};
    FILE *in = fopen(file, "r");
    if (in == NULL) {
        snprintf(error, room, "cannot open %s: %s", file, strerror(errno));
        return -1;
    }
    char *line = NULL;
    size_t line_room = 0, number = 0;
    const char *wrong = NULL;
    int more;
    while (wrong == NULL && (more = read_line(in, &line, &line_room)) != 0) {
        number++;
        wrong = more < 0 ? NO_MEMORY : parse_line(line, &to);
    }
    if (wrong != NULL)
        snprintf(error, room, "%s, line %zu: %s", file, number, wrong);
    else if (ferror(in))
        snprintf(error, room, "cannot read %s: %s", file, strerror(errno));
    else if (samples->count == 0 || samples->dimension == 0)
        snprintf(error, room, "there are no samples with features in %s", file);
    else
        error = NULL;
    fclose(in);
    free(line);
    if (error != NULL)
        samples_free(samples);
    return error == NULL ? 0 : -1;
}

int samples_generate(size_t count, size_t dimension, uint64_t seed, struct samples *samples, char *error, size_t room)
{
    memset(samples, 0, sizeof *samples);
    struct growing to = {samples, 0, 0, 0};
    struct random random = {seed};
    double *truth = malloc(dimension * sizeof *truth);
    int failed = truth == NULL;
    for (size_t index = 0; !failed && index < dimension; index++)
        truth[index] = 4.0 * random_unit(&random) - 2.0;
    for (size_t sample = 0; !failed && sample < count; sample++) {
        double sum = 0.0;
        size_t index = 0;
        while (!failed) {
            /* Low indices are frequent, high ones rare. */
            index += 1 + (size_t)(random_unit(&random) * random_unit(&random) * (double)(index + 8));
            if (index > dimension)
                break;
            sum += truth[index - 1];
            failed = add_feature(&to, (uint32_t)(index - 1), 1.0f) != 0;
        }
        double noise = random_unit(&random) - random_unit(&random);
        failed = failed || add_sample(&to, sum + noise > 0.0 ? 1.0f : -1.0f) != 0;
    }
    free(truth);
    samples->dimension = dimension;
    if (failed) {
        samples_free(samples);
        snprintf(error, room, "%s", NO_MEMORY);
        return -1;
    }
    return 0;
}

int samples_shuffle(struct samples *samples, uint64_t seed)
{
    struct random random = {seed};
    size_t *order = malloc(samples->count * sizeof *order);
    struct samples mixed = {0, 0, NULL, NULL, NULL};
    struct growing to = {&mixed, 0, 0, 0};
    int failed = order == NULL;
    for (size_t at = 0; !failed && at < samples->count; at++)
        order[at] = at;
    for (size_t last = samples->count; !failed && last-- > 1;) {
        size_t other = (size_t)(random_bits(&random) % (last + 1)), kept = order[last];
        order[last] = order[other];
        order[other] = kept;
    }
    for (size_t at = 0; !failed && at < samples->count; at++) {
        size_t sample = order[at];
        for (size_t from = samples_begin(samples, sample); !failed && from < samples->ends[sample]; from++)
            failed = add_feature(&to, samples->features[from].index, samples->features[from].value) != 0;
        failed = failed || add_sample(&to, samples->labels[sample]) != 0;
    }
    free(order);
    if (failed) {
        samples_free(&mixed);
        return -1;
    }
    mixed.dimension = samples->dimension;
    samples_free(samples);
    *samples = mixed;
    return 0;
}

void samples_free(struct samples *samples)
{
    free(samples->features);
    free(samples->ends);
    free(samples->labels);
    memset(samples, 0, sizeof *samples);
}
