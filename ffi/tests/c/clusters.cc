// k-means over areas: a program that knows nothing of hosts. Each worker has points of its own, publishes their sums by
// cluster, and adds the sums of all by rank. Threads on one host, processes under `hectare run`; prints each worker's centers, bit
// for bit. With `endless`, goes on until its job ends, and says how.
#include <hectare/hectare.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr std::uint32_t WORKERS = 3;
constexpr std::size_t POINTS = 400, DIMENSIONS = 6, CLUSTERS = 4, WIDTH = DIMENSIONS + 1, ITERATIONS = 20;

// Points of a rank, each near one of as many corners as there are clusters.
std::vector<double> points_of(std::uint32_t rank)
{
    std::vector<double> points;
    std::uint64_t state = 0x9e3779b97f4a7c15u * (rank + 1);
    for (std::size_t at = 0; at < POINTS * DIMENSIONS; at++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const double noise = static_cast<double>(state >> 11) / 9007199254740992.0;
        points.push_back(at % DIMENSIONS == (at / DIMENSIONS + rank) % CLUSTERS ? 3.0 + noise : 1.5 * noise);
    }
    return points;
}

std::size_t nearest(const double *point, const std::vector<double> &centers)
{
    std::size_t best = 0;
    double least = 0.0;
    for (std::size_t cluster = 0; cluster < CLUSTERS; cluster++) {
        double distance = 0.0;
        for (std::size_t at = 0; at < DIMENSIONS; at++) {
            const double gap = point[at] - centers[cluster * DIMENSIONS + at];
            distance += gap * gap;
        }
        if (cluster == 0 || distance < least) {
            best = cluster;
            least = distance;
        }
    }
    return best;
}

void add(const std::vector<double> &points, const std::vector<double> &centers, hectare::span<double> sums)
{
    for (double &sum : sums)
        sum = 0.0;
    for (std::size_t at = 0; at < points.size(); at += DIMENSIONS) {
        double *row = sums.data() + nearest(&points[at], centers) * WIDTH;
        for (std::size_t one = 0; one < DIMENSIONS; one++)
            row[one] += points[at + one];
        row[DIMENSIONS] += 1.0;
    }
}

std::vector<double> train(hectare::worker &worker)
{
    const auto points = points_of(worker.rank());
    const auto name = [](std::uint32_t rank) { return "sums/" + std::to_string(rank); };
    auto options = hectare::area_options().with_row(WIDTH);
    auto mine = worker.create<double>(name(worker.rank()), CLUSTERS * WIDTH, options);
    worker.barrier();
    std::vector<hectare::area<double>> all;
    for (std::uint32_t rank = 0; rank < WORKERS; rank++)
        all.push_back(worker.attach<double>(name(rank)));
    auto centers = points_of(0);
    centers.resize(CLUSTERS * DIMENSIONS);
    for (std::size_t iteration = 0; iteration < ITERATIONS; iteration++) {
        add(points, centers, mine.writer());
        mine.log_all();
        worker.barrier();
        std::vector<double> sums(CLUSTERS * WIDTH);
        for (const auto &area : all) {
            const auto view = area.view();
            for (std::size_t at = 0; at < sums.size(); at++)
                sums[at] += view[at];
        }
        for (std::size_t at = 0; at < centers.size(); at++) {
            const double *row = &sums[at / DIMENSIONS * WIDTH];
            if (row[DIMENSIONS] > 0.0)
                centers[at] = row[at % DIMENSIONS] / row[DIMENSIONS];
        }
    }
    return centers;
}

// Each counts after the one before it; nothing is published unless somebody asks for it.
void count(hectare::worker &worker)
{
    const auto name = [](std::uint32_t rank) { return "count/" + std::to_string(rank); };
    auto options = hectare::area_options().with_interval(std::chrono::hours(1));
    auto mine = worker.create<std::uint64_t>(name(worker.rank()), 100, options);
    worker.barrier();
    auto before = worker.attach<std::uint64_t>(name((worker.rank() + WORKERS - 1) % WORKERS));
    for (std::uint64_t turn = 1; turn <= 20; turn++) {
        const std::uint64_t wanted = worker.rank() == 0 ? turn - 1 : turn;
        while (before.reader()[99] != wanted) {
            if (turn % 2 == 0)
                before.sync();
            else
                before.wait_fresh(std::chrono::milliseconds(50), std::chrono::seconds(60));
            worker.service();
        }
        mine.store(99, {&turn, 1});
    }
    worker.barrier();
}

// An area that is sent to no host before it asks, although it is published.
void ask(hectare::worker &worker)
{
    const auto name = [](std::uint32_t rank) { return "asked/" + std::to_string(rank); };
    const std::uint32_t other = (worker.rank() + 1) % WORKERS;
    auto mine = worker.create<std::uint64_t>(name(worker.rank()), 100, hectare::area_options().with_on_demand());
    worker.barrier();
    auto theirs = worker.attach<std::uint64_t>(name(other));
    const std::uint64_t written = 100 + worker.rank();
    mine.store(99, {&written, 1});
    worker.barrier();
    while (theirs.reader()[99] != 100 + other)
        theirs.sync();
    worker.barrier();
}

void work(hectare::worker &worker)
{
    std::string line = "centers";
    for (const double center : train(worker)) {
        char text[40];
        std::snprintf(text, sizeof text, " %a", center);
        line += text;
    }
    count(worker);
    ask(worker);
    line += "\n";
    std::fputs(line.c_str(), stdout);
    std::fflush(stdout);
}

// How the job ends, as its workers hear it.
void endless(hectare::worker &worker)
{
    try {
        for (bool first = true;; first = false) {
            worker.barrier();
            if (first) {
                std::puts("under way");
                std::fflush(stdout);
            }
        }
    } catch (const hectare::error &error) {
        std::printf("ended: %d: %s\n", static_cast<int>(error.code()), error.what());
    }
}

} // namespace

int main(int count, char **)
{
    const auto play = [count](hectare::worker &worker) { count > 1 ? endless(worker) : work(worker); };
    const auto place = hectare::launch();
    auto job = hectare::job::open();
    if (place.size == 1) {
        job.run(WORKERS, play);
        return 0;
    }
    auto worker = job.join_at(place.rank);
    worker.wait_for_workers(place.size);
    play(worker);
    return 0;
}
