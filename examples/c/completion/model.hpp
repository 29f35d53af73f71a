// The model: one array of doubles, a row of factors for each user and then for each item.
//
// A row is a whole number of 64-byte lines, aligned to them; zeros fill up its last line, and stay zeros under every
// update.
#pragma once

#include "data.hpp"
#include "random.hpp"

#include <cstddef>
#include <new>
#include <vector>

// Memory that begins with a cache line.
template <typename T> struct LineAllocator {
    using value_type = T;
    LineAllocator() = default;
    template <typename U> LineAllocator(const LineAllocator<U> &) {}
    T *allocate(std::size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), std::align_val_t(64))); }
    void deallocate(T *data, std::size_t) { ::operator delete(data, std::align_val_t(64)); }
    friend bool operator==(const LineAllocator &, const LineAllocator &) { return true; }
    friend bool operator!=(const LineAllocator &, const LineAllocator &) { return false; }
};

using Model = std::vector<double, LineAllocator<double>>;

// Doubles in a line.
constexpr std::size_t LANES = 8;

// Doubles from one row to the next.
inline std::size_t stride_of(std::size_t rank) { return (rank + LANES - 1) / LANES * LANES; }

// A model with the initial factors of a seed: small, so that ratings and not chance decide where they go, but not
// zero, where the gradient is zero too.
inline Model make_model(std::size_t rows, std::size_t rank, std::uint64_t seed)
{
    std::size_t stride = stride_of(rank);
    if (rows > Model().max_size() / stride)
        throw std::bad_alloc();
    Model model(rows * stride, 0.0);
    Random random(seed, "factors");
    for (std::size_t row = 0; row < rows; ++row)
        for (std::size_t k = 0; k < rank; ++k)
            model[row * stride + k] = (2.0 * random.unit() - 1.0) * 0.05;
    return model;
}
