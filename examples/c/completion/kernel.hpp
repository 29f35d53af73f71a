// The loop over ratings, and the loss. Both kinds of memory run the same machine code, so that they compute the same
// bits.
#pragma once

#include "data.hpp"
#include "plan.hpp"

#include <hectare/hectare.h>

#include <cstddef>
#include <vector>

// The ratings to learn from, and what to do with rows on the way.
struct Work {
    double *rows = nullptr;  // the model
    std::size_t stride = 0;
    double rate = 0.0;       // the learning rate
    double keep = 1.0;       // what regularization leaves of a factor in a step

    Share share{};

    // Where each row is logged before it is written; null if it need not be.
    ha_area *log = nullptr;
    // Rows that are copied into the parcels as soon as nothing will change them any more: then they are still in the
    // nearest cache. `parcels` has a pointer for each receiver.
    Span<Send> sends{};
    double *const *parcels = nullptr;
};

// One update for each rating, in order.
void learn(const Work &work);

// The sum of the squared errors, added up in the same order by everyone.
double squared_error(const double *rows, std::size_t stride, const std::vector<Rating> &ratings);

// Puts the rows of a parcel into their places.
void unpack(double *rows, std::size_t stride, Span<std::uint32_t> numbers, const double *parcel);
