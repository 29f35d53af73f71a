// Who computes what: batches of the ratings, and in each batch the connected components dealt out to workers
// (Cyclades: Pan et al., 2016); and which rows have to go from worker to worker if each has memory of its own.
//
// Within a batch no two workers have a rating with a row in common, and each keeps the order of the batch, so the
// result is that of a serial loop, bit for bit, whoever computes which component. That freedom is used twice: to
// balance the load, and to give a component to the worker that last wrote most of its rows, so that fewer rows move.
// Every epoch repeats the plan, and every process makes the same.
#pragma once

#include "data.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

// Part of an array.
template <typename T> struct Span {
    const T *first = nullptr;
    std::size_t count = 0;

    const T *begin() const { return first; }
    const T *end() const { return first + count; }
    const T &operator[](std::size_t at) const { return first[at]; }
};

// A worker's ratings of a batch. What follows in memory are the ratings of the batches after it, `rest` in all.
struct Share {
    const Rating *ratings;
    std::size_t count, rest;
};

// A row to send after a batch.
struct Send {
    std::uint32_t after;  // which rating of the sender's share writes it last
    std::uint32_t row;
    std::uint32_t to;     // who gets it
    std::uint32_t slot;   // its place in the parcel
};

class Plan {
public:
    Plan(const std::vector<Rating> &ratings, std::size_t rows, std::size_t batch, std::size_t workers);

    std::size_t workers() const { return streams_.size(); }
    std::size_t batches() const { return batches_; }
    std::size_t ratings() const { return ratings_; }
    // No schedule of these shares is faster than this many workers of equal shares.
    double speed_up_limit() const { return speed_up_limit_; }

    Share share(std::size_t batch, std::size_t worker) const;
    // The rows that `from` sends after `batch`, in the order in which it is done with them.
    Span<Send> sends(std::size_t batch, std::size_t from) const;
    // The rows that go from `from` to `to` after `batch`, in the order of their slots.
    Span<std::uint32_t> parcel(std::size_t batch, std::size_t from, std::size_t to) const;
    // The rows that `worker` writes last in an epoch.
    const std::vector<std::uint32_t> &home(std::size_t worker) const { return homes_[worker]; }
    // The most rows that `from` sends after a batch, to all others together.
    std::size_t most_sends(std::size_t from) const;
    // Rows that cross in an epoch.
    std::size_t crossing() const { return sends_.size(); }

private:
    // The ratings of one worker, batch after batch, and where those of each batch end.
    struct Stream {
        std::vector<Rating> ratings;
        std::vector<std::size_t> ends;
    };
    void deal(const std::vector<Rating> &ratings, std::size_t rows, std::size_t batch);
    void find_sends(std::size_t rows);
    void number_sends(std::vector<std::vector<Send>> &crossing, std::size_t rows);

    std::size_t batches_ = 0, ratings_ = 0;
    double speed_up_limit_ = 1.0;
    std::vector<Stream> streams_;
    std::vector<Send> sends_;               // by batch and sender
    std::vector<std::size_t> send_ends_;
    std::vector<std::uint32_t> parcels_;    // by batch, sender and receiver
    std::vector<std::size_t> parcel_ends_;
    std::vector<std::vector<std::uint32_t>> homes_;
};
