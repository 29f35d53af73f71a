//! Which packets came: nothing is taken twice, and all of it is acknowledged.
use super::rtt::MAX_ACK_DELAY;
use crate::time::Time;
use crate::wire::ack::{Ack, MAX_RANGES};

/// How far behind the newest a packet may come (RFC 6479 has the structure).
pub(crate) const WINDOW: u64 = 1 << 15;
const WORDS: usize = (WINDOW / 64) as usize;

/// Whether a packet with this number may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    New,
    /// It was taken before.
    Seen,
    /// Nobody knows any more.
    TooOld,
}

/// The numbers that came, and the acknowledgement that is owed.
#[derive(Debug)]
pub(crate) struct Received {
    /// A bit per number, for the window before `next`; the bit of a number is at its remainder.
    bits: Box<[u64; WORDS]>,
    /// One more than the newest.
    next: u64,
    /// All numbers of the window before this came; at a word's beginning.
    whole_below: u64,
    newest_at: Time,
    congested: u64,
    /// Packets that ask for an acknowledgement and have none yet.
    owed: u32,
    /// By when the acknowledgement has to go.
    due: Option<Time>,
}

impl Received {
    pub(crate) fn new() -> Received {
        Received {
            bits: Box::new([0; WORDS]),
            next: 0,
            whole_below: 0,
            newest_at: Time::ZERO,
            congested: 0,
            owed: 0,
            due: None,
        }
    }

    fn bit(number: u64) -> (usize, u64) {
        ((number / 64) as usize % WORDS, 1 << (number % 64))
    }

    pub(crate) fn freshness(&self, number: u64) -> Freshness {
        if number >= self.next {
            return Freshness::New;
        }
        // The window is whole words, so that a word never has bits of two turns.
        if number / 64 + WORDS as u64 <= (self.next - 1) / 64 {
            return Freshness::TooOld;
        }
        let (word, bit) = Self::bit(number);
        if self.bits[word] & bit == 0 { Freshness::New } else { Freshness::Seen }
    }

    /// Whether no number came that is as high.
    pub(crate) fn is_newest(&self, number: u64) -> bool {
        number >= self.next
    }

    /// Takes a number that is new. `asks` if its packet asks for an acknowledgement, `congested` if it bore the mark.
    pub(crate) fn take(&mut self, now: Time, number: u64, asks: bool, congested: bool) {
        let in_order = number == self.next;
        if number >= self.next {
            let newest_word = if self.next == 0 { 0 } else { (self.next - 1) / 64 };
            for word in newest_word + 1..=(number / 64).min(newest_word + WORDS as u64) {
                self.bits[word as usize % WORDS] = 0;
            }
            self.next = number.saturating_add(1);
            self.newest_at = now;
        }
        let (word, bit) = Self::bit(number);
        self.bits[word] |= bit;
        self.congested += u64::from(congested);
        if asks {
            self.owed += 1;
            // RFC 9000 section 13.2.1: at once if a packet is missing, came late, or bears the mark of congestion.
            let by = if in_order && !congested { now + MAX_ACK_DELAY } else { now };
            self.due = Some(self.due.map_or(by, |due| due.min(by)));
        }
    }

    /// Whether an acknowledgement has to go now: two packets have none (RFC 9000 section 13.2.2), or it is time. The caller
    /// asks after a whole batch of packets, so that a fast sender gets one acknowledgement per batch.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.owed >= 2 || self.due.is_some_and(|due| due <= now)
    }

    /// Whether one may go along with something else.
    pub(crate) fn is_owed(&self) -> bool {
        self.owed > 0
    }

    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// The acknowledgement of all that came; none if nothing did. What is owed is paid with it.
    pub(crate) fn acknowledge(&mut self, now: Time) -> Option<Ack> {
        let newest = self.next.checked_sub(1)?;
        self.owed = 0;
        self.due = None;
        let delay_us = u32::try_from(now.since(self.newest_at).as_micros()).unwrap_or(u32::MAX);
        Some(Ack { delay_us, congested: self.congested, ranges: self.ranges(newest) })
    }

    /// The acknowledgement that was made did not go: one is due at once.
    pub(crate) fn owe(&mut self, now: Time) {
        self.owed += 1;
        self.due = Some(now);
    }

    fn ranges(&mut self, newest: u64) -> Vec<(u64, u64)> {
        let mut ranges = Vec::new();
        let oldest_word = (newest / 64).saturating_sub(WORDS as u64 - 1);
        let whole = (self.whole_below / 64).max(oldest_word);
        let is_whole = |word: &u64| self.bits[*word as usize % WORDS] == u64::MAX;
        let whole = (whole..newest / 64).find(|word| !is_whole(word)).unwrap_or(newest / 64);
        self.whole_below = whole * 64;
        // The range that is being walked down, if any.
        let mut open: Option<u64> = None;
        for word in (oldest_word..=newest / 64).rev() {
            let bits = self.bits[word as usize % WORDS];
            let base = word * 64;
            if word < whole {
                ranges.push((oldest_word * 64, open.unwrap_or(base + 63)));
                return ranges;
            }
            match bits {
                u64::MAX if open.is_some() => continue,
                0 if open.is_none() => continue,
                _ => {}
            }
            for at in (0..64).rev() {
                let number = base + at;
                match (bits >> at & 1 == 1, open) {
                    (true, None) => open = Some(number),
                    (false, Some(last)) => {
                        ranges.push((number + 1, last));
                        open = None;
                        if ranges.len() == MAX_RANGES {
                            return ranges;
                        }
                    }
                    _ => {}
                }
            }
        }
        ranges.extend(open.map(|last| (oldest_word * 64, last)));
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a set of numbers, from any beginning (2^32 and the end of numbers too).
        #[test]
        fn it_takes_every_number_once_and_acknowledges_what_it_took(
            base in prop::sample::select(vec![0, 1 << 20, (1 << 32) - 500, u64::MAX - 200_000]),
            steps in prop::collection::vec((0..3_u64, 0..400_u64), 1..300)
        ) {
            let mut received = Received::new();
            let mut taken = BTreeSet::new();
            let mut top = base;
            for (sort, by) in steps {
                let number = match sort {
                    0 => top + by % 3,
                    1 => top.saturating_sub(by),
                    _ => top + by,
                };
                let freshness = received.freshness(number);
                if taken.contains(&number) {
                    prop_assert_ne!(freshness, Freshness::New);
                } else if number > top || top - number < WINDOW - 64 {
                    prop_assert_eq!(freshness, Freshness::New);
                }
                if freshness == Freshness::New {
                    received.take(Time::ZERO, number, true, false);
                    taken.insert(number);
                    top = top.max(number);
                }
            }
            let ack = received.acknowledge(Time::ZERO).unwrap();
            let mut expected = taken.iter().rev();
            for (first, last) in &ack.ranges {
                for number in (*first..=*last).rev() {
                    prop_assert_eq!(expected.next(), Some(&number));
                }
            }
            prop_assert!(ack.ranges.len() == MAX_RANGES || expected.next().is_none());
        }
    }

    #[test]
    fn what_lies_behind_the_window_is_refused() {
        let mut received = Received::new();
        received.take(Time::ZERO, 5, true, false);
        received.take(Time::ZERO, 5 + 3 * WINDOW, true, false);
        assert_eq!(received.freshness(5), Freshness::TooOld);
        assert_eq!(received.freshness(5 + 2 * WINDOW), Freshness::TooOld, "the window is whole words");
        assert_eq!(received.freshness(64 + 2 * WINDOW), Freshness::New, "nothing is left of earlier turns");
        assert_eq!(received.freshness(5 + 3 * WINDOW), Freshness::Seen);
    }

    #[test]
    fn an_acknowledgement_is_due_for_two_packets_a_gap_or_after_a_time() {
        let at = |us: u64| Time::from_nanos(us * 1000);
        let mut received = Received::new();
        received.take(at(0), 0, true, false);
        assert!(!received.is_due(at(0)) && received.is_owed());
        assert!(received.is_due(at(2000)));
        received.take(at(1), 1, true, false);
        assert!(received.is_due(at(1)), "two packets");
        assert_eq!(received.acknowledge(at(11)).unwrap().delay_us, 10);
        assert!(!received.is_owed() && !received.is_due(at(9000)));
        received.take(at(20), 3, true, false);
        assert!(received.is_due(at(20)), "one is missing");
        received.acknowledge(at(20));
        received.take(at(30), 4, false, false);
        assert!(!received.is_due(at(9000)), "acknowledgements are not acknowledged");
        received.take(at(40), 5, true, true);
        assert!(received.is_due(at(40)), "congestion is told at once");
        assert_eq!(received.acknowledge(at(40)).unwrap().congested, 1);
    }
}
