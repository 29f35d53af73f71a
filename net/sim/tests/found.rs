//! Seeds that broke a promise once, each with what was wrong. They do so on the code before its repair.
use hectare_sim::{Options, run};

fn keeps_its_promises(seed: u64) {
    // What was not simulated then would make another run of it.
    let outcome = run(Options { drops: 0, place_most: 1 << 16, ..Options::of(seed) });
    assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
}

/// A question to the next owner's host, which was the last owner's, too: the answer named a round of it, and the subscriber forgot
/// which of its rounds it had.
#[test]
fn a_group_that_comes_back_to_the_host_that_it_left() {
    keeps_its_promises(4380);
}

/// Renewed areas: one that is younger than a clock was sent as if an older state of it had been missed, again and again.
#[test]
fn an_area_that_is_younger_than_a_clock() {
    keeps_its_promises(5214);
}

/// A host had taken a group, and told the new agent of its last owner's host of the subscription that it had had: that counted as many
/// groups as were received from there, of which it did not know one.
#[test]
fn a_subscription_that_is_over_is_not_told_to_another_agent() {
    keeps_its_promises(10591);
}

/// A clock counted before a host subscribed, which then was shown a state from before that clock.
#[test]
fn a_clock_that_counted_before_the_subscription() {
    keeps_its_promises(12391);
}

/// A subscriber was on its way to one next owner's host when it heard of a later one, and left the first one waiting for it.
#[test]
fn a_next_owner_that_is_passed_over() {
    keeps_its_promises(12415);
}

/// The giver's host was not known as a subscriber at the new owner's host, where it had been one before, when the owner published.
#[test]
fn a_giver_is_known_where_its_group_goes() {
    keeps_its_promises(20197);
}

/// A queue pair broke behind the lines that it had placed, an owner changed, or a train was overdue, and what was asked for came twice.
#[test]
fn an_answer_that_is_sent_twice() {
    [4394, 10868, 19_682].into_iter().for_each(keeps_its_promises);
}

/// Whose area was refused says so again by its next agent, as the directory may have ended before it told the other side.
#[test]
fn a_clash_of_which_two_agents_knew_that_ended() {
    keeps_its_promises(16474);
}

/// That an owner had dropped an area came late, to the next subscription, when there was an owner again.
#[test]
fn an_area_without_owner_of_the_subscription_before() {
    let outcome = run(Options::of(9841));
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
}

/// A group that had moved before it was received: a new agent subscribed at its home, and counted clocks of its owner's host meanwhile.
#[test]
fn a_group_that_had_moved_before_there_were_copies() {
    let outcome = run(Options::of(11454));
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
}

/// The owner of a group that came back to a host dropped it, and that was forgotten by who heard of the way back later.
#[test]
fn an_area_without_owner_that_comes_back() {
    let outcome = run(Options::of(12497));
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
}

/// Found on earlier commits.
#[test]
fn seeds_of_earlier_commits() {
    [201_168, 4614].into_iter().for_each(keeps_its_promises);
}
