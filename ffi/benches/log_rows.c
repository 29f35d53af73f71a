/* What ha_log costs: SGD steps of matrix factorization on random rows, logged row by row, against the same steps on the
 * same memory without. Built and run by log_rows.rs:
 *
 *     cargo bench -p hectare-ffi [-- --quick]
 */
#include <hectare/hectare.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define USERS 6040
#define ITEMS 3706
#define RATINGS 200000

static struct rating {
    uint32_t user, item;
    float value;
} ratings[RATINGS];

static void check(ha_status status)
{
    if (status != HA_OK) {
        fprintf(stderr, "%s: %s\n", ha_status_message(status), ha_last_error());
        exit(1);
    }
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* One step on two rows: eight lanes and a rest, as a compiler vectorizes it without leave to reorder sums. A function of
 * its own, so that both sides run the same instructions. */
#define STEP(NAME, T)                                                                                                \
    static __attribute__((noinline)) void NAME(T *restrict user, T *restrict item, T rating, size_t rank)                               \
    {                                                                                                                \
        T lanes[8] = {0}, sum = 0, rate, shrink = (T)(1.0 - 0.01 * 0.05);                                            \
        size_t i, k, whole = rank / 8 * 8;                                                                           \
        for (i = 0; i < whole; i += 8)                                                                               \
            for (k = 0; k < 8; k++)                                                                                  \
                lanes[k] += user[i + k] * item[i + k];                                                               \
        for (; i < rank; i++)                                                                                        \
            sum += user[i] * item[i];                                                                                \
        for (k = 0; k < 8; k++)                                                                                      \
            sum += lanes[k];                                                                                         \
        rate = (T)0.01 * (rating - sum);                                                                             \
        for (i = 0; i < rank; i++) {                                                                                 \
            T old = user[i];                                                                                         \
            user[i] = old * shrink + rate * item[i];                                                                 \
            item[i] = item[i] * shrink + rate * old;                                                                 \
        }                                                                                                            \
    }

STEP(step_f64, double)
STEP(step_f32, float)

/* A pass over the ratings, in nanoseconds. LOG is what is done before each step. */
#define PASS(NAME, T, STEP, RANK, LOG)                                                                               \
    static __attribute__((noinline)) double NAME(ha_area *users, ha_area *items)                                     \
    {                                                                                                                \
        void *user_data, *item_data;                                                                                 \
        T *user, *item;                                                                                              \
        double since;                                                                                                \
        size_t i;                                                                                                    \
        check(ha_area_writer(users, &user_data));                                                                    \
        check(ha_area_writer(items, &item_data));                                                                    \
        user = (T *)user_data;                                                                                       \
        item = (T *)item_data;                                                                                       \
        since = now();                                                                                               \
        for (i = 0; i < RATINGS; i++) {                                                                              \
            const struct rating rating = ratings[i];                                                                 \
            LOG;                                                                                                     \
            STEP(user + (size_t)rating.user * RANK, item + (size_t)rating.item * RANK, (T)rating.value, RANK);       \
        }                                                                                                            \
        return now() - since;                                                                                        \
    }

#define BY_ROW                                                                                                       \
    (void)ha_log_row(users, rating.user);                                                                            \
    (void)ha_log_row(items, rating.item)
#define BY_RANGE(RANK)                                                                                               \
    (void)ha_log(users, (size_t)rating.user * RANK, RANK);                                                           \
    (void)ha_log(items, (size_t)rating.item * RANK, RANK)

PASS(plain_f64, double, step_f64, 100, (void)0)
PASS(rows_f64, double, step_f64, 100, BY_ROW)
PASS(ranges_f64, double, step_f64, 100, BY_RANGE(100))
PASS(plain_f32, float, step_f32, 16, (void)0)
PASS(rows_f32, float, step_f32, 16, BY_ROW)
PASS(ranges_f32, float, step_f32, 16, BY_RANGE(16))

typedef double pass(ha_area *users, ha_area *items);

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define MOST 1000
static void compare(const char *name, ha_worker *worker, pass *logged, pass *plain, ha_area *users, ha_area *items,
                    int sync, int blocks, int repeats)
{
    static double times[2][MOST];
    pass *const passes[2] = {logged, plain};
    int block, which, repeat, count[2] = {0, 0};
    double median[2];
    for (block = 0; block < blocks; block++)
        for (which = 0; which < 2; which++)
            for (repeat = 0; repeat < repeats; repeat++) {
                /* Each is first in every other block. */
                int one = (which + block) % 2;
                double time = passes[one](users, items);
                if (repeat > 0)
                    times[one][count[one]++] = time;
                if (sync) {
                    /* All of it on both sides, so that both find the caches as a publication leaves them. */
                    check(ha_log_all(users));
                    check(ha_log_all(items));
                    check(ha_sync(worker, NULL));
                }
            }
    for (which = 0; which < 2; which++) {
        qsort(times[which], (size_t)count[which], sizeof(double), ascending);
        median[which] = times[which][count[which] / 2];
    }
    printf("%-28s %9.2f %9.2f  %6.3f %6.3f\n", name, RATINGS * 1e3 / median[0], RATINGS * 1e3 / median[1],
           median[1] / median[0], times[1][0] / times[0][0]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    ha_job *job;
    ha_worker *worker;
    ha_area *areas[4];
    ha_area_options options;
    void *data;
    uint64_t random = 42;
    size_t i, k;
    int quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    int blocks = quick ? 10 : 40, repeats = quick ? 6 : 10;
    static const size_t ranks[2] = {100, 16};

    for (i = 0; i < RATINGS; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ratings[i].user = (uint32_t)((random >> 32) * USERS >> 32);
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ratings[i].item = (uint32_t)((random >> 32) * ITEMS >> 32);
        ratings[i].value = (float)(random >> 40 & 3) + 1.0f;
    }
    check(ha_job_embedded(NULL, &job));
    check(ha_worker_join(job, &worker));
    ha_area_options_init(&options);
    for (k = 0; k < 4; k++) {
        size_t len = (k % 2 == 0 ? USERS : ITEMS) * ranks[k / 2];
        char name[8];
        snprintf(name, sizeof name, "%d", (int)k);
        options.row = ranks[k / 2];
        check(ha_area_create(worker, name, k < 2 ? HA_F64 : HA_F32, len, &options, &areas[k]));
        check(ha_area_writer(areas[k], &data));
        for (i = 0; i < len; i++) {
            if (k < 2)
                ((double *)data)[i] = 0.1;
            else
                ((float *)data)[i] = 0.1f;
        }
        check(ha_log_all(areas[k]));
    }
    check(ha_sync(worker, NULL));
    printf("%-28s %9s %9s  %6s %6s\n", "million steps per second", "logged", "without", "ratio", "best");
    for (k = 0; k < 2; k++) {
        /* A publication after every pass, so that each row has to be marked once in 20 steps on average; and none. */
        int sync = k == 0;
        printf("%s\n", sync ? "published after every pass" : "everything marked already");
        compare("rank 100, double, ha_log_row", worker, rows_f64, plain_f64, areas[0], areas[1], sync, blocks, repeats);
        compare("rank 100, double, ha_log", worker, ranges_f64, plain_f64, areas[0], areas[1], sync, blocks, repeats);
        compare("rank 16, float, ha_log_row", worker, rows_f32, plain_f32, areas[2], areas[3], sync, blocks, repeats);
        compare("rank 16, float, ha_log", worker, ranges_f32, plain_f32, areas[2], areas[3], sync, blocks, repeats);
    }
    check(ha_worker_leave(worker));
    check(ha_job_close(job));
    return 0;
}
