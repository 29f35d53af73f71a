//! Links between hosts: they come and go, and packets take their time on them.
use super::{What, World};
use crate::groups::is_given;
use crate::judge::Promise;
use crate::network::{Fate, IDLE};
use crate::options::MS;
use hectare_net::wire::{self, Frame};
use hectare_net::{Event, GroupId, HostId, Packet, Piece, Version};

impl World {
    /// Links are tried every 20 ms while there is none, and given up when they are silent.
    pub(super) fn connect(&mut self, a: u16, b: u16) {
        let again = self.now + 20 * MS;
        for (at, peer) in [(a, b), (b, a)] {
            let end = self.network.ends.get_mut(&(at, peer)).expect("there is such a link");
            let host = &self.hosts[usize::from(at)];
            let awake = !host.dead && host.paused_until <= self.now;
            if end.session.is_some() && self.now - end.heard.min(self.now) > IDLE && awake {
                end.session = None;
                end.under_way.clear();
                self.end_pair(at, peer);
                self.tell(at, Event::Disconnected { peer: HostId(peer) });
            }
        }
        let both = self.network.ends[&(a, b)].session.is_some()
            && self.network.ends[&(a, b)].session == self.network.ends[&(b, a)].session;
        let awake = |host: u16| {
            let host = &self.hosts[usize::from(host)];
            !host.dead && host.node.is_some() && host.paused_until <= self.now
        };
        if !both && awake(a) && awake(b) && self.network.shakes_hands(&self.options, a, b, self.now) {
            self.last_session += 1;
            let (session, boots) =
                (self.last_session, [self.hosts[usize::from(a)].boot, self.hosts[usize::from(b)].boot]);
            for (at, peer, own, other) in [(a, b, boots[0], boots[1]), (b, a, boots[1], boots[0])] {
                let after = self.network.delay(&self.options);
                self.at(self.now + after, What::Connected { at, peer, session, boot: other, of: own });
            }
        }
        self.at(again, What::Connect(a, b));
    }

    pub(super) fn connected(&mut self, at: u16, peer: u16, session: u64, boot: u64, of: u64) {
        let host = &self.hosts[usize::from(at)];
        if host.node.is_none() || host.boot != of {
            return;
        }
        let end = self.network.ends.get_mut(&(at, peer)).expect("there is such a link");
        if end.session.is_some_and(|other| other >= session) {
            return;
        }
        *end = crate::network::End { session: Some(session), heard: self.now, ..Default::default() };
        self.end_pair(at, peer);
        let peer = HostId(peer);
        self.tell(at, Event::Connected { peer, boot });
        self.tell(at, Event::Writable { peer, bytes: self.options.window });
    }

    pub(super) fn send(&mut self, host: u16, packet: &Packet) {
        let memory = &self.hosts[usize::from(host)].memory;
        let mut bytes = Vec::new();
        for piece in &packet.pieces {
            match piece {
                Piece::Bytes(range) => bytes.extend_from_slice(&packet.bytes[range.clone()]),
                Piece::Area { pin, member, offset, len } => {
                    let start = *offset as usize;
                    bytes.extend_from_slice(&memory.pinned(*pin, *member)[start..start + *len as usize]);
                }
            }
        }
        if bytes.len() > self.options.max_payload {
            self.judge.borrow_mut().broke(Promise::Contract, format!("a packet of {} bytes", bytes.len()));
        }
        let (to, id, now) = (packet.peer.0, packet.id, self.now);
        let end = self.network.ends.get_mut(&(host, to)).expect("there is such a link");
        let Some(session) = end.session else { return };
        end.under_way.insert(id, bytes.len());
        let fate = self.network.send(&self.options, host, to, bytes.len(), now);
        let (arrives, told) = match fate {
            Fate::Acked(arrives, then) => (arrives, Some((then, true))),
            Fate::FalselyLost(arrives, then) => (arrives, Some((then, false))),
            Fate::Lost(then) => {
                self.at(then, What::Told { at: host, peer: to, session, packet: id, acked: false });
                return;
            }
        };
        self.at(arrives, What::Deliver { from: host, to, session, bytes, packet: id, told });
    }

    /// A host sends a cut of a group that another one owns.
    pub(super) fn impostor(&mut self) {
        let hosts = self.options.hosts;
        let from = self.random.below(hosts.into()) as u16;
        let to = (from + 1) % hosts;
        let Some(session) = self.network.ends[&(to, from)].session else { return };
        let remote = &self.hosts[usize::from(to)].memory.remote;
        let foreign = |(group, remote): (&GroupId, &crate::memory::Remote)| {
            (group.home().0 != from && remote.arrival.is_none() && !is_given(*group))
                .then(|| (*group, remote.members.iter().map(|member| member.version).collect::<Vec<_>>()))
        };
        let Some((group, have)) = remote.iter().find_map(foreign).filter(|(_, have)| !have.is_empty()) else {
            return;
        };
        let versions: Vec<Version> = have
            .iter()
            .map(|have| Version { term: 1, counter: have.map_or(0, |have| have.counter) + 1000 })
            .collect();
        for base in 1..60 {
            let cut = u64::MAX / 2 + base;
            let cut = wire::Cut {
                cut,
                group,
                base,
                round: 1 << 40,
                label: 0,
                age_ns: 0,
                total: 0,
                placed: false,
                versions: versions.clone(),
            };
            let mut bytes = Vec::new();
            wire::encode(&Frame::Cut(cut), &mut bytes);
            self.at(self.now, What::Deliver { from, to, session, bytes, packet: 0, told: None });
        }
    }
}
