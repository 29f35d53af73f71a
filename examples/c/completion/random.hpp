// A small seeded generator (SplitMix64: Steele, Lea and Flood, 2014), so that a seed means the same data, the same
// order and the same initial model on every machine and in every process.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

class Random {
public:
    // The stream of `seed` for one purpose: streams for different purposes have nothing to do with each other.
    Random(std::uint64_t seed, const char *purpose) : state_(seed)
    {
        // FNV-1a over the purpose, then one step to mix the two.
        std::uint64_t tag = 0xcbf29ce484222325;
        for (; *purpose != '\0'; ++purpose)
            tag = (tag ^ static_cast<unsigned char>(*purpose)) * 0x00000100000001b3;
        state_ = bits() ^ tag;
    }

    std::uint64_t bits()
    {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

    // In [0, 1).
    double unit() { return static_cast<double>(bits() >> 11) / 9007199254740992.0; }

    // In 0 to bound - 1. The bias of the remainder is below bound / 2^64.
    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(bits() % bound); }

    // From the normal distribution with mean 0 and variance 1 (Box and Muller, 1958).
    double normal()
    {
        double radius = std::sqrt(-2.0 * std::log(1.0 - unit()));
        return radius * std::cos(6.283185307179586 * unit());
    }

    template <typename T> void shuffle(std::vector<T> &items)
    {
        for (std::size_t last = items.size(); last-- > 1;)
            std::swap(items[last], items[below(last + 1)]);
    }

private:
    std::uint64_t state_;
};
