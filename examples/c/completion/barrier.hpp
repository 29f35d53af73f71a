// The barrier between two batches of shared memory.
//
// A batch takes some ten microseconds, and waking a sleeping thread takes as long, so threads that have a core each
// spin for a while before they sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

class Barrier {
public:
    explicit Barrier(std::size_t threads)
        : threads_(threads), spins_(threads <= std::thread::hardware_concurrency() ? 4000 : 0)
    {
    }

    // Waits until all threads have called this as often as this one.
    void wait()
    {
        // Relaxed: this thread took part in the last opening, and nobody opens again before it arrives below.
        std::size_t opening = openings_.load(std::memory_order_relaxed);
        // Writes of this thread go to the last arrival, which acquires all of them here.
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            arrived_.store(0, std::memory_order_relaxed);
            {
                // With the lock, so that nobody falls asleep between its look and this.
                std::lock_guard<std::mutex> lock(mutex_);
                // Release: the partner of the loads below.
                openings_.store(opening + 1, std::memory_order_release);
            }
            opened_.notify_all();
            return;
        }
        for (int spin = 0; spin < spins_; ++spin) {
            if (openings_.load(std::memory_order_acquire) != opening)
                return;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        std::unique_lock<std::mutex> lock(mutex_);
        opened_.wait(lock, [&] { return openings_.load(std::memory_order_acquire) != opening; });
    }

private:
    const std::size_t threads_;
    const int spins_;
    std::atomic<std::size_t> arrived_{0}, openings_{0};
    std::mutex mutex_;
    std::condition_variable opened_;
};
