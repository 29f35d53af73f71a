// A data set out of ratings, and ratings out of nothing.
#include "data.hpp"

#include "random.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <unordered_map>

namespace {

// Gives consecutive numbers to ids, in order of appearance.
class Numbering {
public:
    std::uint32_t number(std::uint64_t id)
    {
        return numbers_.try_emplace(id, static_cast<std::uint32_t>(numbers_.size())).first->second;
    }
    const std::uint32_t *find(std::uint64_t id) const
    {
        auto found = numbers_.find(id);
        return found == numbers_.end() ? nullptr : &found->second;
    }
    std::size_t count() const { return numbers_.size(); }

private:
    std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

}  // namespace

Data prepare(const std::vector<RawRating> &ratings, std::uint64_t seed)
{
    if (ratings.size() >= std::numeric_limits<std::uint32_t>::max() / 2)
        throw std::runtime_error(std::to_string(ratings.size()) + " ratings are more than this program can number");
    // Exactly one in ten, chosen at random (selection sampling: Knuth, volume 2, algorithm 3.4.2 S).
    Random random(seed, "split");
    std::size_t wanted = ratings.size() / 10;
    std::vector<RawRating> train, test;
    train.reserve(ratings.size());
    for (std::size_t place = 0; place < ratings.size(); ++place) {
        bool take = random.below(ratings.size() - place) < wanted;
        wanted -= take;
        (take ? test : train).push_back(ratings[place]);
    }

    Data data;
    for (const RawRating &rating : train)
        data.mean += static_cast<double>(rating.value);
    data.mean /= static_cast<double>(train.size());
    Numbering users, items;
    for (const RawRating &rating : train) {
        users.number(rating.user);
        items.number(rating.item);
    }
    data.users = users.count();
    data.items = items.count();
    auto centred = [&](const RawRating &rating) {
        return static_cast<float>(static_cast<double>(rating.value) - data.mean);
    };
    auto first_item = static_cast<std::uint32_t>(data.users);
    for (const RawRating &rating : train)
        data.train.push_back({users.number(rating.user), first_item + items.number(rating.item), centred(rating)});
    // Users and items without training ratings have no row; there is nothing to test.
    for (const RawRating &rating : test) {
        const std::uint32_t *user = users.find(rating.user), *item = items.find(rating.item);
        if (user != nullptr && item != nullptr)
            data.test.push_back({*user, first_item + *item, centred(rating)});
    }
    // A file that is sorted by user would teach one user after the other, and conflict in every batch.
    Random(seed, "order").shuffle(data.train);
    return data;
}

std::vector<RawRating> generate_ratings(Size size, std::uint64_t seed)
{
    constexpr std::size_t TRUE_RANK = 8;
    constexpr double MEAN = 3.58, USER_BIAS = 0.4, ITEM_BIAS = 0.5, FACTOR = 0.44, NOISE = 0.72;
    Random random(seed, "ratings");

    // The truth: biases, and a low-rank part.
    auto truth = [&](std::size_t count, double bias) {
        std::vector<double> rows(count * (TRUE_RANK + 1));
        for (std::size_t at = 0; at < rows.size(); ++at)
            rows[at] = random.normal() * (at % (TRUE_RANK + 1) == TRUE_RANK ? bias : FACTOR);
        return rows;
    };
    std::vector<double> users = truth(size.users, USER_BIAS), items = truth(size.items, ITEM_BIAS);

    // How often each user rates: log-normal. Items are chosen with weight 1 / (place + shift)^1.1.
    std::vector<double> wishes(size.users);
    double all = 0.0;
    for (double &wish : wishes)
        all += wish = std::exp(0.95 * random.normal());
    std::vector<std::uint32_t> order(size.items);
    for (std::uint32_t item = 0; item < size.items; ++item)
        order[item] = item;
    random.shuffle(order);
    std::vector<double> upto(size.items);
    double sum = 0.0, shift = static_cast<double>(size.items) / 12.0 + 1.0;
    for (std::size_t place = 0; place < size.items; ++place)
        upto[place] = sum += std::pow(static_cast<double>(place) + shift, -1.1);

    std::vector<RawRating> ratings;
    ratings.reserve(size.ratings + size.users);
    std::vector<std::size_t> chosen_by(size.items, size.users);
    for (std::size_t user = 0; user < size.users; ++user) {
        double wish = wishes[user] / all * static_cast<double>(size.ratings);
        auto most = static_cast<double>(std::max<std::size_t>(size.items * 5 / 8, 1));
        auto degree = static_cast<std::size_t>(std::clamp(std::round(wish), 1.0, most));
        for (std::size_t count = 0; count < degree; ++count) {
            auto at = std::upper_bound(upto.begin(), upto.end(), random.unit() * sum) - upto.begin();
            std::size_t place = std::min(static_cast<std::size_t>(at), size.items - 1);
            while (chosen_by[order[place]] == user)
                place = (place + 1) % size.items;
            std::size_t item = order[place];
            chosen_by[item] = user;
            const double *p = &users[user * (TRUE_RANK + 1)], *q = &items[item * (TRUE_RANK + 1)];
            double value = MEAN + p[TRUE_RANK] + q[TRUE_RANK] + NOISE * random.normal();
            for (std::size_t k = 0; k < TRUE_RANK; ++k)
                value += p[k] * q[k];
            ratings.push_back({user, item, static_cast<float>(std::clamp(std::round(value), 1.0, 5.0))});
        }
    }
    return ratings;
}
