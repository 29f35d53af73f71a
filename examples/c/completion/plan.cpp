#include "plan.hpp"

#include "components.hpp"

#include <algorithm>
#include <numeric>

namespace {

constexpr std::uint32_t NOBODY = UINT32_MAX;
// How much more than its even share a worker may get of a batch so that fewer rows move.
constexpr double SLACK = 0.15;

template <typename T> Span<T> part(const std::vector<T> &all, const std::vector<std::size_t> &ends, std::size_t list)
{
    std::size_t begin = list == 0 ? 0 : ends[list - 1];
    return {all.data() + begin, ends[list] - begin};
}

// Chooses a worker for each component of a batch: largest first to the one that wrote most of its rows, as long as
// that one's share stays within the slack, else to the least loaded (Graham, 1969).
std::vector<std::uint32_t> choose(Components &components, const std::vector<std::uint32_t> &last_writer,
                                  std::size_t ratings, std::size_t workers)
{
    const std::vector<std::uint32_t> &sizes = components.sizes();
    std::vector<std::uint32_t> written(sizes.size() * workers, 0);
    for (std::uint32_t row : components.rows())
        if (last_writer[row] != NOBODY)
            ++written[components.of(row) * workers + last_writer[row]];

    std::vector<std::uint32_t> order(sizes.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
    });
    auto most = static_cast<std::size_t>(static_cast<double>(ratings) / static_cast<double>(workers) * (1.0 + SLACK));
    std::vector<std::size_t> loads(workers, 0);
    std::vector<std::uint32_t> chosen(sizes.size());
    for (std::uint32_t component : order) {
        const std::uint32_t *rows = &written[component * workers];
        auto fits = [&](std::size_t worker) { return loads[worker] + sizes[component] <= most; };
        std::size_t best = 0;
        for (std::size_t worker = 1; worker < workers; ++worker) {
            if (fits(worker) != fits(best)) {
                best = fits(worker) ? worker : best;
            } else if (fits(best) && rows[worker] != rows[best]) {
                best = rows[worker] > rows[best] ? worker : best;
            } else if (loads[worker] < loads[best]) {
                best = worker;
            }
        }
        loads[best] += sizes[component];
        chosen[component] = static_cast<std::uint32_t>(best);
    }
    return chosen;
}

}  // namespace

Plan::Plan(const std::vector<Rating> &ratings, std::size_t rows, std::size_t batch, std::size_t workers)
    : batches_((ratings.size() + batch - 1) / batch), ratings_(ratings.size()), streams_(workers), homes_(workers)
{
    deal(ratings, rows, batch);
    find_sends(rows);
}

void Plan::deal(const std::vector<Rating> &ratings, std::size_t rows, std::size_t batch)
{
    Components components(rows);
    std::vector<std::uint32_t> last_writer(rows, NOBODY);
    std::size_t largest_shares = 0;
    for (std::size_t first = 0; first < ratings.size(); first += batch) {
        std::size_t count = std::min(batch, ratings.size() - first);
        components.find(&ratings[first], count);
        std::vector<std::uint32_t> chosen = choose(components, last_writer, count, workers());
        for (std::uint32_t row : components.rows())
            last_writer[row] = chosen[components.of(row)];
        for (std::size_t at = first; at < first + count; ++at)
            streams_[last_writer[ratings[at].user]].ratings.push_back(ratings[at]);
        std::size_t largest = 0;
        for (Stream &stream : streams_) {
            std::size_t begin = stream.ends.empty() ? 0 : stream.ends.back();
            stream.ends.push_back(stream.ratings.size());
            largest = std::max(largest, stream.ratings.size() - begin);
        }
        largest_shares += largest;
    }
    speed_up_limit_ = static_cast<double>(ratings_) / static_cast<double>(largest_shares);
}

// A row is sent once, right after the batch in which it was written last before another worker needs it, to that
// worker alone. What the last batches send at the end of an epoch is what the first ones of the next need; so the
// plan is gone through twice, and the second time gives the lists.
void Plan::find_sends(std::size_t rows)
{
    std::vector<std::uint32_t> writer(rows, NOBODY), written(rows, 0);
    std::vector<std::vector<Send>> crossing(batches_ * workers());
    for (bool second : {false, true}) {
        for (std::size_t batch = 0; batch < batches_; ++batch) {
            for (std::uint32_t worker = 0; worker < workers(); ++worker) {
                Share share = this->share(batch, worker);
                for (std::size_t at = 0; at < share.count; ++at) {
                    for (std::uint32_t row : {share.ratings[at].user, share.ratings[at].item}) {
                        if (second && writer[row] != NOBODY && writer[row] != worker)
                            crossing[written[row] * workers() + writer[row]].push_back({0, row, worker, 0});
                        writer[row] = worker;
                        written[row] = static_cast<std::uint32_t>(batch);
                    }
                }
            }
        }
    }
    number_sends(crossing, rows);
    for (std::uint32_t row = 0; row < rows; ++row)
        if (writer[row] != NOBODY)
            homes_[writer[row]].push_back(row);
}

void Plan::number_sends(std::vector<std::vector<Send>> &crossing, std::size_t rows)
{
    std::vector<std::uint32_t> last_use(rows, 0);
    for (std::size_t batch = 0; batch < batches_; ++batch) {
        for (std::size_t from = 0; from < workers(); ++from) {
            Share share = this->share(batch, from);
            for (std::uint32_t at = 0; at < share.count; ++at)
                last_use[share.ratings[at].user] = last_use[share.ratings[at].item] = at;
            std::vector<Send> &sends = crossing[batch * workers() + from];
            for (Send &send : sends)
                send.after = last_use[send.row];
            std::sort(sends.begin(), sends.end(), [](const Send &a, const Send &b) {
                return a.after != b.after ? a.after < b.after : a.row < b.row;
            });
            for (std::uint32_t to = 0; to < workers(); ++to) {
                std::uint32_t slot = 0;
                for (Send &send : sends) {
                    if (send.to == to) {
                        send.slot = slot++;
                        parcels_.push_back(send.row);
                    }
                }
                parcel_ends_.push_back(parcels_.size());
            }
            sends_.insert(sends_.end(), sends.begin(), sends.end());
            send_ends_.push_back(sends_.size());
        }
    }
}

Share Plan::share(std::size_t batch, std::size_t worker) const
{
    const Stream &stream = streams_[worker];
    std::size_t begin = batch == 0 ? 0 : stream.ends[batch - 1];
    return {stream.ratings.data() + begin, stream.ends[batch] - begin, stream.ratings.size() - begin};
}

Span<Send> Plan::sends(std::size_t batch, std::size_t from) const
{
    return part(sends_, send_ends_, batch * workers() + from);
}

Span<std::uint32_t> Plan::parcel(std::size_t batch, std::size_t from, std::size_t to) const
{
    return part(parcels_, parcel_ends_, (batch * workers() + from) * workers() + to);
}

std::size_t Plan::most_sends(std::size_t from) const
{
    std::size_t most = 0;
    for (std::size_t batch = 0; batch < batches_; ++batch)
        most = std::max(most, sends(batch, from).count);
    return most;
}
