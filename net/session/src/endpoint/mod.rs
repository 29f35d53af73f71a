//! All sessions of one host.
mod greet;
mod peer;

use crate::batch::Batch;
use crate::config::{Config, HostId};
use crate::counters::{Counters, LinkStatus};
use crate::event::{Event, Reason, Received, SendError};
use crate::handshake::cookie::Cookies;
use crate::handshake::initiator::RESEND_MOST;
use crate::handshake::noise::Terms;
use crate::handshake::responder::HalfOpens;
use crate::link::Opened;
use crate::random::Randomness;
use crate::time::Time;
use crate::wire::greeting::Opening;
use crate::wire::header::Header;
use peer::{MAX_FINISHES, Peer};
use ring::hmac;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// The most answers to greetings that wait to be sent.
const MAX_ANSWERS: usize = 256;
/// After how long a peer that refused, or that closed the session, is called again.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// The sessions of this host with the other hosts of a job.
///
/// The caller's loop: give every datagram to [`receive`](Self::receive), call [`handle_timeout`](Self::handle_timeout), take
/// the events, [`send`](Self::send) what may be sent, let [`transmit`](Self::transmit) write what the sessions themselves have to
/// say until its batch stays empty (but look for datagrams after a few batches: acknowledgements that wait make the
/// congestion window grow for what arrived long ago), and wait until a datagram comes or it is [`next_timeout`](Self::next_timeout).
pub struct Endpoint {
    config: Config,
    terms: Terms,
    job_tag: [u8; 8],
    job_key: [u8; 32],
    hello_key: hmac::Key,
    cookies: Cookies,
    random: Randomness,
    peers: BTreeMap<HostId, Peer>,
    /// Whose session has which number, for those that can receive.
    sessions: BTreeMap<u32, HostId>,
    half_open: HalfOpens,
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    events: VecDeque<Event>,
    counters: Counters,
    /// How many [`Event::Refused`] wait: strangers cannot fill memory with them.
    refusals_waiting: usize,
}

impl Endpoint {
    /// An endpoint that answers, and calls nobody yet. `seed` is 32 random bytes, never used before: all keys of the
    /// handshakes are drawn from it.
    pub fn new(config: Config, seed: [u8; 32]) -> Endpoint {
        let mut random = Randomness::from_seed(&seed);
        let terms = Terms { cluster: config.key.cluster_tag(), job: config.job, suite: config.suite.code() };
        Endpoint {
            terms,
            job_tag: config.key.job_tag(&config.job),
            job_key: config.key.job_key(&config.job),
            hello_key: config.key.hello_key(),
            cookies: Cookies::new(&random.bytes()),
            random,
            config,
            peers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            half_open: HalfOpens::default(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            refusals_waiting: 0,
        }
    }

    /// Calls `peer` at `address`, now and whenever there is no session with it.
    pub fn connect(&mut self, now: Time, peer: HostId, address: SocketAddr) {
        let peer = self.peers.entry(peer).or_default();
        peer.address = Some(address);
        peer.attempt = None;
        peer.attempt_at = now;
    }

    /// The peer must show this static public key: any other is refused.
    pub fn expect_identity(&mut self, peer: HostId, public_key: [u8; 32]) {
        self.peers.entry(peer).or_default().expected = Some(public_key);
    }

    /// Ends the session with `peer`, tells it, and calls it no more. (It may call.)
    pub fn disconnect(&mut self, peer: HostId) {
        let Some(known) = self.peers.get_mut(&peer) else { return };
        (known.address, known.attempt) = (None, None);
        if let Some(pending) = known.pending.take() {
            self.sessions.remove(&pending.link.local);
        }
        if let Some(mut link) = known.link.take() {
            self.sessions.remove(&link.local);
            let to = link.party.address;
            let close = link.close();
            link.end(Reason::Closed, &mut self.events);
            self.answer(to, close);
        }
    }

    /// Takes a datagram that came from `from`; `congested` if it bore the mark of congestion (ECN-CE). If it is a packet of a
    /// peer's node, that is given back, where it stood.
    pub fn receive<'d>(
        &mut self,
        now: Time,
        from: SocketAddr,
        congested: bool,
        datagram: &'d mut [u8],
    ) -> Option<Received<'d>> {
        if let Some(header) = Header::read(datagram) {
            return self.packet(now, from, congested, &header, datagram);
        }
        match Opening::read(datagram) {
            Some(opening) => self.greeting(now, from, opening, datagram),
            None => self.counters.malformed += 1,
        }
        None
    }

    fn packet<'d>(
        &mut self,
        now: Time,
        from: SocketAddr,
        congested: bool,
        header: &Header,
        datagram: &'d mut [u8],
    ) -> Option<Received<'d>> {
        let Some((&host, peer)) =
            self.sessions.get(&header.session).and_then(|host| Some((host, self.peers.get_mut(host)?)))
        else {
            self.counters.unknown_session += 1;
            return None;
        };
        let link = peer.session(header.session)?;
        let opened =
            link.open(now, (from, congested), header, datagram, (&mut self.counters, &mut self.events));
        if let Opened::Refused = opened {
            return None;
        }
        if peer.pending.as_ref().is_some_and(|pending| pending.link.local == header.session)
            && let Some(pending) = peer.pending.take()
            && let Some(before) = peer.establish(now, pending.link, &mut self.events)
        {
            self.sessions.remove(&before);
        }
        match opened {
            Opened::Payload(payload) => {
                self.wake(now, host);
                return Some(Received { peer: host, payload });
            }
            Opened::End(reason) => self.end(now, host, reason, TIME_LIMIT),
            Opened::Nothing | Opened::Refused => self.wake(now, host),
        }
        None
    }

    fn wake(&mut self, now: Time, host: HostId) {
        if let Some(link) = self.peers.get_mut(&host).and_then(|peer| peer.link.as_mut()) {
            link.wake(now, &mut self.events);
        }
    }

    /// The session with `host` is over; it is called again after `timeout`.
    fn end(&mut self, now: Time, host: HostId, reason: Reason, timeout: Duration) {
        let Some(peer) = self.peers.get_mut(&host) else { return };
        peer.attempt_at = now + timeout;
        if let Some(link) = peer.link.take() {
            self.sessions.remove(&link.local);
            link.end(reason, &mut self.events);
        }
    }

    /// Writes a packet for `peer` into a batch: the parts of `payload`, one after the other, copied and sealed in place. Later
    /// there is one [`Event::Acked`] or [`Event::Lost`] with `id`.
    ///
    /// # Errors
    /// If there is no session, nothing may be sent now, the batch does not take it, or the path does not carry it. Then
    /// nothing was written, and no event comes for `id`.
    pub fn send(
        &mut self,
        now: Time,
        peer: HostId,
        id: u64,
        payload: &[&[u8]],
        batch: &mut Batch<'_>,
    ) -> Result<(), SendError> {
        let link = self.peers.get_mut(&peer).and_then(|peer| peer.link.as_mut());
        link.ok_or(SendError::NotConnected)?.send(now, id, payload, batch)
    }

    /// How many bytes may be sent to `peer` now, headers included.
    pub fn writable(&mut self, now: Time, peer: HostId) -> u64 {
        let link = self.peers.get_mut(&peer).and_then(|peer| peer.link.as_mut());
        link.map_or(0, |link| link.budget(now))
    }

    /// The largest payload that the path to `peer` is known to carry; none without a session.
    pub fn max_payload(&self, peer: HostId) -> Option<usize> {
        Some(self.peers.get(&peer)?.link.as_ref()?.max_payload())
    }

    /// Writes greetings, acknowledgements and probes that are due into a batch: as far as it takes them. There may be more
    /// as long as the batch does not stay empty.
    pub fn transmit(&mut self, now: Time, batch: &mut Batch<'_>) {
        while let Some((to, bytes)) = self.answers.front() {
            let Some(place) = batch.place(*to, bytes.len()) else { return };
            place.copy_from_slice(bytes);
            self.answers.pop_front();
        }
        for peer in self.peers.values_mut() {
            if let Some(attempt) = &mut peer.attempt
                && let Some(hello) = attempt.insisting.due(now)
                && let Some(place) = batch.place(attempt.address, hello.len())
            {
                place.copy_from_slice(hello);
                attempt.on_sent(now);
            }
            if let Some(pending) = &mut peer.pending
                && let Some(finish) = pending.finish.due(now)
                && let Some(place) = batch.place(pending.link.party.address, finish.len())
            {
                place.copy_from_slice(finish);
                pending.finish.on_sent(now);
            }
            if let Some(link) = &mut peer.link {
                link.control(now, batch);
            }
        }
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.half_open.expire(now);
        let hosts: Vec<HostId> = self.peers.keys().copied().collect();
        for host in hosts {
            let Some(peer) = self.peers.get_mut(&host) else { continue };
            if peer
                .pending
                .as_ref()
                .is_some_and(|p| p.finish.tries() >= MAX_FINISHES && p.finish.next() <= now)
                && let Some(pending) = peer.pending.take()
            {
                self.sessions.remove(&pending.link.local);
            }
            if let Some(link) = &mut peer.link
                && let Some(reason) = link.on_timeout(now, &mut self.events)
            {
                self.end(now, host, reason, Duration::ZERO);
            }
            self.attempt(now, host);
        }
    }

    /// Begins an attempt to reach `host` if it is time to, and reports one that is in vain.
    fn attempt(&mut self, now: Time, host: HostId) {
        let Some(peer) = self.peers.get_mut(&host) else { return };
        let Some(address) = peer.address else { return };
        if peer.attempt.as_ref().is_some_and(|attempt| now >= attempt.since + self.config.connect_timeout) {
            let reason = Reason::NoAnswer { address };
            self.events.push_back(Event::Disconnected { peer: host, reason });
            peer.attempt = None;
        }
        if !peer.is_busy() && peer.attempt_at <= now {
            let attempt = self.begin(now, host, address);
            if let Some(peer) = self.peers.get_mut(&host) {
                peer.attempt = Some(attempt);
            }
        }
    }

    /// The time by which [`handle_timeout`](Self::handle_timeout) and [`transmit`](Self::transmit) should be called.
    pub fn next_timeout(&self) -> Option<Time> {
        if !self.answers.is_empty() {
            return Some(Time::ZERO);
        }
        self.peers.values().filter_map(Peer::next_timeout).chain(self.half_open.next_timeout()).min()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if let Some(Event::Refused { .. }) = event {
            self.refusals_waiting -= 1;
        }
        event
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// How many datagrams were no packets of this protocol, or did not open.
    pub fn unopened(&self) -> u64 {
        self.counters.malformed + self.counters.forged
    }

    /// How the link to `peer` stands; none without a session.
    pub fn status(&self, peer: HostId) -> Option<LinkStatus> {
        Some(self.peers.get(&peer)?.link.as_ref()?.status())
    }

    /// The address of the session's peer; none without a session.
    pub fn address(&self, peer: HostId) -> Option<SocketAddr> {
        Some(self.peers.get(&peer)?.link.as_ref()?.party.address)
    }

    /// How long it takes to `peer` and back, smoothed; none without a session.
    pub fn round_trip(&self, peer: HostId) -> Option<Duration> {
        Some(self.peers.get(&peer)?.link.as_ref()?.round_trip())
    }

    fn answer(&mut self, to: SocketAddr, bytes: Vec<u8>) {
        if self.answers.len() < MAX_ANSWERS {
            self.answers.push_back((to, bytes));
        } else {
            self.counters.answers_dropped += 1;
        }
    }

    /// A number for a session that no other has.
    fn new_session(&mut self) -> u32 {
        loop {
            let number = u32::from_le_bytes(self.random.bytes());
            let of_attempt =
                |peer: &Peer| peer.attempt.as_ref().is_some_and(|attempt| attempt.local() == number);
            let used = self.sessions.contains_key(&number)
                || self.half_open.uses(number)
                || self.peers.values().any(of_attempt);
            if !used {
                return number;
            }
        }
    }
}

/// How long the own attempt rests when the peer's own is answered instead.
const YIELDS: Duration = RESEND_MOST.saturating_mul(3);

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Endpoint");
        f.field("config", &self.config).field("peers", &self.peers).field("counters", &self.counters);
        f.finish_non_exhaustive()
    }
}
