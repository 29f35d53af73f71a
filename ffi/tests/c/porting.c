/* What the blocks of docs/porting-c.md leave to the program: a plan without conflicts in which every row changes its
 * writer after each batch. With a function of the guide as GUIDE, a program that runs it and compares. */
static void *fill(size_t size)
{
    void *memory = calloc(size, 1);
    if (memory == NULL)
        exit(1);
    return memory;
}

/* Rows come in classes; a worker has one in each batch, and another in the next. */
enum { CLASSES = WORKERS, USERS = ROWS / 2 };

static uint32_t class_of(size_t batch, uint32_t worker)
{
    return (uint32_t)((batch * 3 + worker) % CLASSES);
}

enum { COUNT = 5 };

static void ratings_of(size_t batch, uint32_t worker, struct rating *ratings)
{
    for (uint32_t at = 0; at < COUNT; at++) {
        uint32_t number = (uint32_t)((batch * 31 + at * 7) % 1000) * CLASSES + class_of(batch, worker);
        ratings[at].user = number;
        ratings[at].item = USERS + 1 + number;
        ratings[at].value = (float)(1 + at);
    }
}

struct share share_of(size_t batch, uint32_t worker)
{
    static struct rating all[BATCHES + 1][WORKERS][COUNT];
    struct share share = {all[batch][worker], COUNT};
    ratings_of(batch, worker, all[batch][worker]);
    return share;
}

void update(double *user, double *item, float value)
{
    for (int k = 0; k < RANK; k++) {
        double before = user[k];
        user[k] += 0.01 * ((double)value - item[k]);
        item[k] += 0.02 * ((double)value - before);
    }
}

/* The rows of a batch and worker, as ranges of elements without overlap. */
static size_t ranges_of(size_t batch, uint32_t worker, ha_range *ranges)
{
    struct rating ratings[COUNT];
    size_t count = 0;
    ratings_of(batch, worker, ratings);
    for (size_t at = 0; at < COUNT; at++) {
        size_t rows[2] = {ratings[at].user, ratings[at].item};
        for (int side = 0; side < 2; side++) {
            ranges[count].first = rows[side] * RANK;
            ranges[count++].count = RANK;
        }
    }
    return count;
}

size_t rows_written(size_t batch, uint32_t worker, ha_range *ranges);
size_t rows_needed(size_t batch, uint32_t worker, ha_range *ranges);
size_t rows_written(size_t batch, uint32_t worker, ha_range *ranges) { return ranges_of(batch, worker, ranges); }
size_t rows_needed(size_t batch, uint32_t worker, ha_range *ranges) { return ranges_of(batch, worker, ranges); }

/* The model that a serial loop comes to. */
double *serial_model(void);
double *serial_model(void)
{
    double *model = fill(sizeof *model * ROWS * RANK);
    for (size_t batch = 0; batch < BATCHES; batch++)
        for (uint32_t worker = 0; worker < WORKERS; worker++) {
            struct share share = share_of(batch, worker);
            for (size_t at = 0; at < share.count; at++)
                update(model + share.ratings[at].user * RANK, model + share.ratings[at].item * RANK,
                       share.ratings[at].value);
        }
    return model;
}

#ifdef GUIDE
int GUIDE(ha_worker *worker, void *argument);

int main(void)
{
    ha_job *job;
    ha_observer *observer;
    size_t bytes = sizeof(double) * ROWS * RANK;
    double *found = fill(bytes), *expected = serial_model();
    CHECK(ha_job_embedded(NULL, &job));
    CHECK(ha_run(job, WORKERS, GUIDE, NULL));
    CHECK(ha_observer_open(job, &observer));
    CHECK(ha_observer_load(observer, "model/master", HA_F64, 0, (size_t)ROWS * RANK, found, bytes, NULL));
    for (size_t at = 0; at < (size_t)ROWS * RANK; at++)
        if (found[at] != expected[at])
            return printf("element %zu is %g, not %g\n", at, found[at], expected[at]), 1;
    CHECK(ha_observer_close(observer));
    CHECK(ha_job_close(job));
    return 0;
}
#endif
