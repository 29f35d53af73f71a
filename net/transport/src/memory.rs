//! A network in the memory of one process: nothing is lost, and everything arrives in the order in which it was sent.
use crate::contract::{Facts, Polled, Sending, Transport};
use crate::wake::Waker;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Datagrams that wait for one host: more are dropped.
const QUEUE: usize = 4096;
const BUFFER: usize = 65_507;
const MAX_PACKETS: usize = 64;

/// The datagrams that wait for a host, with their senders, and what wakes it.
#[derive(Debug)]
struct Port {
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    waker: Waker,
}

/// The network. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Network {
    ports: Arc<Mutex<BTreeMap<SocketAddr, Port>>>,
}

impl Network {
    fn send(&self, facts: &Facts, from: &[u8], sending: Sending) -> io::Result<bool> {
        let mut ports = self.ports();
        let Some(port) = ports.get_mut(&sending.to).filter(|_| sending.segment <= facts.max_datagram) else {
            return Ok(false);
        };
        for datagram in from[..sending.bytes].chunks(sending.segment.max(1)) {
            if port.waiting.len() < QUEUE {
                port.waiting.push_back((facts.address, datagram.to_vec()));
            }
        }
        port.waker.wake();
        Ok(true)
    }

    fn ports(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Port>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A host at `address`, whose interface has MTU `mtu`.
    ///
    /// # Errors
    /// If the address is taken, or the system has no descriptors left.
    pub fn join(&self, address: SocketAddr, mtu: usize) -> io::Result<Memory> {
        let waker = Waker::new()?;
        let mut ports = self.ports();
        if ports.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        ports.insert(address, Port { waiting: VecDeque::new(), waker: waker.clone() });
        drop(ports);
        let facts =
            Facts { address, max_datagram: mtu.saturating_sub(28).min(BUFFER), max_packets: MAX_PACKETS };
        Ok(Memory { network: self.clone(), facts, waker, out: vec![0; BUFFER] })
    }
}

/// A host of a [`Network`]. It leaves when it is dropped.
#[derive(Debug)]
pub struct Memory {
    network: Network,
    facts: Facts,
    waker: Waker,
    out: Vec<u8>,
}

impl Transport for Memory {
    fn facts(&self) -> Facts {
        self.facts
    }

    fn buffer(&mut self) -> &mut [u8] {
        &mut self.out
    }

    fn send(&mut self, sending: Sending) -> io::Result<bool> {
        self.network.send(&self.facts, &self.out[..sending.bytes], sending)
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, bool, &mut [u8])) -> io::Result<usize> {
        let mut ports = self.network.ports();
        let came = ports
            .get_mut(&self.facts.address)
            .map(|port| std::mem::take(&mut port.waiting))
            .unwrap_or_default();
        // `take` may be long at work; others send meanwhile.
        drop(ports);
        let count = came.len();
        for (from, mut datagram) in came {
            take(from, false, &mut datagram);
        }
        Ok(count)
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        if self.has_come() { Ok(()) } else { self.waker.wait(&[], longest).map(drop) }
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

impl Polled for Memory {
    fn has_come(&mut self) -> bool {
        self.network.ports().get(&self.facts.address).is_some_and(|port| !port.waiting.is_empty())
    }

    fn send_from(&mut self, from: &[u8], sending: Sending) -> io::Result<bool> {
        self.network.send(&self.facts, from, sending)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.network.ports().remove(&self.facts.address);
    }
}
