// Replicas: every worker has an area with the model of its own. For several hosts, where rows cannot stay in place.
//
// What was one barrier in shared memory is an exchange here: the plan knows for every batch which rows the next worker to need
// them did not write itself, and those rows alone go from worker to worker (or all that were written). There is no master and
// nothing to reduce, since nobody but their last writer has a newer version of any row.
#include "carrier.hpp"

#include <algorithm>
#include <chrono>

namespace {

// The replica's area: with `copies` it has a reader copy, else nobody but its owner ever sees it.
ha_area *make_replica(const Place &place, const Model &model)
{
    const Options &options = place.training.options;
    ha_area_options area = handed_options();
    if (options.transport == Transport::copies) {
        ha_area_options_init(&area);
        area.row = place.stride();
        area.tracking = options.automatic ? HA_TRACK_AUTOMATIC : HA_TRACK_LOGGED;
    }
    ha_area *replica = place.create("replica/" + std::to_string(place.rank), HA_F64, model.size(), &area);
    check(ha_area_store(replica, 0, model.size(), model.data(), model.size() * sizeof(double)));
    return replica;
}

// The end of an epoch: everybody publishes the rows that it wrote last, worker 0 puts the model together and calls
// back, and its answer goes to all.
class Gather {
public:
    explicit Gather(const Place &place) : place_(place)
    {
        ha_area_options whole;
        ha_area_options_init(&whole);
        whole.tracking = HA_TRACK_WHOLE;
        std::string rank = std::to_string(place.rank);
        std::size_t length = std::max<std::size_t>(place.plan().home(place.rank).size() * place.stride(), 1);
        home_ = place.create("home/" + rank, HA_F64, length, &whole);
        end_ = place.create("end/" + rank, HA_U64, 2, nullptr);
        for (std::uint32_t from = 0; from < place.workers(); ++from) {
            homes_.push_back(from == place.rank ? home_ : place.attach("home/" + std::to_string(from), HA_F64));
            ends_.push_back(from == place.rank ? end_ : place.attach("end/" + std::to_string(from), HA_U64));
        }
    }

    // Returns whether to go on.
    bool end_epoch(std::size_t epoch, std::uint64_t time_ns, const double *rows, Model &model, const OnEpoch &on_epoch)
    {
        std::size_t stride = place_.stride();
        double *to = writer<double>(home_);
        for (std::uint32_t row : place_.plan().home(place_.rank))
            to = std::copy_n(rows + row * stride, stride, to);
        check(ha_log_all(home_));
        set_end(TIME, time_ns);
        check(ha_barrier(place_.worker));
        if (place_.rank == 0) {
            std::uint64_t slowest = 0;
            for (std::uint32_t from = 0; from < place_.workers(); ++from) {
                const double *home = reader<double>(homes_[from]);
                for (std::uint32_t row : place_.plan().home(from)) {
                    std::copy_n(home, stride, model.data() + row * stride);
                    home += stride;
                }
                slowest = std::max(slowest, reader<std::uint64_t>(ends_[from])[TIME]);
            }
            set_end(STOP, on_epoch(epoch, static_cast<double>(slowest) / 1e9, model.data()) ? 0 : 1);
        }
        check(ha_barrier(place_.worker));
        return reader<std::uint64_t>(ends_[0])[STOP] == 0;
    }

private:
    // Elements of a worker's `end`: how long it took, and whether worker 0 wants to stop.
    enum { TIME = 0, STOP = 1 };
    void set_end(std::size_t at, std::uint64_t value) { check(ha_area_store(end_, at, 1, &value, sizeof value)); }

    const Place &place_;
    ha_area *home_ = nullptr, *end_ = nullptr;
    std::vector<ha_area *> homes_, ends_;
};

}  // namespace

void work_on_replicas(const Place &place, Model &model, const OnEpoch &on_epoch)
{
    const Training &training = place.training;
    ha_area *replica = make_replica(place, model);
    bool copies = training.options.transport == Transport::copies;
    std::unique_ptr<Carrier> carrier = copies ? make_copies(place, replica) : make_published(place);
    Gather gather(place);
    Work work;
    work.rows = writer<double>(replica);
    work.stride = place.stride();
    for (std::size_t epoch = 0; epoch < training.options.epochs; ++epoch) {
        work.rate = training.rate(epoch);
        work.keep = 1.0 - work.rate * training.options.reg;
        check(ha_barrier(place.worker));
        auto begin = std::chrono::steady_clock::now();
        for (std::size_t batch = 0; batch < place.plan().batches(); ++batch) {
            work.share = place.plan().share(batch, place.rank);
            work.sends = place.plan().sends(batch, place.rank);
            carrier->batch(work, batch);
        }
        auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin);
        if (!gather.end_epoch(epoch, static_cast<std::uint64_t>(time.count()), work.rows, model, on_epoch))
            return;
    }
}
