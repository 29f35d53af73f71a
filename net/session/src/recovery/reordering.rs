//! How far packets of a path overtake each other. What is taken for lost and arrives after all shows that it is further than
//! assumed: then more later packets, or more time, are waited for (RFC 9002 sections 6.1.1 and 6.1.2 leave it to the
//! sender; RFC 8985 section 6.2 adapts the time in this way).
use super::rtt::Rtt;
use crate::time::Time;
use crate::wire::ack::Ack;
use std::collections::VecDeque;
use std::time::Duration;

/// RFC 9002 section 6.1.1, kPacketThreshold.
const PACKETS: u64 = 3;
/// RFC 9002 section 6.1.2, kTimeThreshold: so many eighths more than a round trip.
const EIGHTHS: u32 = 1;
/// RFC 8985 section 6.2: a round trip more at most.
const MOST_EIGHTHS: u32 = 8;
/// So many packets that stay lost one after the other halve what is waited for.
const CALM: u32 = 64;
/// Of how many lost packets it is known that they are.
const REMEMBERED: usize = 512;

/// A packet that was taken for lost.
#[derive(Debug, Clone, Copy)]
struct Doubtful {
    number: u64,
    sent: Time,
    size: u32,
    /// Whether too much time was the reason, not too many later packets.
    by_time: bool,
    lost_at: Time,
}

/// A packet that was not lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) sent: Time,
    pub(crate) size: usize,
}

/// How long packets are waited for of which later ones were acknowledged.
#[derive(Debug)]
pub(crate) struct Reordering {
    packets: u64,
    eighths: u32,
    /// In the order in which they were taken for lost, which is that of their numbers.
    doubtful: VecDeque<Doubtful>,
    calm: u32,
}

impl Default for Reordering {
    fn default() -> Reordering {
        Reordering { packets: PACKETS, eighths: EIGHTHS, doubtful: VecDeque::new(), calm: 0 }
    }
}

impl Reordering {
    /// By how many numbers an acknowledged packet is later than one that is lost.
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// How long after it was sent a packet is lost.
    pub(crate) fn delay(&self, rtt: &Rtt) -> Duration {
        rtt.loss_delay(self.eighths)
    }

    /// A packet is taken for lost.
    pub(crate) fn on_lost(&mut self, now: Time, number: u64, sent: Time, size: u32, by_time: bool) {
        debug_assert!(self.doubtful.back().is_none_or(|packet| packet.number < number));
        if self.doubtful.len() == REMEMBERED {
            self.doubtful.pop_front();
        }
        self.doubtful.push_back(Doubtful { number, sent, size, by_time, lost_at: now });
    }

    /// An acknowledgement came; `largest` is the newest packet of those before. `late` gets the packets that were not lost.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        largest: Option<u64>,
        rtt: &Rtt,
        late: &mut Vec<Late>,
    ) {
        let Some(first) = self.doubtful.front().map(|packet| packet.number) else { return };
        let (mut packets, mut eighths) = (self.packets, self.eighths);
        // From the newest to the oldest.
        for &(from, to) in ack.ranges.iter().take_while(|range| range.1 >= first) {
            let at = self.doubtful.partition_point(|packet| packet.number < from);
            while self.doubtful.get(at).is_some_and(|packet| packet.number <= to) {
                let Some(packet) = self.doubtful.remove(at) else { break };
                late.push(Late { sent: packet.sent, size: packet.size as usize });
                if packet.by_time {
                    eighths = (self.eighths * 2).min(MOST_EIGHTHS);
                } else {
                    packets = packets.max(largest.unwrap_or(0).saturating_sub(packet.number) + 1);
                }
            }
        }
        if (packets, eighths) != (self.packets, self.eighths) {
            (self.packets, self.eighths, self.calm) = (packets, eighths, 0);
        }
        let long = rtt.probe_timeout() * 3;
        while self.doubtful.front().is_some_and(|packet| packet.lost_at + long <= now) {
            self.doubtful.pop_front();
            self.calm += 1;
            if self.calm == CALM {
                self.calm = 0;
                self.packets = (self.packets / 2).max(PACKETS);
                self.eighths = (self.eighths / 2).max(EIGHTHS);
            }
        }
    }

    /// Nothing is expected any more of what was sent.
    pub(crate) fn forget(&mut self) {
        self.doubtful.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn rtt() -> Rtt {
        let mut rtt = Rtt::new();
        rtt.sample(Duration::from_millis(8), Duration::ZERO);
        rtt
    }

    fn hear(reordering: &mut Reordering, now: Time, ranges: &[(u64, u64)], largest: u64) -> Vec<Late> {
        let ack = Ack { delay_us: 0, congested: 0, ranges: ranges.to_vec() };
        let mut late = Vec::new();
        reordering.on_ack(now, &ack, Some(largest), &rtt(), &mut late);
        late
    }

    #[test]
    fn what_arrives_after_all_is_waited_for_from_then_on() {
        let mut reordering = Reordering::default();
        assert_eq!((reordering.packets(), reordering.delay(&rtt())), (3, Duration::from_millis(9)));
        reordering.on_lost(at(5), 10, at(1), 100, false);
        reordering.on_lost(at(5), 12, at(2), 200, false);
        assert_eq!(hear(&mut reordering, at(6), &[(13, 30), (11, 11), (0, 9)], 30), []);
        let late = hear(&mut reordering, at(7), &[(12, 31), (11, 11), (0, 9)], 30);
        assert_eq!(late, [Late { sent: at(2), size: 200 }]);
        assert_eq!((reordering.packets(), reordering.delay(&rtt())), (19, Duration::from_millis(9)));
        // Once.
        assert_eq!(hear(&mut reordering, at(8), &[(12, 31), (11, 11), (0, 9)], 31), []);
        for (number, ms) in [(40, 10), (41, 12), (42, 16), (43, 16)] {
            reordering.on_lost(at(20), number, at(9), 100, true);
            hear(&mut reordering, at(21), &[(number, number)], 50);
            assert_eq!(reordering.delay(&rtt()), Duration::from_millis(ms));
        }
        assert_eq!(reordering.packets(), 19, "time was the reason");
    }

    #[test]
    fn losses_that_are_some_make_it_impatient_again() {
        let mut reordering = Reordering::default();
        reordering.on_lost(at(1), 1, at(0), 100, false);
        hear(&mut reordering, at(2), &[(1, 1)], 100);
        assert_eq!(reordering.packets(), 100);
        let lose = |reordering: &mut Reordering, count: u64, number: u64| {
            (0..count).for_each(|more| reordering.on_lost(at(3), number + more, at(2), 100, false));
            hear(reordering, at(9999), &[(5000, 5000)], 6000);
        };
        lose(&mut reordering, 63, 100);
        assert_eq!(reordering.packets(), 100);
        lose(&mut reordering, 1, 200);
        assert_eq!(reordering.packets(), 50);
        (0..10).for_each(|_| lose(&mut reordering, 64, 300));
        assert_eq!(reordering.packets(), 3);
    }

    #[test]
    fn few_of_many_losses_are_remembered() {
        let mut reordering = Reordering::default();
        (0..100_000).for_each(|number| reordering.on_lost(at(1), number, at(0), 100, false));
        assert_eq!(reordering.doubtful.len(), REMEMBERED);
        assert_eq!(hear(&mut reordering, at(2), &[(99_999, 99_999), (0, 10)], 100_000).len(), 1);
    }
}
