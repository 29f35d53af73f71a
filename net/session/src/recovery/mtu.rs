//! The largest packet that the path carries (RFC 8899): probes that are lost cost nothing, and a path that swallows large
//! packets is found.
use crate::time::Time;
use crate::wire::BASE_DATAGRAM;
use std::time::Duration;

/// RFC 8899 section 5.1.2, MAX_PROBES.
const MAX_PROBES: u32 = 3;
/// The search ends when it knows the size within so many bytes.
const CLOSE: usize = 16;
/// RFC 8899 section 5.1.1, PMTU_RAISE_TIMER: after how long a larger size is tried again.
const RAISE: Duration = Duration::from_secs(600);
/// After so many large packets lost in a row, none of them arriving, the path may swallow large packets (RFC 8899 section 4.3).
const BLACK_HOLE: u32 = 6;

/// The search for the largest packet, in bytes of UDP payload.
#[derive(Debug)]
pub(crate) struct Mtu {
    /// What the path is known to carry.
    current: usize,
    /// The least size that it is known not to carry, or one more than the interface's.
    too_large: usize,
    /// What the own interface carries.
    limit: usize,
    in_flight: bool,
    /// How often the size that is being tried was lost.
    failures: u32,
    /// When the search begins again.
    again: Option<Time>,
    /// Packets larger than the base size that were lost since one arrived.
    swallowed: u32,
}

impl Mtu {
    /// `limit` is the largest UDP payload that the own interface carries.
    pub(crate) fn new(limit: usize) -> Mtu {
        let limit = limit.max(BASE_DATAGRAM);
        Mtu {
            current: BASE_DATAGRAM,
            too_large: limit + 1,
            limit,
            in_flight: false,
            failures: 0,
            again: None,
            swallowed: 0,
        }
    }

    /// The size of a full packet.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// The size that is tried next: first the interface's own, then by halves.
    fn candidate(&self) -> Option<usize> {
        if self.too_large > self.limit {
            return (self.current < self.limit).then_some(self.limit);
        }
        (self.too_large - self.current > CLOSE).then(|| self.current + (self.too_large - self.current) / 2)
    }

    /// The size of a probe that should be sent now. The caller says what becomes of it.
    pub(crate) fn probe(&mut self, now: Time) -> Option<usize> {
        if self.in_flight {
            return None;
        }
        if self.candidate().is_none() {
            if self.current < self.limit {
                let again = *self.again.get_or_insert(now + RAISE);
                if now < again {
                    return None;
                }
                self.too_large = self.limit + 1;
            }
            self.again = None;
            self.failures = 0;
        }
        let size = self.candidate()?;
        self.in_flight = true;
        Some(size)
    }

    /// When [`probe`](Self::probe) should be asked again although nothing happened.
    pub(crate) fn next_probe(&self) -> Option<Time> {
        self.again.filter(|_| !self.in_flight)
    }

    /// A probe of `size` arrived. True if that changes the size.
    pub(crate) fn on_probe_acked(&mut self, size: usize) -> bool {
        (self.in_flight, self.failures, self.swallowed) = (false, 0, 0);
        let larger = size > self.current;
        self.current = self.current.max(size);
        larger
    }

    /// A probe of `size` was lost.
    pub(crate) fn on_probe_lost(&mut self, size: usize) {
        self.in_flight = false;
        self.failures += 1;
        if self.failures >= MAX_PROBES {
            self.failures = 0;
            self.too_large = self.too_large.min(size).max(self.current + 1);
        }
    }

    /// A packet of `size` arrived.
    pub(crate) fn on_acked(&mut self, size: usize) {
        if size > BASE_DATAGRAM {
            self.swallowed = 0;
        }
    }

    /// A packet of `size` was lost. True if the size fell to the base, because the path swallows large packets.
    pub(crate) fn on_lost(&mut self, size: usize) -> bool {
        if size <= BASE_DATAGRAM || self.current == BASE_DATAGRAM {
            return false;
        }
        self.swallowed += 1;
        if self.swallowed < BLACK_HOLE {
            return false;
        }
        // The first probe asks for the whole size again: if everything was lost for a while, and not only what was large,
        // then this cost one round trip at the base size.
        *self = Mtu::new(self.limit);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Probes against a path that carries `carries` bytes, until the search rests; how many probes that took.
    fn search(mtu: &mut Mtu, carries: usize, now: Time) -> usize {
        let mut probes = 0;
        while let Some(size) = mtu.probe(now) {
            probes += 1;
            assert!(probes < 100);
            if size <= carries {
                mtu.on_probe_acked(size);
            } else {
                mtu.on_probe_lost(size);
            }
        }
        probes
    }

    proptest! {
        #[test]
        fn the_search_finds_what_the_path_carries(limit in 1200..9000_usize, below in 0..8000_usize) {
            let carries = limit.saturating_sub(below).max(BASE_DATAGRAM);
            let mut mtu = Mtu::new(limit);
            search(&mut mtu, carries, Time::ZERO);
            prop_assert!(mtu.current() <= carries && carries - mtu.current() <= CLOSE);
        }
    }

    #[test]
    fn an_interface_that_tells_the_truth_takes_one_probe() {
        let mut mtu = Mtu::new(8972);
        assert_eq!(search(&mut mtu, 8972, Time::ZERO), 1);
        assert_eq!(mtu.current(), 8972);
    }

    #[test]
    fn two_lost_probes_are_no_proof() {
        let mut mtu = Mtu::new(1472);
        for _ in 0..2 {
            let size = mtu.probe(Time::ZERO).unwrap();
            mtu.on_probe_lost(size);
        }
        assert_eq!(mtu.probe(Time::ZERO), Some(1472));
    }

    #[test]
    fn a_path_that_swallows_large_packets_is_found_and_measured_again() {
        let mut mtu = Mtu::new(8972);
        search(&mut mtu, 8972, Time::ZERO);
        for _ in 0..BLACK_HOLE - 1 {
            assert!(!mtu.on_lost(8972));
        }
        mtu.on_acked(8972);
        for _ in 0..BLACK_HOLE - 1 {
            assert!(!mtu.on_lost(8972), "one arrived meanwhile");
        }
        assert!(!mtu.on_lost(1000), "small ones say nothing");
        assert!(mtu.on_lost(8972));
        assert_eq!(mtu.current(), BASE_DATAGRAM);
        search(&mut mtu, 1472, Time::ZERO);
        assert!((1472 - CLOSE..=1472).contains(&mtu.current()));
        // Later the path is better again.
        let later = mtu.next_probe().expect("it will be tried again");
        search(&mut mtu, 8972, later);
        assert_eq!(mtu.current(), 8972);
    }
}
