// The C++ layer: handles, views, exceptions, statuses, and a vector that is an area.
#include <hectare/hectare.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#define REQUIRE(condition)                                                                                           \
    do {                                                                                                             \
        if (!(condition)) {                                                                                          \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                     \
            std::exit(1);                                                                                            \
        }                                                                                                            \
    } while (0)

namespace {

hectare::job_options small()
{
    hectare::job_options options;
    options.reserve_bytes = 64u << 20;
    return options;
}

template <class Call> ha_status code_of(Call call)
{
    try {
        call();
    } catch (const hectare::error &error) {
        REQUIRE(std::string(error.what()).size() > 10);
        return error.code();
    }
    return HA_OK;
}

void exchange()
{
    using namespace std::chrono_literals;
    auto job = hectare::job::embedded(small());
    job.run(3, [&](hectare::worker &worker) {
        const auto rank = worker.rank();
        auto mine = worker.create<double>("part/" + std::to_string(rank), 1000,
                                          hectare::area_options().with_row(100).with_copies(2));
        REQUIRE(mine.size() == 1000 && mine.row_size() == 100 && mine.is_owned());
        auto w = mine.writer();
        std::iota(w.begin(), w.end(), rank);
        mine.log_all();
        worker.barrier();
        for (std::uint32_t other = 0; other < 3; other++) {
            auto theirs = worker.attach<double>("part/" + std::to_string(other), 10s);
            REQUIRE(theirs.reader()[500] == 500.0 + other);
            {
                auto view = theirs.view();
                REQUIRE(std::accumulate(view.begin(), view.end(), 0.0) == 499500.0 + 1000.0 * other);
                REQUIRE(code_of([&] { worker.service(); }) == HA_VIEW_OPEN);
                auto moved = std::move(view);
                REQUIRE(moved[0] == other);
            }
            worker.service();
            REQUIRE(code_of([&] { theirs.writer(); }) == HA_NOT_OWNER);
            REQUIRE(code_of([&] { theirs.view(999, 2); }) == HA_OUT_OF_RANGE);
        }
        worker.barrier();
        w[250] = -1.0;
        mine.log_row(2);
        std::vector<double> copy(3);
        worker.barrier();
        auto next = worker.attach<double>("part/" + std::to_string((rank + 1) % 3));
        next.load(249, {copy.data(), copy.size()});
        REQUIRE(copy[1] == -1.0);
        REQUIRE(next.version().counter >= 2);
        worker.barrier();
        mine.destroy();
        REQUIRE(!mine);
    });

    // An exception of one worker comes out of run, after the others have ended.
    int ended = 0;
    try {
        job.run(2, [&](hectare::worker &worker) {
            if (worker.rank() == 1)
                throw std::logic_error("wrong");
            ended = 1;
        });
        REQUIRE(false);
    } catch (const std::logic_error &error) {
        REQUIRE(std::string(error.what()) == "wrong" && ended == 1);
    }
}

void statuses()
{
    hectare::status status;
    auto job = hectare::job::embedded(status, small());
    REQUIRE(status.ok() && job);
    auto worker = job.join(status);
    REQUIRE(status.ok());
    auto none = worker.attach<float>(status, "none");
    REQUIRE(!none && status.code() == HA_NO_SUCH_AREA && status.text().find("none") != std::string::npos);
    auto area = worker.create<float>(status, "a", 10);
    REQUIRE(status);
    auto w = area.writer(status);
    REQUIRE(status && w.size() == 10);
    w[3] = 1.5f;
    REQUIRE(area.try_log(3) == HA_OK && area.try_log(10) == HA_OUT_OF_RANGE);
    REQUIRE(worker.try_sync() == HA_OK);
    REQUIRE(area.reader(status)[3] == 1.5f);
    REQUIRE(area.view(status, 11, 1).empty() && status.code() == HA_OUT_OF_RANGE);
    REQUIRE(job.try_run(2, [](hectare::worker &one) { return one.rank() == 9 ? 1 : 0; }).ok());
    // The worker goes before its area: the area's handle was closed with it.
    hectare::worker gone(std::move(worker));
    REQUIRE(gone.reset() == HA_OK);
    REQUIRE(area.reset() == HA_BAD_HANDLE);
}

// Ranks of one's own choice; what a worker leaves is claimed; where a launcher puts this process.
void places()
{
    hectare::status status;
    auto job = hectare::job::embedded(small());
    auto first = job.join_at(2);
    REQUIRE(first.rank() == 2 && code_of([&] { job.join_at(2); }) == HA_RANK_TAKEN);
    REQUIRE(!job.join_at(status, 2) && status.code() == HA_RANK_TAKEN);
    auto area = first.create<double>("left", 10);
    area.writer()[4] = 2.5;
    area.log(4);
    first.sync();
    auto second = job.join_at(status, 0);
    REQUIRE(status && second.rank() == 0);
    REQUIRE(!second.claim<double>(status, "left") && status.code() == HA_OWNER_ALIVE);
    REQUIRE(code_of([&] { second.claim<double>("left"); }) == HA_OWNER_ALIVE);
    REQUIRE(first.reset() == HA_OK);
    ha_loss loss = {};
    auto taken = second.claim<double>(status, "left", &loss);
    REQUIRE(status && taken.is_owned() && taken.reader()[4] == 2.5 && loss.last_version.counter == 1);
    REQUIRE(second.claim<double>(status, "none", &loss).get() == nullptr && status.code() == HA_NO_SUCH_AREA);

    REQUIRE(hectare::launch().rank == 0 && hectare::launch().size == 1);
    setenv("HECTARE_JOB", "j", 1);
    setenv("HECTARE_RANK", "3", 1);
    setenv("HECTARE_SIZE", "4", 1);
    const auto here = hectare::launch(status);
    REQUIRE(status && here.rank == 3 && here.size == 4);
    setenv("HECTARE_SIZE", "3", 1);
    hectare::launch(status);
    REQUIRE(status.code() == HA_BAD_ARGUMENT);
    REQUIRE(code_of([] { hectare::launch(); }) == HA_BAD_ARGUMENT);
    for (const char *name : {"HECTARE_JOB", "HECTARE_RANK", "HECTARE_SIZE"})
        unsetenv(name);
}

// A model in a vector, as programs have it; automatic tracking finds what the loop writes.
void vectors()
{
    auto job = hectare::job::embedded(small());
    auto worker = job.join();
    hectare::allocator<double> place(worker, "model");
    {
        std::vector<double, hectare::allocator<double>> model(20000, 1.0, place);
        auto reader = worker.attach<double>("model");
        worker.sync();
        REQUIRE(reader.reader()[19999] == 1.0);
        for (std::size_t i = 0; i < model.size(); i += 97)
            model[i] += 0.5;
        worker.sync();
        REQUIRE(std::memcmp(reader.reader().data(), model.data(), 160000) == 0);
        REQUIRE(place.of(model.data()) != nullptr && place.of(nullptr) == nullptr);
        // A vector that grows moves to another area.
        model.push_back(7.0);
        auto grown = worker.attach<double>("model/1");
        worker.sync();
        REQUIRE(grown.reader()[20000] == 7.0 && grown.reader()[97] == 1.5);
        REQUIRE(code_of([&] { reader.reader(); }) == HA_DELETED);
        auto moved = std::move(model);
        REQUIRE(moved.size() == 20001);
    }
    REQUIRE(code_of([&] { worker.attach<double>("model/1"); }) == HA_NO_SUCH_AREA);

    hectare::allocator<float> logged(worker, "logged", hectare::area_options().with_row(50));
    std::vector<float, hectare::allocator<float>> rows(5000, 0.0f, logged);
    ha_area *area = logged.of(rows.data());
    rows[75] = 2.0f;
    REQUIRE(ha_log_row(area, 1) == HA_OK);
    worker.sync();
    const void *seen = nullptr;
    REQUIRE(ha_area_reader(area, &seen) == HA_OK && static_cast<const float *>(seen)[75] == 2.0f);
}

// Three workers have each row in turn, and read the row behind it in the batch after.
void rows_in_batches()
{
    constexpr std::uint32_t WORKERS = 3, ROWS = 6;
    auto job = hectare::job::embedded(small());
    const std::size_t counts[] = {ROWS};
    auto plan = hectare::row_plan::make(hectare::span<const std::size_t>(counts, 1), 2 * WORKERS, WORKERS);
    for (std::uint32_t batch = 0; batch < 2 * WORKERS; batch++) {
        for (std::uint32_t worker = 0; worker < WORKERS; worker++) {
            const std::uint32_t row = (worker + batch) % ROWS, read = (row + 3) % ROWS;
            plan.writes(worker, 0, batch, &row, 1);
            plan.reads(worker, 0, batch, &read, 1);
        }
    }
    REQUIRE(code_of([&] { plan.writes(9, 0, 5, nullptr, 0); }) == HA_OUT_OF_RANGE);
    plan.build();
    std::vector<double> expected(ROWS * 2);
    for (std::uint32_t batch = 0; batch < 4 * WORKERS; batch++) {
        for (std::uint32_t worker = 0; worker < WORKERS; worker++) {
            const std::uint32_t row = (worker + batch % (2 * WORKERS)) % ROWS;
            expected[2 * row] = expected[2 * row] * 0.5 + expected[2 * ((row + 3) % ROWS)] + worker + 1;
        }
    }
    job.run(WORKERS, [&](hectare::worker &worker) {
        const auto rank = worker.rank();
        hectare::area<double> model;
        if (rank == 0)
            model = worker.create<double>("model", 2 * ROWS, hectare::area_options().without_copies());
        worker.barrier();
        if (rank != 0)
            model = worker.attach<double>("model");
        auto rows = hectare::rows::begin(worker, plan, 2, model);
        double *const data = rows.data<double>(0);
        for (std::uint32_t batch = 0; batch < 4 * WORKERS; batch++) {
            rows.next();
            const std::uint32_t row = (rank + batch % (2 * WORKERS)) % ROWS;
            data[2 * row] = data[2 * row] * 0.5 + data[2 * ((row + 3) % ROWS)] + rank + 1;
        }
        REQUIRE(code_of([&] { rows.next(); }) == HA_OUT_OF_RANGE);
        rows.end();
        REQUIRE(!rows && code_of([&] { rows.data<double>(0); }) == HA_NULL);
        if (rank == 0)
            REQUIRE(std::equal(expected.begin(), expected.end(), model.writer().begin()));
        worker.barrier();
    });
    hectare::status out;
    auto none = hectare::row_plan::make(out, hectare::span<const std::size_t>(counts, 1), 1, 1);
    REQUIRE(out.ok() && none.try_build() == HA_OK && none.try_build() == HA_BAD_PLAN);
}

// A sweep over a grid, row after row, on several workers: the bits of one.
void sweeps()
{
    constexpr std::int64_t n = 320;
    const auto sweep = [](double *a, const std::int64_t *first, const std::int64_t *last) {
        for (auto i = first[0]; i < last[0]; i++)
            for (auto j = first[1]; j < last[1]; j++)
                a[i * n + j] = (a[(i - 1) * n + j] + a[i * n + j - 1] + a[i * n + j] + a[(i + 1) * n + j]) / 4.0;
    };
    std::vector<double> expected(n * n);
    std::iota(expected.begin(), expected.end(), 1.0);
    const std::int64_t first[] = {1, 1}, last[] = {n - 1, n - 1};
    for (int k = 0; k < 2; k++)
        sweep(expected.data(), first, last);
    for (std::uint32_t workers = 1; workers <= 3; workers++) {
        auto job = hectare::job::embedded(small());
        job.run(workers, [&](hectare::worker &worker) {
            using namespace std::chrono_literals;
            hectare::area<double> grid;
            if (worker.rank() == 0) {
                grid = worker.create<double>("grid", n * n, hectare::area_options().without_copies());
                auto w = grid.writer();
                std::iota(w.begin(), w.end(), 1.0);
            } else {
                grid = worker.attach<double>("grid", 120s);
            }
            worker.barrier();
            auto loop = hectare::loop::make(worker, "sweep", HA_ORDERED, {1, 1}, {n - 1, n - 1}, workers);
            loop.over(grid, {n, n}).update(grid, {{0, {1}}, {0, {0, 1}}});
            loop.read(grid, {{-1, {1}}, {0, {0, 1}}}).read(grid, {{1, {1}}, {0, {0, 1}}}).read(grid, {{0, {1}}, {-1, {0, 1}}});
            const auto text = loop.explain();
            REQUIRE(workers == 1 || text.find("* wavefront") != std::string::npos);
            REQUIRE(code_of([&] { loop.read(grid, {hectare::subscript::whole()}); }) == HA_BAD_PLAN);
            for (int k = 0; k < 2; k++)
                loop.run([&](const hectare::block &block) { sweep(block.data<double>(0), block.first, block.last); });
            if (worker.rank() == 0) {
                auto w = grid.writer();
                REQUIRE(std::equal(w.begin(), w.end(), expected.begin()));
            }
            // An exception comes out of the loop, and the others are told.
            bool stopped = false;
            try {
                loop.run([](const hectare::block &) { throw std::runtime_error("enough"); });
            } catch (const hectare::error &error) {
                stopped = error.code() == HA_WORKER_LEFT;
            } catch (const std::runtime_error &error) {
                stopped = error.what() == std::string("enough");
            }
            REQUIRE(stopped);
            REQUIRE(loop.try_run([](const hectare::block &) { return 0; }).ok());
            hectare::status out;
            REQUIRE(!hectare::loop::make(out, worker, "none", HA_ORDERED, {}, {}, 1) && out.code() == HA_BAD_ARGUMENT);
            std::string said;
            try {
                hectare::loop::make(worker, "uneven", HA_ORDERED, {1, 1}, {n}, workers);
            } catch (const hectare::error &error) {
                said = error.what();
            }
            REQUIRE(said.find("loop \"uneven\": 2 first values and 1 last values") != std::string::npos);
            worker.barrier();
        });
    }
}

} // namespace

int main()
{
    sweeps();
    exchange();
    rows_in_batches();
    statuses();
    places();
    vectors();
    REQUIRE(hectare::nanoseconds(std::chrono::milliseconds(3)) == 3000000);
    REQUIRE(hectare::nanoseconds(std::chrono::hours::max()) == HA_FOREVER);
    std::puts("ok");
}
