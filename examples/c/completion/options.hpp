// The command line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

enum class Memory { shared, areas };

// How rows get from worker to worker over areas.
enum class Transport {
    rows,       // not at all: they change owners, in place
    published,  // in an outbox of each worker, published after each batch
    copies,     // all rows that were written are published after each batch
};

struct Options {
    std::string ratings;  // empty: generated
    std::size_t rank = 32, epochs = 10, batch = 2000;
    std::size_t workers = 0;  // 0: one for each core or process
    double lr = 0.05, decay = 0.8, reg = 0.04;
    std::uint64_t seed = 1;
    Memory memory = Memory::areas;
    Transport transport = Transport::rows;
    bool automatic = false;  // how `Transport::copies` learns what was written
    bool bench = false;
    std::size_t repeats = 8;
    bool help = false;
};

// The command line is wrong.
struct Usage : std::runtime_error {
    using runtime_error::runtime_error;
};

extern const char *const HELP;

// Throws Usage.
Options parse_options(int count, char **arguments);

const char *name_of(Memory memory);
const char *name_of(Transport transport);
