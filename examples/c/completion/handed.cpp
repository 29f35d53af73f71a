// Rows in mailboxes that are handed over: for each pair of workers there are a few. One fills a mailbox and gives it,
// the other takes it, reads it in place and gives it back. The library copies nothing, and there is no barrier: each
// worker begins a batch with what needs nothing from the one before, and by the time it is through with that, the
// mailboxes have mostly come.
#include "areas.hpp"

#include <algorithm>
#include <vector>

namespace {

// One can be filled while another waits to be read and a third is on its way back.
constexpr std::size_t MAILBOXES = 3;
// In so many steps a worker goes through what needs nothing from the batch before, and looks in between what has come.
constexpr std::size_t STEPS = 4;

struct Peer {
    std::uint32_t rank;
    std::vector<ha_area *> outgoing, incoming;
    const double *come = nullptr;  // what has come and is not unpacked yet
};

class Handed final : public Carrier {
public:
    explicit Handed(const Place &place) : place_(place), parcels_(place.workers(), nullptr)
    {
        ha_area_options options = handed_options();
        auto name = [](std::uint32_t from, std::uint32_t to, std::size_t number) {
            return "mail/" + std::to_string(from) + "/" + std::to_string(to) + "/" + std::to_string(number);
        };
        for (std::uint32_t other = 0; other < place.workers(); ++other) {
            if (other == place.rank)
                continue;
            Peer peer{other, {}, {}};
            std::size_t rows = std::max<std::size_t>(place.plan().largest_parcel(place.rank, other), 1);
            for (std::size_t number = 0; number < MAILBOXES; ++number)
                peer.outgoing.push_back(
                    place.create(name(place.rank, other, number), HA_F64, rows * place.stride(), &options));
            peers_.push_back(peer);
        }
        for (Peer &peer : peers_)
            for (std::size_t number = 0; number < MAILBOXES; ++number)
                peer.incoming.push_back(place.attach(name(peer.rank, place.rank, number), HA_F64));
    }

    void batch(Work &work, std::size_t batch) override
    {
        for (Peer &peer : peers_) {
            ha_area *mailbox = peer.outgoing[batches_ % MAILBOXES];
            // The first time, each is still here.
            if (batches_ >= MAILBOXES)
                check(ha_area_take(mailbox, HA_FOREVER));
            parcels_[peer.rank] = writer<double>(mailbox);
        }
        work.parcels = parcels_.data();
        std::size_t early = work.share.early, sent = (batch == 0 ? place_.plan().batches() : batch) - 1, come = 0;
        for (std::size_t step = 0; step < STEPS; ++step) {
            coming_.clear();
            for (; come < peers_.size() && look(peers_[come]); ++come)
                coming_.push_back({peers_[come].come, parcel(sent, peers_[come]).count * place_.stride()});
            work.coming = {coming_.data(), coming_.size()};
            work.first = early * step / STEPS;
            work.last = early * (step + 1) / STEPS;
            learn(work);
        }
        if (batches_ > 0)
            for (Peer &peer : peers_)
                receive(work, sent, peer);
        work.coming = {};
        work.first = early;
        work.last = work.share.count;
        learn(work);
        for (Peer &peer : peers_)
            check(ha_area_give(peer.outgoing[batches_ % MAILBOXES], peer.rank));
        ++batches_;
    }

private:
    Span<std::uint32_t> parcel(std::size_t sent, const Peer &peer) const
    {
        return place_.plan().parcel(sent, peer.rank, place_.rank);
    }

    ha_area *incoming(const Peer &peer) const { return peer.incoming[(batches_ - 1) % MAILBOXES]; }

    // Takes what the peer has sent, without waiting.
    bool look(Peer &peer)
    {
        if (batches_ == 0)
            return false;
        ha_status status = ha_area_take(incoming(peer), 0);
        if (status == HA_TIMED_OUT)
            return false;
        check(status);
        peer.come = writer<double>(incoming(peer));
        return true;
    }

    // Unpacks what the peer sent in the batch before, waiting for it if it has not come, and gives the empty mailbox
    // back.
    void receive(const Work &work, std::size_t sent, Peer &peer)
    {
        if (peer.come == nullptr) {
            check(ha_area_take(incoming(peer), HA_FOREVER));
            peer.come = writer<double>(incoming(peer));
        }
        unpack(work.rows, work.stride, parcel(sent, peer), peer.come);
        peer.come = nullptr;
        check(ha_area_give(incoming(peer), peer.rank));
    }

    const Place &place_;
    std::vector<Peer> peers_;
    std::vector<double *> parcels_;
    std::vector<Span<double>> coming_;
    std::size_t batches_ = 0;  // so far
};

}  // namespace

std::unique_ptr<Carrier> make_handed(const Place &place) { return std::make_unique<Handed>(place); }
