/* What the test programs share: a check that says what failed, and goes on. */
#ifndef TEST_H
#define TEST_H

#include <hectare/hectare.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
static pthread_mutex_t failures_lock = PTHREAD_MUTEX_INITIALIZER;

static void failed(const char *file, int line, const char *what, const char *more)
{
    pthread_mutex_lock(&failures_lock);
    failures++;
    fprintf(stderr, "%s:%d: %s%s%s\n", file, line, what, *more ? ": " : "", more);
    pthread_mutex_unlock(&failures_lock);
}

/* The condition holds. */
#define CHECK(condition)                                                                                             \
    do {                                                                                                             \
        if (!(condition))                                                                                            \
            failed(__FILE__, __LINE__, #condition, "");                                                              \
    } while (0)

/* The call succeeds. */
#define OK(call)                                                                                                     \
    do {                                                                                                             \
        ha_status ok_status = (call);                                                                                \
        if (ok_status != HA_OK)                                                                                      \
            failed(__FILE__, __LINE__, #call, ha_last_error());                                                      \
    } while (0)

/* The call fails with this status, and says something. */
#define FAILS(expected, call)                                                                                        \
    do {                                                                                                             \
        ha_status fails_status = (call);                                                                             \
        if (fails_status != (expected)) {                                                                            \
            char fails_text[400];                                                                                    \
            snprintf(fails_text, sizeof fails_text, "%d (%s) instead of %s", (int)fails_status,                      \
                     fails_status == HA_OK ? "" : ha_last_error(), #expected);                                       \
            failed(__FILE__, __LINE__, #call, fails_text);                                                           \
        } else if (*ha_last_error() == '\0' || *ha_status_message(fails_status) == '\0') {                           \
            failed(__FILE__, __LINE__, #call, "no text");                                                            \
        }                                                                                                            \
    } while (0)

/* The last failure's text has this in it. */
#define SAYS(part)                                                                                                   \
    do {                                                                                                             \
        if (strstr(ha_last_error(), part) == NULL)                                                                   \
            failed(__FILE__, __LINE__, "it does not say " part, ha_last_error());                                    \
    } while (0)

/* A job with little address space, also for valgrind's sake. */
static ha_job *test_job(int check)
{
    ha_job *job = NULL;
    ha_job_options options;
    ha_job_options_init(&options);
    options.reserve_bytes = 64u << 20;
    options.check = (uint32_t)check;
    OK(ha_job_embedded(&options, &job));
    if (job == NULL)
        exit(1);
    return job;
}

static int test_end(void)
{
    if (failures == 0)
        printf("ok\n");
    return failures != 0;
}

#endif
