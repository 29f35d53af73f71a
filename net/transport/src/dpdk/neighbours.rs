//! Who is known on the link, who has been asked for, and what waits for the answer. No clock and no port: [`super`] has those.
use super::arp::Arp;
use super::ethernet::Mac;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Between two questions for one address.
const ASKS: Duration = Duration::from_secs(1);
/// Who was not heard of for so long is asked for again, while what is known of it still serves ..
const STALE: Duration = Duration::from_secs(30);
/// .. until it has not been heard of for so long.
const LOST: Duration = Duration::from_secs(60);
/// The longest wait of a packet for an answer: after that, it has been sent again.
const TOO_LATE: Duration = Duration::from_secs(3);
/// Datagrams that wait for one address. Later ones are lost.
const WAITING: usize = 64;
/// Addresses that are known. A job has fewer hosts; whoever invents more pushes others out, which are asked for again.
const KNOWN: usize = 1024;

/// A datagram that waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) to: SocketAddrV4,
    pub(super) payload: Vec<u8>,
}

/// How an address is reached.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// Its hardware address, if it is known.
    pub(super) mac: Option<Mac>,
    /// Whether to ask for it now.
    pub(super) asks: bool,
}

#[derive(Debug, Default)]
struct Neighbour {
    /// Its hardware address, and when it was heard of.
    known: Option<(Mac, Instant)>,
    asked: Option<Instant>,
    waiting: Vec<(Instant, Waiting)>,
}

/// The neighbours.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    by_address: HashMap<Ipv4Addr, Neighbour>,
}

impl Neighbours {
    /// How to reach `ip` now. Who is told to ask is not told again for a while.
    pub(super) fn way(&mut self, now: Instant, ip: Ipv4Addr) -> Way {
        self.make_room(ip);
        let neighbour = self.by_address.entry(ip).or_default();
        neighbour.known = neighbour.known.filter(|(_, heard)| now - *heard < LOST);
        let is_fresh = neighbour.known.is_some_and(|(_, heard)| now - heard < STALE);
        let asks = !is_fresh && neighbour.asked.is_none_or(|asked| now - asked >= ASKS);
        if asks {
            neighbour.asked = Some(now);
        }
        Way { mac: neighbour.known.map(|(mac, _)| mac), asks }
    }

    /// Keeps a datagram until the next hop `ip` is known. False if too many wait.
    pub(super) fn keep(&mut self, now: Instant, ip: Ipv4Addr, waiting: Waiting) -> bool {
        let queue = &mut self.by_address.entry(ip).or_default().waiting;
        queue.retain(|(since, _)| now - *since < TOO_LATE);
        let has_room = queue.len() < WAITING;
        if has_room {
            queue.push((now, waiting));
        }
        has_room
    }

    /// Hears a question or an answer, of who is on this link; what waited for it. Only who was asked for, is known, or asks for this
    /// host (`is_for_me`) is remembered, so that chatter of others takes no room.
    pub(super) fn hear(&mut self, now: Instant, arp: &Arp, is_for_me: bool) -> Vec<Waiting> {
        let (mac, ip) = arp.from;
        if !is_for_me && !self.by_address.contains_key(&ip) {
            return Vec::new();
        }
        self.make_room(ip);
        let neighbour = self.by_address.entry(ip).or_default();
        neighbour.known = Some((mac, now));
        neighbour.asked = None;
        let waiting = std::mem::take(&mut neighbour.waiting);
        waiting.into_iter().filter(|(since, _)| now - *since < TOO_LATE).map(|(_, waiting)| waiting).collect()
    }

    /// Forgets whom it has not heard of for longest, if `ip` would be one too many.
    fn make_room(&mut self, ip: Ipv4Addr) {
        if self.by_address.len() < KNOWN || self.by_address.contains_key(&ip) {
            return;
        }
        let heard = |neighbour: &Neighbour| neighbour.known.map(|(_, heard)| heard);
        if let Some(oldest) = self.by_address.iter().min_by_key(|(_, n)| heard(n)).map(|(ip, _)| *ip) {
            self.by_address.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Neighbours {
        fn knows(&self, ip: Ipv4Addr) -> bool {
            self.by_address.get(&ip).is_some_and(|neighbour| neighbour.known.is_some())
        }
    }

    const ME: (Mac, Ipv4Addr) = ([2, 0, 0, 0, 0, 1], Ipv4Addr::new(10, 0, 0, 1));
    const PEER: (Mac, Ipv4Addr) = ([2, 0, 0, 0, 0, 2], Ipv4Addr::new(10, 0, 0, 2));

    fn datagram(byte: u8) -> Waiting {
        Waiting { to: SocketAddrV4::new(PEER.1, 7), payload: vec![byte] }
    }

    fn answer() -> Arp {
        Arp::question(ME, PEER.1).answer(PEER.0)
    }

    #[test]
    fn datagrams_wait_for_the_answer_in_order() {
        let (mut neighbours, now) = (Neighbours::default(), Instant::now());
        assert_eq!(neighbours.way(now, PEER.1), Way { mac: None, asks: true });
        assert!(neighbours.keep(now, PEER.1, datagram(1)) && neighbours.keep(now, PEER.1, datagram(2)));
        assert_eq!(neighbours.way(now, PEER.1), Way { mac: None, asks: false }, "it has just asked");
        assert_eq!(neighbours.way(now + ASKS, PEER.1), Way { mac: None, asks: true });
        assert_eq!(neighbours.hear(now + ASKS, &answer(), true), [datagram(1), datagram(2)]);
        assert_eq!(neighbours.way(now + ASKS, PEER.1), Way { mac: Some(PEER.0), asks: false });
        assert_eq!(neighbours.hear(now + ASKS, &answer(), true), [], "nothing goes twice");
    }

    #[test]
    fn what_waits_is_bounded_in_number_and_time() {
        let (mut neighbours, now) = (Neighbours::default(), Instant::now());
        neighbours.way(now, PEER.1);
        for _ in 0..WAITING {
            assert!(neighbours.keep(now, PEER.1, datagram(1)));
        }
        assert!(!neighbours.keep(now, PEER.1, datagram(2)));
        let later = now + TOO_LATE;
        assert!(neighbours.keep(later, PEER.1, datagram(3)), "the others are too late");
        assert_eq!(neighbours.hear(later, &answer(), true), [datagram(3)]);
    }

    #[test]
    fn who_was_not_heard_of_is_asked_for_again_and_then_lost() {
        let (mut neighbours, now) = (Neighbours::default(), Instant::now());
        neighbours.way(now, PEER.1);
        neighbours.hear(now, &answer(), true);
        assert_eq!(neighbours.way(now + STALE, PEER.1), Way { mac: Some(PEER.0), asks: true });
        assert_eq!(neighbours.way(now + STALE, PEER.1), Way { mac: Some(PEER.0), asks: false });
        assert_eq!(neighbours.way(now + LOST, PEER.1), Way { mac: None, asks: true });
        assert!(!neighbours.knows(PEER.1));
    }

    #[test]
    fn a_card_that_was_replaced_is_believed() {
        let (mut neighbours, now) = (Neighbours::default(), Instant::now());
        neighbours.hear(now, &answer(), true);
        let other = ([2, 0, 0, 0, 0, 9], PEER.1);
        neighbours.hear(now, &Arp::question(other, PEER.1), false);
        assert_eq!(neighbours.way(now, PEER.1).mac, Some(other.0));
    }

    #[test]
    fn chatter_of_others_takes_no_room() {
        let (mut neighbours, now) = (Neighbours::default(), Instant::now());
        neighbours.hear(now, &answer(), false);
        assert!(!neighbours.knows(PEER.1));
        for host in 0..3000_u32 {
            let from = (PEER.0, Ipv4Addr::from(0x0a01_0000 + host));
            neighbours.hear(now + Duration::from_millis(host.into()), &Arp::question(from, ME.1), true);
        }
        assert_eq!(neighbours.by_address.len(), KNOWN);
        assert!(neighbours.knows(Ipv4Addr::from(0x0a01_0000 + 2999)), "the latest are known");
    }
}
