//! Datagrams over DPDK: a port of this process alone, without the system's network stack.
//!
//! Frames are written and checked here (Ethernet, IPv4, UDP), and neighbours are asked for and answered (ARP), so that peers are
//! named by address and port as everywhere, and one of two peers may use [`udp`](crate::udp). A datagram that came is lent from the
//! buffer that the device wrote to; one that is sent is copied once, from [`buffer`](Transport::buffer) behind its headers.
//!
//! There is nothing to sleep on, so [`wait`](Transport::wait) looks, and naps in between: 20 us at first, half a millisecond when
//! nothing has come for a while. [`Idle`](crate::Idle) looks and yields before that.
//!
//! IPv4 only, no VLANs, no fragments. On a virtual device (`net_af_packet`), a host whose system sends through it must not leave
//! segmentation to the device (`ethtool -K eth1 tx-udp-segmentation off`): packets larger than the MTU are dropped.
mod arp;
mod ethernet;
mod frame;
mod neighbours;
mod settings;

use crate::contract::{Facts, Polled, Sending, Transport};
use crate::wake::Waker;
use arp::Arp;
use ethernet::{ETHERNET, Mac, SHORTEST};
use frame::{HEADERS, Kind};
use hectare_dpdk::{BURST, Eal, Port, Stats};
use neighbours::{Neighbours, Waiting};
pub use settings::Settings;
use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The bytes of a burst.
const BUFFER: usize = 65_536;
/// For how long a device whose queue is full is waited for before a burst is dropped.
const TIME_LIMIT: Duration = Duration::from_millis(2);
/// Between two looks of who waits: at first, and at last.
const SHORT_NAP: Duration = Duration::from_micros(20);
const LONG_NAP: Duration = Duration::from_micros(500);

/// Counts of frames by their fate. The device counts for itself ([`Dpdk::stats`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams that came.
    pub datagrams: u64,
    /// Frames for others, or of other protocols.
    pub foreign: u64,
    /// Frames for this transport whose headers are broken.
    pub broken: u64,
    /// Frames of others that claim to have this transport's address: two hosts were given the same.
    pub conflicts: u64,
    /// Datagrams that could not be sent: no way, no answer, no buffer, or a full queue.
    pub unsent: u64,
}

/// A datagram in a frame that the port holds.
struct Came {
    frame: usize,
    at: Range<usize>,
    from: SocketAddrV4,
    congested: bool,
}

/// A port of DPDK.
pub struct Dpdk {
    port: Port,
    settings: Settings,
    mac: Mac,
    waker: Waker,
    neighbours: Neighbours,
    out: Vec<u8>,
    /// The datagrams that the last look found, and nobody has taken.
    came: Vec<Came>,
    counts: Counts,
}

impl Dpdk {
    /// Opens a port, starts DPDK's environment if this process has none, and tells the link of itself.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the settings cannot be; else an [`hectare_dpdk::Error`], which says what
    /// DPDK said.
    ///
    /// ```no_run
    /// use hectare_transport::dpdk::{Dpdk, Settings};
    ///
    /// let settings = Settings::new("net_af_packet0,iface=eth1", "10.0.0.101:7000".parse()?);
    /// let dpdk = Dpdk::open(&Settings { mtu: 9000, ..settings })?;
    /// println!("{:?}", dpdk.stats()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(settings: &Settings) -> io::Result<Dpdk> {
        let (device, port) = settings.checked()?;
        let eal = match &settings.arguments {
            Some(arguments) => Eal::start(arguments),
            None => Eal::start_by_default(&device),
        };
        let eal = eal.map_err(io::Error::other)?;
        let port = Port::open(eal, &device, &port).map_err(io::Error::other)?;
        let mut dpdk = Dpdk {
            mac: port.mac(),
            port,
            settings: settings.clone(),
            waker: Waker::new()?,
            neighbours: Neighbours::default(),
            out: vec![0; BUFFER],
            came: Vec::with_capacity(BURST),
            counts: Counts::default(),
        };
        // Who knows this address with another card is told of this one.
        dpdk.ask(*settings.address.ip());
        Ok(dpdk)
    }

    /// The counters of the device.
    ///
    /// # Errors
    /// If the driver does not count.
    pub fn stats(&self) -> io::Result<Stats> {
        self.port.stats()
    }

    /// Counts of frames by their fate.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether the device says that it is connected. That of an interface that was taken away may go on saying so.
    pub fn is_up(&self) -> bool {
        self.port.is_up()
    }

    /// Whether the next datagram to this address goes at once, since its hardware address, or the gateway's, is known. If not, it is
    /// asked for; the answer is heard in [`receive`](Transport::receive) and [`wait`](Transport::wait).
    pub fn reaches(&mut self, ip: Ipv4Addr) -> bool {
        let Some(hop) = self.settings.next_hop(ip) else { return false };
        let way = self.neighbours.way(Instant::now(), hop);
        if way.asks {
            self.ask(hop);
        }
        way.mac.is_some()
    }

    /// Asks who has an address.
    fn ask(&mut self, ip: Ipv4Addr) {
        self.say(&Arp::question((self.mac, *self.settings.address.ip()), ip));
    }

    fn say(&mut self, arp: &Arp) {
        // If it is lost, it is asked for again.
        self.port.send(1, SHORTEST, Duration::ZERO, |_, frame| arp.write(frame));
    }

    /// Looks for frames; those that are datagrams wait in `came`, which was empty.
    fn look(&mut self) {
        for at in 0..self.port.receive() {
            match frame::read(self.port.frame(at), self.mac, self.settings.address) {
                Kind::Datagram { from, congested, at: payload } => {
                    self.came.push(Came { frame: at, at: payload, from, congested });
                }
                Kind::Arp(arp) => self.hear(&arp),
                Kind::Foreign => self.counts.foreign += 1,
                Kind::Broken => self.counts.broken += 1,
            }
        }
        self.counts.datagrams += self.came.len() as u64;
    }

    fn hear(&mut self, arp: &Arp) {
        let me = *self.settings.address.ip();
        if arp.from.1 == me {
            self.counts.conflicts += u64::from(arp.from.0 != self.mac);
            return;
        }
        if !self.settings.is_on_link(arp.from.1) {
            self.counts.foreign += 1;
            return;
        }
        let is_for_me = arp.to.1 == me;
        let waiting = self.neighbours.hear(Instant::now(), arp, is_for_me);
        if arp.is_question && is_for_me {
            self.say(&arp.answer(self.mac));
        }
        let (port, from, macs) = (&mut self.port, self.settings.address, (self.mac, arp.from.0));
        for burst in waiting.chunks(BURST) {
            let longest = burst.iter().map(|datagram| datagram.payload.len()).max().unwrap_or(0);
            let sent = port.send(burst.len(), room(longest), TIME_LIMIT, |at, frame| {
                frame::write(frame, macs, from, burst[at].to, &burst[at].payload)
            });
            self.counts.unsent += (burst.len() - sent) as u64;
        }
    }

    /// Sends datagrams to who has this hardware address; how many did not go.
    fn transmit(&mut self, to: SocketAddrV4, mac: Mac, datagrams: &[u8], segment: usize) -> usize {
        let mut unsent = 0;
        for burst in datagrams.chunks(segment * BURST) {
            let (count, macs, from) = (burst.len().div_ceil(segment), (self.mac, mac), self.settings.address);
            let sent = self.port.send(count, room(segment), TIME_LIMIT, |at, frame| {
                let payload = &burst[at * segment..burst.len().min((at + 1) * segment)];
                frame::write(frame, macs, from, to, payload)
            });
            unsent += count - sent;
        }
        unsent
    }

    /// Has datagrams wait until `hop` is known; how many have no room.
    fn keep(
        &mut self,
        now: Instant,
        hop: Ipv4Addr,
        to: SocketAddrV4,
        datagrams: &[u8],
        segment: usize,
    ) -> usize {
        let kept = datagrams
            .chunks(segment)
            .map(|payload| self.neighbours.keep(now, hop, Waiting { to, payload: payload.to_vec() }));
        kept.filter(|is_kept| !is_kept).count()
    }
}

/// Bytes of the frame of a datagram of `payload` bytes.
fn room(payload: usize) -> usize {
    (HEADERS + payload).max(SHORTEST)
}

impl Transport for Dpdk {
    fn facts(&self) -> Facts {
        Facts {
            address: self.settings.address.into(),
            max_datagram: self.settings.mtu + ETHERNET - HEADERS,
            max_packets: BURST,
        }
    }

    fn buffer(&mut self) -> &mut [u8] {
        &mut self.out
    }

    fn send(&mut self, sending: Sending) -> io::Result<bool> {
        let out = std::mem::take(&mut self.out);
        let sent = self.send_from(&out, sending);
        self.out = out;
        sent
    }

    fn receive(&mut self, take: &mut dyn FnMut(SocketAddr, bool, &mut [u8])) -> io::Result<usize> {
        self.has_come();
        let came = self.came.len();
        for Came { frame, at, from, congested } in self.came.drain(..) {
            take(from.into(), congested, &mut self.port.frame(frame)[at]);
        }
        Ok(came)
    }

    fn wait(&mut self, longest: Duration) -> io::Result<()> {
        let start = Instant::now();
        let mut nap = SHORT_NAP;
        loop {
            let left = longest.saturating_sub(start.elapsed());
            if self.has_come() || left.is_zero() || self.waker.wait(&[], nap.min(left))? {
                return Ok(());
            }
            nap = (nap * 2).min(LONG_NAP);
        }
    }

    fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
        // Zeros if the driver does not count.
        let stats = self.stats().unwrap_or_default();
        let counts = self.counts;
        vec![
            ("port_frames", "received", stats.received),
            ("port_frames", "sent", stats.sent),
            ("port_bytes", "received", stats.received_bytes),
            ("port_bytes", "sent", stats.sent_bytes),
            ("port_lost", "missed", stats.missed),
            ("port_lost", "receive_error", stats.receive_errors),
            ("port_lost", "send_error", stats.send_errors),
            ("port_lost", "no_buffer", stats.no_buffers),
            ("port_lost", "unsent", counts.unsent),
            ("port_ignored", "foreign", counts.foreign),
            ("port_ignored", "broken", counts.broken),
            ("port_ignored", "address_clash", counts.conflicts),
        ]
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

impl Polled for Dpdk {
    fn has_come(&mut self) -> bool {
        if self.came.is_empty() {
            self.look();
        }
        !self.came.is_empty()
    }

    fn send_from(&mut self, from: &[u8], sending: Sending) -> io::Result<bool> {
        let Sending { to, bytes, segment } = sending;
        if bytes == 0 {
            return Ok(true);
        }
        let datagrams = bytes.div_ceil(segment.max(1));
        let hop = match to {
            SocketAddr::V4(to) if (1..=self.facts().max_datagram).contains(&segment.min(bytes)) => {
                self.settings.next_hop(*to.ip()).map(|hop| (to, hop))
            }
            _ => None,
        };
        let unsent = if let Some((to, hop)) = hop {
            let now = Instant::now();
            let way = self.neighbours.way(now, hop);
            if way.asks {
                self.ask(hop);
            }
            match way.mac {
                Some(mac) => self.transmit(to, mac, &from[..bytes], segment.min(bytes)),
                None => self.keep(now, hop, to, &from[..bytes], segment.min(bytes)),
            }
        } else {
            datagrams
        };
        self.counts.unsent += unsent as u64;
        Ok(unsent == 0)
    }
}

impl fmt::Debug for Dpdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dpdk").field("port", &self.port).field("facts", &self.facts()).finish_non_exhaustive()
    }
}
