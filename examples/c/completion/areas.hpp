// The base of all transports.
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

// How rows get from worker to worker.
class Carrier {
public:
    virtual ~Carrier() = default;
    // Does the work of one batch: brings in what it needs that others wrote in the batch before, learns, and sends
    // what others need. `work` has the model, and the share. Called for one batch after the other, epoch after epoch.
    virtual void batch(Work &work, std::size_t batch) = 0;
};

std::unique_ptr<Carrier> make_handed(const Place &place);
std::unique_ptr<Carrier> make_published(const Place &place);
std::unique_ptr<Carrier> make_rows(const Place &place, ha_area *model);
