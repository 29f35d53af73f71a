//! Planning a round: which areas, into which copies, with which versions, in which chunks.
mod chunks;
mod planned;
mod presence;
mod retry;
mod select;
mod target;

use self::chunks::ALONE_BYTES;
pub(crate) use self::chunks::OWNER_BYTES;
pub(crate) use self::planned::Planned;
use self::target::dirty_bytes;
use super::runtime::{Runtime, Scratch, Stuck};
use crate::engine::runtime::scan::is_scanned;
use crate::memory::clock;
use crate::memory::copy::Kernels;
use crate::protocol::arrival::{self, Arrived};
use crate::protocol::label;
use crate::protocol::ownership;
use crate::protocol::pin;
use crate::protocol::plan_checks::{Found, OTHER_HOST, Owning};
use crate::protocol::publication::{Publication, Version};
use crate::segment::layout::AreaSlot;
use crate::segment::parts::Parts;
use crate::segment::tally::count;
use std::sync::atomic::Ordering;

impl Runtime<'_> {
    /// Chooses areas and lays out chunks; false if there is nothing to publish.
    pub(crate) fn make_plan(&self, round: u64, me: u32) -> bool {
        let acting = &self.shared.segment.header().sync.acting;
        let mut scratch = self.local.scratch.borrow_mut();
        (scratch.held_back, scratch.postponed) = (false, false);
        // Before areas are looked at: of a worker that is found here, they find the areas.
        let reached = self.look_around(round, &mut scratch);
        let some = self.plan_areas(round, me, &mut scratch);
        retry::note(&self.shared.segment.header().sync, scratch.postponed, clock::now_ns);
        let known = acting.local_clock.load(Ordering::Relaxed);
        let local = reached.map_or(known, |local| if scratch.held_back { local.min(known) } else { local });
        let lowest = match reached {
            Some(_) => self.lowest_of_all(local),
            None => acting.lowest_clock.load(Ordering::Relaxed),
        };
        let rise = acting.lowest_clock.load(Ordering::Relaxed) != lowest
            || acting.local_clock.load(Ordering::Relaxed) != local;
        let whole = if scratch.is_complete { round } else { acting.whole.load(Ordering::Relaxed) };
        // Where there is something to publish, the clocks rise with its publication.
        if some {
            acting.plan.whole.store(whole, Ordering::Relaxed);
            acting.plan.local_clock.store(local, Ordering::Relaxed);
            acting.plan.lowest_clock.store(lowest, Ordering::Relaxed);
            acting.plan.clocks_rise.store(rise.into(), Ordering::Relaxed);
            return true;
        }
        // Relaxed: as in `publish_plan`.
        acting.whole.store(whole, Ordering::Relaxed);
        if rise {
            // Release, both: as in `publish_plan`.
            acting.local_clock.store(local, Ordering::Release);
            acting.lowest_clock.store(lowest, Ordering::Release);
            let (segment, doorbell) = (&self.shared.segment, self.shared.segment.doorbell());
            if doorbell.is_attached() && (segment.spans_hosts() || !doorbell.chooses()) {
                self.shared.ring_for_agent();
            }
        }
        false
    }

    fn plan_areas(&self, round: u64, me: u32, scratch: &mut Scratch) -> bool {
        let segment = &self.shared.segment;
        let sync = &segment.header().sync;
        let used = segment.used_areas();
        if used == 0 {
            return false;
        }
        // Once: what arrived as one is planned as one.
        scratch.arrived = arrival::complete(&segment.header().agent.cuts);
        let here = segment.ranks_here();
        scratch.here = (here.start, here.end);
        scratch.lowest = sync.acting.lowest_clock.load(Ordering::Relaxed);
        let now = self.select(used, scratch);
        if scratch.selected.is_empty() {
            return false;
        }
        let mut entries = 0;
        for index in 0..scratch.selected.len() {
            let area = scratch.selected[index];
            entries += usize::from(self.plan_area(area, round, now, entries, scratch));
        }
        if !scratch.groups.is_empty() {
            entries = self.drop_partial_groups(entries, scratch);
        }
        if entries == 0 {
            return false;
        }
        let bytes = scratch.bytes.iter().take(entries).sum();
        sync.acting.plan.now_ns.store(now, Ordering::Relaxed);
        sync.acting.plan.entries.store(entries as u32, Ordering::Relaxed);
        sync.acting.plan.bytes.store(bytes, Ordering::Relaxed);
        self.lay_out_chunks(round, me, entries, bytes, scratch);
        true
    }

    /// Moves the area's next due time on: it was looked at now.
    pub(crate) fn postpone(&self, slot: &AreaSlot, now: u64) {
        let interval = slot.about.interval_ns.load(Ordering::Relaxed);
        if interval != 0 {
            slot.round.next_due_ns.store(now.saturating_add(interval), Ordering::Relaxed);
        }
    }

    /// Plans one area as entry `entry`. False if it is clean, its owner does not take part, or every copy
    /// is pinned.
    fn plan_area(&self, area: u32, round: u64, now: u64, entry: usize, scratch: &mut Scratch) -> bool {
        let segment = &self.shared.segment;
        let index = area as usize;
        let slot = &segment.areas()[index];
        let parts = Parts::of(segment, index);
        let here = scratch.here;
        let is_grouped = slot.about.group.load(Ordering::Relaxed) != 0;
        let owning = Owning { lock: &slot.round.lock, ownership: &slot.own.ownership, here, is_grouped };
        let label_here = label::of_round(scratch.lowest);
        let (mut arrived, mut kept) = (None, label::NONE);
        let found = owning.consider(
            round,
            &scratch.presences,
            || self.is_unscanned(&parts, round),
            || segment.dirty(index).is_set(),
            || {
                arrived = slot.agent.arrival.arrived(scratch.arrived);
                arrived.is_some_and(|arrived| {
                    arrived.version > parts.copies()[parts.current()].version()
                        && label::may_publish(arrived.label, scratch.lowest)
                })
            },
            || {
                kept = self.keeps(&parts, label_here);
                self.target_copy(&parts, index, round, kept, &mut scratch.pinned)
            },
        );
        let Found::Planned { owner, copy: target } = found else {
            self.postponed(area, round, now, found, scratch);
            return false;
        };
        let newest = &parts.copies()[parts.current()];
        let whole = !parts.layout.is_logged();
        // Of an area whose owner is here, what that one has written; else what has arrived.
        let Arrived { version, clock, label, as_of_ns } = arrived.unwrap_or_else(|| Arrived {
            version: Version {
                term: slot.round.term.load(Ordering::Relaxed),
                counter: newest.version().counter + 1,
            },
            clock: match (here.0..here.1).contains(&owner) {
                true => segment.all_seats()[owner as usize].clock.load(Ordering::Relaxed),
                // Whoever gave it away, or has lent it, is not behind that.
                false => segment.header().sync.acting.local_clock.load(Ordering::Relaxed),
            },
            label: label_here,
            as_of_ns: now,
        });
        let publication = Publication {
            area,
            group: slot.about.group.load(Ordering::Relaxed),
            copy: target as u32,
            whole,
            version,
            round,
            clock,
            label,
            kept,
            timestamp_ns: as_of_ns,
        };
        // Nobody here has the lines of one that is given away in his cache, as far as is known. Nor is the owner of one that is lent
        // waited for: whoever asks for it waits. It cannot take it back meanwhile, if it is in the round.
        let is_lent = ownership::load(&slot.own.ownership).is_lent();
        let owner = if (here.0..here.1).contains(&owner) && !is_lent { owner } else { OTHER_HOST };
        segment.plan_entries()[entry].enter(&publication, owner);
        // A small area goes through the caches and to its owner however much of it is dirty: not counted.
        let all = parts.padded_bytes() as u64;
        let bytes = if whole || (ALONE_BYTES..=OWNER_BYTES).contains(&all) {
            all
        } else {
            dirty_bytes(&parts, target)
        };
        if scratch.bytes.len() <= entry {
            scratch.bytes.resize(entry + 1, 0);
        }
        scratch.bytes[entry] = bytes;
        true
    }

    /// Notes why an area is not planned.
    fn postponed(&self, area: u32, round: u64, now: u64, found: Found, scratch: &mut Scratch) {
        let segment = &self.shared.segment;
        let (slot, counters) = (&segment.areas()[area as usize], &segment.header().counters);
        let mut stuck = |holds_clocks| scratch.stuck.push(Stuck { area, holds_clocks });
        match found {
            Found::Planned { .. } => {}
            Found::Ownerless => self.postpone(slot, now),
            Found::Awaited => self.await_arrival(area as usize, now),
            Found::Outside { owner } => {
                // A group waits for an owner that lives; what a dead one had not published is lost.
                stuck(true);
                if !scratch.is_complete {
                    // The next one takes it, also if it is due.
                    return;
                }
                self.postpone(slot, now);
                if segment.dirty(area as usize).is_set() {
                    count(&counters.postponed_owner, 1);
                    tracing::debug!(area, round, owner, "postponed: the owner is not in the round");
                }
            }
            Found::Unscanned { owner } => {
                // It was asked for, or fell due, after its owner had arrived: what was written behind the log's
                // back is not known. The next round takes it.
                segment.forced(area as usize).set();
                segment.header().sync.request();
                stuck(true);
                scratch.held_back = true;
                count(&counters.postponed_unscanned, 1);
                tracing::debug!(area, round, owner, "postponed: the owner has not looked the area through");
            }
            Found::Clean => {
                segment.forced(area as usize).clear();
                self.postpone(slot, now);
                // Release: pairs with the acquire in `Agent::published`.
                slot.round.confirmed_ns.store(now, Ordering::Release);
            }
            Found::Pinned { owner } => {
                // Those of other hosts hold their clocks: the agent stores them when what they cover is published.
                let is_here = owner != OTHER_HOST;
                stuck(is_here);
                scratch.held_back |= is_here;
                slot.round.postponed.fetch_add(1, Ordering::Relaxed);
                count(&counters.postponed_pinned, 1);
                tracing::debug!(area, round, owner, "postponed: every reader copy is pinned");
                scratch.postponed |= retry::is_asked_for(slot, segment.forced(area as usize));
                self.postpone(slot, now);
            }
        }
    }

    /// Nothing new has arrived of an area that may be published.
    fn await_arrival(&self, index: usize, now: u64) {
        let segment = &self.shared.segment;
        let slot = &segment.areas()[index];
        arrival::await_next(&segment.marks()[index / 64].forced, 1 << (index % 64), || {
            let complete = arrival::complete(&segment.header().agent.cuts);
            let newest = Parts::of(segment, index).reader_copies();
            let arrived = slot.agent.arrival.arrived(complete);
            arrived.is_some_and(|arrived| arrived.version > newest.records[newest.newest()].version())
        });
        self.postpone(slot, now);
    }

    /// Whether the owner should have looked the area through for this round and did not.
    fn is_unscanned(&self, parts: &Parts<'_>, round: u64) -> bool {
        is_scanned(parts, self.shared.segment.config().check != 0)
            && parts.slot.own.scanned.load(Ordering::Relaxed) != round
    }

    /// Groups are published whole or not at all: drops the entries of groups of which a member could not be
    /// planned, because its owner is not here to say whether it is done writing, or because every copy is
    /// pinned. Returns how many entries are left.
    fn drop_partial_groups(&self, entries: usize, scratch: &mut Scratch) -> usize {
        let segment = &self.shared.segment;
        let stuck = scratch.stuck.iter().map(|stuck| (segment.group_of(stuck.area), stuck.holds_clocks));
        let broken: Vec<(u32, bool)> = stuck.filter(|(group, _)| *group != 0).collect();
        if broken.is_empty() {
            return entries;
        }
        let table = segment.plan_entries();
        let mut kept = 0;
        for entry in 0..entries {
            let area = table[entry].area.load(Ordering::Relaxed);
            let group = segment.group_of(area);
            if broken.iter().any(|(of, _)| *of == group) {
                // Its owner has come, and what it wrote is not published.
                scratch.held_back |= broken.contains(&(group, true));
                let copy = table[entry].copy.load(Ordering::Relaxed) as usize;
                let parts = Parts::of(segment, area as usize);
                pin::unmark(&parts.copies()[copy].state);
                parts.slot.round.postponed.fetch_add(1, Ordering::Relaxed);
                count(&segment.header().counters.postponed_group, 1);
                tracing::debug!(area, "postponed: another area of its group cannot be published");
                continue;
            }
            table[kept].copy_from(&table[entry]);
            scratch.bytes[kept] = scratch.bytes[entry];
            kept += 1;
        }
        kept
    }
}

/// Whether the copy kernels may copy more than the logged lines of the area: whether guards alone can have written
/// it, which log.
pub(crate) fn may_copy_whole(parts: &Parts<'_>) -> bool {
    parts.slot.own.raw.load(Ordering::Relaxed) == 0
}

/// The density above which a block is copied whole.
pub(crate) fn whole_threshold(workers: u32) -> f32 {
    Kernels::get().full_copy_fraction(workers as usize)
}
