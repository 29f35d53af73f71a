//! A socket and a port beside it.
use crate::contract::{Facts, Polled, Sending, Transport};
use crate::udp::Udp;
use crate::wake::Waker;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Between two looks of who waits: at first, and at last.
const SHORT_NAP: Duration = Duration::from_micros(20);
const LONG_NAP: Duration = Duration::from_micros(500);
/// While the port has datagrams, the socket is looked at once in this many times.
const TURNS: u32 = 8;

/// UDP of the system, and a port for some peers: their address says by which of the two datagrams go to them. It knows nothing of what
/// the datagrams belong to; whoever has both addresses of a peer chooses, and the peer sees from which address it was called.
#[derive(Debug)]
pub struct Both<P> {
    udp: Udp,
    port: P,
    /// The addresses behind the port.
    peers: BTreeSet<SocketAddr>,
    /// Since the socket was looked at.
    turns: u32,
}

impl<P: Polled> Both<P> {
    /// A socket, and a port behind which these addresses are.
    pub fn new(udp: Udp, port: P, peers: impl IntoIterator<Item = SocketAddr>) -> Both<P> {
        Both { udp, port, peers: peers.into_iter().collect(), turns: 0 }
    }

    /// The port.
    pub fn port(&self) -> &P {
        &self.port
    }
}

impl<P: Polled> Transport for Both<P> {
    /// The address is the socket's; the largest datagram is that of the link which carries larger ones.
    fn facts(&self) -> Facts {
        let (udp, port) = (self.udp.facts(), self.port.facts());
        Facts { max_datagram: udp.max_datagram.max(port.max_datagram), ..udp }
    }

    fn buffer(&mut self) -> &mut [u8] {
        self.udp.buffer()
    }

    fn send(&mut self, sending: Sending) -> io::Result<bool> {
        if !self.peers.contains(&sending.to) {
            return self.udp.send(sending);
        }
        self.port.send_from(&self.udp.buffer()[..sending.bytes], sending)
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, bool, &mut [u8])) -> io::Result<usize> {
        let came = self.port.receive(take)?;
        self.turns += 1;
        if came > 0 && self.turns < TURNS {
            return Ok(came);
        }
        self.turns = 0;
        Ok(came + self.udp.receive(take)?)
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        // The socket is to be looked at by the next call of `receive`.
        self.turns = TURNS;
        let (start, mut nap) = (Instant::now(), SHORT_NAP);
        loop {
            let left = longest.saturating_sub(start.elapsed());
            if self.port.has_come() || self.udp.rest(nap.min(left))? || left.is_zero() {
                return Ok(());
            }
            nap = (nap * 2).min(LONG_NAP);
        }
    }

    fn watch(&mut self, descriptor: OwnedFd) {
        self.udp.watch(descriptor);
    }

    fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
        self.port.counters()
    }

    fn waker(&self) -> Waker {
        self.udp.waker()
    }
}
