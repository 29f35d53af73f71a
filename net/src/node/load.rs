//! Puts lines of cuts into packets, and lost lines again.
use super::outbound::{Ride, Train};
use super::peer::Filling;
use super::place::announce_lines;
use super::{Counters, Mutant, Node};
use crate::types::{Description, GroupId, HostId, LINE};
use crate::wire::{Cut, Frame, data_cost, put_data_header};
use std::ops::Range;

impl Node {
    /// Puts lines of a group into a packet, as far as they fit, with the cut's header until the peer has one. The group stays
    /// ready as long as there is more.
    pub(super) fn load(&mut self, now: u64, host: HostId, group: GroupId, packet: &mut Filling) {
        let ready = &mut self.peers.get_mut(&host).expect("it is sent to").ready;
        let outbound = self.outbound.get_mut(&group);
        let of_host =
            outbound.and_then(|all| Some((&all.members, &all.trains, all.subscribers.get_mut(&host)?)));
        let Some((members, trains, subscriber)) = of_host else {
            ready.remove(&group);
            return;
        };
        for ride in subscriber.earlier.iter_mut().chain(&mut subscriber.ride) {
            let train = trains[ride.slot].as_ref().expect("it has a passenger");
            debug_assert_eq!(train.cut, ride.cut);
            if ride.has_work() {
                load_cut(now, (group, members), train, ride, packet, &mut self.counters);
            }
        }
        if !subscriber.rides().any(Ride::has_work) {
            ready.remove(&group);
        }
    }

    /// Lines of a cut were lost, or its header.
    pub(super) fn on_lost(&mut self, host: HostId, sent: super::peer::Sent) {
        for (group, cut) in sent.cuts {
            if let Some(ride) = self.ride(host, group, cut) {
                ride.headers -= 1;
            }
            self.make_ready(host, group);
        }
        for (group, cut, range) in sent.lines {
            if self.mutant(Mutant::ForgetLost) {
                continue;
            }
            if let Some(ride) = self.ride(host, group, cut) {
                ride.lost.insert(range);
            }
            self.make_ready(host, group);
        }
        for (group, cut, range) in sent.announced {
            if let Some(ride) = self.ride(host, group, cut).filter(|ride| ride.placed.is_some()) {
                ride.lost.insert(range);
            }
            self.make_ready(host, group);
        }
    }

    /// The header of a cut came.
    pub(super) fn on_begun(&mut self, host: HostId, group: GroupId, cut: u64) {
        if let Some(ride) = self.ride(host, group, cut) {
            ride.headers -= 1;
            ride.begun = true;
        }
    }

    pub(super) fn ride(&mut self, host: HostId, group: GroupId, cut: u64) -> Option<&mut Ride> {
        let subscriber = self.outbound.get_mut(&group)?.subscribers.get_mut(&host)?;
        let mut rides = subscriber.earlier.iter_mut().chain(&mut subscriber.ride);
        rides.find(|ride| ride.cut == cut)
    }

    pub(super) fn make_ready(&mut self, host: HostId, group: GroupId) {
        let subscriber = self.outbound.get(&group).and_then(|all| all.subscribers.get(&host));
        if subscriber.is_some_and(|subscriber| subscriber.rides().any(Ride::has_work))
            && let Some(peer) = self.peers.get_mut(&host)
        {
            peer.ready.insert(group);
        }
    }
}

/// Puts lines of one cut into a packet, as far as they fit.
fn load_cut(
    now: u64,
    (group, members): (GroupId, &[Option<Description>]),
    train: &Train,
    ride: &mut Ride,
    packet: &mut Filling,
    counters: &mut Counters,
) {
    if !ride.begun {
        let cut = Cut {
            cut: ride.cut,
            group,
            base: ride.base,
            round: train.pinned.state.round,
            label: ride.label,
            age_ns: now.saturating_sub(train.pinned.published_ns),
            total: ride.total,
            placed: ride.placed.is_some(),
            versions: train.pinned.state.versions[..ride.members].to_vec(),
        };
        if !packet.add(&Frame::Cut(cut)) {
            return;
        }
        ride.headers += 1;
        packet.sent.cuts.push((group, ride.cut));
    }
    loop {
        let lost = ride.lost.take_front(u64::MAX);
        let wanted = lost.clone().unwrap_or(ride.cursor..ride.total);
        let taken = match ride.placed {
            None => add_lines(packet, train, members, wanted),
            Some(_) => announce_lines(packet, train, members, wanted),
        };
        match &lost {
            Some(lost) => ride.lost.insert(taken.end..lost.end),
            None => ride.cursor = taken.end,
        }
        if taken.is_empty() {
            break;
        }
        if ride.placed.is_some() {
            packet.sent.announced.push((group, ride.cut, taken));
            continue;
        }
        let count = taken.end - taken.start;
        counters.lines_sent += count;
        counters.lines_resent += if lost.is_some() { count } else { 0 };
        packet.sent.lines.push((group, ride.cut, taken));
    }
}

/// Adds a data frame for as many lines at `wanted` as fit, all of one member. Which they are.
fn add_lines(
    packet: &mut Filling,
    train: &Train,
    members: &[Option<Description>],
    wanted: Range<u64>,
) -> Range<u64> {
    let from = wanted.start;
    if wanted.is_empty() {
        return from..from;
    }
    let member = train.starts.partition_point(|&start| start <= from) - 1;
    let (first, end) = (train.starts[member], train.starts[member + 1].min(wanted.end));
    // A member that was deleted meanwhile is received by nobody; its lines are as good as sent.
    let Some(description) = members.get(member).and_then(Option::as_ref) else { return from..end };
    let (mut cost, mut bytes, mut position, mut runs, mut lens) =
        (data_cost(0), 0, from, Vec::new(), Vec::new());
    for mut run in train.lines[member].at(from - first..end - first) {
        let left = packet.left().saturating_sub(cost + data_cost(1) - data_cost(0));
        run.count = run.count.min((left as u64 / LINE) as u32);
        if run.count == 0 {
            break;
        }
        let offset = u64::from(run.first) * LINE;
        let len = (u64::from(run.count) * LINE).min(description.bytes - offset);
        cost += data_cost(1) - data_cost(0) + len as usize;
        bytes += len as usize;
        position += u64::from(run.count);
        lens.push((offset, len as u32));
        runs.push(run);
    }
    if runs.is_empty() {
        return from..from;
    }
    put_data_header(&mut packet.bytes, train.cut, member as u16, from, &runs, bytes);
    for (offset, len) in lens {
        packet.gather(train.pinned.pin, member as u16, offset, len);
    }
    from..position
}
