//! The largest packet that the path carries (RFC 8899): probes that are lost cost nothing, and a path that swallows large
//! packets is found.
//!
//! Overload loses packets of all sizes, so neither a lost probe nor large packets lost in a row say much alone. A row makes
//! the size doubtful; then probes of that very size go, each with a small packet behind it, and only if several of them are
//! lost, of which the small ones arrive, and nothing large arrives meanwhile, the path swallows large packets (a black hole,
//! RFC 8899 section 4.3).
use crate::time::Time;
use crate::wire::BASE_DATAGRAM;
use std::time::Duration;

/// RFC 8899 section 5.1.2, MAX_PROBES.
const MAX_PROBES: u32 = 3;
/// The search ends when it knows the size to within this many bytes.
const CLOSE: usize = 16;
/// RFC 8899 section 5.1.1, PMTU_RAISE_TIMER: after how long a larger size is tried again.
const RAISE: Duration = Duration::from_secs(600);
/// A probe that was lost alone weighs so much; one that was lost together with other packets weighs 1.
const ALONE: u32 = 4;
/// The number of large packets lost in a row after which the size is doubtful.
const BLACK_HOLE: u32 = 6;
/// So many lost probes of the base size, each with a small packet that arrives, show that the path does not carry even that.
const MAX_BASE_PROBES: u32 = 8;

/// The meaning of a probe's loss for the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Nothing,
    /// It swallows packets of the present size, which falls to the base.
    BlackHole,
    /// It does not carry packets of the base size any more, below which there is no session.
    Narrow,
}

/// The search for the largest packet, in bytes of UDP payload.
#[derive(Debug)]
pub(crate) struct Mtu {
    /// The largest size that the path is known to carry.
    current: usize,
    /// The least size that it is known not to carry, or one more than the interface's.
    too_large: usize,
    /// The largest size that the own interface carries.
    limit: usize,
    in_flight: bool,
    /// The weight of the losses of the size that is being tried.
    failures: u32,
    /// When the search begins again.
    again: Option<Time>,
    /// Large packets that were lost since one as large arrived, and the least of their sizes.
    swallowed: u32,
    least: usize,
    /// The path may swallow packets of the current size.
    doubtful: bool,
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
            least: usize::MAX,
            doubtful: false,
        }
    }

    /// The size of a full packet.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Whether a small packet has to follow a probe, so that its arrival shows that only the probe was lost.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.doubtful
    }

    /// The size that is tried next: a doubtful one, else first the interface's own, then by halves.
    fn candidate(&self) -> Option<usize> {
        if self.doubtful {
            return Some(self.current);
        }
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
        (self.in_flight, self.failures) = (false, 0);
        self.on_acked(size);
        let larger = size > self.current;
        self.current = self.current.max(size);
        larger
    }

    /// A probe could not be sent.
    pub(crate) fn on_probe_unsent(&mut self) {
        self.in_flight = false;
    }

    /// A probe of `size` was lost; `alone` if nothing else was with it.
    pub(crate) fn on_probe_lost(&mut self, size: usize, alone: bool) -> Shown {
        self.in_flight = false;
        self.failures += if alone { ALONE } else { 1 };
        let is_base = self.doubtful && self.current == BASE_DATAGRAM;
        if self.failures < if is_base { MAX_BASE_PROBES } else { MAX_PROBES } * ALONE {
            return Shown::Nothing;
        }
        self.failures = 0;
        if self.doubtful {
            *self = Mtu::new(self.limit);
            return if is_base { Shown::Narrow } else { Shown::BlackHole };
        }
        self.too_large = self.too_large.min(size).max(self.current + 1);
        Shown::Nothing
    }

    /// A packet of `size` arrived.
    pub(crate) fn on_acked(&mut self, size: usize) {
        if self.swallowed > 0 && size >= self.least {
            if self.doubtful {
                (self.doubtful, self.failures) = (false, 0);
            }
            (self.swallowed, self.least) = (0, usize::MAX);
        }
    }

    /// A packet of `size` was lost.
    pub(crate) fn on_lost(&mut self, size: usize) {
        // At the base size, what is larger than half of it is large, but for what was sent before the size fell.
        let is_large = match self.current == BASE_DATAGRAM {
            true => size > BASE_DATAGRAM / 2 && size <= BASE_DATAGRAM,
            false => size > BASE_DATAGRAM,
        };
        if !is_large {
            return;
        }
        self.swallowed += 1;
        self.least = self.least.min(size);
        if self.swallowed >= BLACK_HOLE && !self.doubtful {
            // A probe that is on its way is of another size, and weighs nothing.
            (self.doubtful, self.failures) = (true, 0);
        }
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
                mtu.on_probe_lost(size, true);
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
            mtu.on_probe_lost(size, true);
        }
        assert_eq!(mtu.probe(Time::ZERO), Some(1472));
        // Nor are a few more that were lost together with others.
        for _ in 0..ALONE - 1 {
            mtu.on_probe_lost(1472, false);
            assert_eq!(mtu.probe(Time::ZERO), Some(1472));
        }
        mtu.on_probe_lost(1472, false);
        assert_ne!(mtu.probe(Time::ZERO), Some(1472));
    }

    /// Large packets are lost until the size is doubtful.
    fn doubtful() -> Mtu {
        let mut mtu = Mtu::new(8972);
        search(&mut mtu, 8972, Time::ZERO);
        (0..BLACK_HOLE).for_each(|_| mtu.on_lost(8972));
        assert!(mtu.is_doubtful());
        mtu
    }

    #[test]
    fn overload_is_no_black_hole() {
        // A large packet arrives, or a probe.
        let mut mtu = doubtful();
        assert_eq!(mtu.probe(Time::ZERO), Some(8972));
        assert_eq!(mtu.on_probe_lost(8972, true), Shown::Nothing);
        mtu.on_acked(1300);
        assert!(mtu.is_doubtful(), "a smaller one says nothing");
        mtu.on_acked(8972);
        assert!(!mtu.is_doubtful() && mtu.current() == 8972);
        let mut mtu = doubtful();
        for _ in 0..2 {
            assert_eq!(mtu.probe(Time::ZERO), Some(8972));
            assert_eq!(mtu.on_probe_lost(8972, true), Shown::Nothing);
        }
        assert_eq!(mtu.probe(Time::ZERO), Some(8972));
        assert!(!mtu.on_probe_acked(8972));
        assert!(!mtu.is_doubtful() && mtu.current() == 8972 && mtu.probe(Time::ZERO).is_none());
    }

    #[test]
    fn a_path_that_swallows_large_packets_is_found_and_measured_again() {
        let mut mtu = Mtu::new(8972);
        search(&mut mtu, 8972, Time::ZERO);
        (1..BLACK_HOLE).for_each(|_| mtu.on_lost(8972));
        mtu.on_acked(8972);
        (1..BLACK_HOLE).for_each(|_| mtu.on_lost(8972));
        mtu.on_lost(1000);
        assert!(!mtu.is_doubtful(), "one arrived meanwhile, and small ones say nothing");
        mtu.on_lost(8972);
        for shown in [Shown::Nothing, Shown::Nothing, Shown::BlackHole] {
            assert_eq!(mtu.probe(Time::ZERO), Some(8972));
            assert_eq!(mtu.on_probe_lost(8972, true), shown);
        }
        assert_eq!(mtu.current(), BASE_DATAGRAM);
        search(&mut mtu, 1472, Time::ZERO);
        assert!((1472 - CLOSE..=1472).contains(&mtu.current()));
        // Later the path is better again.
        let later = mtu.next_probe().expect("it will be tried again");
        search(&mut mtu, 8972, later);
        assert_eq!(mtu.current(), 8972);
    }

    #[test]
    fn a_path_that_does_not_carry_the_base_size_is_found() {
        let mut mtu = Mtu::new(1472);
        let at_base = |mtu: &mut Mtu| (0..BLACK_HOLE).for_each(|_| mtu.on_lost(BASE_DATAGRAM));
        (0..2 * BLACK_HOLE).for_each(|_| mtu.on_lost(BASE_DATAGRAM / 2));
        (0..2 * BLACK_HOLE).for_each(|_| mtu.on_lost(1472));
        assert!(!mtu.is_doubtful(), "small ones say nothing, nor what was too large anyway");
        at_base(&mut mtu);
        for _ in 1..MAX_BASE_PROBES {
            assert_eq!(mtu.probe(Time::ZERO), Some(BASE_DATAGRAM));
            assert_eq!(mtu.on_probe_lost(BASE_DATAGRAM, true), Shown::Nothing);
        }
        // One that arrives shows that it does.
        assert_eq!(mtu.probe(Time::ZERO), Some(BASE_DATAGRAM));
        mtu.on_probe_acked(BASE_DATAGRAM);
        assert!(!mtu.is_doubtful());
        at_base(&mut mtu);
        for last in 1..=MAX_BASE_PROBES {
            assert_eq!(mtu.probe(Time::ZERO), Some(BASE_DATAGRAM));
            let shown = if last == MAX_BASE_PROBES { Shown::Narrow } else { Shown::Nothing };
            assert_eq!(mtu.on_probe_lost(BASE_DATAGRAM, true), shown);
        }
    }
}
