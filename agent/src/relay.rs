//! The agent without a thread, a socket or a clock: datagrams and the time go in, datagrams come out.
use crate::failure::Failure;
use crate::limiter::Limiter;
use crate::memory::SegmentMemory;
use crate::placer::{Lines, News, Standing};
use crate::reach::Reach;
use crate::thrown::Thrown;
use hectare_net::{Action, Cause, Config, Counters, Event, HostId, Node, Packet, Piece};
use hectare_session::{self as session, Batch, Endpoint, LinkStatus, Reason, SendError, Time};
use hectare_wire::TraceStep;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;
use tracing::{error, info, warn};

/// The most bytes for one peer before others have their turn: about what one call of the system takes.
const BURST: u64 = 60_000;

/// How long who has left waits for others to say that they heard so: one of them may have ended at that.
const FAREWELL: Duration = Duration::from_millis(500);

/// An agent's settings for its job.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The session's side of it: this host, the start of the agent, the job, the cluster's key.
    pub session: session::Config,
    /// 32 random bytes that were never used before.
    pub seed: [u8; 32],
    /// How the agents of all hosts are reached, in the order of their numbers.
    pub reaches: Vec<Reach>,
    /// Tells this host's memory of the job from any other that it had.
    pub segment: u64,
    /// The time-out: a peer that is silent for this long has failed.
    pub silence: Duration,
}

/// Another host's agent: its address and name.
#[derive(Debug)]
pub struct Peer {
    /// How it is reached.
    pub reach: Reach,
    /// The number of its start, while there is a session with it.
    pub boot: Option<u64>,
    /// Why the last session with it ended, or the last attempt.
    pub reason: Option<Reason>,
    /// Since when there is a session with it, or none.
    pub since: Time,
    /// How many sessions with it there were.
    pub sessions: u64,
    /// Packets that the link did not take yet.
    waiting: VecDeque<(u64, Vec<u8>)>,
}

/// One job's agent on one host.
pub struct Relay {
    /// The number of this start of an agent.
    boot: u64,
    node: Node,
    endpoint: Endpoint,
    memory: SegmentMemory,
    peers: BTreeMap<HostId, Peer>,
    /// The names of the hosts, by their numbers; a host without a name is called by its number.
    names: Vec<String>,
    /// Whose turn it was to send.
    turn: HostId,
    actions: Vec<Action>,
    alive: Duration,
    is_ready: bool,
    /// Others have been told that this host's part of the program has ended.
    has_left: bool,
    is_first: bool,
    /// Since when nobody needs it.
    unneeded: Option<Time>,
    farewell_is_over: bool,
    failure: Option<Failure>,
    /// From where alone datagrams are taken; none for anywhere: sessions prove who sent them.
    only: Option<BTreeSet<SocketAddr>>,
    /// A peer without RDMA ends the job.
    demands_rdma: bool,
    /// Of refusals: anybody may send to the port.
    limiter: Limiter,
    /// Datagrams from elsewhere.
    strange: u64,
    thrown: Thrown,
    /// The transport's counters when somebody last asked.
    transport: Vec<(&'static str, &'static str, u64)>,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("peers", &self.peers)
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}

fn theirs(host: HostId) -> session::HostId {
    session::HostId(host.0)
}

impl Relay {
    /// An agent over `memory` at `now`. It calls all other hosts.
    pub fn new(setup: Setup, memory: SegmentMemory, now: Time) -> Relay {
        let Setup { session, seed, reaches, segment, silence } = setup;
        let own = HostId(session.host.0);
        let nanos = |length: Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let alive = (silence / 10).min(Duration::from_secs(1));
        let boot = session.boot;
        let job = u128::from_le_bytes(session.job);
        let config = Config {
            alive_ns: nanos(alive),
            silence_ns: nanos(silence),
            ..Config::new(job, own, reaches.len() as u16, segment, boot)
        };
        let mut endpoint = Endpoint::new(session, seed);
        let others = (0..).map(HostId).zip(reaches).filter(|(host, _)| *host != own);
        let peers: BTreeMap<_, _> = others
            .map(|(host, reach)| {
                endpoint.connect(now, theirs(host), reach.address());
                let waiting = VecDeque::new();
                (host, Peer { reach, boot: None, reason: None, since: now, sessions: 0, waiting })
            })
            .collect();
        Relay {
            boot,
            node: Node::new(config, now.as_nanos()),
            endpoint,
            memory,
            peers,
            names: Vec::new(),
            turn: own,
            actions: Vec::new(),
            alive,
            is_ready: false,
            has_left: false,
            is_first: own == HostId::FIRST,
            unneeded: None,
            farewell_is_over: false,
            failure: None,
            only: None,
            demands_rdma: false,
            limiter: Limiter::default(),
            strange: 0,
            thrown: Thrown::default(),
            transport: Vec::new(),
        }
    }

    /// Calls the hosts by these names, in the order of their numbers.
    pub fn name_hosts(&mut self, names: Vec<String>) {
        self.names = names;
    }

    fn name(&self, host: HostId) -> String {
        self.names.get(usize::from(host.0)).cloned().unwrap_or_else(|| host.0.to_string())
    }

    /// Takes datagrams from the peers' ports alone, so that no peer comes by another way.
    pub fn refuse_strangers(&mut self) {
        self.only = Some(self.peers.values().filter_map(|peer| peer.reach.behind_port()).collect());
    }

    /// Ends the job if a peer has no RDMA.
    pub fn demand_rdma(&mut self) {
        self.demands_rdma = true;
    }

    fn check_rdma(&mut self) {
        if !self.demands_rdma || self.failure.is_some() {
            return;
        }
        let without = |host: &HostId| Some((*host, self.memory.placer().has_none(*host)?));
        if let Some((host, why)) = self.peers.keys().find_map(without) {
            self.end(host, None, Some(why));
        }
    }

    /// Datagrams that were not taken since they came by another way.
    pub(crate) fn strange(&self) -> u64 {
        self.strange
    }

    /// The number of this start: higher than those of the starts before it.
    pub fn boot(&self) -> u64 {
        self.boot
    }

    /// Takes what the transport counts, for those who ask.
    pub(crate) fn note_transport(&mut self, counters: Vec<(&'static str, &'static str, u64)>) {
        self.transport = counters;
    }

    /// The transport's counters.
    pub(crate) fn transport_counters(&self) -> &[(&'static str, &'static str, u64)] {
        &self.transport
    }

    /// Why the job has ended, if it has. What others have to hear of it is still sent.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// The other hosts' agents, and how the links to them stand.
    pub fn peers(&self) -> impl Iterator<Item = (HostId, &Peer, Option<LinkStatus>)> {
        self.peers.iter().map(|(host, peer)| (*host, peer, self.endpoint.status(theirs(*host))))
    }

    /// The counters of the node and of the sessions.
    pub fn counters(&self) -> (Counters, session::Counters) {
        (self.node.counters(), self.endpoint.counters())
    }

    /// This host's part of the program has ended. Others are told with the next [`Relay::work`], after all that was published, and
    /// it goes on sending what they lack.
    pub fn leave(&mut self) {
        self.memory.leave();
    }

    /// Whether it may end, after it has left: nobody needs it, and all have heard that it has left, or could have. Who has not waits
    /// for it until the time-out, and then takes it for failed.
    pub fn is_done(&self) -> bool {
        self.is_unneeded() && (self.node.is_heard() || self.farewell_is_over)
    }

    /// Whether it has left, and the others have all, or have left, too. The first host stays for the names until the others have
    /// left.
    fn is_unneeded(&self) -> bool {
        self.has_left && (self.node.is_alone() || (!self.is_first && self.node.is_settled()))
    }

    /// The memory.
    pub fn memory(&self) -> &SegmentMemory {
        &self.memory
    }

    /// Takes a datagram.
    pub fn receive(&mut self, now: Time, from: SocketAddr, congested: bool, datagram: &mut [u8]) {
        if self.only.as_ref().is_some_and(|only| !only.contains(&from)) {
            self.strange += 1;
            return;
        }
        let Some(received) = self.endpoint.receive(now, from, congested, datagram) else {
            return self.thrown.look(now, from, self.endpoint.unopened());
        };
        let peer = HostId(received.peer.0);
        self.memory.at(now.as_nanos());
        // The packet may be the first of a session: the node has to know of it before.
        while let Some(event) = self.endpoint.poll_event() {
            self.hear(now, event);
        }
        let way = self.endpoint.round_trip(received.peer).unwrap_or_default() / 2;
        self.memory.took(u64::try_from(way.as_nanos()).unwrap_or(u64::MAX));
        self.tell(now, Event::Received { peer, packet: received.payload });
        if self.memory.is_traced() {
            let node = &self.node;
            self.memory.trace_said(|group| node.subscribers(group).collect());
        }
    }

    /// The steps of an area's versions ([`SegmentMemory::follow`]).
    pub(crate) fn follow(
        &mut self,
        now: Time,
        area: &str,
        after: u64,
    ) -> Option<(HostId, Vec<TraceStep>, u64, bool)> {
        self.memory.at(now.as_nanos());
        self.memory.follow(area, after)
    }

    fn trace_sent(&mut self, packet: &Packet) {
        for piece in &packet.pieces {
            if let Piece::Area { pin, member, len, .. } = piece {
                self.memory.trace_sent(*pin, packet.peer, *member, u64::from(*len));
            }
        }
    }

    /// Does what is due, and looks at what changed in the memory.
    pub fn work(&mut self, now: Time) {
        self.memory.at(now.as_nanos());
        if self.limiter.due().is_some() {
            self.limiter.tell();
        }
        self.endpoint.handle_timeout(now);
        while let Some(event) = self.endpoint.poll_event() {
            self.hear(now, event);
        }
        self.memory.look();
        self.tell_memory(now);
        // Not before the node knows that nobody is in the clocks: it would be done with less than others wait for.
        if self.memory.has_left() && !std::mem::replace(&mut self.has_left, true) {
            self.tell(now, Event::Left);
        }
        self.memory.placer_mut().poll(now);
        self.tell_news(now);
        if !std::mem::replace(&mut self.is_ready, true) {
            self.tell(now, Event::Ready);
            self.memory.agent().ready();
        }
        if self.node.next_timeout().is_some_and(|at| at <= now.as_nanos()) {
            self.tell(now, Event::Timeout);
        }
        self.tell_memory(now);
        self.tell_news(now);
        self.check_rdma();
        match self.is_unneeded() {
            true => {
                let since = *self.unneeded.get_or_insert(now);
                self.farewell_is_over = now.since(since) > FAREWELL;
            }
            false => self.unneeded = None,
        }
    }

    /// How lines are placed at a peer, or why not.
    pub(crate) fn placing(&self, peer: HostId) -> Standing {
        self.memory.placer().standing(peer)
    }

    /// The placer's counters.
    pub(crate) fn placed(&self) -> Vec<(&'static str, &'static str, u64)> {
        self.memory.placer().counters()
    }

    /// Whether nothing comes by the placer before its descriptor or the time-out says so. To be called before each sleep.
    pub(crate) fn may_sleep(&mut self) -> bool {
        self.memory.placer_mut().may_sleep()
    }

    fn tell_news(&mut self, now: Time) {
        while let Some(news) = self.memory.placer_mut().next_news() {
            self.tell(
                now,
                match news {
                    News::Card(peer, card) => Event::Card { peer, card },
                    News::Places(peer, can) => Event::Places { peer, can },
                    News::Wrote(peer, id) => Event::Wrote { peer, id },
                    News::Placed(peer, cut) => Event::Placed { peer, cut },
                },
            );
        }
    }

    fn tell_memory(&mut self, now: Time) {
        while let Some(event) = self.memory.next_event() {
            self.tell(now, event);
        }
    }

    fn tell(&mut self, now: Time, event: Event<'_>) {
        self.node.handle(now.as_nanos(), event, &mut self.memory, &mut self.actions);
        self.act(now);
    }

    fn hear(&mut self, now: Time, event: session::Event) {
        match event {
            session::Event::Connected { peer, boot, .. } => {
                let bytes = self.endpoint.max_payload(peer);
                let peer = HostId(peer.0);
                let Some(known) = self.peers.get_mut(&peer) else { return };
                if let Some(address) = self.endpoint.address(theirs(peer)) {
                    known.reach.connected(address);
                }
                let (address, link, why) = (known.reach.address(), known.reach.link(), known.reach.why());
                let name = self.names.get(usize::from(peer.0));
                info!(%peer, name, %address, boot, %link, why, "connected");
                (known.boot, known.reason, known.since) = (Some(boot), None, now);
                known.sessions += 1;
                known.waiting.clear();
                self.memory.connected(peer);
                // Nothing of its former agent is written here any more.
                self.memory.placer_mut().disconnected(peer);
                self.tell(now, Event::Connected { peer, boot });
                self.memory.placer_mut().connected(peer);
                if let Some(bytes) = bytes {
                    self.tell(now, Event::Payload { peer, bytes });
                }
            }
            session::Event::Disconnected { peer, reason } => {
                let peer = HostId(peer.0);
                let Some(known) = self.peers.get_mut(&peer) else { return };
                // That nobody answers by a path that has become too narrow is no news.
                let is_known =
                    matches!((known.reason, reason), (Some(Reason::Narrow { .. }), Reason::NoAnswer { .. }))
                        || known.reason == Some(reason);
                if !is_known {
                    let name = self.names.get(usize::from(peer.0));
                    warn!(%peer, name, address = %known.reach.address(), %reason, "no session");
                    known.reason = Some(reason);
                }
                // Whichever way the next session begins by, it begins as a new one: the node hears of this one's end first.
                let is_turned = match reason {
                    Reason::NoAnswer { address } => known.reach.unanswered(address),
                    Reason::Refused { .. } => false,
                    _ => known.reach.ended(),
                };
                if is_turned {
                    self.endpoint.connect(now, theirs(peer), known.reach.address());
                }
                if known.boot.take().is_some() {
                    known.since = now;
                    known.waiting.clear();
                    self.memory.placer_mut().disconnected(peer);
                    self.tell(now, Event::Disconnected { peer });
                }
            }
            session::Event::Acked { peer, id } => {
                self.tell(now, Event::Acked { peer: HostId(peer.0), packet: id });
            }
            session::Event::Lost { peer, id } => {
                self.tell(now, Event::Lost { peer: HostId(peer.0), packet: id });
            }
            session::Event::MaxPayload { peer, bytes } => {
                self.tell(now, Event::Payload { peer: HostId(peer.0), bytes });
            }
            session::Event::Refused { from, why } if self.limiter.admits(why.cause()) => {
                warn!(%from, %why, "a caller was refused");
            }
            // Writable: it is sent whenever there is room.
            _ => {}
        }
    }

    /// Does what the node said, but for packets: there are none as long as it has no room for them.
    fn act(&mut self, now: Time) {
        for action in std::mem::take(&mut self.actions) {
            match action {
                Action::Card { peer, card } => self.memory.placer_mut().card(now, peer, &card),
                Action::Place { peer, id, cut, pin, lines, is_last } => {
                    self.memory.place(peer, Lines { id, cut, pin, lines, is_last });
                }
                Action::Send(packet) => {
                    debug_assert!(false, "a packet without room: {packet:?}");
                }
                Action::Accepted { area } => self.memory.accepted(area),
                Action::Refused { area, error } => self.memory.refused(area, error),
                Action::Attached { ticket, result, found } => self.memory.attached(ticket, result, found),
                Action::Conflict { area, by, error } => self.memory.conflicted(area, by, error),
                Action::Deleted { area } => self.memory.deleted(area),
                Action::PeerRefused { peer, error } => {
                    error!(%peer, name = self.name(peer), %error, "a host was refused");
                }
                Action::End(failed) => self.end(failed.host, Some(failed.cause), None),
            }
        }
    }

    /// The job ends because of a host.
    fn end(&mut self, host: HostId, cause: Option<Cause>, no_rdma: Option<String>) {
        let peer = self.peers.get(&host);
        let found_by = match cause {
            Some(Cause::Unreachable { from } | Cause::Refused { from, .. }) => Some(self.name(from)),
            _ => None,
        };
        let failure = Failure {
            host,
            name: self.name(host),
            found_by,
            address: peer.map(|peer| peer.reach.address()),
            cause,
            no_rdma,
            link: peer.and_then(|peer| peer.reason),
            dpdk_alone: peer.is_some_and(|peer| peer.reach.is_dpdk_alone()),
        };
        error!(%failure, "the job ends");
        let (host, cause) = (failure.host_text(), failure.cause_text());
        if let Err(error) = self.memory.agent().end_job(&host, &cause) {
            error!(%error, "the job cannot be told");
        }
        self.failure.get_or_insert(failure);
    }

    /// Writes datagrams to one host into an empty batch: what the sessions have to say, else packets of the node. There may be
    /// more as long as it does not stay empty; but look for datagrams in between.
    pub fn transmit(&mut self, now: Time, batch: &mut Batch<'_>) {
        self.endpoint.transmit(now, batch);
        if !batch.is_empty() {
            return;
        }
        let after = self.peers.range((std::ops::Bound::Excluded(self.turn), std::ops::Bound::Unbounded));
        let order: Vec<HostId> = after.chain(self.peers.range(..=self.turn)).map(|(host, _)| *host).collect();
        for peer in order {
            self.turn = peer;
            self.send(now, peer, batch);
            if !batch.is_empty() {
                return;
            }
        }
    }

    fn send(&mut self, now: Time, host: HostId, batch: &mut Batch<'_>) {
        let Some(peer) = self.peers.get_mut(&host).filter(|peer| peer.boot.is_some()) else { return };
        let mut lost = Vec::new();
        while let Some((id, bytes)) = peer.waiting.pop_front() {
            match self.endpoint.send(now, theirs(host), id, &[&bytes], batch) {
                Ok(()) => {}
                Err(SendError::TooLarge { .. }) => lost.push(id),
                Err(SendError::NotConnected) => {}
                Err(_) => {
                    peer.waiting.push_front((id, bytes));
                    break;
                }
            }
        }
        if peer.waiting.is_empty() && self.node.may_have_for(now.as_nanos(), host) {
            // With a little room at least: a packet that the link does not take has it say when it does.
            let bytes = self.endpoint.writable(now, theirs(host)).clamp(1, BURST) as usize;
            let mut actions = std::mem::take(&mut self.actions);
            let now_ns = now.as_nanos();
            self.node.handle(now_ns, Event::Writable { peer: host, bytes }, &mut self.memory, &mut actions);
            for action in actions {
                match action {
                    Action::Send(packet) => {
                        if let Some(id) = self.pass(now, &packet, batch) {
                            lost.push(id);
                        }
                    }
                    other => self.actions.push(other),
                }
            }
            self.tell(now, Event::Writable { peer: host, bytes: 0 });
        }
        for packet in lost {
            self.tell(now, Event::Lost { peer: host, packet });
        }
    }

    /// Gathers a packet into the batch, or keeps it; its number if the path does not carry it any more.
    fn pass(&mut self, now: Time, packet: &Packet, batch: &mut Batch<'_>) -> Option<u64> {
        if self.memory.is_traced() {
            self.memory.at(now.as_nanos());
            self.trace_sent(packet);
        }
        let peer = self.peers.get_mut(&packet.peer)?;
        let memory = &self.memory;
        let parts: Vec<&[u8]> = packet
            .pieces
            .iter()
            .map(|piece| match piece {
                Piece::Bytes(range) => &packet.bytes[range.clone()],
                Piece::Area { pin, member, offset, len } => {
                    &memory.bytes(*pin, *member)[*offset as usize..*offset as usize + *len as usize]
                }
            })
            .collect();
        let sent = match peer.waiting.is_empty() {
            true => self.endpoint.send(now, theirs(packet.peer), packet.id, &parts, batch),
            false => Err(SendError::OtherBatch),
        };
        match sent {
            Ok(()) | Err(SendError::NotConnected) => None,
            Err(SendError::TooLarge { .. }) => Some(packet.id),
            Err(_) => {
                peer.waiting.push_back((packet.id, parts.concat()));
                None
            }
        }
    }

    /// The time by which [`Relay::work`] and [`Relay::transmit`] are to be called again, if nothing happens before.
    pub fn next_timeout(&self, now: Time) -> Time {
        let link = self.endpoint.next_timeout();
        let node = self.node.next_timeout().map(Time::from_nanos);
        let placer = self.memory.placer().next_timeout();
        link.into_iter().chain(node).chain(placer).fold(now + self.alive / 2, Time::min)
    }
}
