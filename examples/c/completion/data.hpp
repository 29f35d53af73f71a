// The ratings: read or made up, numbered, centred on their mean, and split into training and test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// One rating as a file has it.
struct RawRating {
    std::uint64_t user, item;
    float value;
};

// One rating to learn from: two rows of the model, and the value less the mean.
struct Rating {
    std::uint32_t user, item;
    float value;
};

// The model has a row for each user, and then one for each item.
struct Data {
    std::size_t users = 0, items = 0;
    double mean = 0.0;
    std::vector<Rating> train, test;

    std::size_t rows() const { return users + items; }
};

// How large a generated data set is.
struct Size {
    std::size_t users, items, ratings;
};

// The ratings of a file: MovieLens `::`, commas, semicolons, tabs or spaces between user, item and rating; what comes
// after them in a line, and a first line that names the columns, are skipped. Throws std::runtime_error.
std::vector<RawRating> read_ratings(const std::string &file);

// Ratings from 1 to 5 with the long tails of MovieLens, made up from a seed.
std::vector<RawRating> generate_ratings(Size size, std::uint64_t seed);

// Numbers users and items, keeps one rating in ten for the test, and shuffles the others. The same in every process.
Data prepare(const std::vector<RawRating> &ratings, std::uint64_t seed);
