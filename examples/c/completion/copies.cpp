// No parcels: each worker's whole replica is published after every batch, all rows that it wrote, and everybody takes
// what it needs out of the others' reader copies. The smallest change to a program, and the one that moves most.
#include "carrier.hpp"

#include <cstring>
#include <vector>

namespace {

class Copies final : public Carrier {
public:
    Copies(const Place &place, ha_area *model) : place_(place), model_(model)
    {
        for (std::uint32_t from = 0; from < place.workers(); ++from)
            replicas_.push_back(from == place.rank ? model
                                                   : place.attach("replica/" + std::to_string(from), HA_F64));
    }

    void batch(Work &work, std::size_t batch) override
    {
        bool automatic = place_.training.options.automatic;
        work.log = automatic ? nullptr : model_;
        work.sends = {};
        learn(work);

        check(ha_barrier(place_.worker));
        for (std::uint32_t from = 0; from < place_.workers(); ++from) {
            Span<std::uint32_t> rows = place_.plan().parcel(batch, from, place_.rank);
            if (rows.count == 0)
                continue;
            const double *theirs = reader<double>(replicas_[from]);
            for (std::uint32_t row : rows) {
                if (!automatic)
                    check(ha_log_row(model_, row));
                std::size_t at = row * work.stride;
                std::memcpy(work.rows + at, theirs + at, work.stride * sizeof(double));
            }
        }
    }

private:
    const Place &place_;
    ha_area *model_;
    std::vector<ha_area *> replicas_;
};

}  // namespace

std::unique_ptr<Carrier> make_copies(const Place &place, ha_area *model)
{
    return std::make_unique<Copies>(place, model);
}
