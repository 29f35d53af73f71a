//! Which packets are on the way, and which of them are lost (RFC 9002 section 6.1). Nothing is kept to be sent again: the node
//! is told, and decides.
use super::reordering::{Late, Reordering};
use super::rtt::Rtt;
use crate::time::Time;
use crate::wire::ack::Ack;
use std::collections::VecDeque;
use std::time::Duration;

/// The purpose of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The node's packet with this id.
    Data(u64),
    /// Only to be acknowledged.
    Ping,
    /// To find out whether the path carries its size.
    MtuProbe,
    /// Never acknowledged, not counted.
    Unasked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    OnTheWay,
    Settled,
}

#[derive(Debug, Clone, Copy)]
struct Packet {
    at: Time,
    size: u32,
    purpose: Purpose,
    state: State,
}

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) arrived: bool,
    pub(crate) purpose: Purpose,
    pub(crate) sent: Time,
    pub(crate) size: usize,
}

/// An acknowledgement of packets that were never sent: the peer is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NeverSent;

/// The packets on the way.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// The packets from number `first` on.
    packets: VecDeque<Packet>,
    first: u64,
    in_flight: u64,
    /// How many packets on the way ask for an acknowledgement.
    asking: u64,
    largest_acked: Option<u64>,
    last_asking: Option<Time>,
    loss_time: Option<Time>,
    probes: u32,
    reordering: Reordering,
}

impl Sent {
    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Bytes on the way (RFC 9002 appendix B.2, bytes_in_flight).
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(crate) fn largest_acked(&self) -> Option<u64> {
        self.largest_acked
    }

    /// When the last packet that asks for an acknowledgement was sent.
    pub(crate) fn last_asking(&self) -> Option<Time> {
        self.last_asking
    }

    /// The packet with the next number was sent.
    pub(crate) fn on_sent(&mut self, at: Time, size: usize, purpose: Purpose) {
        let state = if purpose == Purpose::Unasked {
            State::Settled
        } else {
            self.in_flight += size as u64;
            self.asking += 1;
            self.last_asking = Some(at);
            State::OnTheWay
        };
        self.packets.push_back(Packet { at, size: size as u32, purpose, state });
        self.forget();
    }

    /// An acknowledgement came. `fates` gets what became of packets, in order of their numbers, and `late` those that were taken for
    /// lost; what is given back is a sample of the round-trip time, if this is one.
    pub(crate) fn on_ack(
        &mut self,
        now: Time,
        ack: &Ack,
        rtt: &Rtt,
        fates: &mut Vec<Fate>,
        late: &mut Vec<Late>,
    ) -> Result<Option<Duration>, NeverSent> {
        let newest = ack.ranges.first().map_or(0, |range| range.1);
        // RFC 9000 section 13.1.
        if newest >= self.next_number() {
            return Err(NeverSent);
        }
        self.reordering.on_ack(now, ack, self.largest_acked, rtt, late);
        self.largest_acked = Some(self.largest_acked.map_or(newest, |before| before.max(newest)));
        let mut sample = None;
        let mut newly = false;
        for &(first, last) in ack.ranges.iter().rev() {
            if last < self.first {
                continue;
            }
            for number in first.max(self.first)..=last {
                let packet = &mut self.packets[(number - self.first) as usize];
                if packet.state == State::Settled {
                    continue;
                }
                packet.state = State::Settled;
                self.in_flight -= u64::from(packet.size);
                self.asking -= 1;
                newly = true;
                if number == newest {
                    // RFC 9002 section 5.1: the newest packet is newly acknowledged, and asked for it.
                    sample = Some(now.since(packet.at));
                }
                fates.push(Fate {
                    arrived: true,
                    purpose: packet.purpose,
                    sent: packet.at,
                    size: packet.size as usize,
                });
            }
        }
        if newly {
            // RFC 9002 section 6.2.1: the back-off ends with an acknowledgement.
            self.probes = 0;
        }
        Ok(sample)
    }

    /// Finds what is lost (RFC 9002 section 6.1); `fates` gets it, in order.
    pub(crate) fn detect_lost(&mut self, now: Time, rtt: &Rtt, fates: &mut Vec<Fate>) {
        self.loss_time = None;
        let Some(largest) = self.largest_acked else { return };
        let (delay, packets) = (self.reordering.delay(rtt), self.reordering.packets());
        let before = largest.saturating_sub(self.first).min(self.packets.len() as u64) as usize;
        for at in 0..before {
            let number = self.first + at as u64;
            let packet = &mut self.packets[at];
            if packet.state == State::Settled {
                continue;
            }
            // Sections 6.1.1 and 6.1.2.
            let by_time = largest < number + packets;
            if !by_time || now >= packet.at + delay {
                packet.state = State::Settled;
                self.reordering.on_lost(now, number, packet.at, packet.size, by_time);
                self.in_flight -= u64::from(packet.size);
                self.asking -= 1;
                fates.push(Fate {
                    arrived: false,
                    purpose: packet.purpose,
                    sent: packet.at,
                    size: packet.size as usize,
                });
            } else {
                // Later packets were sent later: this one is the first to fall due.
                self.loss_time = Some(packet.at + delay);
                break;
            }
        }
        self.forget();
    }

    /// Gives up all that is on the way.
    pub(crate) fn abandon(&mut self, fates: &mut Vec<Fate>) {
        for packet in self.packets.drain(..) {
            self.first += 1;
            if packet.state == State::OnTheWay {
                let size = packet.size as usize;
                fates.push(Fate { arrived: false, purpose: packet.purpose, sent: packet.at, size });
            }
        }
        (self.in_flight, self.asking, self.loss_time) = (0, 0, None);
        self.reordering.forget();
    }

    /// When [`detect_lost`](Self::detect_lost) finds more.
    pub(crate) fn loss_time(&self) -> Option<Time> {
        self.loss_time
    }

    /// When a probe is due (RFC 9002 section 6.2.1): twice as late after each.
    pub(crate) fn probe_time(&self, rtt: &Rtt) -> Option<Time> {
        let last = self.last_asking.filter(|_| self.asking > 0 && self.loss_time.is_none())?;
        Some(last + rtt.probe_timeout() * 2_u32.pow(self.probes.min(10)))
    }

    /// A probe is sent because nothing was acknowledged.
    pub(crate) fn on_probe(&mut self) {
        self.probes += 1;
    }

    fn forget(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.state == State::Settled) {
            self.packets.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn ack(ranges: &[(u64, u64)]) -> Ack {
        Ack { delay_us: 0, congested: 0, ranges: ranges.to_vec() }
    }

    fn rtt(ms: u64) -> Rtt {
        let mut rtt = Rtt::new();
        rtt.sample(Duration::from_millis(ms), Duration::ZERO);
        rtt
    }

    fn ids(fates: &[Fate], arrived: bool) -> Vec<u64> {
        let id = |fate: &Fate| if let Purpose::Data(id) = fate.purpose { Some(id) } else { None };
        fates.iter().filter(|fate| fate.arrived == arrived).filter_map(id).collect()
    }

    fn hear(
        sent: &mut Sent,
        now: Time,
        ack: &Ack,
        fates: &mut Vec<Fate>,
    ) -> Result<Option<Duration>, NeverSent> {
        sent.on_ack(now, ack, &rtt(10), fates, &mut Vec::new())
    }

    fn sent(count: u64) -> Sent {
        let mut sent = Sent::default();
        for id in 0..count {
            sent.on_sent(at(id), 100, Purpose::Data(id));
        }
        sent
    }

    #[test]
    fn three_later_packets_make_one_lost() {
        let (mut sent, mut fates) = (sent(6), Vec::new());
        assert_eq!(hear(&mut sent, at(20), &ack(&[(2, 3)]), &mut fates), Ok(Some(Duration::from_millis(17))));
        sent.detect_lost(at(20), &rtt(100), &mut fates);
        assert_eq!((ids(&fates, true), ids(&fates, false)), (vec![2, 3], vec![0]));
        assert_eq!(sent.in_flight(), 300);
        // 1 falls due by time, 4 and 5 only when a later one is acknowledged.
        assert_eq!(sent.loss_time(), Some(at(1) + rtt(100).loss_delay(1)));
        fates.clear();
        sent.detect_lost(at(5000), &rtt(100), &mut fates);
        assert_eq!(ids(&fates, false), [1]);
        assert_eq!((sent.loss_time(), sent.in_flight()), (None, 200));
    }

    #[test]
    fn a_packet_that_others_overtook_is_waited_for_longer_the_next_time() {
        let (mut sent, mut fates, mut late) = (sent(20), Vec::new(), Vec::new());
        let rtt = rtt(100);
        let mut hear = |sent: &mut Sent, ms, ranges: &[(u64, u64)], fates: &mut Vec<Fate>| {
            fates.clear();
            sent.on_ack(at(ms), &ack(ranges), &rtt, fates, &mut late).unwrap();
            sent.detect_lost(at(ms), &rtt, fates);
            late.len()
        };
        assert_eq!(hear(&mut sent, 30, &[(1, 5)], &mut fates), 0);
        assert_eq!(ids(&fates, false), [0]);
        assert_eq!(hear(&mut sent, 31, &[(0, 5)], &mut fates), 1);
        // Five later ones are not enough from now on.
        assert_eq!(hear(&mut sent, 32, &[(7, 11), (0, 5)], &mut fates), 1);
        assert_eq!(ids(&fates, false), []);
        assert_eq!(hear(&mut sent, 33, &[(7, 12), (0, 5)], &mut fates), 1);
        assert_eq!(ids(&fates, false), [6]);
    }

    #[test]
    fn each_packet_has_one_fate_whatever_is_said_later() {
        let (mut sent, mut fates) = (sent(10), Vec::new());
        for _ in 0..3 {
            hear(&mut sent, at(30), &ack(&[(7, 9), (2, 2)]), &mut fates).unwrap();
            sent.detect_lost(at(30), &rtt(10), &mut fates);
        }
        hear(&mut sent, at(40), &ack(&[(0, 9)]), &mut fates).unwrap();
        let (arrived, lost) = (ids(&fates, true), ids(&fates, false));
        assert_eq!(arrived, [2, 7, 8, 9]);
        assert_eq!(lost, [0, 1, 3, 4, 5, 6]);
        assert_eq!((sent.in_flight(), sent.asking, sent.next_number()), (0, 0, 10));
    }

    #[test]
    fn what_was_never_sent_cannot_be_acknowledged() {
        let mut sent = sent(3);
        assert_eq!(hear(&mut sent, at(1), &ack(&[(0, 3)]), &mut Vec::new()), Err(NeverSent));
    }

    #[test]
    fn probes_come_twice_as_late_each_time() {
        let mut sent = sent(1);
        let rtt = rtt(10);
        let first = sent.probe_time(&rtt).unwrap();
        assert_eq!(first, at(0) + rtt.probe_timeout());
        sent.on_probe();
        assert_eq!(sent.probe_time(&rtt).unwrap(), at(0) + rtt.probe_timeout() * 2);
        hear(&mut sent, at(30), &ack(&[(0, 0)]), &mut Vec::new()).unwrap();
        assert_eq!(sent.probe_time(&rtt), None);
    }

    #[test]
    fn packets_that_ask_for_nothing_are_not_waited_for() {
        let mut sent = Sent::default();
        sent.on_sent(at(0), 50, Purpose::Unasked);
        assert_eq!((sent.in_flight(), sent.probe_time(&rtt(10)), sent.next_number()), (0, None, 1));
    }

    #[test]
    fn all_that_was_on_the_way_can_be_given_up() {
        let (mut sent, mut fates) = (sent(5), Vec::new());
        hear(&mut sent, at(9), &ack(&[(1, 1)]), &mut fates).unwrap();
        fates.clear();
        sent.abandon(&mut fates);
        assert_eq!(ids(&fates, false), [0, 2, 3, 4]);
        assert_eq!((sent.in_flight(), sent.next_number()), (0, 5));
    }
}
