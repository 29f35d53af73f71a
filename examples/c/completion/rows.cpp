// Rows that change owners: one model in one area, which all workers write in place, each the rows of its batch. This is
// shared.cpp with ha_rows_next for the barrier.
#include "areas.hpp"

#include <chrono>
#include <numeric>
#include <vector>

namespace {

// Arrays of the plan: the rows of the model, and one row that says whether to go on.
enum { MODEL = 0, STOP = 1 };

}  // namespace

// Besides the batches, each pass has one in which worker 0 reads the model and decides whether to go on.
ha_row_plan *make_row_plan(const Training &training)
{
    const Plan &plan = training.plan;
    const std::size_t rows[] = {training.rows, 1}, last = plan.batches();
    const std::uint32_t stop = 0, workers = static_cast<std::uint32_t>(plan.workers());
    ha_row_plan *made = nullptr;
    check(ha_row_plan_new(rows, 2, last + 1, workers, &made));
    for (std::uint32_t worker = 0; worker < workers; ++worker) {
        check(ha_row_plan_add(made, worker, STOP, 0, HA_ROWS_READ, &stop, 1, 0));
        for (std::size_t batch = 0; batch < last; ++batch) {
            Share share = plan.share(batch, worker);
            for (const std::uint32_t *row : {&share.ratings->user, &share.ratings->item})
                check(ha_row_plan_add(made, worker, MODEL, batch, HA_ROWS_WRITE, row, share.count, sizeof(Rating)));
        }
    }
    std::vector<std::uint32_t> all(training.rows);
    std::iota(all.begin(), all.end(), 0U);
    check(ha_row_plan_add(made, 0, MODEL, last, HA_ROWS_READ, all.data(), all.size(), 0));
    check(ha_row_plan_add(made, 0, STOP, last, HA_ROWS_WRITE, &stop, 1, 0));
    check(ha_row_plan_build(made));
    return made;
}

void work_on_rows(const Place &place, const ha_row_plan *plan, const Model &model, const OnEpoch &on_epoch)
{
    const Training &training = place.training;
    const std::size_t batches = training.plan.batches(), epochs = training.options.epochs;
    ha_area_options options;
    ha_area_options_init(&options);
    options.on_demand = 1;  // so that workers of other hosts find them
    ha_area *areas[2] = {};
    if (place.rank == 0) {
        areas[MODEL] = place.create("model", HA_F64, model.size(), &options);
        areas[STOP] = place.create("stop", HA_U64, 1, &options);
        check(ha_area_store(areas[MODEL], 0, model.size(), model.data(), model.size() * sizeof(double)));
    } else {
        areas[MODEL] = place.attach("model", HA_F64);
        areas[STOP] = place.attach("stop", HA_U64);
    }
    ha_rows *rows = nullptr;
    void *data = nullptr, *stop = nullptr;
    check(ha_rows_begin(place.worker, plan, epochs, areas, 2, &rows));
    check(ha_rows_data(rows, MODEL, &data));
    check(ha_rows_data(rows, STOP, &stop));
    Work work;
    work.rows = static_cast<double *>(data);
    work.stride = training.stride();
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        work.rate = training.rate(epoch);
        work.keep = 1.0 - work.rate * training.options.reg;
        auto begin = std::chrono::steady_clock::now();
        for (std::size_t batch = 0; batch < batches; ++batch) {
            check(ha_rows_next(rows));  // was: the barrier
            if (batch == 0 && *static_cast<std::uint64_t *>(stop) != 0)
                return check(ha_rows_end(rows));
            work.share = training.plan.share(batch, place.rank);
            learn(work);
        }
        check(ha_rows_next(rows));
        std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
        if (place.rank == 0)
            *static_cast<std::uint64_t *>(stop) = on_epoch(epoch, seconds.count(), work.rows) ? 0 : 1;
    }
    check(ha_rows_end(rows));
}
