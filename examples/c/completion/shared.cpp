// Threads that all write one model, batch by batch: the program that is being ported.
#include "barrier.hpp"
#include "kernel.hpp"
#include "train.hpp"

#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

double Training::rate(std::size_t epoch) const
{
    return options.lr * std::pow(options.decay, static_cast<double>(epoch));
}

void train_shared(const Training &training, Model &model, const OnEpoch &on_epoch)
{
    const Plan &plan = training.plan;
    for (std::size_t epoch = 0; epoch < training.options.epochs; ++epoch) {
        Barrier barrier(plan.workers());
        double seconds = 0.0;
        auto run = [&](std::size_t worker) {
            Work work;
            work.rows = model.data();
            work.stride = training.stride();
            work.rate = training.rate(epoch);
            work.keep = 1.0 - work.rate * training.options.reg;
            barrier.wait();
            auto begin = std::chrono::steady_clock::now();
            for (std::size_t batch = 0; batch < plan.batches(); ++batch) {
                work.share = plan.share(batch, worker);
                learn(work);
                barrier.wait();
            }
            if (worker == 0)
                seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        };
        std::vector<std::thread> threads;
        for (std::size_t worker = 1; worker < plan.workers(); ++worker)
            threads.emplace_back(run, worker);
        run(0);
        for (std::thread &thread : threads)
            thread.join();
        if (!on_epoch(epoch, seconds, model.data()))
            return;
    }
}
