// Training, in either kind of memory.
#pragma once

#include "model.hpp"
#include "options.hpp"
#include "plan.hpp"

#include <cstddef>
#include <functional>

// State that all workers share.
struct Training {
    const Options &options;
    const Plan &plan;
    std::size_t rows;
    // Which process this is, and of how many; with one, the workers are threads.
    std::uint32_t process = 0, processes = 1;

    std::size_t stride() const { return stride_of(options.rank); }
    double rate(std::size_t epoch) const;
};

// Called after each epoch with the rows of the model and the seconds that it took; says whether to go on. In programs of
// several processes it is called in the first.
using OnEpoch = std::function<bool(std::size_t epoch, double seconds, const double *rows)>;

void train_shared(const Training &training, Model &model, const OnEpoch &on_epoch);
void train_areas(const Training &training, Model &model, const OnEpoch &on_epoch);
