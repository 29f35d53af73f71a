//! Cuts whose lines the sender writes into the receiver's memory itself: announced, marked, granted, then placed.
use super::arrivals::Phase;
use super::outbound::{Placed, Ride, Train};
use super::peer::{BeingPlaced, Filling};
use super::{Action, Cx, Mutant, Node, Placing};
use crate::intervals::Intervals;
use crate::lines::Run;
use crate::types::{AreaId, Description, GroupId, HostId, LINE, Place};
use crate::wire::{Announced, Frame, Key, Register, announced_cost};
use std::ops::Range;

/// The number of pieces in which the lines that may be under way at a time are written, so that the link is never idle.
const PIECES: u64 = 16;

impl Node {
    /// Whether a cut of `lines` lines is placed at a host.
    pub(super) fn is_to_be_placed(&self, host: HostId, lines: u64) -> bool {
        lines >= self.config.place_lines.max(1) && self.peers.get(&host).is_some_and(|peer| peer.places)
    }

    /// Whether lines can be placed at a host. Cuts that are on their way by that are made again if not.
    pub(super) fn set_places(&mut self, cx: &mut Cx<'_>, host: HostId, can: bool) {
        let Some(peer) = self.peers.get_mut(&host) else { return };
        peer.places = can;
        if can {
            return;
        }
        peer.held_up.clear();
        self.wrote(cx, host, u64::MAX);
        let is_placed = |ride: &Option<Ride>| ride.as_ref().is_some_and(|ride| ride.placed.is_some());
        let placed: Vec<GroupId> = self
            .subscribed_by(host)
            .filter(|(_, outbound)| is_placed(&outbound.subscribers[&host].ride))
            .map(|(group, _)| group)
            .collect();
        for group in placed {
            self.abandon_ride(cx, group, host);
        }
    }

    /// All placements at a host up to this one are written: unpins the states that they were read from.
    pub(super) fn wrote(&mut self, cx: &mut Cx<'_>, host: HostId, id: u64) {
        while let Some(peer) = self.peers.get_mut(&host)
            && let Some(written) = peer.placing.pop_front_if(|first| first.id <= id)
        {
            peer.lines_placing -= written.lines;
            self.drop_pin(cx, written.pin);
        }
        let held_up = self.peers.get_mut(&host).map(|peer| std::mem::take(&mut peer.held_up));
        for group in held_up.into_iter().flatten() {
            self.place(cx, host, group);
        }
    }

    /// The receiver of a cut says where its lines may be written, or that they are to be sent.
    pub(super) fn on_grant(
        &mut self,
        cx: &mut Cx<'_>,
        host: HostId,
        group: GroupId,
        (cut, places): (u64, Option<Vec<Place>>),
    ) {
        let is_hasty = self.mutant(Mutant::HastyPlace);
        let Some(ride) = self.ride(host, group, cut) else { return };
        let Some(placed) = &mut ride.placed else { return };
        if places.is_some() {
            placed.granted = places;
            if is_hasty {
                placed.known.insert(0..ride.total);
                placed.due.insert(0..ride.total);
            }
        } else {
            // From the beginning, as any other.
            (ride.placed, ride.cursor, ride.lost) = (None, 0, Intervals::default());
            self.make_ready(host, group);
        }
        self.place(cx, host, group);
    }

    /// An announcement came.
    pub(super) fn on_known(
        &mut self,
        cx: &mut Cx<'_>,
        host: HostId,
        (group, cut, range): (GroupId, u64, Range<u64>),
    ) {
        if let Some(placed) = self.ride(host, group, cut).and_then(|ride| ride.placed.as_mut()) {
            placed.known.insert(range.clone());
            placed.due.insert(range);
            self.place(cx, host, group);
        }
    }

    /// Has those lines written of which the receiver knows, if it has granted that; not too many at a time.
    fn place(&mut self, cx: &mut Cx<'_>, host: HostId, group: GroupId) {
        let Some(outbound) = self.outbound.get_mut(&group) else { return };
        let (members, trains) = (&outbound.members, &outbound.trains);
        let Some(ride) = outbound.subscribers.get_mut(&host).and_then(|it| it.ride.as_mut()) else { return };
        let Some(Placed { granted: Some(places), known, due }) = &mut ride.placed else { return };
        let train = trains[ride.slot].as_ref().expect("it has a passenger");
        let Some(peer) = self.peers.get_mut(&host) else { return };
        let is_known = known.covers(ride.total);
        let most = self.config.place_most.max(1);
        while peer.lines_placing < most
            && let Some(range) = due.take_front((most / PIECES).clamp(1, most - peer.lines_placing))
        {
            peer.lines_placing += range.end - range.start;
            self.counters.lines_placed += range.end - range.start;
            // Also when the cut is given up: whoever is told of its last line has all before it.
            *self.pins.get_mut(&train.pinned.pin).expect("the train has it") += 1;
            peer.last_placing += 1;
            let lines = range.end - range.start;
            peer.placing.push_back(BeingPlaced { id: peer.last_placing, pin: train.pinned.pin, lines });
            cx.out.push(Action::Place {
                peer: host,
                id: peer.last_placing,
                cut: ride.cut as u32,
                pin: train.pinned.pin,
                lines: lines_at(train, members, places, range),
                is_last: is_known && due.is_empty(),
            });
        }
        if !due.is_empty() {
            peer.held_up.insert(group);
        }
    }

    /// Lets the sender of a cut that has begun write its lines, if it wants to.
    pub(super) fn grant(&mut self, cx: &mut Cx<'_>, from: HostId, group: GroupId) {
        let Some(Phase::Receiving(receiving)) = self.inbound.get_mut(&group).map(|it| &mut it.phase) else {
            return;
        };
        if !receiving.cut.placed {
            return;
        }
        receiving.granted = cx.memory.grant(group, from, receiving.cut.versions.len());
        self.tell_grant(from, group);
    }

    /// A cut under way begins once more. Its sender may have had no subscriber here for a moment, and have dropped the answer: it gets that
    /// again, as a newer one.
    pub(super) fn grant_again(&mut self, from: HostId, group: GroupId) {
        if self.mutant(Mutant::GrantOnce) {
            return;
        }
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.outbox.forget(|key| *key == Key::Grant(group));
        }
        self.tell_grant(from, group);
    }

    fn tell_grant(&mut self, from: HostId, group: GroupId) {
        let Some(Phase::Receiving(receiving)) = self.inbound.get(&group).map(|it| &it.phase) else { return };
        let answer = Register::Grant(group, receiving.cut.cut, receiving.granted.clone());
        self.tell(from, answer);
    }

    /// The sender announces lines that it will write.
    pub(super) fn on_announced(&mut self, cx: &mut Cx<'_>, from: HostId, announced: &Announced) {
        let Some(group) = self.group_of_cut(from, announced.cut) else {
            self.counters.stale_lines += 1;
            return;
        };
        let inbound = self.inbound.get_mut(&group).expect("just found");
        let Some(description) = inbound.description(announced.member).cloned() else { return };
        let Phase::Receiving(receiving) = &mut inbound.phase else { return };
        let count: u64 = announced.runs.iter().map(|run| u64::from(run.count)).sum();
        let is_outside = |run: &Run| u64::from(run.first) + u64::from(run.count) > description.lines();
        if announced.runs.iter().any(is_outside)
            || announced.position + count > receiving.cut.total
            || usize::from(announced.member) >= receiving.cut.versions.len()
        {
            self.counters.violations += 1;
            return;
        }
        // One that was refused will send them.
        if receiving.granted.is_some() {
            receiving.announced.insert(announced.position..announced.position + count);
            for run in &announced.runs {
                cx.memory.announce(AreaId { group, member: announced.member }, *run);
            }
        }
    }

    /// A peer has placed all of a cut.
    pub(super) fn on_placed(&mut self, cx: &mut Cx<'_>, from: HostId, cut: u32) {
        let of_peer = self.under_way.range((from, 0)..=(from, u64::MAX));
        let group = of_peer.filter(|((_, of), _)| *of as u32 == cut).map(|(_, group)| *group).next();
        // Of a cut that was given up, nothing is waited for.
        let Some(group) = group else { return };
        let inbound = self.inbound.get_mut(&group).expect("a cut of it is under way");
        let Phase::Receiving(receiving) = &mut inbound.phase else { return };
        // That of a cut that is held says nothing: it is not placed.
        if receiving.cut.cut as u32 != cut {
            return;
        }
        let total = receiving.cut.total;
        if receiving.granted.is_none() || !receiving.announced.covers(total) {
            self.counters.violations += 1;
            return;
        }
        receiving.came.insert(0..total);
        self.counters.lines_received += total;
        cx.memory.placed(group);
        self.complete(cx, group);
    }
}

/// Where the lines at these positions of a train go.
fn lines_at(
    train: &Train,
    members: &[Option<Description>],
    places: &[Place],
    wanted: Range<u64>,
) -> Vec<Placing> {
    let mut lines = Vec::new();
    for (member, starts) in train.starts.windows(2).enumerate() {
        let (from, end) = (starts[0].max(wanted.start), starts[1].min(wanted.end));
        let (Some(description), Some(to)) =
            (members.get(member).and_then(Option::as_ref), places.get(member))
        else {
            continue;
        };
        if from < end {
            lines.extend(train.lines[member].at(from - starts[0]..end - starts[0]).map(|run| {
                let offset = u64::from(run.first) * LINE;
                let len = (u64::from(run.count) * LINE).min(description.bytes - offset) as u32;
                Placing { member: member as u16, to: *to, offset, len }
            }));
        }
    }
    lines
}

/// Adds an announcement for as many lines at `wanted` as fit, all of one member. Which they are.
pub(super) fn announce_lines(
    packet: &mut Filling,
    train: &Train,
    members: &[Option<Description>],
    wanted: Range<u64>,
) -> Range<u64> {
    let from = wanted.start;
    let most = packet.left().saturating_sub(announced_cost(0)) / (announced_cost(1) - announced_cost(0));
    if wanted.is_empty() || most == 0 {
        return from..from;
    }
    let member = train.starts.partition_point(|&start| start <= from) - 1;
    let (first, end) = (train.starts[member], train.starts[member + 1].min(wanted.end));
    // As for those that are sent.
    if members.get(member).and_then(Option::as_ref).is_none() {
        return from..end;
    }
    let runs: Vec<Run> =
        train.lines[member].at(from - first..end - first).take(most.min(u16::MAX.into())).collect();
    let count: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
    let added = packet.add(&Frame::Announced(Announced {
        cut: train.cut,
        member: member as u16,
        position: from,
        runs,
    }));
    from..if added { from + count } else { from }
}
