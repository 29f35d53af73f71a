//! How the workers of a loop share relaxed arrays under [`Consistency::Async`]: in place, or in copies.
//!
//! In place nothing is moved but what the caches move: where iterations change what few others do, that is best. Where all
//! change the same elements again and again, their lines of memory go from core to core with every change, and workers
//! that keep copies, and add up their changes without waiting, are faster by a multiple. Which of the two a loop is
//! depends on its data and on the machine; so both are tried, a pass each after a first one to warm up, and the faster
//! goes on. The other is tried again now and then, for data and cores change: after 8 passes, then 16, and so on to 256.
//!
//! All workers get the same times, and so do the same.
use super::Consistency;
use std::time::Duration;

/// Arrays of more bytes, together, are shared in place without a trial: at each clock copies are gone over, in memory that
/// should be in the cache.
const MOST_BYTES: usize = 4 << 20;
/// Passes between trials, at first and at last.
const FIRST_GAP: u32 = 8;
const LAST_GAP: u32 = 256;
/// The other way has to be faster by so much.
const CLEARLY: f64 = 0.95;

/// One of the two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    InPlace,
    InCopies,
}

impl Way {
    fn other(self) -> Way {
        match self {
            Way::InPlace => Way::InCopies,
            Way::InCopies => Way::InPlace,
        }
    }
}

/// The purpose of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// To bring into caches, and into being, what this way needs.
    Warm,
    /// To see how long it takes.
    Timed,
    /// The faster way is kept, for this number of passes before the other is tried.
    Settled(u32),
}

/// The choice of a loop, pass by pass.
#[derive(Clone, Debug)]
pub(crate) struct Trials {
    way: Way,
    stage: Stage,
    /// How long a pass took when last measured: in place, in copies.
    seconds: [Option<f64>; 2],
    gap: u32,
}

impl Trials {
    pub(crate) fn new() -> Trials {
        Trials { way: Way::InPlace, stage: Stage::Warm, seconds: [None; 2], gap: FIRST_GAP }
    }

    /// Whether workers keep copies in the next pass, with `bytes` of relaxed arrays.
    pub(crate) fn in_copies(&self, consistency: Consistency, workers: usize, bytes: usize) -> bool {
        workers > 1
            && match consistency {
                Consistency::Async => self.way == Way::InCopies && bytes <= MOST_BYTES,
                _ => true,
            }
    }

    /// The slowest worker took so long for the pass.
    pub(crate) fn note(&mut self, took: Duration) {
        self.stage = match self.stage {
            Stage::Warm => Stage::Timed,
            Stage::Timed => {
                self.seconds[self.way as usize] = Some(took.as_secs_f64());
                self.decide()
            }
            Stage::Settled(0) => {
                self.seconds[self.way as usize] = Some(took.as_secs_f64());
                self.way = self.way.other();
                Stage::Warm
            }
            Stage::Settled(left) => Stage::Settled(left - 1),
        };
    }

    fn decide(&mut self) -> Stage {
        let other = self.way.other();
        let (Some(now), Some(before)) = (self.seconds[self.way as usize], self.seconds[other as usize])
        else {
            self.way = other;
            return Stage::Warm;
        };
        // Until now it was `other`.
        if now > CLEARLY * before {
            self.way = other;
        }
        let gap = self.gap;
        self.gap = (2 * gap).min(LAST_GAP);
        Stage::Settled(gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ways of `passes` passes, if each takes the given time.
    fn ways(passes: usize, in_place: impl Fn(usize) -> u64, in_copies: u64) -> Vec<bool> {
        let mut trials = Trials::new();
        let pass = |number| {
            let copies = trials.in_copies(Consistency::Async, 2, 1000);
            trials.note(Duration::from_millis(if copies { in_copies } else { in_place(number) }));
            copies
        };
        (0..passes).map(pass).collect()
    }

    #[test]
    fn the_faster_way_goes_on() {
        let copied = ways(13, |_| 20, 10);
        assert_eq!(copied[..4], [false, false, true, true], "both are tried");
        assert!(copied[4..].iter().all(|copied| *copied), "{copied:?}");
        assert!(ways(13, |_| 10, 20)[4..].iter().all(|copied| !copied));
    }

    #[test]
    fn what_has_become_slow_is_left() {
        let copied = ways(200, |pass| if pass < 10 { 5 } else { 20 }, 10);
        assert!(copied[4..12].iter().all(|copied| !copied));
        assert_eq!(copied[13..15], [true, true], "tried again");
        assert!(copied[15..30].iter().all(|copied| *copied), "{copied:?}");
        let tried = copied[15..].iter().filter(|copied| !**copied).count();
        assert_eq!(tried, 2 * 3, "after 16, 32 and 64 passes: {copied:?}");
    }

    #[test]
    fn no_trial_where_there_is_nothing_to_choose() {
        let mut trials = Trials::new();
        for _ in 0..5 {
            assert!(!trials.in_copies(Consistency::Async, 2, MOST_BYTES + 1));
            assert!(!trials.in_copies(Consistency::Bsp, 1, 1000));
            assert!(trials.in_copies(Consistency::Bsp, 2, MOST_BYTES + 1));
            trials.note(Duration::from_millis(1));
        }
    }
}
