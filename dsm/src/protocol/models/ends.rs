//! An agent that waits for the end of a round (`Doorbell::await_round`): either it sees the end before it sleeps, or whoever ends the
//! round rings. The driver of rounds is the real one, and so is giving up.
use super::{Hand, Memory, explore};
use crate::primitive::model::Access;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::protocol::doorbell::Doorbell;
use crate::protocol::round::{Pause, Work};
use crate::protocol::word::{Phase, RoundWord};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Looks at the word, and says afterwards that it waits for the end.
    SaysLate,
    /// Says so by an access that nothing orders.
    SaysWeakly,
    /// Whoever ends a round looks by an access that nothing orders.
    LooksWeakly,
}

struct Scene {
    memory: Memory,
    published: AtomicU32,
    attached: AtomicU64,
    bell: AtomicU32,
    chooses: AtomicU32,
    awaits_round: AtomicU32,
}

impl Scene {
    fn new() -> Scene {
        let [published, bell, chooses, awaits_round] = [0; 4].map(AtomicU32::new);
        Scene {
            memory: Memory::new(1, 2),
            published,
            attached: AtomicU64::new(1),
            bell,
            chooses,
            awaits_round,
        }
    }

    fn doorbell(&self) -> Doorbell<'_> {
        let Scene { published, attached, bell, chooses, awaits_round, .. } = self;
        Doorbell { published, attached, bell, chooses, awaits_round }
    }

    /// `Bell::wait` of an agent that found `round` under way: the value of the bell that it sleeps on.
    fn wait(&self, round: u64, mutant: Mutant) -> Option<u32> {
        let heard = self.doorbell().listen();
        if mutant != Mutant::SaysLate {
            self.doorbell().await_round();
        }
        let is_past = self.memory.rounds().load_total().is_past(round);
        if mutant == Mutant::SaysLate {
            self.doorbell().await_round();
        }
        if is_past { None } else { self.doorbell().fall_asleep(heard) }
    }
}

/// A hand that tells the agent of the ends of rounds, as `Runtime` does; what else it does is that of the model.
struct Telling<'m> {
    scene: &'m Scene,
    hand: Hand<'m>,
}

impl Work for Telling<'_> {
    fn plan(&self, round: u64, me: u32) -> bool {
        self.hand.plan(round, me)
    }

    fn copy(&self, round: u64, me: u32) {
        self.hand.copy(round, me);
    }

    fn copied(&self, round: u64) -> bool {
        self.hand.copied(round)
    }

    fn tend(&self, round: u64, me: u32) {
        self.hand.tend(round, me);
    }

    fn publish(&self, round: u64, me: u32) {
        self.hand.publish(round, me);
    }

    fn is_dead(&self, rank: u32) -> bool {
        self.hand.is_dead(rank)
    }

    fn stalled_actor(&self, rank: u32) {
        self.hand.stalled_actor(rank);
    }

    fn pause(&self, seen: RoundWord) -> Pause {
        self.hand.pause(seen)
    }

    fn wake(&self) {
        self.hand.wake();
    }

    fn ended(&self) {
        self.scene.doorbell().round_ended();
    }

    fn gave_up(&self, round: u64, missing: &mut dyn Iterator<Item = u32>) {
        self.hand.gave_up(round, missing);
    }
}

/// The agent waits for the end of a round that a worker takes part in, alone, or gives up, since another one does not come.
fn ended(mutant: Mutant, given_up: bool) {
    explore(3, move || {
        let mut scene = Scene::new();
        scene.memory = Memory::new(1 + usize::from(given_up), 2);
        match mutant {
            Mutant::SaysWeakly => {
                scene.awaits_round.weaken(Access::Store, Ordering::SeqCst, Ordering::Relaxed);
            }
            Mutant::LooksWeakly => {
                scene.awaits_round.weaken(Access::Load, Ordering::SeqCst, Ordering::Relaxed);
            }
            _ => {}
        }
        let scene = Arc::new(scene);
        let round = scene.memory.rounds().load().round();
        let worker = {
            let scene = scene.clone();
            thread::spawn(move || {
                let pause = if given_up { Pause::OutOfTime } else { Pause::Again };
                let telling = Telling { scene: &scene, hand: Hand { memory: &scene.memory, pause } };
                let rounds = scene.memory.rounds();
                rounds.open(false, &telling);
                rounds.participate(0, &telling);
            })
        };
        let asleep = scene.wait(round, mutant);
        worker.join().unwrap();
        let word = scene.memory.rounds().load();
        assert!(word.is_past(round) && word.phase() == Phase::Idle, "it ended");
        // A ring takes the mark of the sleeper away, so that the value is another.
        if let Some(asleep) = asleep {
            assert_ne!(scene.bell.load(Ordering::Relaxed), asleep, "asleep, and nobody rings");
        }
    });
}

#[test]
fn the_end_of_a_round_wakes_the_agent_that_waits_for_it() {
    ended(Mutant::None, false);
}

#[test]
fn so_does_a_round_that_is_given_up() {
    ended(Mutant::None, true);
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_an_agent_that_says_late_that_it_waits() {
    ended(Mutant::SaysLate, false);
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_an_agent_that_says_so_weakly() {
    ended(Mutant::SaysWeakly, false);
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_whoever_ends_a_round_looks_weakly() {
    ended(Mutant::LooksWeakly, false);
}
