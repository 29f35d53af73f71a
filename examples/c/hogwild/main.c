/* Logistic regression with asynchronous updates.
 *
 *     hogwild --samples a9a --workers 4 --memory shared   # HogWild: all threads write one vector
 *     hogwild --samples a9a --workers 4 --memory areas    # each worker writes its own area, others read it
 *     hectare run -n 4 -- hogwild --samples a9a           # the same, as four processes
 *
 * shared.c and areas.c are the two ways; without a file the samples are made up. */
#define _POSIX_C_SOURCE 200809L
#include "logistic.h"

#include <hectare/hectare.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const HELP =
    "hogwild: logistic regression with asynchronous updates\n"
    "\n"
    "  --samples FILE     labels and features in the format of LIBSVM [generated]\n"
    "  --workers N        threads [2]; under `hectare run -n N`, each process is a worker\n"
    "  --epochs N         passes over the samples [5]\n"
    "  --lr X, --decay X  learning rate [0.01], and what it is multiplied with after each epoch [0.8]\n"
    "  --seed N           of the order of the samples, and of generated ones [1]\n"
    "  --memory KIND      shared, or areas [default]\n"
    "  --every N          areas: samples in a period, after which a worker looks at the others' steps [16]\n"
    "  --staleness N      areas: how many periods a worker may be ahead of the slowest [1]\n";

struct options {
    const char *samples;
    struct settings settings;
    double workers, epochs, every, staleness, seed, lr, decay;
    int shared;
};

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* What the options that take a number may be. */
struct number {
    const char *name;
    double *value;
    double least, most;
    int whole;
};

static int usage(const char *what, const char *name, const char *text)
{
    fprintf(stderr, "error: ");
    fprintf(stderr, what, name, text);
    fprintf(stderr, " (see --help)\n");
    return -1;
}

static int set_number(const struct number *number, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    /* Written so that NaN is refused. */
    int good = end != text && *end == '\0' && value >= number->least && value <= number->most;
    if (!good || (number->whole && value != floor(value))) {
        fprintf(stderr, "error: %s must be a %snumber from %g to %g, not '%s' (see --help)\n", number->name,
                number->whole ? "whole " : "", number->least, number->most, text);
        return -1;
    }
    *number->value = value;
    return 0;
}

/* Returns 0, or -1 after a line about what is wrong. */
static int parse(int count, char **arguments, struct options *options)
{
    const struct number numbers[] = {
        {"--workers", &options->workers, 1, 64, 1},     {"--epochs", &options->epochs, 1, 1e6, 1},
        {"--every", &options->every, 1, 1e9, 1},        {"--seed", &options->seed, 0, 9007199254740992.0, 1},
        {"--lr", &options->lr, 1e-12, 1e6, 0},          {"--decay", &options->decay, 1e-6, 1, 0},
        {"--staleness", &options->staleness, 0, 1e9, 1},
    };
    for (int at = 1; at < count; at += 2) {
        const char *name = arguments[at], *text = at + 1 < count ? arguments[at + 1] : NULL;
        const struct number *number = NULL;
        for (size_t one = 0; one < sizeof numbers / sizeof *numbers; one++)
            if (strcmp(name, numbers[one].name) == 0)
                number = &numbers[one];
        int is_samples = strcmp(name, "--samples") == 0, is_memory = strcmp(name, "--memory") == 0;
        if (number == NULL && !is_samples && !is_memory)
            return usage("unknown option '%s'%s", name, "");
        if (text == NULL)
            return usage("%s needs a value%s", name, "");
        if (number != NULL && set_number(number, text) != 0)
            return -1;
        if (is_samples)
            options->samples = text;
        if (is_memory) {
            options->shared = strcmp(text, "shared") == 0;
            if (!options->shared && strcmp(text, "areas") != 0)
                return usage("%s must be one of shared, areas, not '%s'", name, text);
        }
    }
    return 0;
}

static void print_epoch(const struct samples *samples, const double *weights, size_t epoch, double seconds)
{
    double loss = 0.0;
    size_t right = 0;
    for (size_t sample = 0; sample < samples->count; sample++) {
        double margin = 0.0;
        for (size_t at = samples_begin(samples, sample); at < samples->ends[sample]; at++)
            margin += weights[samples->features[at].index] * (double)samples->features[at].value;
        double signed_margin = margin * (double)samples->labels[sample];
        /* log(1 + exp(-m)) without an overflow. */
        loss += signed_margin > 0.0 ? log1p(exp(-signed_margin)) : log1p(exp(signed_margin)) - signed_margin;
        right += signed_margin > 0.0;
    }
    loss /= (double)samples->count;
    printf("epoch %zu: loss %.6f, accuracy %.4f; %.4f s, %.2f M samples/s\n", epoch + 1, loss,
           (double)right / (double)samples->count, seconds, (double)samples->count / seconds / 1e6);
    fflush(stdout);
}

/* Which process this is; 2 if the options do not go with several. */
static int find_processes(struct options *options, int workers_given)
{
    struct settings *settings = &options->settings;
    if (ha_launch(&settings->process, &settings->processes) != HA_OK) {
        fprintf(stderr, "error: %s\n", ha_last_error());
        return 1;
    }
    if (settings->processes == 1)
        return 0;
    if (options->shared) {
        fprintf(stderr, "error: --memory shared is for the threads of one process (see --help)\n");
        return 2;
    }
    if (workers_given && settings->workers != settings->processes) {
        fprintf(stderr, "error: --workers %zu with %u processes: each is one worker (see --help)\n", settings->workers,
                (unsigned)settings->processes);
        return 2;
    }
    settings->workers = settings->processes;
    return 0;
}

int main(int count, char **arguments)
{
    struct options options = {NULL, {0, 0, 0, 0, 0, 0, 0, 1}, 0, 5, 16, 1, 1, 0.01, 0.8, 0};
    for (int at = 1; at < count; at++) {
        if (strcmp(arguments[at], "--help") == 0)
            return fputs(HELP, stdout) < 0;
    }
    if (parse(count, arguments, &options) != 0)
        return 2;
    struct settings *settings = &options.settings;
    settings->workers = options.workers > 0 ? (size_t)options.workers : 2;
    settings->epochs = (size_t)options.epochs;
    settings->every = (size_t)options.every;
    settings->staleness = (size_t)options.staleness;
    settings->lr = options.lr;
    settings->decay = options.decay;
    int code = find_processes(&options, options.workers > 0);
    if (code != 0)
        return code;

    char error[512] = "there is not enough memory";
    struct samples samples;
    uint64_t seed = (uint64_t)options.seed;
    int failed = options.samples != NULL ? samples_read(options.samples, &samples, error, sizeof error)
                                         : samples_generate(50000, 2000, seed, &samples, error, sizeof error);
    if (!failed) {
        failed = samples_shuffle(&samples, seed + 1);
        if (!failed && settings->process == 0)
            printf("%zu samples, %zu features; %zu worker%s, memory %s\n", samples.count, samples.dimension,
                   settings->workers, settings->workers == 1 ? "" : "s", options.shared ? "shared" : "areas");
        if (!failed)
            failed = (options.shared ? train_shared : train_areas)(&samples, settings, print_epoch, error, sizeof error);
        samples_free(&samples);
    }
    if (failed)
        fprintf(stderr, "error: %s\n", error);
    return failed ? 1 : 0;
}
