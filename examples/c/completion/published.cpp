// Rows through published areas: each worker owns an outbox with a reader copy; a barrier after each batch publishes all
// outboxes, and everybody takes its rows out of the others' reader copies.
#include "carrier.hpp"

#include <algorithm>
#include <vector>

namespace {

class Published final : public Carrier {
public:
    explicit Published(const Place &place) : place_(place), parcels_(place.workers(), nullptr)
    {
        std::size_t length = std::max<std::size_t>(place.plan().most_sends(place.rank) * place.stride(), 1);
        auto name = [](std::uint32_t of) { return "outbox/" + std::to_string(of); };
        outbox_ = place.create(name(place.rank), HA_F64, length, nullptr);
        data_ = writer<double>(outbox_);
        for (std::uint32_t from = 0; from < place.workers(); ++from)
            outboxes_.push_back(from == place.rank ? outbox_ : place.attach(name(from), HA_F64));
    }

    void batch(Work &work, std::size_t batch) override
    {
        for (std::uint32_t to = 0; to < place_.workers(); ++to)
            parcels_[to] = data_ + offset(batch, place_.rank, to);
        // Logged at once, as one range: that costs next to nothing, and all of it will be written.
        if (work.sends.count > 0)
            check(ha_log(outbox_, 0, work.sends.count * place_.stride()));
        work.parcels = parcels_.data();
        learn(work);

        check(ha_barrier(place_.worker));
        for (std::uint32_t from = 0; from < place_.workers(); ++from) {
            Span<std::uint32_t> rows = place_.plan().parcel(batch, from, place_.rank);
            if (rows.count > 0)
                unpack(work.rows, work.stride, rows,
                       reader<double>(outboxes_[from]) + offset(batch, from, place_.rank));
        }
    }

private:
    // Where the parcel of a receiver begins in the outbox of a sender.
    std::size_t offset(std::size_t batch, std::uint32_t from, std::uint32_t to) const
    {
        std::size_t rows = 0;
        for (std::uint32_t before = 0; before < to; ++before)
            rows += place_.plan().parcel(batch, from, before).count;
        return rows * place_.stride();
    }

    const Place &place_;
    ha_area *outbox_ = nullptr;
    double *data_ = nullptr;
    std::vector<ha_area *> outboxes_;
    std::vector<double *> parcels_;
};

}  // namespace

std::unique_ptr<Carrier> make_published(const Place &place) { return std::make_unique<Published>(place); }
