#include "kernel.hpp"

#include "model.hpp"

#include <cstring>

namespace {

// A cache line of doubles, with the arithmetic of GCC's and Clang's vector extension. It may alias plain doubles.
typedef double Line __attribute__((vector_size(64), may_alias));

// How many ratings ahead rows are fetched into the cache.
constexpr std::size_t AHEAD = 8;

inline Line *line(double *rows, std::size_t row, std::size_t stride)
{
    return reinterpret_cast<Line *>(rows + row * stride);
}

inline const Line *line(const double *rows, std::size_t row, std::size_t stride)
{
    return reinterpret_cast<const Line *>(rows + row * stride);
}

// The sum of the lanes, in a fixed order.
inline double total(const Line &lanes)
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

inline double dot(const Line *p, const Line *q, std::size_t lines)
{
    Line sum = p[0] * q[0];
    for (std::size_t at = 1; at < lines; ++at)
        sum += p[at] * q[at];
    return total(sum);
}

inline void prefetch(const Line *row, std::size_t lines)
{
    for (std::size_t at = 0; at < lines; ++at)
        __builtin_prefetch(row + at, 0);
}

// A line that another core wrote then comes over once, and not first for the read and again for the write.
inline void prefetch_to_write(const Line *row, std::size_t lines)
{
    for (std::size_t at = 0; at < lines; ++at)
        __builtin_prefetch(row + at, 1);
}

// `LINES` is 0 where only `stride` knows the number.
template <std::size_t LINES> __attribute__((noinline)) void learn_rows(const Work &work)
{
    const std::size_t lines = LINES != 0 ? LINES : work.stride / LANES, stride = lines * LANES;
    const Rating *ratings = work.share.ratings;
    const Send *send = work.sends.begin();
    for (std::size_t place = 0; place < work.share.count; ++place) {
        if (place + AHEAD < work.share.rest) {
            const Rating &soon = ratings[place + AHEAD];
            prefetch_to_write(line(work.rows, soon.user, stride), lines);
            prefetch_to_write(line(work.rows, soon.item, stride), lines);
        }
        const Rating &rating = ratings[place];
        if (work.log != nullptr) {
            // Cannot fail: the area is this worker's, and has all rows.
            ha_log_row(work.log, rating.user);
            ha_log_row(work.log, rating.item);
        }
        Line *p = line(work.rows, rating.user, stride), *q = line(work.rows, rating.item, stride);
        double step = work.rate * (static_cast<double>(rating.value) - dot(p, q, lines));
        for (std::size_t at = 0; at < lines; ++at) {
            Line a = p[at], b = q[at];
            p[at] = step * b + work.keep * a;
            q[at] = step * a + work.keep * b;
        }
        for (; send != work.sends.end() && send->after == place; ++send) {
            Line *slot = line(work.parcels[send->to], send->slot, stride);
            const Line *row = line(work.rows, send->row, stride);
            for (std::size_t at = 0; at < lines; ++at)
                slot[at] = row[at];
        }
    }
}

}  // namespace

void learn(const Work &work)
{
    // Ranks up to 16, 32 and 100: a number of lines that the compiler knows takes the loops apart.
    switch (work.stride / LANES) {
    case 2: return learn_rows<2>(work);
    case 4: return learn_rows<4>(work);
    case 13: return learn_rows<13>(work);
    default: return learn_rows<0>(work);
    }
}

double squared_error(const double *rows, std::size_t stride, const std::vector<Rating> &ratings)
{
    const std::size_t lines = stride / LANES;
    double sum = 0.0;
    for (std::size_t place = 0; place < ratings.size(); ++place) {
        if (place + AHEAD < ratings.size()) {
            prefetch(line(rows, ratings[place + AHEAD].user, stride), lines);
            prefetch(line(rows, ratings[place + AHEAD].item, stride), lines);
        }
        const Rating &rating = ratings[place];
        double error = static_cast<double>(rating.value) -
                       dot(line(rows, rating.user, stride), line(rows, rating.item, stride), lines);
        sum += error * error;
    }
    return sum;
}

void unpack(double *rows, std::size_t stride, Span<std::uint32_t> numbers, const double *parcel)
{
    const std::size_t lines = stride / LANES;
    for (std::size_t slot = 0; slot < numbers.count; ++slot) {
        if (slot + AHEAD < numbers.count) {
            prefetch(line(parcel, slot + AHEAD, stride), lines);
            prefetch_to_write(line(rows, numbers[slot + AHEAD], stride), lines);
        }
        std::memcpy(rows + numbers[slot] * stride, parcel + slot * stride, stride * sizeof(double));
    }
}
