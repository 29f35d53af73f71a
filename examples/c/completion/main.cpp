// Matrix completion: predict the ratings that users would give to items they have not rated, in conflict-free batches
// (Cyclades: Pan et al., 2016), over ordinary shared memory or over areas.
//
//     completion --workers 4 --memory shared
//     completion --workers 4 --memory areas          # the same losses, bit for bit
//     hectare run -n 4 -- completion                 # the same, as four processes
//     hectare run --hosts a:2,b:2 -- completion      # on two hosts
//
// The model is one array of rows of factors; the prediction is the product of a user's and an item's row plus the mean
// of all ratings, and training is stochastic gradient descent. Where to look: kernel.cpp is the loop over ratings,
// plan.cpp finds what can run at the same time, shared.cpp is the program with threads and barriers, and rows.cpp the one
// over an area whose rows change owners, on one host or several. replicas.cpp with published.cpp or copies.cpp gives each worker
// a model of its own.
#include "bench.hpp"
#include "data.hpp"
#include "kernel.hpp"
#include "train.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <new>
#include <thread>

namespace {

Data load(const Options &options)
{
    constexpr Size MOVIELENS_1M = {6040, 3706, 1000209};
    return prepare(options.ratings.empty() ? generate_ratings(MOVIELENS_1M, options.seed)
                                           : read_ratings(options.ratings),
                   options.seed);
}

// Which process this is; fails if the options do not go with several.
void find_processes(Options &options, std::uint32_t &process, std::uint32_t &processes)
{
    if (ha_launch(&process, &processes) != HA_OK)
        throw std::runtime_error(ha_last_error());
    if (processes == 1) {
        if (options.workers == 0)
            options.workers = std::min<std::size_t>(std::max(1U, std::thread::hardware_concurrency()), 64);
        return;
    }
    if (options.memory == Memory::shared)
        throw Usage("--memory shared is for the threads of one process");
    if (options.bench)
        throw Usage("--bench is for the threads of one process");
    if (options.workers != 0 && options.workers != processes)
        throw Usage("--workers " + std::to_string(options.workers) + " with " + std::to_string(processes) +
                    " processes: each is one worker");
    options.workers = processes;
}

int run(Options options)
{
    std::uint32_t process = 0, processes = 1;
    find_processes(options, process, processes);
    Data data = load(options);
    if (options.bench)
        return bench(options, data);

    Plan plan(data.train, data.rows(), options.batch, options.workers);
    Model model = make_model(data.rows(), options.rank, options.seed);
    Training training{options, plan, data.rows(), process, processes};
    if (process == 0)
        std::printf("%zu users, %zu items, %zu ratings to learn from, %zu to test; %zu batches, %zu worker%s, "
                    "memory %s; speed-up at most %.2f\n",
                    data.users, data.items, data.train.size(), data.test.size(), plan.batches(), plan.workers(),
                    plan.workers() == 1 ? "" : "s",
                    name_of(options.memory), plan.speed_up_limit());
    bool diverged = false;
    OnEpoch on_epoch = [&](std::size_t epoch, double seconds, const double *trained) {
        double loss = squared_error(trained, training.stride(), data.train) /
                      static_cast<double>(data.train.size());
        double test = data.test.empty() ? 0.0
                                        : std::sqrt(squared_error(trained, training.stride(), data.test) /
                                                    static_cast<double>(data.test.size()));
        diverged = !std::isfinite(loss);
        if (!diverged)
            std::printf("epoch %zu: loss %.6f (%a), test RMSE %.4f; %.4f s, %.1f M updates/s\n", epoch + 1, loss, loss,
                        test, seconds, static_cast<double>(data.train.size()) / seconds / 1e6);
        std::fflush(stdout);
        return !diverged;
    };
    if (options.memory == Memory::shared)
        train_shared(training, model, on_epoch);
    else
        train_areas(training, model, on_epoch);
    if (diverged)
        throw std::runtime_error("training diverged: the loss is not finite any more; try a smaller --lr");
    return 0;
}

}  // namespace

int main(int count, char **arguments)
{
    try {
        Options options = parse_options(count, arguments);
        if (options.help) {
            std::fputs(HELP, stdout);
            return 0;
        }
        return run(options);
    } catch (const Usage &error) {
        std::fprintf(stderr, "error: %s (see --help)\n", error.what());
        return 2;
    } catch (const std::bad_alloc &) {
        std::fprintf(stderr, "error: there is not enough memory\n");
    } catch (const std::exception &error) {
        std::fprintf(stderr, "error: %s\n", error.what());
    }
    return 1;
}
