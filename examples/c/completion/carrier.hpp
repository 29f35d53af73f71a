// How rows get from replica to replica.
#pragma once

#include "areas.hpp"

class Carrier {
public:
    virtual ~Carrier() = default;
    // Does the work of one batch: learns, and brings in what others wrote in it and this worker needs next. `work` has the
    // model, and the share. Called for one batch after the other, epoch after epoch.
    virtual void batch(Work &work, std::size_t batch) = 0;
};

std::unique_ptr<Carrier> make_published(const Place &place);
std::unique_ptr<Carrier> make_copies(const Place &place, ha_area *model);
