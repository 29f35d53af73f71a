//! Versions from other hosts (`protocol/arrival.rs`): rounds publish what has arrived, whole and in order, and what belongs to one
//! cut at once; the agent, which no round waits for, touches nothing that a round may be at, and may die at any step.
use super::super::round::{Pause, Work};
use super::super::word::{Phase, RoundWord};
use super::{Hand, Memory, explore, get, lives, put};
use crate::primitive::model::{Access, without_fences};
use crate::primitive::{AtomicU64, Ordering, fault_point};
use crate::protocol::arrival::{self, ArrivalRecord, Arrived};
use crate::protocol::ownership;
use crate::protocol::publication::Version;
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Mutant {
    None,
    /// Goes on as soon as it sees the version, before the round is past.
    GoesOnAtOnce,
    /// Hands over before the lines are written.
    HandsOverEarly,
}

fn version(counter: u64) -> Version {
    Version { term: 1, counter }
}

fn arrived(counter: u64) -> Arrived {
    Arrived { version: version(counter), clock: counter, label: 0, as_of_ns: counter }
}

pub(super) fn remote(workers: usize, copies: usize) -> Arc<Memory> {
    let memory = Memory::new(workers, copies);
    memory.ownership.store(ownership::OwnershipWord::remote(None, 1).0, Ordering::SeqCst);
    Arc::new(memory)
}

/// `Desk::may_receive`, then what `Agent::receive` does.
fn receive(memory: &Memory, mutant: Mutant) -> bool {
    if let Some(arrived) = memory.arrival.handed_over() {
        let Some(round) = memory.copies().published(arrived.version) else { return false };
        if mutant != Mutant::GoesOnAtOnce && !memory.rounds().load_total().is_past(round) {
            return false;
        }
        memory.arrival.reopen();
    }
    true
}

/// The first steps of a new agent.
fn go_on(memory: &Memory) {
    memory.arrival.forget_incomplete(arrival::complete(&memory.cuts));
}

/// Takes back what a dead agent had written and not handed over.
fn restore(memory: &Memory) {
    if get(&memory.log) != 0 {
        let newest = memory.whole(memory.copies().newest());
        memory.writer.iter().for_each(|cell| put(cell, newest));
        put(&memory.log, 0);
    }
}

/// `Receiving::write` and `Receiving::commit`.
pub(super) fn deliver(memory: &Memory, counter: u64, mutant: Mutant) {
    let write = || {
        put(&memory.log, counter);
        for cell in &memory.writer {
            fault_point();
            put(cell, counter);
        }
    };
    let cut = arrival::complete(&memory.cuts) + 1;
    if mutant != Mutant::HandsOverEarly {
        write();
    }
    memory.arrival.write(cut, &arrived(counter));
    arrival::commit(&memory.cuts, cut);
    if mutant == Mutant::HandsOverEarly {
        write();
    }
}

/// Delivers versions up to `last`, as far as rounds publish them; the last that was handed over.
fn attend(memory: &Memory, last: u64, mutant: Mutant) -> u64 {
    let mut next = 1;
    for _ in 0..4 {
        if next > last {
            break;
        }
        if receive(memory, mutant) {
            deliver(memory, next, mutant);
            next += 1;
        }
    }
    next - 1
}

/// The state that worker `me` reads, by its version.
fn read(memory: &Memory, me: usize) -> u64 {
    let arrived = memory.seats[me].arrived.load(Ordering::Relaxed);
    let record = &memory.records[memory.copies().visible(arrived)];
    let seen = memory.read(me);
    assert_eq!(record.version().counter, seen, "version and bytes");
    seen
}

/// Workers sync and read while versions arrive. All in threads of their own: with one beside the first, loom explores a single
/// execution.
fn arriving(bound: usize, copies: usize, mutant: Mutant) {
    explore(bound, move || {
        let memory = remote(1, copies);
        let agent = {
            let memory = memory.clone();
            thread::spawn(move || attend(&memory, 2, mutant))
        };
        let owner = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                let mut last = 0;
                for _ in 0..2 {
                    hand.sync(0);
                    let seen = read(&memory, 0);
                    assert!(seen >= last, "{seen} after {last}");
                    last = seen;
                }
            })
        };
        let handed_over = agent.join().unwrap();
        owner.join().unwrap();
        let hand = Hand { memory: &memory, pause: Pause::Check };
        hand.sync(0);
        assert_eq!(read(&memory, 0), handed_over, "lost");
        assert!(receive(&memory, mutant), "the round is past, and the agent waits");
    });
}

#[test]
fn versions_arrive_whole_and_in_order() {
    arriving(2, 1, Mutant::None);
    arriving(2, 2, Mutant::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_agent_that_goes_on_before_the_round_is_past() {
    published_twice(Mutant::GoesOnAtOnce);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_lines_after_the_record() {
    arriving(2, 1, Mutant::HandsOverEarly);
}

/// A publication is repeated, as the successor of a dead actor does, which clears the log twice; the agent wants to go on.
fn published_twice(mutant: Mutant) {
    explore(1, move || {
        let memory = remote(1, 1);
        deliver(&memory, 1, Mutant::None);
        put(&memory.arrived, Some(arrived(1)));
        memory.word.store(RoundWord::new(1, Phase::Publish).0, Ordering::SeqCst);
        let publisher = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                hand.publish(1, 0);
                hand.publish(1, 0);
                // As `Rounds::shift`.
                memory.word.store(RoundWord::new(2, Phase::Idle).0, Ordering::SeqCst);
            })
        };
        let agent = {
            let memory = memory.clone();
            thread::spawn(move || {
                if (0..3).any(|_| receive(&memory, mutant)) {
                    deliver(&memory, 2, mutant);
                }
            })
        };
        publisher.join().unwrap();
        agent.join().unwrap();
    });
}

#[test]
fn an_agent_waits_for_the_end_of_the_round() {
    published_twice(Mutant::None);
}

/// A plan reads a record that its agent may be writing anew: it gets the one or the other.
fn read_while_written(weaken: impl Fn(&AtomicU64) + Sync + Send + 'static) {
    explore(3, move || {
        let record = Arc::new(ArrivalRecord::new());
        let cuts = Arc::new(AtomicU64::new(0));
        weaken(&cuts);
        record.write(1, &arrived(1));
        arrival::commit(&cuts, 1);
        let agent = {
            let (record, cuts) = (record.clone(), cuts.clone());
            thread::spawn(move || {
                record.reopen();
                record.write(2, &arrived(2));
                arrival::commit(&cuts, 2);
            })
        };
        let plan = {
            let (record, cuts) = (record.clone(), cuts.clone());
            thread::spawn(move || {
                let complete = arrival::complete(&cuts);
                if let Some(found) = record.arrived(complete) {
                    assert!(found == arrived(1) || found == arrived(2), "mixed: {found:?}");
                    assert!(found.version.counter <= complete, "{found:?} of a cut that is not complete");
                }
            })
        };
        agent.join().unwrap();
        plan.join().unwrap();
        assert_eq!(record.arrived(arrival::complete(&cuts)), Some(arrived(2)));
    });
}

#[test]
fn a_record_is_read_whole() {
    read_while_written(|_| {});
}

#[test]
#[should_panic(expected = "mixed")]
fn mutant_a_record_without_a_release_fence() {
    let _mutant = without_fences(Ordering::Release);
    read_while_written(|_| {});
}

#[test]
#[should_panic(expected = "mixed")]
fn mutant_a_look_without_an_acquire_fence() {
    let _mutant = without_fences(Ordering::Acquire);
    read_while_written(|_| {});
}

#[test]
#[should_panic(expected = "mixed")]
fn mutant_a_cut_that_is_completed_weakly() {
    read_while_written(|cuts| cuts.weaken(Access::Store, Ordering::Release, Ordering::Relaxed));
}

/// The agent hands two areas over, and dies after `steps` fault points; the next agent hands over what is its own.
fn one_cut(steps: u32, asks_twice: bool, weaken: impl Fn(&AtomicU64) + Sync + Send + 'static) {
    explore(3, move || {
        let records = Arc::new([ArrivalRecord::new(), ArrivalRecord::new()]);
        let cuts = Arc::new(AtomicU64::new(0));
        weaken(&cuts);
        let agent = {
            let (records, cuts) = (records.clone(), cuts.clone());
            thread::spawn(move || {
                let hand_over = |counter| {
                    let cut = arrival::complete(&cuts) + 1;
                    records.iter().for_each(|record| record.write(cut, &arrived(counter)));
                    arrival::commit(&cuts, cut);
                };
                if !lives(steps, || hand_over(1)) {
                    let complete = arrival::complete(&cuts);
                    records.iter().for_each(|record| record.forget_incomplete(complete));
                    // A handed-over cut waits for a round; any other is received anew.
                    if complete == 0 {
                        hand_over(2);
                    }
                }
            })
        };
        let plan = {
            let (records, cuts) = (records.clone(), cuts.clone());
            thread::spawn(move || {
                let complete = arrival::complete(&cuts);
                let first = records[0].arrived(complete);
                let complete = if asks_twice { arrival::complete(&cuts) } else { complete };
                let second = records[1].arrived(complete);
                assert_eq!(first, second, "half of a cut");
            })
        };
        agent.join().unwrap();
        plan.join().unwrap();
        let complete = arrival::complete(&cuts);
        assert!(records[0].arrived(complete).is_some() && complete == 1);
    });
}

#[test]
fn what_belongs_to_a_cut_arrives_at_once() {
    for steps in (0..6).chain([u32::MAX]) {
        one_cut(steps, false, |_| {});
    }
}

#[test]
#[should_panic(expected = "half of a cut")]
fn mutant_a_plan_that_asks_for_each_area() {
    one_cut(u32::MAX, true, |_| {});
}

#[test]
#[should_panic(expected = "half of a cut")]
fn mutant_a_plan_that_looks_weakly() {
    one_cut(u32::MAX, false, |cuts| cuts.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}

/// An arrival is asked for while a plan finds that nothing has arrived: the next one looks.
fn asked(weaken: impl Fn(&AtomicU64) + Sync + Send + 'static) {
    explore(3, move || {
        let (forced, record, cuts) = (AtomicU64::new(1), ArrivalRecord::new(), AtomicU64::new(0));
        let words = Arc::new((forced, record, cuts));
        weaken(&words.0);
        let agent = {
            let words = words.clone();
            thread::spawn(move || {
                words.1.write(1, &arrived(1));
                arrival::commit(&words.2, 1);
                arrival::ask(&words.0, 1);
            })
        };
        let (forced, record, cuts) = &*words;
        let found = record.arrived(arrival::complete(cuts)).is_some();
        if !found {
            arrival::await_next(forced, 1, || record.arrived(arrival::complete(cuts)).is_some());
        }
        agent.join().unwrap();
        assert!(found || forced.load(Ordering::Relaxed) == 1, "nobody looks");
    });
}

#[test]
fn what_is_asked_for_is_looked_at() {
    asked(|_| {});
}

#[test]
#[should_panic(expected = "nobody looks")]
fn mutant_asks_weakly() {
    asked(|forced| forced.weaken(Access::Change, Ordering::Release, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "nobody looks")]
fn mutant_awaits_weakly() {
    asked(|forced| forced.weaken(Access::Change, Ordering::Acquire, Ordering::Relaxed));
}

/// The agent dies after `steps` fault points; the next restores what was not handed over, and delivers the rest.
fn an_agent_dies(steps: u32) {
    explore(2, move || {
        let memory = remote(1, 1);
        let agent = {
            let memory = memory.clone();
            thread::spawn(move || {
                let lived = lives(steps, || {
                    attend(&memory, 1, Mutant::None);
                });
                if !lived {
                    go_on(&memory);
                    if receive(&memory, Mutant::None) {
                        restore(&memory);
                        let newest = memory.records[memory.copies().newest()].version().counter;
                        deliver(&memory, newest + 1, Mutant::None);
                    }
                }
            })
        };
        let owner = {
            let memory = memory.clone();
            thread::spawn(move || {
                Hand { memory: &memory, pause: Pause::Check }.sync(0);
                read(&memory, 0)
            })
        };
        agent.join().unwrap();
        let seen = owner.join().unwrap();
        Hand { memory: &memory, pause: Pause::Check }.sync(0);
        let last = read(&memory, 0);
        assert!(last >= seen.max(1), "{last} after {seen}");
        assert!(receive(&memory, Mutant::None));
    });
}

#[test]
fn an_agent_dies_at_every_step() {
    for steps in 0..8 {
        an_agent_dies(steps);
    }
}

/// Whoever plans and publishes an arrival dies at any step, and another goes on.
fn an_actor_dies(steps: u32) {
    explore(1, move || {
        let memory = remote(2, 1);
        let agent = {
            let memory = memory.clone();
            thread::spawn(move || attend(&memory, 2, Mutant::None))
        };
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                memory.mortal(1, steps, || {
                    hand.sync(1);
                    memory.rounds().leave(1, &hand);
                })
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        hand.sync(0);
        let seen = read(&memory, 0);
        let handed_over = agent.join().unwrap();
        other.join().unwrap();
        hand.sync(0);
        assert!(read(&memory, 0) >= seen && read(&memory, 0) == handed_over);
        assert_eq!(memory.rounds().load().phase(), Phase::Idle);
    });
}

#[test]
fn an_actor_dies_at_every_step() {
    for steps in 0..14 {
        an_actor_dies(steps);
    }
}
