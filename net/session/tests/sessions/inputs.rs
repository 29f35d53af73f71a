//! Any bytes as datagrams: to a host that nobody has greeted, to one in the middle of a handshake, to one in a session, and
//! behind the seal (without a cipher everything that is parsed is reached). The fuzz target runs the same.
use hectare_session::{Batch, ClusterKey, Config, Endpoint, Event, HostId, Suite, Time};
use std::net::SocketAddr;

struct Pair {
    hosts: [Endpoint; 2],
    addresses: [SocketAddr; 2],
    now: Time,
    /// The last packet that went to host 1.
    last: Vec<u8>,
}

impl Pair {
    fn new(suite: Suite) -> Pair {
        let key = ClusterKey::new("lab", [7; 32]).expect("a good key");
        let addresses = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 7000)));
        let hosts = [0_u16, 1].map(|host| {
            let config = Config::new(HostId(host), 1, [1; 16], key.clone(), [host as u8 + 1; 32]);
            Endpoint::new(Config { suite, ..config }, [host as u8; 32])
        });
        let mut pair = Pair { hosts, addresses, now: Time::ZERO, last: Vec::new() };
        pair.hosts[0].connect(Time::ZERO, HostId(1), addresses[1]);
        pair
    }

    /// Delivers the packets that a host wants to send to the other, without loss; whether there were any.
    fn exchange(&mut self, from: usize) -> bool {
        self.now = Time::from_nanos(self.now.as_nanos() + 10_000);
        self.hosts[from].handle_timeout(self.now);
        let mut buffer = [0; 20_000];
        let mut batch = Batch::new(&mut buffer, 64);
        self.hosts[from].transmit(self.now, &mut batch);
        if batch.is_empty() {
            return false;
        }
        for datagram in batch.bytes().to_vec().chunks_mut(batch.segment_size()) {
            if from == 0 {
                self.last = datagram.to_vec();
            }
            self.hosts[1 - from].receive(self.now, self.addresses[from], false, datagram);
        }
        true
    }

    fn drain(&mut self, host: usize) -> bool {
        let events = std::iter::from_fn(|| self.hosts[host].poll_event());
        events.filter(|event| matches!(event, Event::Connected { .. })).count() > 0
    }
}

/// The first byte says how far the handshake has gone and whether there is a cipher; then come datagrams, each with two
/// bytes in front: its length, and whether it gets the number of the session.
pub(crate) fn run(input: &[u8]) {
    let Some((&mode, mut rest)) = input.split_first() else { return };
    let mut pair = Pair::new(if mode & 0x80 == 0 { Suite::Aes128Gcm } else { Suite::Bare });
    for step in 0..usize::from(mode & 0x0f) {
        pair.exchange(step % 2);
    }
    while let Some((&[length, how], more)) = rest.split_first_chunk::<2>() {
        let length = (usize::from(length) | usize::from(how & 0x0f) << 8).min(more.len());
        let (datagram, after) = more.split_at(length);
        rest = after;
        let mut datagram = datagram.to_vec();
        // As if its sender had seen the packets between the two.
        let seen = usize::from(how >> 4) * 4;
        let (to, last) = (datagram.len().min(seen), pair.last.len());
        datagram[..to.min(last)].copy_from_slice(&pair.last[..to.min(last)]);
        if how & 0x20 != 0 && datagram.len() > 8 {
            datagram[0] = 0x40 | datagram[0] & 3;
        }
        pair.hosts[1].receive(pair.now, pair.addresses[0], how & 1 == 0, &mut datagram);
        pair.drain(1);
        for step in 0..4 {
            pair.exchange((step + 1) % 2);
        }
    }
    pair.drain(0);
    assert!(pair.hosts[1].next_timeout().is_none_or(|at| at > Time::ZERO) || pair.exchange(1));
}
