// Conflict-free batches over areas, each of which one worker alone writes.
//
// Every worker has a replica of the model and learns from the same ratings as in shared memory. What was one barrier
// there is an exchange here: the plan knows for every batch which rows the next worker to need them did not write
// itself, and those rows alone go from worker to worker. There is no master and nothing to reduce, since nobody but
// their last writer has a newer version of any row.
#include "areas.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>

ha_area *Place::create(const std::string &name, ha_type type, std::size_t length, const ha_area_options *options) const
{
    ha_area *area = nullptr;
    check(ha_area_create(worker, name.c_str(), type, length, options, &area));
    return area;
}

ha_area *Place::attach(const std::string &name, ha_type type) const
{
    ha_area *area = nullptr;
    check(ha_area_attach(worker, name.c_str(), type, HA_FOREVER, &area));
    return area;
}

ha_area_options handed_options()
{
    ha_area_options options;
    ha_area_options_init(&options);
    options.no_copies = 1;
    options.tracking = HA_TRACK_WHOLE;
    return options;
}

namespace {

// The replica's area: with `rows` it has a reader copy, else nobody but its owner ever sees it.
ha_area *make_replica(const Place &place, const Model &model)
{
    const Options &options = place.training.options;
    ha_area_options area = handed_options();
    if (options.transport == Transport::rows) {
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
            set_end(STOP, on_epoch(epoch, static_cast<double>(slowest) / 1e9, model) ? 0 : 1);
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

// What a worker does, whether it is a thread or a process.
void work(const Place &place, Model &model, const OnEpoch &on_epoch)
{
    const Training &training = place.training;
    ha_area *replica = make_replica(place, model);
    std::unique_ptr<Carrier> carrier;
    switch (training.options.transport) {
    case Transport::handed: carrier = make_handed(place); break;
    case Transport::published: carrier = make_published(place); break;
    case Transport::rows: carrier = make_rows(place, replica); break;
    }
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

// What the threads of a program get.
struct Run {
    const Training &training;
    Model &model;
    const OnEpoch &on_epoch;
    std::mutex lock{};
    std::string error{};  // of the first worker that failed: the others then fail because it is gone
};

extern "C" int work_in_thread(ha_worker *worker, void *argument)
{
    Run &run = *static_cast<Run *>(argument);
    try {
        std::uint32_t rank = 0;
        check(ha_worker_rank(worker, &rank));
        // The model is worker 0's; the others copy its initial state before the first barrier.
        work(Place{run.training, worker, rank}, run.model, run.on_epoch);
        return 0;
    } catch (const std::exception &error) {
        std::lock_guard<std::mutex> guard(run.lock);
        if (run.error.empty())
            run.error = "worker: " + std::string(error.what());
        return 1;
    }
}

// Closes the job at the end of its block.
struct Job {
    ha_job *handle = nullptr;
    Job() = default;
    Job(const Job &) = delete;
    Job &operator=(const Job &) = delete;
    ~Job() { ha_job_close(handle); }
};

}  // namespace

void train_areas(const Training &training, Model &model, const OnEpoch &on_epoch)
{
    Job job;
    if (training.processes > 1) {
        check(ha_job_connect(nullptr, &job.handle));
        ha_worker *worker = nullptr;
        check(ha_worker_join_at(job.handle, training.process, &worker));
        check(ha_wait_for_workers(worker, training.processes, HA_FOREVER));
        work(Place{training, worker, training.process}, model, on_epoch);
        check(ha_worker_leave(worker));
        return;
    }
    auto workers = static_cast<std::uint32_t>(training.plan.workers());
    ha_job_options options;
    ha_job_options_init(&options);
    options.max_areas = 3 * workers * workers + 8 * workers + 16;
    check(ha_job_open(&options, &job.handle));
    Run run{training, model, on_epoch};
    ha_status status = ha_run(job.handle, workers, work_in_thread, &run);
    if (!run.error.empty())
        throw std::runtime_error(run.error);
    check(status);
}
