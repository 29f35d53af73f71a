//! The memory of agents depends on the areas and hosts that there are, not on those that there were.
use hectare_sim::{Mode, Options, run};

/// Areas that are created, received by other hosts, and deleted, some hundred times.
#[test]
fn deleted_areas_are_forgotten() {
    let of = |renewals| {
        let quiet = Options { partitions: 0, pauses: 0, crashes: 0, breaks: 0, ..Options::of(3) };
        let none = Options {
            handovers: 0,
            deletions: 0,
            drops: 0,
            worker_deaths: 0,
            leavers: 0,
            gives_here: 0,
            ..quiet
        };
        let outcome =
            run(Options { hosts: 3, mode: Mode::Free, iterations: 4000, attach: 1000, renewals, ..none });
        assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
        outcome.remembered
    };
    let (few, many) = (of(2), of(400));
    assert!(many < few + 30, "{few} after a few, {many} after some hundred were deleted");
}
