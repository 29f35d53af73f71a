// What all programs over areas have.
#pragma once

#include "kernel.hpp"
#include "train.hpp"

#include <hectare/hectare.h>

#include <memory>
#include <stdexcept>
#include <string>

// Turns a failure into an exception with what the library has to say about it.
inline void check(ha_status status)
{
    if (status != HA_OK)
        throw std::runtime_error(ha_last_error());
}

// One worker's view of the run.
struct Place {
    const Training &training;
    ha_worker *worker;
    std::uint32_t rank;

    const Plan &plan() const { return training.plan; }
    std::uint32_t workers() const { return static_cast<std::uint32_t>(training.plan.workers()); }
    std::size_t stride() const { return training.stride(); }

    ha_area *create(const std::string &name, ha_type type, std::size_t length, const ha_area_options *options) const;
    // Waits until another worker has created it.
    ha_area *attach(const std::string &name, ha_type type) const;
};

// Options of an area that is handed over, and never published.
ha_area_options handed_options();

// The elements of an area that the worker owns.
template <typename T> T *writer(ha_area *area)
{
    void *data = nullptr;
    check(ha_area_writer(area, &data));
    return static_cast<T *>(data);
}

// The version of an area that the worker sees, until its next synchronization point.
template <typename T> const T *reader(const ha_area *area)
{
    const void *data = nullptr;
    check(ha_area_reader(area, &data));
    return static_cast<const T *>(data);
}

// What a worker does over rows that change owners, and over replicas. Which is asked for in the options.
void work_on_rows(const Place &place, const ha_row_plan *rows, const Model &model, const OnEpoch &on_epoch);
void work_on_replicas(const Place &place, Model &model, const OnEpoch &on_epoch);

// The plan of a training with rows that change owners; to be closed.
ha_row_plan *make_row_plan(const Training &training);
