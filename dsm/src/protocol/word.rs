//! The round word: which round, in which phase, and whether somebody sleeps on it.
use std::fmt;

/// The phases of a round. The order is the order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// No round is under way; the word names the next one.
    Idle = 0,
    /// Participants arrive. The only phase in which a round can be given up.
    Open = 1,
    /// The actor chooses areas and lays out chunks.
    Plan = 2,
    /// Participants claim chunks and copy them.
    Copy = 3,
    /// The actor makes the new versions visible.
    Publish = 4,
}

/// One value of the round word: `round << 8 | SLEEP | ALL | phase`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundWord(pub(crate) u64);

const PHASE: u64 = 0b111;
const ALL: u64 = 1 << 3;
/// Somebody sleeps on the word: whoever changes it next has to wake them.
pub(crate) const SLEEP: u64 = 1 << 4;
const SHIFT: u32 = 8;

impl RoundWord {
    pub(crate) const fn new(round: u64, phase: Phase) -> RoundWord {
        RoundWord(round << SHIFT | phase as u64)
    }

    /// This word with the mark that the round waits for every live worker, known stragglers included.
    pub(crate) const fn for_all(self, all: bool) -> RoundWord {
        RoundWord(if all { self.0 | ALL } else { self.0 & !ALL })
    }

    pub(crate) const fn round(self) -> u64 {
        self.0 >> SHIFT
    }

    pub(crate) const fn phase(self) -> Phase {
        match self.0 & PHASE {
            0 => Phase::Idle,
            1 => Phase::Open,
            2 => Phase::Plan,
            3 => Phase::Copy,
            _ => Phase::Publish,
        }
    }

    pub(crate) const fn waits_for_all(self) -> bool {
        self.0 & ALL != 0
    }

    pub(crate) const fn has_sleepers(self) -> bool {
        self.0 & SLEEP != 0
    }

    /// Whether round `round` is over (published or given up).
    pub(crate) const fn is_past(self, round: u64) -> bool {
        self.round() > round
    }
}

impl fmt::Debug for RoundWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({}", self.phase(), self.round())?;
        if self.waits_for_all() {
            write!(f, ", all")?;
        }
        if self.has_sleepers() {
            write!(f, ", sleepers")?;
        }
        write!(f, ")")
    }
}

/// Who runs a round: the low 40 bits of its number, whether the actor is at work, and the rank, in one word, so
/// that a successor can replace a dead actor by one compare-and-swap, or one that lives and is not at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Actor(pub(crate) u64);

/// The actor is at work: it plans, publishes or pins, and nobody may replace it while it lives.
const AT_WORK: u64 = 1 << 23;
const RANK: u64 = AT_WORK - 1;

impl Actor {
    /// An actor that is not at work.
    pub(crate) const fn new(round: u64, rank: u32) -> Actor {
        Actor(round << 24 | (rank as u64 + 1))
    }

    /// This actor, at work.
    pub(crate) const fn at_work(self) -> Actor {
        Actor(self.0 | AT_WORK)
    }

    pub(crate) const fn is_at_work(self) -> bool {
        self.0 & AT_WORK != 0
    }

    pub(crate) const fn is_for(self, round: u64) -> bool {
        self.0 & RANK != 0 && self.0 >> 24 == round & (u64::MAX >> 24)
    }

    /// Whether this is the actor of a round before `round`, or of none.
    pub(crate) const fn is_before(self, round: u64) -> bool {
        const ROUNDS: u64 = 1 << 40;
        let ahead = (round % ROUNDS).wrapping_sub(self.0 >> 24) % ROUNDS;
        self.0 & RANK == 0 || (ahead != 0 && ahead < ROUNDS / 2)
    }

    pub(crate) const fn rank(self) -> u32 {
        (self.0 & RANK) as u32 - 1
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn fields_survive() {
        for round in [0, 1, (1 << 32) - 1, 1 << 32, (1 << 55) + 3] {
            for phase in [Phase::Idle, Phase::Open, Phase::Plan, Phase::Copy, Phase::Publish] {
                let word = RoundWord::new(round, phase).for_all(true);
                assert_eq!((word.round(), word.phase(), word.waits_for_all()), (round, phase, true));
                assert!(!word.for_all(false).waits_for_all());
            }
            assert!(Actor::new(round, 7).is_for(round) && !Actor::new(round, 7).is_for(round + 1));
            assert_eq!((Actor::new(round, 7).rank(), Actor::new(round, 7).at_work().rank()), (7, 7));
            assert!(
                Actor::new(round, 7).at_work().is_for(round) && Actor::new(round, 7).at_work().is_at_work()
            );
            assert!(!Actor::new(round, (1 << 22) - 1).is_at_work());
            assert!(Actor::new(round, 7).is_before(round + 1) && Actor(0).is_before(round));
            assert!(!Actor::new(round, 7).is_before(round) && !Actor::new(round + 1, 7).is_before(round));
        }
        assert!(!Actor(0).is_for(0) && Actor(0).is_before(1));
        for round in [1, 7, (1 << 40) - 1, 1 << 40, (1 << 40) + 5] {
            assert!(
                Actor::new(round, 3).is_before(round + 1) && Actor::new(round, 3).is_before(round + 1000)
            );
            assert!(!Actor::new(round, 3).is_before(round) && !Actor::new(round + 1, 3).is_before(round));
        }
    }
}
