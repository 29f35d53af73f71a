//! A peer: the link to it, what it was told and what is on its way.
use super::named_groups::{HeardNamings, OwnNamings};
use super::outbox::{Inbox, Outbox};
use crate::memory::PinId;
use crate::types::{GroupId, HelloError, HostId};
use crate::wire::{Frame, Key, encode};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// A part of a packet, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Of [`Packet::bytes`].
    Bytes(Range<usize>),
    /// Of a pinned state.
    Area {
        /// The pin.
        pin: PinId,
        /// The member of the pinned group.
        member: u16,
        /// Where in the area.
        offset: u64,
        /// How many bytes.
        len: u32,
    },
}

/// A packet to be sent. The driver gathers its pieces before it calls the node again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// To whom.
    pub peer: HostId,
    /// Its number, by which it is acknowledged or lost.
    pub id: u64,
    /// Headers.
    pub bytes: Vec<u8>,
    /// Its pieces.
    pub pieces: Vec<Piece>,
}

/// A packet that is being filled.
#[derive(Debug)]
pub(super) struct Filling {
    pub(super) bytes: Vec<u8>,
    pub(super) pieces: Vec<Piece>,
    gathered: usize,
    piece_start: usize,
    limit: usize,
    pub(super) sent: Sent,
}

impl Filling {
    pub(super) fn new(limit: usize) -> Filling {
        Filling {
            bytes: Vec::new(),
            pieces: Vec::new(),
            gathered: 0,
            piece_start: 0,
            limit,
            sent: Sent::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() + self.gathered
    }

    pub(super) fn left(&self) -> usize {
        self.limit.saturating_sub(self.len())
    }

    /// Appends a frame if it fits.
    pub(super) fn add(&mut self, frame: &Frame<'_>) -> bool {
        let before = self.bytes.len();
        encode(frame, &mut self.bytes);
        let fits = self.len() <= self.limit;
        if !fits {
            self.bytes.truncate(before);
        }
        fits
    }

    /// Appends bytes of a pinned state.
    pub(super) fn gather(&mut self, pin: PinId, member: u16, offset: u64, len: u32) {
        if self.piece_start < self.bytes.len() {
            self.pieces.push(Piece::Bytes(self.piece_start..self.bytes.len()));
            self.piece_start = self.bytes.len();
        }
        self.pieces.push(Piece::Area { pin, member, offset, len });
        self.gathered += len as usize;
    }

    pub(super) fn finish(mut self, peer: HostId, id: u64) -> (Packet, Sent) {
        if self.piece_start < self.bytes.len() {
            self.pieces.push(Piece::Bytes(self.piece_start..self.bytes.len()));
        }
        (Packet { peer, id, bytes: self.bytes, pieces: self.pieces }, self.sent)
    }
}

/// The content of a packet, until its fate is known.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) hello: bool,
    pub(super) registers: Vec<(Key, u64)>,
    /// Headers of cuts.
    pub(super) cuts: Vec<(GroupId, u64)>,
    /// Lines of cuts.
    pub(super) lines: Vec<(GroupId, u64, Range<u64>)>,
    /// Announcements of lines.
    pub(super) announced: Vec<(GroupId, u64, Range<u64>)>,
}

/// Lines that are being placed.
#[derive(Debug)]
pub(super) struct BeingPlaced {
    pub(super) id: u64,
    pub(super) pin: PinId,
    pub(super) lines: u64,
}

/// Another host, as this one knows it.
#[derive(Debug, Default)]
pub(super) struct Peer {
    pub(super) boot: Option<u64>,
    pub(super) segment: Option<u64>,
    pub(super) connected: bool,
    /// Lines can be placed there.
    pub(super) places: bool,
    /// Placements under way there, with the states that they read, which stay pinned until they are written.
    pub(super) placing: VecDeque<BeingPlaced>,
    /// Lines of those.
    pub(super) lines_placing: u64,
    pub(super) last_placing: u64,
    /// Groups of which more is to be placed, when some of that is written.
    pub(super) held_up: BTreeSet<GroupId>,
    /// Its hello was accepted, from this boot.
    pub(super) greeted: bool,
    /// It has acknowledged a packet with ours.
    pub(super) knows_us: bool,
    /// The most bytes of a packet, if it is not the configuration's.
    pub(super) max_payload: Option<usize>,
    /// Bytes that may be sent.
    pub(super) room: usize,
    pub(super) outbox: Outbox,
    /// Since when all that is to be said waits for more, to go in one packet.
    pub(super) coalesces_since: Option<u64>,
    pub(super) inbox: Inbox,
    pub(super) sent: BTreeMap<u64, Sent>,
    /// Groups of which lines are to be sent to it.
    pub(super) ready: BTreeSet<GroupId>,
    /// The group that was served last.
    pub(super) turn: Option<GroupId>,
    pub(super) heard_ns: u64,
    pub(super) spoke_ns: u64,
    /// No worker is left there, and none will come.
    pub(super) deserted: bool,
    pub(super) left: bool,
    pub(super) suspected: bool,
    /// Why its hello is not accepted.
    pub(super) refused: Option<HelloError>,
    pub(super) told_refused: bool,
    pub(super) last_packet: u64,
    /// The lowest clock of all, as it last said, if it has.
    pub(super) lowest: Option<u64>,
    /// Groups of ours that it has named in subscriptions.
    pub(super) named: HeardNamings,
    /// How many of them it says that it has named.
    pub(super) names: Option<u32>,
    /// Groups of its that we have named to it.
    pub(super) stated: OwnNamings,
}

/// For so long, in nanoseconds, what can wait is kept back for the next packet.
const COALESCE_NS: u64 = 200_000;

impl Peer {
    /// Whether all its subscriptions to groups of this host are known.
    pub(super) fn is_known_whole(&self) -> bool {
        self.names.is_some_and(|names| self.named.count() >= names)
    }

    /// How many values of registers and namings of groups are remembered.
    pub(super) fn remembered(&self) -> usize {
        self.outbox.len() + self.inbox.len() + self.stated.len()
    }

    /// Whether something is to be said now, or has waited long enough.
    pub(super) fn has_to_speak(&mut self, now: u64) -> bool {
        if self.outbox.is_urgent() || !self.outbox.has_due() {
            self.coalesces_since = None;
            return self.outbox.is_urgent();
        }
        now >= self.coalesces_since.get_or_insert(now).saturating_add(COALESCE_NS)
    }

    /// Whether [`Peer::has_to_speak`] would say so, or note something.
    pub(super) fn may_have_to_speak(&self, now: u64) -> bool {
        let has_due = self.outbox.has_due();
        match self.coalesces_since {
            _ if self.outbox.is_urgent() => true,
            None => has_due,
            Some(since) => !has_due || now >= since.saturating_add(COALESCE_NS),
        }
    }

    /// By when it waits no longer.
    pub(super) fn coalesces_until(&self) -> Option<u64> {
        self.coalesces_since.map(|since| since.saturating_add(COALESCE_NS))
    }

    /// The next group to be served, in turn.
    pub(super) fn next_ready(&mut self) -> Option<GroupId> {
        let after = self.turn.and_then(|turn| {
            self.ready.range((std::ops::Bound::Excluded(turn), std::ops::Bound::Unbounded)).next()
        });
        let next = *after.or_else(|| self.ready.first())?;
        self.turn = Some(next);
        Some(next)
    }
}
