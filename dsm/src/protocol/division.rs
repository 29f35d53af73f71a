//! How the copying of a small area is divided between its owner and the others.
//!
//! The owner has the lines that it wrote in its own cache; the others fetch them from there. Where cores share a cache
//! that costs them little, and two are nearly twice as fast as one; where they do not, the owner alone can be the
//! fastest. The system does not say which it is, and virtual cores move about, so it is measured: some rounds note
//! how fast the owner of an area copied, and how fast others did, and a plan gives each a share in proportion, if
//! that is better than leaving all to the owner. Every [`EXPLORE`]th round tries, lest an old verdict stay.
use crate::memory::LINE;
use std::sync::atomic::{AtomicU32, Ordering};

/// Smallest area that is divided: below, calling the others costs more than they bring.
pub(crate) const LEAST_BYTES: u64 = 128 << 10;
/// The number of rounds in one of which speeds are noted.
const NOTE: u64 = 4;
/// The number of rounds in one of which an area is divided, whatever was measured.
const EXPLORE: u64 = 64;
/// The cost of a chunk for somebody else beside its copying, in nanoseconds.
const HANDSHAKE_NS: u64 = 400;
/// The bytes to which the nanoseconds of speeds refer.
const PER_BYTES: u64 = 1 << 20;

/// Measured speeds; zero where none is known. Relaxed throughout: estimates, whose updates may be lost.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Speeds {
    /// Of owners, copying out of their own caches.
    own: AtomicU32,
    /// Of others.
    other: AtomicU32,
}

impl Speeds {
    /// Whether a round measures.
    pub(crate) fn are_noted(round: u64) -> bool {
        round.is_multiple_of(NOTE)
    }

    /// Notes that the owner of an area, or another, took `ns` for `bytes` of it.
    pub(crate) fn note(&self, by_owner: bool, bytes: u64, ns: u64) {
        let mean = if by_owner { &self.own } else { &self.other };
        let sample = (ns * PER_BYTES / bytes.max(1)).clamp(1, u64::from(u32::MAX / 8)) as u32;
        let old = mean.load(Ordering::Relaxed);
        // Slow to believe that something became slower: who lost its core in the middle says nothing about caches.
        let new = match sample {
            _ if old == 0 => sample,
            faster if faster < old => old - (old - faster) / 4,
            slower => old + (slower.min(2 * old) - old) / 16,
        };
        mean.store(new.max(1), Ordering::Relaxed);
    }

    /// How many of an area's log words, each standing for 64 lines, every other of `workers` workers is offered; the
    /// owner has the rest. Zero: it is not worth it.
    pub(crate) fn share(&self, round: u64, words: u64, workers: u64) -> u64 {
        let (own, other) = (self.own.load(Ordering::Relaxed), self.other.load(Ordering::Relaxed));
        if round.is_multiple_of(EXPLORE) {
            return words / workers;
        }
        if own == 0 || other == 0 {
            return 0;
        }
        let (own, other) = (u64::from(own), u64::from(other));
        // Everybody ends at the same time.
        let share = words * own / (other + (workers - 1) * own);
        let ns = |words: u64, speed: u64| words * 64 * LINE * speed / PER_BYTES;
        let divided = ns(share, other).max(ns(words - (workers - 1) * share, own)) + HANDSHAKE_NS;
        if divided * 10 < ns(words, own) * 9 { share } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(own: u64, other: u64) -> Speeds {
        let speeds = Speeds { own: AtomicU32::new(0), other: AtomicU32::new(0) };
        for _ in 0..100 {
            speeds.note(true, PER_BYTES, own);
            speeds.note(false, PER_BYTES, other);
        }
        speeds
    }

    #[test]
    fn near_workers_share_and_far_ones_do_not() {
        assert_eq!(measured(20_000, 20_000).share(1, 256, 2), 128);
        assert_eq!(measured(20_000, 20_000).share(1, 256, 4), 64);
        let share = measured(20_000, 40_000).share(1, 256, 2);
        assert!((80..90).contains(&share), "{share}");
        assert_eq!(measured(20_000, 200_000).share(1, 256, 2), 0);
        // So little that calling somebody is not worth it.
        assert_eq!(measured(20_000, 20_000).share(1, 8, 2), 0);
    }

    #[test]
    fn nothing_measured_is_nothing_divided_until_it_is_tried() {
        let speeds = Speeds { own: AtomicU32::new(0), other: AtomicU32::new(0) };
        assert_eq!(speeds.share(1, 256, 2), 0);
        assert_eq!(speeds.share(EXPLORE, 256, 2), 128);
    }

    #[test]
    fn a_verdict_follows_the_machine() {
        let speeds = measured(20_000, 200_000);
        (0..60).for_each(|_| speeds.note(false, PER_BYTES, 20_000));
        assert!(speeds.share(1, 256, 2) > 120);
        // One preempted copy does not turn it.
        speeds.note(false, PER_BYTES, 50_000_000);
        assert!(speeds.share(1, 256, 2) > 80);
    }
}
