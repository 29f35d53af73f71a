//! An established session: what is sent and received, sealed and acknowledged.
use crate::batch::Batch;
use crate::cipher::{FORGERY_LIMIT, Opener, Sealer, Suite};
use crate::config::{Config, HostId};
use crate::counters::{Counters, LinkStatus};
use crate::event::{Event, Reason, SendError};
use crate::recovery::congestion::Congestion;
use crate::recovery::mtu::{Mtu, Shown};
use crate::recovery::pacing::Pacer;
use crate::recovery::received::{Freshness, Received};
use crate::recovery::reordering::Late;
use crate::recovery::rtt::Rtt;
use crate::recovery::sent::{Fate, Purpose, Sent};
use crate::time::Time;
use crate::wire::ack::{Ack, MAX_BYTES};
use crate::wire::header::{FLAG_ACK_BEHIND, HEADER, Header, Kind};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// As much as one call of the transport takes: who is blocked is woken when so much may be sent, or a quarter of the window.
const WAKE: u64 = 65536;

/// An acknowledgement of one range. A batch that does not take this much is not tried.
const MIN_ACK: usize = 24;

/// Who is at the other end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Party {
    pub(crate) host: HostId,
    pub(crate) boot: u64,
    pub(crate) identity: [u8; 32],
    pub(crate) address: SocketAddr,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) party: Party,
    /// This side's number of the session, and the peer's.
    pub(crate) local: u32,
    remote: u32,
    suite: Suite,
    sealer: Sealer,
    opener: Opener,
    sent: Sent,
    received: Received,
    rtt: Rtt,
    congestion: Congestion,
    pacer: Pacer,
    mtu: Mtu,
    /// The sender was refused a packet, and is told when one may go.
    blocked: bool,
    /// Pings that have to go.
    pings: u32,
    last_heard: Time,
    heard: bool,
    keep_alive: Duration,
    idle_timeout: Duration,
    forged: u64,
    /// The key is used up, and the peer acknowledges nothing that would let it change.
    exhausted: bool,
    /// How many packets the peer got with the mark of congestion.
    congested: u64,
    /// The latest sending time of the packets that arrived (RFC 9002 section 7.6.2).
    arrived_until: Option<Time>,
    fates: Vec<Fate>,
    late: Vec<Late>,
    scratch: Vec<u8>,
    acked: u64,
    lost: u64,
    sent_bytes: u64,
    received_packets: u64,
    received_bytes: u64,
    congestion_events: u64,
    persistent_congestions: u64,
    probes: u64,
    black_holes: u64,
}

/// The content of a packet.
#[derive(Debug)]
pub(crate) enum Opened<'d> {
    /// A packet of the peer's node.
    Payload(&'d [u8]),
    /// Nothing for the node.
    Nothing,
    /// Nothing: it is not a packet that is taken.
    Refused,
    /// The end of the session.
    End(Reason),
}

impl Link {
    pub(crate) fn new(
        now: Time,
        config: &Config,
        party: Party,
        (local, remote): (u32, u32),
        (seals, opens): (&[u8; 32], &[u8; 32]),
        sample: Option<Duration>,
    ) -> Link {
        let mut rtt = Rtt::new();
        if let Some(sample) = sample {
            rtt.sample(sample, Duration::ZERO);
        }
        let mtu = Mtu::new(config.max_datagram);
        Link {
            party,
            local,
            remote,
            suite: config.suite,
            sealer: Sealer::new(config.suite, seals, config.key_limit),
            opener: Opener::new(config.suite, opens),
            sent: Sent::default(),
            received: Received::new(),
            rtt,
            congestion: Congestion::new(mtu.current()),
            pacer: Pacer::new(now),
            mtu,
            blocked: false,
            pings: 0,
            last_heard: now,
            heard: false,
            keep_alive: config.keep_alive,
            idle_timeout: config.idle_timeout,
            forged: 0,
            exhausted: false,
            congested: 0,
            arrived_until: None,
            fates: Vec::new(),
            late: Vec::new(),
            scratch: Vec::new(),
            acked: 0,
            lost: 0,
            sent_bytes: 0,
            received_packets: 0,
            received_bytes: 0,
            congestion_events: 0,
            persistent_congestions: 0,
            probes: 0,
            black_holes: 0,
        }
    }

    pub(crate) fn max_payload(&self) -> usize {
        self.mtu.current() - self.suite.overhead()
    }

    /// Whether the peer has shown that it has the keys.
    pub(crate) fn has_heard(&self) -> bool {
        self.heard
    }

    /// A packet goes that the peer will acknowledge.
    pub(crate) fn ping(&mut self) {
        self.pings = self.pings.max(1);
    }

    fn rate(&self) -> f64 {
        self.congestion.rate(self.rtt.smoothed())
    }

    /// How many bytes may be sent now (RFC 9002 sections 7 and 7.7).
    pub(crate) fn budget(&mut self, now: Time) -> u64 {
        if !self.sealer.has_room() {
            return 0;
        }
        let rate = self.rate();
        let room = self.congestion.window().saturating_sub(self.sent.in_flight());
        room.min(self.pacer.ready(now, rate))
    }

    /// So much room wakes a sender that was blocked.
    fn wake_at(&self) -> u64 {
        WAKE.min(self.congestion.window() / 4).max(self.mtu.current() as u64)
    }

    /// Tells a blocked sender if it may go on.
    pub(crate) fn wake(&mut self, now: Time, events: &mut VecDeque<Event>) {
        if self.blocked {
            let bytes = self.budget(now);
            if bytes >= self.wake_at() {
                self.blocked = false;
                events.push_back(Event::Writable { peer: self.party.host, bytes });
            }
        }
    }

    /// Writes a packet into a batch: `fill` writes its payload of `length` bytes. The caller has seen that the batch takes it.
    fn write(
        &mut self,
        now: Time,
        batch: &mut Batch<'_>,
        (kind, flags, purpose): (Kind, u8, Purpose),
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> bool {
        let number = self.sent.next_number();
        if !self.sealer.prepare(number, self.sent.largest_acked()) {
            self.exhausted = true;
            return false;
        }
        let size = length + self.suite.overhead();
        let Some(packet) = batch.place(self.party.address, size) else { return false };
        fill(&mut packet[HEADER..HEADER + length]);
        self.sealer.seal(Header { kind, flags, session: self.remote, number }, packet);
        self.sent.on_sent(now, size, purpose);
        self.sent_bytes += size as u64;
        if purpose != Purpose::Unasked {
            self.pacer.on_sent(size);
            self.congestion.on_sent(self.sent.in_flight());
        }
        true
    }

    /// Takes a packet of the node.
    pub(crate) fn send(
        &mut self,
        now: Time,
        id: u64,
        payload: &[&[u8]],
        batch: &mut Batch<'_>,
    ) -> Result<(), SendError> {
        let length = payload.iter().map(|part| part.len()).sum::<usize>();
        let max = self.max_payload();
        if length > max {
            return Err(SendError::TooLarge { max });
        }
        let size = length + self.suite.overhead();
        if self.budget(now) < size as u64 {
            self.blocked = true;
            return Err(SendError::Blocked);
        }
        if !batch.takes(self.party.address, size) {
            return Err(SendError::OtherBatch);
        }
        // An acknowledgement that is owed goes along where there is room.
        let mut behind = std::mem::take(&mut self.scratch);
        behind.clear();
        let along = length + MAX_BYTES + 2;
        if self.received.is_owed()
            && along <= max
            && batch.takes(self.party.address, along + self.suite.overhead())
            && let Some(ack) = self.received.acknowledge(now)
        {
            ack.write(&mut behind);
            let bytes = behind.len() as u16;
            behind.extend_from_slice(&bytes.to_le_bytes());
        }
        let flags = if behind.is_empty() { 0 } else { FLAG_ACK_BEHIND };
        let what = (Kind::Data, flags, Purpose::Data(id));
        let written = self.write(now, batch, what, length + behind.len(), |mut out| {
            for part in payload.iter().copied().chain([&behind[..]]) {
                let (place, rest) = out.split_at_mut(part.len());
                place.copy_from_slice(part);
                out = rest;
            }
        });
        self.scratch = behind;
        if !written {
            self.blocked = true;
            return Err(SendError::Blocked);
        }
        Ok(())
    }

    /// Writes what the link itself has to say: acknowledgements, pings, probes of the path.
    pub(crate) fn control(&mut self, now: Time, batch: &mut Batch<'_>) {
        let overhead = self.suite.overhead();
        let address = self.party.address;
        if self.received.is_due(now) && batch.takes(address, MIN_ACK + overhead) {
            self.write_ack(now, batch);
        }
        while self.pings > 0 && batch.takes(address, overhead) {
            if !self.write(now, batch, (Kind::Ping, 0, Purpose::Ping), 0, |_| {}) {
                break;
            }
            self.pings -= 1;
        }
        // A probe is alone in its batch. It does not wait for room in the window, which a sender in a hurry never leaves: there
        // is one at a time, so at most one per round trip.
        if self.heard
            && batch.is_empty()
            && let Some(size) = self.mtu.probe(now)
        {
            let what = (Kind::Ping, 0, Purpose::MtuProbe);
            if !self.write(now, batch, what, size - overhead, |zeros| zeros.fill(0)) {
                self.mtu.on_probe_unsent();
            } else if self.mtu.is_doubtful() {
                self.ping();
            }
            batch.close();
        }
    }

    fn write_ack(&mut self, now: Time, batch: &mut Batch<'_>) {
        let Some(ack) = self.received.acknowledge(now) else { return };
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        ack.write(&mut bytes);
        let what = (Kind::Ack, 0, Purpose::Unasked);
        if !self.write(now, batch, what, bytes.len(), |out| out.copy_from_slice(&bytes)) {
            self.received.owe(now);
        }
        self.scratch = bytes;
    }

    /// The packet that ends the session.
    pub(crate) fn close(&mut self) -> Vec<u8> {
        let number = self.sent.next_number();
        let mut packet = vec![0; self.suite.overhead()];
        self.sealer.seal(Header { kind: Kind::Close, flags: 0, session: self.remote, number }, &mut packet);
        packet
    }

    /// Opens a packet of this session. Whoever has the keys is the peer, wherever it is: what is sent goes from now on to where the
    /// newest of its packets came from.
    pub(crate) fn open<'d>(
        &mut self,
        now: Time,
        (from, congested): (SocketAddr, bool),
        header: &Header,
        datagram: &'d mut [u8],
        (counters, events): (&mut Counters, &mut VecDeque<Event>),
    ) -> Opened<'d> {
        match self.received.freshness(header.number) {
            Freshness::New => {}
            Freshness::Seen => {
                counters.replayed += 1;
                return Opened::Refused;
            }
            Freshness::TooOld => {
                counters.too_old += 1;
                return Opened::Refused;
            }
        }
        let size = datagram.len();
        let Some(payload) = self.opener.open(header, datagram) else {
            counters.forged += 1;
            self.forged += 1;
            return if self.forged > FORGERY_LIMIT { Opened::End(Reason::Broken) } else { Opened::Refused };
        };
        let payload = &*payload;
        if from != self.party.address && self.received.is_newest(header.number) {
            self.party.address = from;
            counters.moved += 1;
        }
        self.received.take(now, header.number, header.kind.asks_for_ack(), congested);
        (self.last_heard, self.heard) = (now, true);
        self.received_packets += 1;
        self.received_bytes += size as u64;
        match header.kind {
            Kind::Ping => Opened::Nothing,
            Kind::Close => Opened::End(Reason::Closed),
            Kind::Ack => match Ack::read(payload) {
                Some(ack) => self.on_ack(now, &ack, events).map_or_else(Opened::End, |()| Opened::Nothing),
                None => Opened::End(Reason::Broken),
            },
            Kind::Data if header.flags & FLAG_ACK_BEHIND == 0 => Opened::Payload(payload),
            Kind::Data => {
                let parts = payload.split_last_chunk::<2>().and_then(|(rest, length)| {
                    let at = rest.len().checked_sub(usize::from(u16::from_le_bytes(*length)))?;
                    let (payload, ack) = rest.split_at(at);
                    Some((payload, Ack::read(ack)?))
                });
                let Some((payload, ack)) = parts else { return Opened::End(Reason::Broken) };
                self.on_ack(now, &ack, events).map_or_else(Opened::End, |()| Opened::Payload(payload))
            }
        }
    }

    fn on_ack(&mut self, now: Time, ack: &Ack, events: &mut VecDeque<Event>) -> Result<(), Reason> {
        let mut fates = std::mem::take(&mut self.fates);
        let mut late = std::mem::take(&mut self.late);
        let sample =
            self.sent.on_ack(now, ack, &self.rtt, &mut fates, &mut late).map_err(|_| Reason::Broken)?;
        for packet in late.drain(..) {
            self.congestion.on_late(packet.sent);
            self.mtu.on_acked(packet.size);
        }
        self.late = late;
        if let Some(sample) = sample {
            let took = self.rtt.sample(sample, Duration::from_micros(u64::from(ack.delay_us)));
            self.congestion.on_round_trip(took);
        }
        // RFC 9002 section 7.1: a packet with the mark of congestion counts as a lost one.
        if ack.congested > self.congested {
            self.congested = ack.congested;
            if let Some(newest) = fates.last() {
                self.congestion_events += u64::from(self.congestion.on_mark(now, newest.sent));
            }
        }
        self.sent.detect_lost(now, &self.rtt, &mut fates);
        let settled = self.settle(now, &fates, events);
        fates.clear();
        self.fates = fates;
        settled?;
        // Changes the key, if that is what a sender waits for.
        self.sealer.prepare(self.sent.next_number(), self.sent.largest_acked());
        Ok(())
    }

    /// Draws the conclusions from what became of packets. An error is why the session is over.
    fn settle(&mut self, now: Time, fates: &[Fate], events: &mut VecDeque<Event>) -> Result<(), Reason> {
        let peer = self.party.host;
        let mut over = Ok(());
        let payload = self.max_payload();
        for fate in fates.iter().filter(|fate| fate.arrived) {
            self.congestion.on_ack(now, fate.sent, fate.size, &self.rtt);
            match fate.purpose {
                Purpose::MtuProbe => {
                    if self.mtu.on_probe_acked(fate.size) {
                        self.congestion.resize(self.mtu.current());
                    }
                }
                Purpose::Data(id) => {
                    self.mtu.on_acked(fate.size);
                    self.acked += 1;
                    events.push_back(Event::Acked { peer, id });
                }
                Purpose::Ping | Purpose::Unasked => {}
            }
        }
        let mut began = None;
        let alone = !fates.iter().any(|fate| !fate.arrived && fate.purpose != Purpose::MtuProbe);
        for fate in fates.iter().filter(|fate| !fate.arrived) {
            match fate.purpose {
                // RFC 8899 section 3, RFC 9000 section 14.4: the loss of a probe is no sign of congestion.
                Purpose::MtuProbe => {
                    match self.mtu.on_probe_lost(fate.size, alone || self.mtu.is_doubtful()) {
                        Shown::Nothing => {}
                        Shown::BlackHole => {
                            self.black_holes += 1;
                            self.congestion.resize(self.mtu.current());
                        }
                        Shown::Narrow => over = Err(Reason::Narrow { address: self.party.address }),
                    }
                    continue;
                }
                Purpose::Data(id) => {
                    self.lost += 1;
                    events.push_back(Event::Lost { peer, id });
                    self.mtu.on_lost(fate.size);
                }
                Purpose::Ping | Purpose::Unasked => {}
            }
            began = Some(began.map_or(fate.sent, |first: Time| first.min(fate.sent)));
            self.congestion_events += u64::from(self.congestion.on_loss(now, fate.sent, &self.rtt));
        }
        if let Some(began) = began {
            self.look_for_persistence(began, fates);
        }
        for fate in fates.iter().filter(|fate| fate.arrived) {
            self.arrived_until = self.arrived_until.max(Some(fate.sent));
        }
        if self.max_payload() != payload {
            events.push_back(Event::MaxPayload { peer, bytes: self.max_payload() });
        }
        over
    }

    /// RFC 9002 section 7.6: two packets far apart were lost, and all between them.
    fn look_for_persistence(&mut self, mut began: Time, fates: &[Fate]) {
        if !self.rtt.is_sampled() {
            return;
        }
        // Something that was sent later has arrived already.
        if self.arrived_until >= Some(began) {
            return;
        }
        let arrived: Vec<Time> = fates.iter().filter(|fate| fate.arrived).map(|fate| fate.sent).collect();
        let long = self.rtt.persistent();
        for fate in fates.iter().filter(|fate| !fate.arrived && fate.purpose != Purpose::MtuProbe) {
            if arrived.iter().any(|at| (began..=fate.sent).contains(at)) {
                began = fate.sent;
            } else if fate.sent.since(began) >= long {
                self.congestion.on_persistent();
                self.persistent_congestions += 1;
                return;
            }
        }
    }

    /// When a packet has to go so that the peer hears of this side.
    fn keep_alive_at(&self) -> Time {
        self.sent.last_asking().unwrap_or(self.last_heard) + self.keep_alive
    }

    /// Does what is due; why the session is over, if it is.
    pub(crate) fn on_timeout(&mut self, now: Time, events: &mut VecDeque<Event>) -> Option<Reason> {
        if now >= self.last_heard + self.idle_timeout {
            return Some(Reason::TimedOut);
        }
        if self.exhausted {
            return Some(Reason::Broken);
        }
        if self.sent.loss_time().is_some_and(|at| at <= now) {
            let mut fates = std::mem::take(&mut self.fates);
            self.sent.detect_lost(now, &self.rtt, &mut fates);
            let settled = self.settle(now, &fates, events);
            fates.clear();
            self.fates = fates;
            if let Err(reason) = settled {
                return Some(reason);
            }
        }
        // RFC 9002 section 6.2.4: a probe; what is lost shows in its acknowledgement.
        if self.pings == 0 && self.sent.probe_time(&self.rtt).is_some_and(|at| at <= now) {
            self.sent.on_probe();
            self.probes += 1;
            self.pings = self.pings.max(1);
        }
        // Also while the probes back off: a lossy network is told from a dead one by the number of tries.
        if self.keep_alive_at() <= now {
            self.ping();
        }
        self.wake(now, events);
        None
    }

    /// When [`on_timeout`](Self::on_timeout) or [`control`](Self::control) has something to do although nothing came.
    pub(crate) fn next_timeout(&self) -> Time {
        if self.pings > 0 || self.exhausted {
            return Time::ZERO;
        }
        let mut next = self.last_heard + self.idle_timeout;
        let mut earlier = |at: Option<Time>| next = at.map_or(next, |at| at.min(next));
        earlier(self.sent.loss_time());
        earlier(self.sent.probe_time(&self.rtt));
        earlier(self.received.due());
        earlier(self.mtu.next_probe());
        earlier(Some(self.keep_alive_at()));
        let room = self.congestion.window().saturating_sub(self.sent.in_flight());
        if self.blocked && room >= self.wake_at() && self.sealer.has_room() {
            earlier(Some(self.pacer.when(self.wake_at() as usize, self.rate())));
        }
        next
    }

    /// Ends the session: what is on the way is lost.
    pub(crate) fn end(mut self, reason: Reason, events: &mut VecDeque<Event>) {
        let peer = self.party.host;
        let mut fates = Vec::new();
        self.sent.abandon(&mut fates);
        for fate in fates {
            if let Purpose::Data(id) = fate.purpose {
                events.push_back(Event::Lost { peer, id });
            }
        }
        events.push_back(Event::Disconnected { peer, reason });
    }

    /// The time there and back, smoothed.
    pub(crate) fn round_trip(&self) -> Duration {
        self.rtt.smoothed()
    }

    pub(crate) fn status(&self) -> LinkStatus {
        LinkStatus {
            address: self.party.address,
            round_trip: self.round_trip(),
            min_round_trip: self.rtt.min(),
            window: self.congestion.window(),
            in_flight: self.sent.in_flight(),
            max_datagram: self.mtu.current(),
            suite: self.suite,
            last_heard: self.last_heard,
            sent: self.sent.next_number(),
            sent_bytes: self.sent_bytes,
            received: self.received_packets,
            received_bytes: self.received_bytes,
            acked: self.acked,
            lost: self.lost,
            congestion_events: self.congestion_events,
            persistent_congestions: self.persistent_congestions,
            probes: self.probes,
            black_holes: self.black_holes,
        }
    }
}
