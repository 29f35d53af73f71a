//! How fast states follow each other on virtual time, where nothing is lost.
use hectare_sim::{MS, Mode, Options, run};

/// Of two hosts, a way of 5 ms apart, so many iterations.
fn far(mode: Mode, iterations: u64) -> Options {
    Options {
        hosts: 2,
        mode,
        iterations,
        groups: 1,
        members: 1,
        lines: 4,
        attach: 1000,
        interval_us: 0,
        loss: 0,
        corrupt: 0,
        duplicate: 0,
        false_loss: 0,
        delay_ns: 5 * MS,
        jitter_ns: 1,
        rate: 0,
        window: 100_000,
        faults_until: 0,
        partitions: 0,
        pauses: 0,
        crashes: 0,
        renewals: 0,
        handovers: 0,
        short: 0,
        failing: 0,
        requests: 0,
        on_demand: 0,
        placing: false,
        drops: 0,
        gives_here: 0,
        worker_deaths: 0,
        leavers: 0,
        impostor: false,
        death: false,
        ..Options::of(0)
    }
}

/// Of 4.5 s of rounds that publish all the time, what arrives. The next state follows the last one, and does not wait until that was
/// acknowledged: then 800 would arrive. It goes on so, however much was sent. A cut that ends after the next one has left is no reason to
/// send that again: then 1700 would be refused.
#[test]
fn states_follow_each_other_without_acknowledgements() {
    let outcome = run(far(Mode::Free, 2000));
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
    let counters = outcome.counters;
    assert!(counters.arrivals > 3000, "{counters:?}");
    assert!(counters.cuts_refused < 800, "{counters:?}");
}

/// A barrier after which all write takes one way of 5 ms, the slower worker's up to 3 ms, and rounds: a state from after it is sent before
/// its receiver has said that it has passed it. More hosts are heard one after the other, and all go by one train.
#[test]
fn a_barrier_with_data_takes_one_way() {
    const BARRIERS: u64 = 1000;
    for (hosts, most) in [(2, 9 * MS), (3, 10 * MS), (8, 11 * MS)] {
        let outcome = run(Options { hosts, ..far(Mode::Barrier, BARRIERS) });
        assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
        let each_ns = outcome.ended_ns / BARRIERS;
        assert!(each_ns < most, "{hosts} hosts: {each_ns} ns");
    }
}

/// Of two groups that are given to and fro for two seconds, as soon as they are there, how often they go: a hand-over takes one way of
/// 5 ms, and rounds on both hosts. If their last state had to be acknowledged before they are left, it would take three.
#[test]
fn a_hand_over_takes_one_way() {
    for on_demand in [0, 1000] {
        let often = Options { handovers: 10_000, faults_until: 2000 * MS, on_demand, ..far(Mode::Free, 600) };
        let outcome = run(often);
        assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
        assert!(outcome.counters.taken > 500, "on demand {on_demand}: {:?}", outcome.counters);
    }
}
