//! Seeds in which no promise is broken, and errors in the node that break one each.
use hectare_net::Mutant;
use hectare_sim::{Options, Promise, replay, run};

fn keeps_its_promises(options: Options) {
    let outcome = run(options.clone());
    if let Some(broken) = outcome.broken.first() {
        panic!("{broken}\n  {}", replay(&options));
    }
}

#[test]
fn no_promise_is_broken() {
    (0..200).map(Options::of).for_each(keeps_its_promises);
}

/// A whole net of links. The faults are those of a seed that has most of them.
#[test]
fn nor_with_forty_hosts() {
    let mut options = Options::of(9);
    (options.hosts, options.groups, options.iterations, options.lines) = (40, 1, 4, 4);
    (options.attach, options.crashes, options.partitions, options.loss) = (100, 6, 4, 20);
    keeps_its_promises(options);
}

#[test]
fn equal_seeds_are_equal_runs() {
    let mut traces = Vec::new();
    for seed in 0..20 {
        let [a, b] = [run(Options::of(seed)), run(Options::of(seed))];
        assert_eq!((a.trace, a.events, a.counters), (b.trace, b.events, b.counters), "seed {seed}");
        traces.push(a.trace);
    }
    traces.sort_unstable();
    traces.dedup();
    assert_eq!(traces.len(), 20, "other seeds are other runs");
}

/// Many areas are deleted at their new owners while the workers run, and created again on other hosts after a barrier.
fn with_deletions(seed: u64) -> Options {
    let small = Options { hosts: 5, groups: 1, members: 1, lines: 1, ..Options::of(seed) };
    let steady = Options { crashes: 0, partitions: 0, pauses: 0, loss: 300, ..small };
    Options { deletions: 30, handovers: 30, iterations: 60, ..steady }
}

#[test]
fn names_of_deleted_areas_are_free_after_a_barrier() {
    (0..30).map(with_deletions).for_each(keeps_its_promises);
}

/// The runs are about something: each fault and each way of the protocol happens in some.
#[test]
fn the_faults_happen() {
    let outcomes: Vec<_> = (0..100).map(|seed| run(Options::of(seed)).counters).collect();
    let sum = |of: fn(&hectare_net::Counters) -> u64| outcomes.iter().map(of).sum::<u64>();
    assert!(sum(|counters| counters.lines_placed) > 1000);
    assert!(sum(|counters| counters.lines_resent) > 0);
    assert!(sum(|counters| counters.stale_lines) > 0);
    assert!(sum(|counters| counters.cuts_refused) > 0);
    assert!(sum(|counters| counters.cuts_overtaken) > 1000);
    assert!(sum(|counters| counters.cuts_held) > 1000);
    assert!(sum(|counters| counters.cuts_ahead) > 1000);
    assert!(sum(|counters| counters.cuts_joined) > 100);
    assert!(sum(|counters| counters.violations) > 0, "the impostor is noticed");
    assert!(sum(|counters| counters.pins_refused) > 0);
    assert!(sum(|counters| counters.skipped_labels) > 0);
    assert!(sum(|counters| counters.names_refused) > 0);
    assert!(sum(|counters| counters.left) > 100, "groups go from host to host");
    assert!(sum(|counters| counters.taken) > 100);
    assert!(
        sum(|counters| counters.conflicts) > sum(|counters| counters.names_refused),
        "names, groups and questions"
    );
    assert_eq!(sum(|counters| counters.malformed), 0);
}

/// Each seeded error is found, as a break of what it breaks.
fn is_found(mutant: Mutant, promises: &[Promise]) {
    is_found_in(mutant, promises, Options::of);
}

/// The same in runs of these options.
fn is_found_in(mutant: Mutant, promises: &[Promise], of: fn(u64) -> Options) {
    for seed in 0..600 {
        let options = Options { mutant: Some(mutant), ..of(seed) };
        if let Some(broken) = run(options).broken.first() {
            assert!(promises.contains(&broken.promise), "{mutant:?}, seed {seed}: {broken}");
            return;
        }
    }
    panic!("nobody notices {mutant:?}");
}

#[test]
fn half_a_version() {
    is_found(Mutant::EarlyCommit, &[Promise::Whole]);
}

#[test]
fn an_old_version() {
    is_found(Mutant::StaleCut, &[Promise::Order, Promise::Whole]);
}

#[test]
fn a_version_of_another_writer() {
    is_found(Mutant::ForeignCut, &[Promise::OneWriter]);
}

#[test]
fn half_a_group() {
    // Placed lines are there whether or not the group is published whole.
    is_found(Mutant::SplitGroup, &[Promise::Groups, Promise::Whole]);
}

#[test]
fn data_from_behind_a_barrier() {
    is_found(Mutant::NoLabels, &[Promise::Barrier]);
}

#[test]
fn a_first_state_from_behind_a_barrier() {
    is_found(Mutant::EarlyFirst, &[Promise::Barrier]);
}

#[test]
fn a_clock_without_its_data() {
    is_found(Mutant::BareClocks, &[Promise::Clocks, Promise::Barrier]);
}

#[test]
fn lines_that_never_come() {
    is_found(Mutant::ForgetLost, &[Promise::Progress]);
}

#[test]
fn words_that_never_come() {
    is_found(Mutant::ForgetRegisters, &[Promise::Progress, Promise::Told]);
}

#[test]
fn a_name_given_twice() {
    is_found(Mutant::NameTwice, &[Promise::Names]);
}

#[test]
fn a_clock_from_before_all_have_heard_of_a_deletion() {
    is_found_in(Mutant::HastyClock, &[Promise::Names, Promise::Barrier], with_deletions);
}

#[test]
fn a_name_that_is_said_before_it_is_free() {
    is_found(Mutant::HastyName, &[Promise::Names]);
}

#[test]
fn a_value_that_is_settled_before_it_is_heard() {
    is_found(Mutant::HastySettle, &[Promise::Progress, Promise::Told]);
}

#[test]
fn a_subscription_that_is_counted_before_it_is_heard() {
    is_found(Mutant::LooseNumbers, &[Promise::Clocks, Promise::Barrier]);
}

#[test]
fn a_group_of_two_hosts() {
    is_found(Mutant::GroupTwice, &[Promise::Names]);
}

#[test]
fn a_clash_that_one_side_hears_of() {
    is_found(Mutant::OneSided, &[Promise::Told]);
}

#[test]
fn a_clash_that_died_with_its_directory() {
    is_found(Mutant::ForgetRefused, &[Promise::Told]);
}

#[test]
fn deaths_that_all_decide() {
    is_found(Mutant::EveryoneDecides, &[Promise::OneDecision]);
}

#[test]
fn a_group_that_is_left_behind_its_readers_backs() {
    is_found(Mutant::HastyLeave, &[Promise::Clocks, Promise::Barrier, Promise::Progress]);
}

#[test]
fn answers_before_their_data() {
    is_found(Mutant::EarlyAnswer, &[Promise::Requests]);
}

#[test]
fn what_nobody_asked_for() {
    is_found(Mutant::Unasked, &[Promise::Demand]);
}

#[test]
fn a_group_that_is_left_before_the_next_owner_has_it() {
    is_found(Mutant::BlindTake, &[Promise::OneWriter, Promise::Requests]);
}

#[test]
fn an_answer_of_who_has_left_a_group_without_the_next_owners_word() {
    let given = |seed| Options { handovers: 60, requests: 300, on_demand: 1000, ..Options::of(seed) };
    is_found_in(Mutant::Unconfirmed, &[Promise::Requests], given);
}

#[test]
fn lines_that_are_placed_before_they_are_announced() {
    is_found(Mutant::HastyPlace, &[Promise::Contract]);
}

#[test]
fn a_state_that_is_given_up_for_one_that_waits_for_it() {
    is_found(Mutant::GiveUpEarlier, &[Promise::Progress]);
}

#[test]
fn a_state_that_takes_the_place_of_one_that_it_waits_for() {
    is_found(Mutant::HastyAhead, &[Promise::Progress]);
}

#[test]
fn a_clock_that_is_told_in_place_of_the_one_before_it() {
    is_found(Mutant::LoneClock, &[Promise::Progress]);
}

#[test]
fn a_train_without_the_lines_that_are_missing() {
    is_found(Mutant::AnyoneJoins, &[Promise::Whole]);
}

/// A cut that is kept and finds no room is sent again.
#[test]
fn cuts_that_wait_without_room() {
    for seed in 0..60 {
        let options = Options { mutant: Some(Mutant::LittleRoom), ..Options::of(seed) };
        let outcome = run(options);
        assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
    }
}

#[test]
fn a_group_that_is_here_under_the_epoch_of_its_next_owner() {
    is_found(Mutant::RaisedOwner, &[Promise::Progress]);
}

#[test]
fn a_state_that_counts_and_could_not_be_handed_over() {
    is_found(Mutant::FailedCounts, &[Promise::Clocks, Promise::OneWriter, Promise::Requests]);
}

/// Workers that leave before the others are done while groups are on a long way to them.
fn with_leavers(seed: u64) -> Options {
    let short = Options { hosts: 4, lines: 1, members: 1, ..Options::of(seed) };
    Options { leavers: 3, handovers: 200, delay_ns: 2_000_000, ..short }
}

#[test]
fn groups_that_come_to_who_has_left() {
    for (mutant, seed) in
        [(Mutant::DesertedWaits, 405), (Mutant::GrantOnce, 1005), (Mutant::ForgetOwnerless, 1491)]
    {
        keeps_its_promises(with_leavers(seed));
        let outcome = run(Options { mutant: Some(mutant), ..with_leavers(seed) });
        let promise = outcome.broken.first().map(|broken| broken.promise);
        assert_eq!(promise, Some(Promise::Progress), "{mutant:?}, seed {seed}");
    }
}
