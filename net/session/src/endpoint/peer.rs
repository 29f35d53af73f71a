//! A host of the job, as this one knows it.
use crate::config::HostId;
use crate::event::{Event, Reason};
use crate::handshake::initiator::{Initiator, Insisting};
use crate::link::Link;
use crate::time::Time;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How often a Finish is sent before the handshake begins anew.
pub(crate) const MAX_FINISHES: u32 = 6;

/// A session whose peer has not shown yet that it has the keys too.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) token: [u8; 8],
    pub(crate) link: Link,
    pub(crate) finish: Insisting,
}

/// A peer: its address, its sessions and the handshakes under way.
#[derive(Debug, Default)]
pub(crate) struct Peer {
    /// Where it is called; none if only it calls.
    pub(crate) address: Option<SocketAddr>,
    /// The static key that it must show, if one was configured.
    pub(crate) expected: Option<[u8; 32]>,
    /// The highest boot epoch that was seen.
    pub(crate) boot: Option<u64>,
    /// When the next attempt begins, if none is under way.
    pub(crate) attempt_at: Time,
    pub(crate) attempt: Option<Initiator>,
    pub(crate) pending: Option<Pending>,
    pub(crate) link: Option<Link>,
}

impl Peer {
    /// The session that this side knows by `local`.
    pub(crate) fn session(&mut self, local: u32) -> Option<&mut Link> {
        let pending = self.pending.as_mut().map(|pending| &mut pending.link);
        pending.into_iter().chain(self.link.as_mut()).find(|link| link.local == local)
    }

    /// Makes `link` the session with this peer; the one before ends. Gives the number of the one before.
    pub(crate) fn establish(
        &mut self,
        now: Time,
        mut link: Link,
        events: &mut VecDeque<Event>,
    ) -> Option<u32> {
        let party = link.party;
        let reason = if self.boot.is_some_and(|known| known < party.boot) {
            Reason::Restarted
        } else {
            Reason::Replaced
        };
        self.boot = self.boot.max(Some(party.boot));
        let before = self.link.take().map(|before| {
            let local = before.local;
            before.end(reason, events);
            local
        });
        self.attempt = None;
        let peer = party.host;
        events.push_back(Event::Connected { peer, boot: party.boot, identity: party.identity });
        events.push_back(Event::MaxPayload { peer, bytes: link.max_payload() });
        events.push_back(Event::Writable { peer, bytes: link.budget(now) });
        self.link = Some(link);
        before
    }

    /// Whether something is under way or established.
    pub(crate) fn is_busy(&self) -> bool {
        self.attempt.is_some() || self.pending.is_some() || self.link.is_some()
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let attempt = self.attempt.as_ref().map(|attempt| attempt.insisting.next());
        let pending = self.pending.as_ref().map(|pending| pending.finish.next());
        let link = self.link.as_ref().map(Link::next_timeout);
        let idle = (self.address.is_some() && !self.is_busy()).then_some(self.attempt_at);
        [attempt, pending, link, idle].into_iter().flatten().min()
    }
}

/// Tells that a peer refused, or was refused.
pub(crate) fn refused(peer: HostId, address: SocketAddr, why: crate::Refusal) -> Event {
    Event::Disconnected { peer, reason: Reason::Refused { address, why } }
}
