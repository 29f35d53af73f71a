//! The node: events in, actions out.
mod arrivals;
mod clocks;
mod deletions;
mod directory;
mod event;
mod forced;
mod giving;
mod handover;
mod held;
mod left_questions;
mod liveness;
mod load;
mod members;
mod named_groups;
mod names;
mod outbound;
mod outbox;
mod overtaking;
mod ownerless;
mod peer;
mod peers;
mod place;
mod received;
mod subscribers;
mod subscription;
mod table;
mod taking;
mod trains;
mod waiting_cut;

use crate::memory::{Memory, PinId};
use crate::mutant::Mutant;
use crate::types::{GroupId, HostId, MIN_PAYLOAD, NameError, PeerFailed};
use crate::wire::{Frame, Handover, Hello, Key, Owner, Register};
use arrivals::Inbound;
use clocks::Clocks;
use deletions::Deletions;
use directory::Directory;
pub use event::{Action, Config, Counters, Event, Placing};
use handover::Handovers;
use names::Names;
use outbound::Outbound;
use peer::{Filling, Peer, Sent};
pub use peer::{Packet, Piece};
use peers::Peers;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most bytes of a packet.
const MAX_PAYLOAD: usize = 65_000;
/// So long until it is tried again what the memory could not do yet, and of which it does not say when it can.
const AGAIN_NS: u64 = 1_000_000;

/// One host's part of the protocol.
#[derive(Debug)]
pub struct Node {
    config: Config,
    peers: Peers,
    outbound: BTreeMap<GroupId, Outbound>,
    inbound: BTreeMap<GroupId, Inbound>,
    /// Which group a cut is of, by its sender.
    under_way: BTreeMap<(HostId, u64), GroupId>,
    /// Groups of which cuts are kept that may not begin yet.
    holding: BTreeSet<GroupId>,
    /// How often each pinned state is used.
    pins: BTreeMap<PinId, u32>,
    last_cut: u64,
    last_unsent: u64,
    last_state: u64,
    last_question: u32,
    /// Groups of which trains may depart.
    stirred: BTreeSet<GroupId>,
    /// When to look at a group again.
    alarms: BTreeSet<(u64, GroupId)>,
    clocks: Clocks,
    handovers: Handovers,
    names: Names,
    deletions: Deletions,
    directory: Option<Directory>,
    /// Registers of the first host to itself.
    to_self: VecDeque<(u64, Register)>,
    last_to_self: u64,
    ready: bool,
    /// No worker of this host is left.
    deserted: bool,
    ended: Option<PeerFailed>,
    counters: Counters,
}

/// The context in which a node handles an event.
pub(crate) struct Cx<'a> {
    now: u64,
    memory: &'a mut dyn Memory,
    out: &'a mut Vec<Action>,
}

impl Node {
    /// A node at time `now_ns`. It sends nothing before [`Event::Ready`].
    ///
    /// # Panics
    /// If `max_payload` is out of range.
    #[must_use]
    pub fn new(config: Config, now_ns: u64) -> Node {
        assert!(
            (MIN_PAYLOAD..=MAX_PAYLOAD).contains(&config.max_payload),
            "packets of {} bytes",
            config.max_payload
        );
        let others = (0..config.hosts).map(HostId).filter(|host| *host != config.host);
        let new_peer = |host| (host, Peer { heard_ns: now_ns, spoke_ns: now_ns, ..Peer::default() });
        Node {
            config,
            peers: Peers::new(others.map(new_peer).collect()),
            outbound: BTreeMap::new(),
            inbound: BTreeMap::new(),
            under_way: BTreeMap::new(),
            holding: BTreeSet::new(),
            pins: BTreeMap::new(),
            last_cut: 0,
            last_unsent: 0,
            last_state: 0,
            last_question: 0,
            stirred: BTreeSet::new(),
            alarms: BTreeSet::new(),
            clocks: Clocks::default(),
            handovers: Handovers::default(),
            names: Names::default(),
            deletions: Deletions::default(),
            directory: (config.host == HostId::FIRST).then(Directory::default),
            to_self: VecDeque::new(),
            last_to_self: 0,
            ready: false,
            deserted: false,
            ended: None,
            counters: Counters::default(),
        }
    }

    /// Counts of events.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// When the node wants [`Event::Timeout`].
    #[must_use]
    pub fn next_timeout(&self) -> Option<u64> {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        alarm.into_iter().chain(self.peers.next_due()).min()
    }

    #[cfg(feature = "mutants")]
    fn mutant(&self, mutant: Mutant) -> bool {
        self.config.mutant == Some(mutant)
    }

    #[cfg(not(feature = "mutants"))]
    fn mutant(&self, _: Mutant) -> bool {
        false
    }

    /// Whether all other hosts have been told all that there is, and have said so, or have left.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.handovers.are_done()
            && self.peers.hosts().all(|host| {
                let peer = &self.peers[&host];
                let told = peer.sent.is_empty() && peer.ready.is_empty() && !peer.outbox.has_due();
                let told = told && !self.clocks.owes(host);
                peer.left || (peer.connected && peer.knows_us && told && !self.has_more(host))
            })
    }

    /// Whether all other hosts have said that they heard all that they were told, those that have left, too.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.peers
            .hosts()
            .all(|host| self.peers[&host].sent.is_empty() && !self.peers[&host].outbox.has_due())
    }

    /// How many values of registers and namings of groups are remembered for other hosts: in proportion to the areas and subscriptions
    /// that there are, not to those that there were. For tests and figures.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.peers.hosts().map(|host| self.peers[&host].remembered()).sum()
    }

    /// Whether all other hosts' parts of the program have ended.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.peers.hosts().all(|host| self.peers[&host].left)
    }

    /// Handles what happened at `now_ns`, which never goes back. Actions are appended to `actions`.
    pub fn handle(
        &mut self,
        now_ns: u64,
        event: Event<'_>,
        memory: &mut dyn Memory,
        actions: &mut Vec<Action>,
    ) {
        let cx = &mut Cx { now: now_ns, memory, out: actions };
        self.on_event(cx, event);
        if self.ready {
            self.peers.touch_due(cx.now);
            self.watch(cx);
            self.settle(cx);
            for host in self.peers.touched() {
                self.pump(cx, host);
            }
        }
        self.rearm(now_ns);
    }

    fn on_event(&mut self, cx: &mut Cx<'_>, event: Event<'_>) {
        match event {
            Event::Connected { peer, boot } => self.connected(cx, peer, boot),
            Event::Disconnected { peer } => self.disconnected(cx, peer),
            Event::Writable { peer, bytes } => {
                if let Some(peer) = self.peers.get_mut(&peer) {
                    peer.room = bytes;
                }
            }
            Event::Payload { peer, bytes } => {
                if let Some(peer) = self.peers.get_mut(&peer) {
                    peer.max_payload = Some(bytes.clamp(MIN_PAYLOAD, MAX_PAYLOAD));
                }
            }
            Event::Acked { peer, packet } => self.acked(cx, peer, packet),
            Event::Lost { peer, packet } => {
                if let Some(sent) = self.peers.get_mut(&peer).and_then(|peer| peer.sent.remove(&packet)) {
                    self.lost(peer, sent);
                }
            }
            Event::Received { peer, packet } => self.received(cx, peer, packet),
            Event::Created { area, description, accepted, interval_us } => {
                self.created(cx, area, description, accepted);
                self.set_interval(area, interval_us);
            }
            Event::Local { area, description, accepted } => {
                let why = NameError::Local { by: self.config.host };
                self.keep(area, description, accepted, why);
            }
            Event::TakenFor { area, element } => self.taken_for(area, element),
            Event::Deleted { area } => self.deleted(cx, area),
            Event::Published { group, state } => self.published(group, state),
            Event::Visible { group, versions } => self.visible(cx, group, &versions),
            Event::Kept { group, members, arrived, interval_us } => {
                self.kept(cx, group, members, arrived, interval_us);
            }
            Event::Owner { group, host, epoch, given, leaving } => {
                self.known_owner(group, Owner { host, epoch }, given, leaving);
            }
            Event::Given { group, to, rank, epoch } => self.given(group, to, Handover { epoch, rank }),
            Event::Ownerless { area, is } => self.ownerless(area, is),
            Event::Workers { first, failed, left } => {
                for host in self.peers.hosts() {
                    self.tell(host, Register::Workers { first, failed, left });
                }
            }
            Event::Card { peer, card } => {
                self.tell(peer, Register::Card(card));
            }
            Event::Places { peer, can } => self.set_places(cx, peer, can),
            Event::Wrote { peer, id } => self.wrote(cx, peer, id),
            Event::Placed { peer, cut } => self.on_placed(cx, peer, cut),
            Event::Ready => {
                self.ready = true;
                self.restate_names();
            }
            // Workers leave because the job has ended here. Others, for whom it has not, would go on without them.
            Event::Clocks { .. } | Event::Deserted | Event::Left if self.ended.is_some() => {}
            Event::Deserted => {
                self.deserted = true;
                // Clocks may have waited for what is sent to nobody any more.
                self.clocks.recount_all();
                for host in self.peers.hosts() {
                    self.tell(host, Register::Deserted);
                }
            }
            Event::Clocks { clock, lowest } => self.local_clocks(clock, lowest),
            Event::Attach { ticket, wanted, interval_us } => self.attach(cx, ticket, wanted, interval_us),
            Event::Detach { group } => self.detach(cx, group),
            Event::Force { group, request } => self.force(cx, group, request),
            Event::Forced { group, postponed } => self.forced(cx, group, postponed),
            Event::Left => {
                for host in self.peers.hosts() {
                    self.tell(host, Register::Left);
                }
            }
            Event::Timeout => {}
        }
    }

    /// Does what follows from the event until nothing does.
    fn settle(&mut self, cx: &mut Cx<'_>) {
        let later = self.alarms.split_off(&(cx.now + 1, GroupId(0)));
        let due = std::mem::replace(&mut self.alarms, later);
        self.stirred.extend(due.into_iter().map(|(_, group)| group));
        loop {
            while let Some((serial, register)) = self.to_self.pop_front() {
                self.on_register(cx, self.config.host, serial, register);
            }
            self.begin_held(cx);
            self.advance_clocks(cx);
            while let Some(group) = self.stirred.pop_first() {
                self.answer_asked(group);
                self.depart(cx, group);
                self.part(cx, group);
                self.take(cx, group);
            }
            if self.to_self.is_empty() {
                return;
            }
        }
    }

    /// Gives a register for `host` a value; its serial.
    fn tell(&mut self, host: HostId, register: Register) -> u64 {
        if host == self.config.host {
            self.last_to_self += 1;
            self.to_self.push_back((self.last_to_self, register));
            return self.last_to_self;
        }
        self.peers.get_mut(&host).map_or(0, |peer| peer.outbox.put(register))
    }

    fn connected(&mut self, cx: &mut Cx<'_>, host: HostId, boot: u64) {
        if self.peers.get(&host).is_some_and(|peer| peer.connected) {
            self.disconnected(cx, host);
        }
        let Some(peer) = self.peers.get_mut(&host) else { return };
        peer.connected = true;
        peer.room = 0;
        peer.max_payload = None;
        peer.heard_ns = cx.now;
        let is_new = peer.boot != Some(boot);
        peer.boot = Some(boot);
        if is_new {
            peer.greeted = false;
            peer.inbox = outbox::Inbox::default();
            peer.named = named_groups::HeardNamings::default();
            peer.names = None;
            peer.knows_us = false;
            peer.outbox.restate();
            self.forget_subscriber(cx, host);
            self.handovers.forget_early(host, None);
            self.forget_said(host);
            self.forget_cuts(cx, host);
            self.clocks.forget(host);
            if let Some(directory) = &mut self.directory {
                directory.forget(host);
            }
            if host == HostId::FIRST && self.ready {
                self.restate_names();
            }
            self.settle_deletions();
        }
        let groups: Vec<GroupId> = self.subscribed_by(host).map(|(group, _)| group).collect();
        self.stirred.extend(groups);
    }

    fn disconnected(&mut self, cx: &mut Cx<'_>, host: HostId) {
        let Some(peer) = self.peers.get_mut(&host) else { return };
        peer.connected = false;
        peer.knows_us = false;
        for (_, sent) in std::mem::take(&mut peer.sent) {
            self.lost(host, sent);
        }
        self.set_places(cx, host, false);
        self.abandon_rides(cx, host);
    }

    fn acked(&mut self, cx: &mut Cx<'_>, host: HostId, packet: u64) {
        let Some(peer) = self.peers.get_mut(&host) else { return };
        let Some(sent) = peer.sent.remove(&packet) else { return };
        peer.knows_us |= sent.hello;
        let (mut subscribed, mut names) = (Vec::new(), Vec::new());
        for (key, serial) in sent.registers {
            let is_over = peer.outbox.acked(key, serial);
            match key {
                Key::Subscription(group) if is_over => peer.stated.remove(group),
                Key::Subscription(group) => subscribed.extend(peer.outbox.is_heard(key).then_some(group)),
                Key::Name(area) => names.push((area, peer.outbox.is_known(key))),
                _ => {}
            }
        }
        for group in subscribed {
            self.go_over(cx, host, group);
        }
        for (area, is_known) in names {
            if is_known {
                self.name_is_known(area);
            }
            self.name_is_heard(area);
        }
        for (group, cut) in sent.cuts {
            self.on_begun(host, group, cut);
        }
        for announced in sent.announced {
            self.on_known(cx, host, announced);
        }
    }

    fn lost(&mut self, host: HostId, sent: Sent) {
        let forget = self.mutant(Mutant::ForgetRegisters);
        let Some(peer) = self.peers.get_mut(&host) else { return };
        for &(key, serial) in sent.registers.iter().filter(|_| !forget) {
            peer.outbox.lost(key, serial);
        }
        self.on_lost(host, sent);
    }

    /// Whether there may be something to send to a peer, for which [`Event::Writable`] makes room: who has many peers, or looks
    /// often, saves the event if there is not.
    #[must_use]
    pub fn may_have_for(&self, now_ns: u64, host: HostId) -> bool {
        let Some(peer) = self.peers.get(&host).filter(|peer| peer.connected) else { return false };
        let quiet = now_ns.saturating_sub(peer.spoke_ns) >= self.config.alive_ns;
        let is_known = peer.knows_us || peer.sent.values().any(|sent| sent.hello);
        let says = peer.refused.is_some() || peer.may_have_to_speak(now_ns);
        quiet || !is_known || says || (!peer.ready.is_empty() && self.ended.is_none())
    }

    /// Sends what there is for a peer, as far as the link has room.
    fn pump(&mut self, cx: &mut Cx<'_>, host: HostId) {
        loop {
            let Some(peer) = self.peers.get_mut(&host).filter(|peer| peer.connected && peer.room > 0) else {
                return;
            };
            let quiet = cx.now.saturating_sub(peer.spoke_ns) >= self.config.alive_ns;
            let has_ready = !peer.ready.is_empty() && self.ended.is_none();
            if !quiet
                && !has_ready
                && !peer.has_to_speak(cx.now)
                && peer.refused.is_none()
                && (peer.knows_us || peer.sent.values().any(|sent| sent.hello))
            {
                return;
            }
            let mut packet = Filling::new(peer.max_payload.unwrap_or(self.config.max_payload));
            if let Some(error) = peer.refused {
                if !quiet && peer.told_refused {
                    return;
                }
                peer.told_refused = true;
                packet.add(&Frame::Refused(error));
            } else {
                self.fill(cx.now, host, quiet, &mut packet);
            }
            let peer = self.peers.get_mut(&host).expect("just seen");
            if packet.len() == 0 {
                if !quiet {
                    return;
                }
                packet.add(&Frame::Alive);
            }
            peer.last_packet += 1;
            peer.room = peer.room.saturating_sub(packet.len());
            peer.spoke_ns = cx.now;
            let (packet, sent) = packet.finish(host, peer.last_packet);
            peer.sent.insert(packet.id, sent);
            cx.out.push(Action::Send(packet));
        }
    }

    fn fill(&mut self, now: u64, host: HostId, quiet: bool, packet: &mut Filling) {
        let is_hasty = self.mutant(Mutant::HastySettle);
        let peer = self.peers.get_mut(&host).expect("it is sent to");
        if !peer.knows_us {
            let Config { job, segment, boot, host, .. } = self.config;
            packet.add(&Frame::Hello(Hello { job, segment, boot, host }));
            packet.sent.hello = true;
        }
        if let Some(settled) = peer.outbox.settled(quiet) {
            packet.add(&Frame::Settled(if is_hasty { peer.outbox.last_serial() } else { settled }));
        }
        while let Some((serial, register)) = peer.outbox.next() {
            let mut register = register.clone();
            if let Register::Subscription(group, said) = &mut register {
                said.number = peer.stated.number(*group);
            }
            if !packet.add(&Frame::Register { serial, register }) {
                break;
            }
            packet.sent.registers.extend(peer.outbox.sent());
        }
        if self.ended.is_some() {
            return;
        }
        for _ in 0..self.peers[&host].ready.len() {
            let Some(group) = self.peers.get_mut(&host).and_then(Peer::next_ready) else { return };
            self.load(now, host, group, packet);
            if packet.left() < crate::wire::data_cost(1) + crate::LINE as usize {
                return;
            }
        }
    }
}
