//! Lines that hosts write into each other's memory: in order, as long as the queue pair between two lives, and none after its end.
use super::{What, World};
use crate::judge::Promise;
use crate::options::MS;
use hectare_net::{Event, HostId, LINE, PinId, Placing};
use std::collections::BTreeMap;

/// A queue pair of two hosts.
#[derive(Debug, Default)]
pub(super) struct Pair {
    /// The number of the present one; what was written by another is dropped.
    number: u64,
    /// By which one each side writes: the one with the lower number first; 0 for none.
    used: [u64; 2],
    /// When what each wrote last arrives.
    last: [u64; 2],
    /// Lines that each places and was not told of yet, by its numbers.
    under_way: [BTreeMap<u64, u64>; 2],
}

/// Lines on their way, and the cut whose last they are.
#[derive(Debug)]
pub(super) struct Placement {
    pub(super) from: u16,
    pub(super) to: u16,
    pair: u64,
    id: u64,
    cut: u32,
    pin: PinId,
    lines: Vec<Placing>,
    is_last: bool,
}

fn key(a: u16, b: u16) -> (u16, u16) {
    (a.min(b), a.max(b))
}

impl World {
    /// The queue pair of two hosts ends: nothing that was written by it arrives any more. Both have another after a while.
    pub(super) fn end_pair(&mut self, a: u16, b: u16) {
        if !self.options.placing {
            return;
        }
        let pair = self.pairs.entry(key(a, b)).or_default();
        pair.number += 1;
        let number = pair.number;
        for (at, peer) in [(a, b), (b, a)] {
            let (heard, again) = (self.random.below(3 * MS), self.random.between(3 * MS, 20 * MS));
            self.at(self.now + heard, What::Pair { at, peer, number, is_up: false });
            self.at(self.now + again, What::Pair { at, peer, number, is_up: true });
        }
    }

    /// A host learns of a new queue pair, or of the end of the last.
    pub(super) fn hear_of_pair(&mut self, at: u16, peer: u16, number: u64, can: bool) {
        let has_session = self.network.ends[&(at, peer)].session.is_some();
        let pair = self.pairs.entry(key(at, peer)).or_default();
        if pair.number != number || !has_session {
            return;
        }
        pair.used[usize::from(at > peer)] = if can { number } else { 0 };
        pair.under_way[usize::from(at > peer)].clear();
        self.tell(at, Event::Places { peer: HostId(peer), can });
    }

    pub(super) fn place(
        &mut self,
        from: u16,
        to: u16,
        (id, cut, pin): (u64, u32, PinId),
        lines: Vec<Placing>,
        is_last: bool,
    ) {
        let delay = self.network.delay(&self.options);
        let side = usize::from(from > to);
        let pair = self.pairs.entry(key(from, to)).or_default();
        let count = lines.iter().map(|line| u64::from(line.len).div_ceil(LINE)).sum();
        pair.under_way[side].insert(id, count);
        let under_way: u64 = pair.under_way[side].values().sum();
        if under_way > self.options.place_most {
            let what = format!("host {from} places {under_way} lines at host {to} at a time");
            self.judge.borrow_mut().broke(Promise::Contract, what);
        }
        let arrives = (self.now + delay).max(pair.last[side] + 1);
        pair.last[side] = arrives;
        let pair = pair.used[side];
        self.at(arrives, What::Placed(Placement { from, to, pair, id, cut, pin, lines, is_last }));
    }

    pub(super) fn placed(&mut self, placement: Placement) {
        let Placement { from, to, pair, id, cut, pin, lines, is_last } = placement;
        if self.pairs[&key(from, to)].number != pair || pair == 0 {
            return;
        }
        if self.random.chance(self.options.breaks) {
            return self.end_pair(from, to);
        }
        for line in lines {
            let Some(bytes) = self.hosts[usize::from(from)].memory.still_pinned(pin, line.member) else {
                let what = format!("{pin:?} is not pinned, and is read for a write under way");
                return self.judge.borrow_mut().broke(Promise::Contract, what);
            };
            let (start, len) = (line.offset as usize, line.len as usize);
            let bytes = &bytes[start..start + len];
            self.hosts[usize::from(to)].memory.receive_placed(HostId(from), line.to, start, bytes);
        }
        let told = self.now + self.network.delay(&self.options);
        self.at(told, What::Wrote { at: from, peer: to, pair, id });
        if is_last {
            self.tell(to, Event::Placed { peer: HostId(from), cut });
        }
    }

    /// A device tells that something was written.
    pub(super) fn wrote(&mut self, at: u16, peer: u16, pair: u64, id: u64) {
        let of_both = self.pairs.get_mut(&key(at, peer)).expect("something was written by it");
        if of_both.number == pair {
            let under_way = &mut of_both.under_way[usize::from(at > peer)];
            *under_way = under_way.split_off(&(id + 1));
            self.tell(at, Event::Wrote { peer: HostId(peer), id });
        }
    }

    /// Ends those queue pairs that the memory of a host wants ended.
    pub(super) fn end_wanted(&mut self, host: u16) {
        for peer in std::mem::take(&mut self.hosts[usize::from(host)].memory.shut) {
            self.end_pair(host, peer.0);
        }
    }
}
