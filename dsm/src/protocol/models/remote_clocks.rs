//! Sleeping until other hosts have reached a clock (`protocol/remote_clocks.rs`): either the worker sees the clock before it sleeps,
//! or the agent sees the worker and opens a round, which changes the word that the worker sleeps on.
//!
//! The kernel compares the word and puts the caller to sleep in one step, as far as those who change it can see.
use super::super::round::Pause;
use super::super::word::Phase;
use super::{Hand, Memory, explore};
use crate::primitive::model::Access;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::protocol::force_request::ForceRequest;
use crate::protocol::remote_clocks::{HostRecord, RemoteClocks};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Looks at the clocks, and says afterwards that it waits.
    SaysLate,
    /// Says so by an access that nothing orders.
    SaysWeakly,
    /// The clock is stored by an access that nothing orders.
    TellsWeakly,
    /// Asks who waits before the clock is stored.
    AsksEarly,
}

struct Scene {
    memory: Memory,
    hosts: [HostRecord; 2],
}

impl Scene {
    fn new() -> Scene {
        let host =
            || HostRecord { clock: AtomicU64::new(0), first: AtomicU32::new(0), ranks: AtomicU32::new(1) };
        Scene { memory: Memory::new(1, 2), hosts: [host(), host()] }
    }

    fn remote_clocks(&self) -> RemoteClocks<'_> {
        RemoteClocks { hosts: &self.hosts, here: 0 }
    }

    /// `Worker::wait_clocks`, to where it first sleeps: the word that it sleeps on.
    fn wait(&self, mutant: Mutant) -> Option<u64> {
        let (rounds, seat) = (self.memory.rounds(), &self.memory.seats[0]);
        if mutant != Mutant::SaysLate {
            seat.set_waits(true);
        }
        let is_reached = self.remote_clocks().lowest_clock() >= 1;
        if mutant == Mutant::SaysLate {
            seat.set_waits(true);
        }
        // In a round that is open the worker takes part. One cannot be past without it.
        let seen = rounds.load();
        // The kernel compares, and reads the newest value.
        let sleeps = seen.phase() == Phase::Idle && self.memory.word.load(Ordering::Relaxed) == seen.0;
        (!is_reached && sleeps).then_some(seen.0)
    }
}

fn told(mutant: Mutant) {
    explore(3, move || {
        let scene = Arc::new(Scene::new());
        match mutant {
            Mutant::SaysWeakly => {
                scene.memory.seats[0].waits.weaken(Access::Change, Ordering::SeqCst, Ordering::Relaxed)
            }
            Mutant::TellsWeakly => {
                scene.hosts[1].clock.weaken(Access::Change, Ordering::SeqCst, Ordering::Relaxed)
            }
            _ => {}
        }
        let agent = {
            let scene = scene.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &scene.memory, pause: Pause::Again };
                let rounds = scene.memory.rounds();
                if mutant == Mutant::AsksEarly {
                    scene.remote_clocks().call(&rounds, &hand);
                    scene.hosts[1].clock.fetch_max(1, Ordering::SeqCst);
                } else {
                    scene.remote_clocks().tell(1, 1, &rounds, &hand);
                }
            })
        };
        let worker = {
            let scene = scene.clone();
            thread::spawn(move || scene.wait(mutant))
        };
        agent.join().unwrap();
        let asleep = worker.join().unwrap();
        assert_ne!(asleep, Some(scene.memory.word.load(Ordering::Relaxed)), "asleep, and no round opens");
    });
}

#[test]
fn nobody_sleeps_on() {
    told(Mutant::None);
}

#[test]
#[should_panic(expected = "no round opens")]
fn mutant_a_worker_that_says_late_that_it_waits() {
    told(Mutant::SaysLate);
}

#[test]
#[should_panic(expected = "no round opens")]
fn mutant_a_worker_that_says_so_weakly() {
    told(Mutant::SaysWeakly);
}

#[test]
#[should_panic(expected = "no round opens")]
fn mutant_a_clock_that_is_told_weakly() {
    told(Mutant::TellsWeakly);
}

#[test]
#[should_panic(expected = "no round opens")]
fn mutant_an_agent_that_asks_before_it_tells() {
    told(Mutant::AsksEarly);
}

/// The same of the answer to a request (`protocol/force_request.rs`): `Worker::sync_area` of an area of another host, and `Agent::answer`.
fn answered(says_late: bool) {
    explore(3, move || {
        let (scene, request) = (Arc::new(Scene::new()), Arc::new(ForceRequest::new()));
        let agent = {
            let (scene, request) = (scene.clone(), request.clone());
            thread::spawn(move || {
                let hand = Hand { memory: &scene.memory, pause: Pause::Again };
                let rounds = scene.memory.rounds();
                let Some(open) = request.open() else { return };
                request.answer(open, false);
                scene.remote_clocks().call(&rounds, &hand);
            })
        };
        let (rounds, seat) = (scene.memory.rounds(), &scene.memory.seats[0]);
        if !says_late {
            seat.set_waits(true);
        }
        let number = request.make();
        let is_answered = request.answer_to(number).is_some();
        if says_late {
            seat.set_waits(true);
        }
        let seen = rounds.load();
        let sleeps = seen.phase() == Phase::Idle && scene.memory.word.load(Ordering::Relaxed) == seen.0;
        agent.join().unwrap();
        // An agent that has not heard of the request is rung for.
        if sleeps && !is_answered && request.open().is_none() {
            assert_ne!(scene.memory.word.load(Ordering::Relaxed), seen.0, "asleep, and no round opens");
        }
    });
}

#[test]
fn nobody_sleeps_on_who_is_answered() {
    answered(false);
}

#[test]
#[should_panic(expected = "no round opens")]
fn mutant_a_worker_that_says_late_that_it_waits_for_an_answer() {
    answered(true);
}
