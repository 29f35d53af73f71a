//! Packets from other hosts: their senders are checked, and each frame is passed to the part of the protocol that it is for.
use super::clocks::Claim;
use super::{Action, Cx, Node};
use crate::types::{Cause, GroupId, HelloError, HostId, NameError, PeerFailed};
use crate::wire::{Frame, FrameError, Hello, Register, decode};

impl Node {
    /// A packet of a peer.
    pub(super) fn received(&mut self, cx: &mut Cx<'_>, host: HostId, packet: &[u8]) {
        let Some(peer) = self.peers.get_mut(&host).filter(|peer| peer.connected) else { return };
        let frames = match decode(packet) {
            Ok(frames) => frames,
            Err(FrameError::Version { theirs }) => {
                let error = HelloError::Version { theirs, ours: crate::wire::VERSION };
                return self.refuse(cx, host, error);
            }
            Err(_) => {
                self.counters.malformed += 1;
                return;
            }
        };
        peer.heard_ns = cx.now;
        for frame in frames {
            let greeted = self.peers[&host].greeted;
            match frame {
                Frame::Hello(hello) if !greeted => self.greet(cx, host, hello),
                Frame::Refused(error) => {
                    cx.out.push(Action::PeerRefused { peer: host, error });
                    let failed = PeerFailed {
                        host: self.config.host,
                        cause: Cause::Refused { from: host, why: error },
                    };
                    self.end(cx, failed);
                }
                Frame::Hello(_) | Frame::Alive => {}
                _ if !greeted => {}
                Frame::Register { serial, register } => {
                    let peer = self.peers.get_mut(&host).expect("just seen");
                    if peer.inbox.accept(register.key(), serial) {
                        self.on_register(cx, host, serial, register);
                    }
                }
                Frame::Settled(serial) => {
                    self.peers.get_mut(&host).expect("just seen").inbox.settle(serial);
                }
                Frame::Cut(cut) => self.on_cut(cx, host, cut),
                Frame::Data(data) => self.on_data(cx, host, &data),
                Frame::Announced(announced) => self.on_announced(cx, host, &announced),
            }
        }
    }

    /// A peer says who it is.
    fn greet(&mut self, cx: &mut Cx<'_>, host: HostId, hello: Hello) {
        let peer = self.peers.get_mut(&host).expect("it is connected");
        let refused = match () {
            () if hello.job != self.config.job => Some(HelloError::Job),
            () if hello.host != host => Some(HelloError::Host { says: hello.host }),
            () if peer.segment.is_some_and(|segment| segment != hello.segment) => Some(HelloError::Segment),
            () => None,
        };
        if let Some(error) = refused {
            return self.refuse(cx, host, error);
        }
        // The link says which boot this is; the hello names it for what looks at packets.
        peer.segment = Some(hello.segment);
        peer.greeted = true;
        let groups: Vec<GroupId> = self.subscribed_by(host).map(|(group, _)| group).collect();
        self.stirred.extend(groups);
    }

    fn refuse(&mut self, cx: &mut Cx<'_>, host: HostId, error: HelloError) {
        let peer = self.peers.get_mut(&host).expect("it is connected");
        let is_new = peer.refused != Some(error);
        peer.refused = Some(error);
        if is_new {
            cx.out.push(Action::PeerRefused { peer: host, error });
        }
        if self.config.host == HostId::FIRST {
            self.decide(cx, PeerFailed { host, cause: Cause::Refused { from: HostId::FIRST, why: error } });
        }
    }

    /// A new value of a register, of another host or this one.
    pub(super) fn on_register(&mut self, cx: &mut Cx<'_>, from: HostId, serial: u64, register: Register) {
        if self.keep_said(cx, from, serial, &register) {
            return;
        }
        match register {
            Register::Clock { clock, lowest, subscriptions, named, covers, ahead } => {
                self.note_names(from, named);
                let claim = Claim { clock, subscriptions, covers };
                let ahead =
                    ahead.map(|covers| Claim { clock: clock.saturating_add(1), subscriptions, covers });
                self.on_clock(cx, from, lowest, claim, ahead);
            }
            Register::Subscription(group, said) => self.on_subscription(cx, from, group, said),
            Register::Member(area, description) => {
                self.on_member(cx, from, area, description);
                self.begin_ownerless(cx, from, serial, area);
            }
            Register::Name(area, name) => self.on_name(from, area, name),
            Register::Restated(count) => self.on_restated(from, count),
            Register::Named(area, result) if from == HostId::FIRST => self.on_named(cx, area, result),
            Register::Lookup(index, wanted) => self.on_lookup(from, index, serial, wanted),
            Register::Found(index, serial, result) if from == HostId::FIRST => {
                self.on_found(cx, index, serial, result)
            }
            Register::Conflict(area, by, error)
                if from == HostId::FIRST
                    || by == from && matches!(error, NameError::Type { .. } | NameError::Length { .. }) =>
            {
                self.counters.conflicts += 1;
                cx.out.push(Action::Conflict { area, by, error });
            }
            Register::Forced(group, forced) if self.moves_to(group, from) => {
                self.on_forced(cx, from, group, forced);
            }
            Register::Forced(group, _) | Register::Unsent(group, ..) if self.is_foreign(group, from) => {}
            Register::Forced(group, forced) => self.on_forced(cx, from, group, forced),
            Register::Unsent(group, state, _) => self.on_unsent(cx, group, state),
            Register::Moving(group, owner) => self.on_moving(cx, from, group, owner),
            Register::Handover(group, handover) => self.on_handover(cx, from, group, handover),
            Register::Taken(group, epoch) => self.on_taken(cx, from, group, epoch),
            Register::Card(card) => cx.out.push(Action::Card { peer: from, card }),
            Register::Grant(group, cut, places) => self.on_grant(cx, from, group, (cut, places)),
            Register::Ownerless(area, is) => self.on_ownerless(cx, from, serial, area, is),
            Register::Deleted(area, false) => self.on_deleted(cx, from, area),
            Register::Deleted(area, true) => self.on_let_go(from, area),
            Register::Workers { first, failed, left } => cx.memory.workers(from, first, failed, left),
            Register::Suspect(host, silent) => self.on_suspect(cx, from, host, silent),
            Register::Verdict(failed) => self.on_verdict(cx, from, failed),
            Register::Deserted => self.on_deserted(cx, from),
            Register::Left => {
                if let Some(peer) = self.peers.get_mut(&from) {
                    peer.left = true;
                }
                self.settle_deletions();
            }
            Register::Named(..) | Register::Found(..) | Register::Conflict(..) => {
                self.counters.violations += 1;
            }
        }
    }
}
