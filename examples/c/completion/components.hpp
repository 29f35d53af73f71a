// Connected components of a batch: the rows of users and items are the nodes, ratings the edges.
#pragma once

#include "data.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

// Finds components, batch after batch, without clearing tables that are as long as the model in between.
class Components {
public:
    explicit Components(std::size_t rows) : parents_(rows), stamps_(rows), numbers_(rows) {}

    // Components are numbered in order of the appearance of their first row.
    void find(const Rating *ratings, std::size_t count)
    {
        ++stamp_;
        rows_.clear();
        sizes_.clear();
        for (std::size_t at = 0; at < count; ++at) {
            enter(ratings[at].user);
            enter(ratings[at].item);
            // One root goes under the other: with halved paths that is fast enough.
            std::uint32_t user = root(ratings[at].user);
            parents_[root(ratings[at].item)] = user;
        }
        for (std::uint32_t row : rows_) {
            if (parents_[row] == row) {
                numbers_[row] = static_cast<std::uint32_t>(sizes_.size());
                sizes_.push_back(0);
            }
        }
        for (std::size_t at = 0; at < count; ++at)
            ++sizes_[of(ratings[at].user)];
    }

    // The component of a row of the current batch.
    std::size_t of(std::uint32_t row) { return numbers_[root(row)]; }
    // The rows of the current batch, in order of appearance.
    const std::vector<std::uint32_t> &rows() const { return rows_; }
    // Ratings in each component.
    const std::vector<std::uint32_t> &sizes() const { return sizes_; }

private:
    void enter(std::uint32_t row)
    {
        if (stamps_[row] != stamp_) {
            stamps_[row] = stamp_;
            parents_[row] = row;
            rows_.push_back(row);
        }
    }
    std::uint32_t root(std::uint32_t row)
    {
        while (parents_[row] != row)
            row = parents_[row] = parents_[parents_[row]];
        return row;
    }

    // A row's parent in its tree; valid if the row's stamp is the current batch's.
    std::vector<std::uint32_t> parents_, stamps_;
    std::uint32_t stamp_ = 0;
    // The number of a root's component.
    std::vector<std::uint32_t> numbers_;
    std::vector<std::uint32_t> rows_, sizes_;
};
