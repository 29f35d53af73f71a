#include "bench.hpp"

#include "areas.hpp"
#include "train.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

namespace {

// Seconds of all epochs of a run but the first.
std::vector<double> epochs(const Options &options, const Data &data, const Plan &plan)
{
    Model model = make_model(data.rows(), options.rank, options.seed);
    std::vector<double> times;
    OnEpoch on_epoch = [&](std::size_t epoch, double seconds, const double *) {
        if (epoch > 0)
            times.push_back(seconds);
        return true;
    };
    Training training{options, plan, data.rows()};
    if (options.memory == Memory::shared)
        train_shared(training, model, on_epoch);
    else
        train_areas(training, model, on_epoch);
    return times;
}

// Seconds that it takes to plan which rows change owners; the best of three.
double plan_rows(const Options &options, const Data &data, const Plan &plan)
{
    double best = 1e9;
    for (int turn = 0; turn < 3; ++turn) {
        auto begin = std::chrono::steady_clock::now();
        ha_row_plan_close(make_row_plan(Training{options, plan, data.rows()}));
        best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
}

double median(std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    std::size_t middle = times.size() / 2;
    return times.size() % 2 == 1 ? times[middle] : (times[middle - 1] + times[middle]) / 2.0;
}

struct Case {
    const char *name;
    Memory memory;
    Transport transport;
    bool automatic;
    std::vector<double> medians{};  // of each turn
    double best = 1e9;
};

}  // namespace

int bench(const Options &given, const Data &data)
{
    Options options = given;
    options.epochs = std::max<std::size_t>(given.epochs, 2);
    std::vector<std::size_t> counts = {1, 2, 4};
    if (given.workers != 0)
        counts = {given.workers};
    std::printf("{\"rank\": %zu, \"batch\": %zu, \"ratings\": %zu, \"epochs\": %zu, \"repeats\": %zu, \"cases\": [",
                options.rank, options.batch, data.train.size(), options.epochs, options.repeats);
    const char *separator = "\n";
    for (std::size_t workers : counts) {
        Plan plan(data.train, data.rows(), options.batch, workers);
        std::vector<Case> cases = {{"shared", Memory::shared, Transport::rows, false}};
        switch (given.transport) {
        case Transport::rows: cases.push_back({"rows", Memory::areas, Transport::rows, false}); break;
        case Transport::published: cases.push_back({"published", Memory::areas, Transport::published, false}); break;
        case Transport::copies:
            cases.push_back({"copies, logged", Memory::areas, Transport::copies, false});
            cases.push_back({"copies, automatic", Memory::areas, Transport::copies, true});
        }
        for (std::size_t turn = 0; turn < options.repeats; ++turn) {
            for (Case &one : cases) {
                options.memory = one.memory;
                options.transport = one.transport;
                options.automatic = one.automatic;
                std::vector<double> times = epochs(options, data, plan);
                one.medians.push_back(median(times));
                one.best = std::min(one.best, *std::min_element(times.begin(), times.end()));
            }
        }
        const Case &shared = cases.front();
        double row_plan = plan_rows(options, data, plan);
        for (const Case &one : cases) {
            // Speed against shared memory in the same turn.
            std::vector<double> ratios;
            for (std::size_t turn = 0; turn < options.repeats; ++turn)
                ratios.push_back(shared.medians[turn] / one.medians[turn]);
            std::printf("%s  {\"workers\": %zu, \"memory\": \"%s\", \"epoch_ms\": %.2f, \"best_ms\": %.2f, "
                        "\"updates_per_s\": %.3g, \"ratio\": %.3f, \"ratio_of_best\": %.3f, \"rows_crossing\": %zu, "
                        "\"row_plan_ms\": %.2f}",
                        separator, workers, one.name, median(one.medians) * 1e3, one.best * 1e3,
                        static_cast<double>(data.train.size()) / median(one.medians), median(ratios),
                        shared.best / one.best, plan.crossing(), row_plan * 1e3);
            separator = ",\n";
            std::fflush(stdout);
        }
    }
    std::printf("\n]}\n");
    return 0;
}
