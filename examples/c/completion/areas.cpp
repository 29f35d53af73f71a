// A job whose workers are threads of this program, or processes.
#include "areas.hpp"

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

// Closes the plan at the end of its block.
struct Rows {
    ha_row_plan *plan = nullptr;
    explicit Rows(const Training &training)
    {
        if (training.options.transport == Transport::rows)
            plan = make_row_plan(training);
    }
    Rows(const Rows &) = delete;
    Rows &operator=(const Rows &) = delete;
    ~Rows() { ha_row_plan_close(plan); }
};

// What a worker does, whether it is a thread or a process.
void work(const Place &place, const Rows &rows, Model &model, const OnEpoch &on_epoch)
{
    if (rows.plan != nullptr)
        work_on_rows(place, rows.plan, model, on_epoch);
    else
        work_on_replicas(place, model, on_epoch);
}

// What the threads of a program get.
struct Run {
    const Training &training;
    const Rows &rows;
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
        work(Place{run.training, worker, rank}, run.rows, run.model, run.on_epoch);
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
    Rows rows(training);
    Job job;
    if (training.processes > 1) {
        check(ha_job_connect(nullptr, &job.handle));
        ha_worker *worker = nullptr;
        check(ha_worker_join_at(job.handle, training.process, &worker));
        check(ha_wait_for_workers(worker, training.processes, HA_FOREVER));
        work(Place{training, worker, training.process}, rows, model, on_epoch);
        check(ha_worker_leave(worker));
        return;
    }
    auto workers = static_cast<std::uint32_t>(training.plan.workers());
    ha_job_options options;
    ha_job_options_init(&options);
    options.max_areas = 8 * workers + 16;
    check(ha_job_open(&options, &job.handle));
    Run run{training, rows, model, on_epoch};
    ha_status status = ha_run(job.handle, workers, work_in_thread, &run);
    if (!run.error.empty())
        throw std::runtime_error(run.error);
    check(status);
}
