//! Seeds that broke a promise once, each with what was wrong. They did so on the code before its repair; a change of the protocol since
//! may have made other runs of them.
use hectare_sim::{Options, run};

/// The run of a seed, without what was not simulated when it broke a promise.
fn of(seed: u64) -> Options {
    Options { worker_deaths: 0, leavers: 0, gives_here: 0, awaits: 0, ..Options::of(seed) }
}

fn keeps_its_promises(seed: u64) {
    // Faults that were not simulated then would change the run.
    let outcome = run(Options { drops: 0, failing: 0, place_most: 1 << 16, ..of(seed) });
    assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
}

/// Many hand-overs of what is sent on demand, many agents that end.
fn keeps_its_promises_with(handovers: u64, crashes: u64, with: fn(Options) -> Options, seed: u64) {
    let options = with(Options { handovers, crashes, on_demand: 1000, failing: 0, ..of(seed) });
    let outcome = run(options);
    assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
}

fn attached_by_all(options: Options) -> Options {
    Options { attach: 1000, ..options }
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
    let outcome = run(of(9841));
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
}

/// A group that had moved before it was received: a new agent subscribed at its home, and counted clocks of its owner's host meanwhile.
#[test]
fn a_group_that_had_moved_before_there_were_copies() {
    let outcome = run(of(11454));
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
    let options = Options {
        lines: 1,
        groups: 1,
        hosts: 3,
        members: 1,
        handovers: 30,
        crashes: 12,
        ..Options::of(3369)
    };
    let outcome = run(options);
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
}

/// The owner of a group that came back to a host dropped it, and that was forgotten by who heard of the way back later.
#[test]
fn an_area_without_owner_that_comes_back() {
    let outcome = run(of(12497));
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
}

/// The owner of a group was passed over by who went on, and what it had said of the owner counted for the next host.
#[test]
fn an_area_without_owner_of_a_host_that_was_passed_over() {
    keeps_its_promises_with(60, 12, |options| Options { drops: 20, ..options }, 702_185);
}

/// The next agent of a host that was passed over was told that a subscription was over of which it had never heard. It counted that, and
/// so as many groups as were received from there, of which it did not know one: its clock counted without what it covers.
#[test]
fn the_end_of_a_subscription_that_was_not_told() {
    keeps_its_promises_with(100, 25, attached_by_all, 801_636);
}

/// A group came back to its former owner's host, which had answered the question that was open, by an answer that was dropped on the
/// way: it took the question for answered.
#[test]
fn a_question_that_comes_back_to_who_has_answered_it() {
    keeps_its_promises_with(100, 25, attached_by_all, 801_975);
}

/// A subscription that asks all the time is said anew before it is acknowledged: what was left was never offered to the next owner's
/// host, which waited for the newest to be known.
#[test]
fn a_subscription_of_which_the_newest_is_never_known() {
    let options = Options { requests: 900, handovers: 100, on_demand: 1000, members: 1, ..of(2_000_104) };
    let outcome = run(attached_by_all(options));
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
}

/// A subscription that the owner's host had heard before the group came from there still counted when the group went back: the group was
/// offered there before that host knew who subscribes.
#[test]
fn a_subscription_that_was_heard_before_the_group_came() {
    for seed in [829, 2249, 7470] {
        let outcome = run(of(seed));
        assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
    }
}

/// A group was left and came back while the memory had still to publish what was asked for before: it was asked a second time.
#[test]
fn a_group_that_comes_back_before_it_is_published() {
    for seed in [2_000_087, 2_000_202, 2_000_209] {
        let options = Options { requests: 500, handovers: 60, crashes: 12, ..of(seed) };
        let outcome = run(attached_by_all(options));
        assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
    }
}

/// A question about what is sent on demand was answered with a round of the new owner's host. The subscriber got that state from the
/// host before, which counts other rounds, was sent nothing more, and waited for ever.
#[test]
fn a_state_that_came_from_the_owner_before() {
    keeps_its_promises_with(100, 25, attached_by_all, 830_272);
}

/// Two directories let different hosts have a name. The judge waited for the first to hear of the second by a conflict, and that one
/// had heard by being refused itself.
#[test]
fn a_clash_that_two_directories_decided() {
    let options =
        Options { groups: 6, members: 4, lines: 10, copies: 4, crashes: 25, requests: 100, ..of(2_000_225) };
    let outcome = run(options);
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
}

/// The next agent of the host whose workers hand a group to each other says under which epoch it is there. Who had it from there already
/// forgot with that what it has to have before anybody sees it: a clock had counted when nothing of the group had come.
#[test]
fn a_group_that_went_from_worker_to_worker() {
    for seed in [5_100_082, 5_100_959, 5_101_143, 5_103_934] {
        let outcome = run(Options { handovers: 60, crashes: 12, on_demand: 1000, ..Options::of(seed) });
        assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
    }
}

/// Hosts that lose their copies forget where the owner is. The next owner's host had taken a group and given it on, and its later agent,
/// which had no copies of it, was told of that hand-over again, by a host that had not heard the answer, or had: it took itself for the
/// owner of a group that was deleted, or waited for it where it was not.
#[test]
fn a_hand_over_that_is_told_to_a_later_agent() {
    let with = |options| Options { lines: 1, groups: 1, hosts: 3, members: 1, crashes: 12, ..options };
    for seed in [3057, 4255] {
        let outcome = run(with(Options { failing: 300, handovers: 60, ..Options::of(seed) }));
        assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
    }
}

/// Packets were late: as many subscriptions were heard as a host had made when it said how many, and one of those was not among them. The
/// group was left behind that subscriber's back.
#[test]
fn as_many_subscriptions_and_not_the_same() {
    let with = |options| Options { lines: 1, groups: 1, hosts: 3, members: 1, crashes: 12, ..options };
    for seed in [6958, 8276, 3183] {
        let outcome = run(with(Options { failing: 300, handovers: 60, ..Options::of(seed) }));
        assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
    }
}

/// Nobody was left at the host that a group came to: its lines waited there for a clock that covers other groups, which were not sent there
/// any more.
#[test]
fn a_group_that_comes_to_who_has_left() {
    let outcome = run(Options::of(8_008_494));
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
}

/// Found on earlier commits.
#[test]
fn seeds_of_earlier_commits() {
    [201_168, 4614].into_iter().for_each(keeps_its_promises);
}

/// Some states of a thousand that arrive cannot be handed over to the rounds.
fn keeps_its_promises_failing(failing: u64, handovers: u64, with: fn(Options) -> Options, seed: u64) {
    let outcome = run(with(Options { failing, handovers, ..of(seed) }));
    assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
}

/// A state that could not be handed over counted as published for a moment, also where it was to be taken; and who waited for the
/// area's data was not answered.
#[test]
fn a_state_that_cannot_be_handed_over() {
    for seed in [51, 67, 296, 299] {
        keeps_its_promises_failing(100, 0, |options| options, seed);
        keeps_its_promises_failing(100, 20, |options| options, seed);
    }
}

/// Who subscribed anew got a state in the place of one that was gone, from before a clock that had counted.
#[test]
fn what_comes_in_the_place_of_an_older_state_is_not_from_before_a_clock() {
    keeps_its_promises_failing(100, 60, |options| Options { crashes: 12, ..options }, 107);
}

/// A host's subscription reached the one that had left the group to it, which counted it as a subscriber when it owned the group again,
/// and waited for its answer to a cut.
#[test]
fn who_does_not_subscribe_says_so() {
    keeps_its_promises_failing(300, 60, |options| options, 570);
}

/// Who had lost its copies subscribed at a new owner's host, where there was no state of a label that it may have, and got one from behind
/// a barrier that it had not passed.
#[test]
fn a_first_state_from_behind_a_barrier() {
    for seed in [178, 351] {
        keeps_its_promises_failing(300, 60, |options| Options { on_demand: 500, ..options }, seed);
    }
}

/// Who was on its way to a group's next owner lost its copies, and subscribed anew where the group had gone from: that host had told it
/// already, and says nothing twice.
#[test]
fn a_way_that_is_forgotten_with_the_copies() {
    keeps_its_promises_failing(300, 60, |options| Options { on_demand: 500, ..options }, 978);
}

/// A host was told where a group had gone, and got its first state from the host that had told it, to which the group had come back. Then
/// it went where it had been told, and counted clocks that cover what was published after the group came back.
#[test]
fn a_first_state_of_a_group_that_came_back() {
    keeps_its_promises_failing(300, 60, |options| Options { on_demand: 500, ..options }, 1271);
}

/// The memory could not hand over what was published there already, and the group with it was gone when its owner had left it to that
/// host; and an area was gone in the same packet in which a worker got it. The nodes were right both times.
#[test]
fn what_the_memory_may_not_lose() {
    for seed in [3840, 2879] {
        keeps_its_promises_failing(300, 60, |options| Options { on_demand: 500, ..options }, seed);
    }
}

/// Who had died between two areas of a group made copies of the second while a cut of the first was on its way: that said that both were
/// whole, and had lines of one.
#[test]
fn a_cut_of_members_that_came_later() {
    for seed in [6211305, 6212780] {
        keeps_its_promises_failing(300, 60, |options| Options { crashes: 12, ..options }, seed);
    }
}

/// A new directory heard of a refused name before it heard of the name in its way, and forgot the refused one: the host with the other
/// one never heard of the clash.
#[test]
fn a_refusal_before_the_name_in_its_way() {
    let outcome = run(of(6400184));
    assert!(outcome.broken.is_empty(), "{:?}", outcome.broken);
}

/// A question was heard late at a host to which the group then came: it was answered there, though it had been elsewhere, and its host
/// said so in the next packet.
#[test]
fn a_question_that_is_asked_no_more() {
    let with = |handovers, seed| Options { handovers, ..Options::of(seed) };
    let ordinary = Options::of(1387);
    for options in [ordinary, with(60, 300260), with(60, 300435)] {
        let seed = options.seed;
        let outcome = run(options);
        assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
    }
}

/// Workers wait for answers, and hosts have no rounds meanwhile.
fn keeps_its_promises_without_rounds(with: fn(Options) -> Options, seed: u64) {
    let options = Options {
        requests: 300,
        awaits: 600,
        on_demand: 1000,
        crashes: 8,
        handovers: 0,
        drops: 0,
        ..Options::of(seed)
    };
    let outcome = run(with(options));
    assert!(outcome.broken.is_empty(), "seed {seed}: {:?}", outcome.broken);
}

/// A state had arrived when the agent died, and the next one did not say so: it was to be sent what could not come before a round.
#[test]
fn a_state_that_has_arrived_is_known_to_the_next_agent() {
    keeps_its_promises_without_rounds(|options| Options { gives_here: 0, ..options }, 306);
}

/// A group had gone from worker to worker at its host, and the answer counted as the next owner's, whose rounds begin when what has
/// arrived is published.
#[test]
fn an_answer_of_the_same_host_under_another_epoch() {
    keeps_its_promises_without_rounds(|options| Options { members: 1, ..options }, 227);
}

/// A clock of the owner covered what had arrived, of which a new agent never knew the round: whoever attached to it waited for that.
#[test]
fn what_a_clock_covers_no_more_is_there() {
    keeps_its_promises_without_rounds(|options| Options { on_demand: 700, ..options }, 33);
}
