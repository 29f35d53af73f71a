//! A worker's copy of a relaxed array, and what it has changed, for others to add up.
//!
//! Every worker publishes a *sum*: of all its changes since the pass began, and, for worker 0, of the array as it was
//! then. It lies in an area of its own that it alone writes. What anybody sees is the sums of all workers, added
//! by rank. So each change counts once, in whatever order and however often sums are read, and a worker always sees
//! its own.
//!
//! Arrays are looked at in blocks of [`BLOCK`] elements. At a clock a worker compares its copy with what that was at the
//! last clock, and only for blocks that differ it reads and writes its sum and a *stamp*, the number of the clock; and
//! it adds up anew only those blocks of which any worker has put a stamp since it last looked. A stamp may be seen before
//! the sum that belongs to it. That does no harm, since what is compared with stamps are the clocks of workers that were
//! known before (`ClockTable`), and these are seen after the sums: a block is added up once more then.
//!
//! Under [`Consistency::Bsp`] there are two slots of sums, for even and for odd clocks: a worker that is ahead writes the
//! one while those behind it read the other. A block is written into both, one clock after the other. Otherwise
//! there is one slot, and a reader may find sums of a later clock than it knows of.
//!
//! Of an array with a tail ([`Tail`](crate::contract::Tail)) blocks of the tail are looked at, published and added up at clocks of the whole
//! alone. Their even and odd clocks are those of the whole.
//!
//! On several hosts sums and stamps are published together, when a clock ends, and a reader sees all of one state; which, says a
//! word behind the stamps, since the clock itself may come before it.
use super::Additive;
use crate::contract::{Consistency, PassParams, Traffic};
use crate::error::{Error, Result};
use crate::fabric::watched::{Reading, Watched};
use crate::fabric::with_rest;
use hectare_dsm::bytemuck::cast_slice;
use hectare_dsm::{Element, Worker};
use std::ops::Range;

/// The number of clocks at one of which drift is measured.
const DRIFT_EVERY: u64 = 16;
/// Elements that are looked at together: enough for loops of whole vectors, few enough for sparse changes.
const BLOCK: usize = 64;
/// Even and odd clocks.
const SLOTS: usize = 2;

/// The copy of a relaxed array on this worker; empty until a loop first needs it.
#[derive(Debug)]
pub(crate) struct Replica<T: Element> {
    shared: Option<Shared<T>>,
    /// The values that the body reads and writes.
    pub(crate) values: Vec<T>,
    /// The values of the last clock.
    before: Vec<T>,
    /// The blocks that this worker changed in the last clock.
    changed: Vec<bool>,
    /// The clock of each worker up to which its changes are in `before`: of the head, and of the tail.
    seen: [Vec<u64>; 2],
    /// The number of blocks that are the head.
    head: usize,
    /// Slots that this pass uses.
    slots: usize,
    /// On several hosts, the stamp of the array whose elements `values` has at the end of a pass.
    pub(crate) copied: Option<u64>,
}

/// The shared memory of all workers: the slots of sums, and the stamps of blocks.
#[derive(Debug)]
struct Shared<T: Element> {
    sums: Watched<T>,
    stamps: Watched<u64>,
}

impl<T: Element> Default for Replica<T> {
    fn default() -> Self {
        Replica::new()
    }
}

impl<T: Element> Replica<T> {
    pub(crate) const fn new() -> Replica<T> {
        Replica {
            shared: None,
            values: Vec::new(),
            before: Vec::new(),
            changed: Vec::new(),
            seen: [Vec::new(), Vec::new()],
            head: 0,
            slots: SLOTS,
            copied: None,
        }
    }

    /// Gives the memory back.
    pub(crate) fn delete(self, worker: &mut Worker) -> Result<()> {
        if let Some(Shared { sums, stamps }) = self.shared {
            sums.delete(worker)?;
            stamps.delete(worker)?;
        }
        Ok(())
    }

    /// Makes what this worker shows, if that was not done before; whether others have still to be found.
    pub(crate) fn make(&mut self, worker: &mut Worker, number: u64, len: usize) -> Result<bool> {
        if let Some(shared) = &self.shared {
            return Ok(!shared.stamps.is_found());
        }
        let set = format!("orion/{number}/copies");
        let sums = Watched::make(worker, &set, "sums", SLOTS * len)?;
        let stamps = |worker: &mut Worker| Watched::make(worker, &set, "stamps", len.div_ceil(BLOCK) + 1);
        let (sums, stamps) = with_rest(worker, sums, Watched::delete, stamps)?;
        self.shared = Some(Shared { sums, stamps });
        Ok(true)
    }

    /// Finds what the others show.
    pub(crate) fn find(&mut self, worker: &mut Worker, params: &PassParams) -> Result<()> {
        let Shared { sums, stamps } = self.shared.as_mut().ok_or_else(unprepared)?;
        sums.find(worker, params.workers)?;
        stamps.find(worker, params.workers)
    }
}

#[cold]
fn unprepared() -> Error {
    Error::Invalid("a relaxed array was not prepared".into())
}

/// The number of slots of sums in use.
fn slots(params: &PassParams) -> usize {
    if params.relax.consistency == Consistency::Bsp { SLOTS } else { 1 }
}

/// The slots of the head and of the tail that hold what was published in `clocks` clocks.
fn slots_of(clocks: u64, params: &PassParams) -> [usize; 2] {
    [clocks, clocks.div_ceil(params.relax.tail.clocks)].map(|clocks| clocks as usize % slots(params))
}

/// The elements of each block of an array of `len`.
fn blocks(len: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    (0..len).step_by(BLOCK).map(move |start| start..len.min(start + BLOCK)).enumerate()
}

impl<T: Additive> Replica<T> {
    /// Takes the elements of the array.
    pub(crate) fn load(&mut self, elements: Reading<'_, T>) {
        self.values.resize(elements.len(), T::default());
        elements.load(0, &mut self.values);
    }

    /// Begins a pass over an array of the elements that the copy has, of which `head` are the head.
    pub(crate) fn enter(&mut self, worker: &Worker, head: usize, params: &PassParams) -> Result<()> {
        self.copied = None;
        self.before.clone_from(&self.values);
        self.changed.clear();
        self.changed.resize(self.values.len().div_ceil(BLOCK), false);
        for seen in &mut self.seen {
            seen.clear();
            seen.resize(params.workers, 0);
        }
        self.head = head.div_ceil(BLOCK);
        // Values of the pass before are in its slots.
        let (used, slots) = (self.slots, slots(params));
        let len = self.values.len();
        let shared = self.shared.as_mut().ok_or_else(unprepared)?;
        let (mut sums, mut stamps) = (shared.sums.write(worker)?, shared.stamps.write(worker)?);
        let mut stamped = vec![0; len.div_ceil(BLOCK) + 1];
        stamps.load(0, &mut stamped)?;
        if params.me == 0 {
            (0..slots).try_for_each(|slot| sums.store(slot * len, &self.values))?;
        }
        for slot in 0..used {
            if params.me == 0 {
                break;
            }
            let zeros = [T::default(); BLOCK];
            for (_, range) in blocks(len).filter(|(block, _)| stamped[*block] != 0) {
                sums.store(slot * len + range.start, &zeros[..range.len()])?;
            }
        }
        stamped.fill(0);
        stamps.store(0, &stamped)?;
        // Not before the old ones are cleared.
        self.slots = slots;
        Ok(())
    }

    /// Publishes what this worker has changed by the end of clock `clock`, from 0, of the whole or of the head.
    pub(crate) fn publish(
        &mut self,
        worker: &Worker,
        clock: u64,
        whole: bool,
        params: &PassParams,
    ) -> Result<Traffic> {
        let len = self.values.len();
        let after = slots_of(clock + 1, params);
        // Slots take turns.
        let before = after.map(|slot| (slot + slots(params) - 1) % slots(params));
        let merged = self.merged(whole);
        let shared = self.shared.as_mut().ok_or_else(unprepared)?;
        let is_published = shared.stamps.is_published();
        let (mut all, mut stamps) = (shared.sums.write(worker)?, shared.stamps.write(worker)?);
        let measured = whole && (clock / params.relax.tail.clocks).is_multiple_of(DRIFT_EVERY);
        let mut traffic = Traffic { measured, ..Traffic::default() };
        let mut room = [T::default(); BLOCK];
        for ((block, range), changed) in blocks(len).zip(&mut self.changed).take(merged) {
            let is_tail = usize::from(block >= self.head);
            let (from, to) = (before[is_tail] * len, after[is_tail] * len);
            let (now, before) = (&self.values[range.clone()], &self.before[range.clone()]);
            let was_changed = std::mem::replace(changed, is_different(now, before));
            // The other slot has not got what changed in the last clock.
            let is_behind = was_changed && params.relax.consistency == Consistency::Bsp;
            if !*changed && !is_behind {
                continue;
            }
            let sums = &mut room[..range.len()];
            all.load(from + range.start, sums)?;
            if *changed {
                for (sum, (now, before)) in sums.iter_mut().zip(now.iter().zip(before)) {
                    *sum = sum.plus(now.minus(*before));
                }
                // After the sums only as far as the clock is, which comes later.
                stamps.store(block, &[clock + 1])?;
                if traffic.measured {
                    traffic.change += size(now.iter().zip(before).map(|(now, before)| now.minus(*before)));
                }
            }
            all.store(to + range.start, sums)?;
            traffic.bytes += size_of_val(sums) as u64;
        }
        if is_published {
            stamps.store(len.div_ceil(BLOCK), &[clock + 1])?;
        }
        if traffic.measured {
            traffic.size = size(self.values.iter().copied());
        }
        Ok(traffic)
    }

    /// Up to which clock that which worker `rank` has changed can be read here.
    pub(crate) fn clock_of(&self, worker: &Worker, rank: usize) -> Result<u64> {
        match &self.shared {
            Some(shared) if shared.stamps.is_published() => {
                Ok(shared.stamps.of(worker, rank)?.get(self.values.len().div_ceil(BLOCK)))
            }
            // Before the clock is told.
            _ => Ok(u64::MAX),
        }
    }

    /// The number of blocks that are merged at a clock.
    fn merged(&self, whole: bool) -> usize {
        if whole { self.changed.len() } else { self.head.min(self.changed.len()) }
    }

    /// Learns what all have changed by the clocks `published`, of the whole or of the head.
    pub(crate) fn refresh(
        &mut self,
        worker: &Worker,
        published: &[u64],
        whole: bool,
        params: &PassParams,
    ) -> Result<Traffic> {
        let traffic = self.add_up(worker, published, 0..self.merged(whole), true, params)?;
        let [head, tail] = &mut self.seen;
        head.copy_from_slice(published);
        if whole {
            tail.copy_from_slice(published);
        }
        Ok(traffic)
    }

    /// Makes the values of these blocks the sums of all, by the clocks `published`; `goes_on` says that the pass does.
    fn add_up(
        &mut self,
        worker: &Worker,
        published: &[u64],
        merged: Range<usize>,
        goes_on: bool,
        params: &PassParams,
    ) -> Result<Traffic> {
        let (len, shared) = (self.values.len(), self.shared.as_ref().ok_or_else(unprepared)?);
        let mut all = Vec::with_capacity(params.workers);
        for (rank, clocks) in published.iter().enumerate() {
            let (sums, stamps) = (shared.sums.of(worker, rank)?, shared.stamps.of(worker, rank)?);
            let places = slots_of(*clocks, params).map(|slot| slot * len);
            all.push((sums, places, stamps, [self.seen[0][rank], self.seen[1][rank]]));
        }
        let (mut traffic, mut room) = (Traffic::default(), [T::default(); BLOCK]);
        for (block, range) in blocks(len).take(merged.end).skip(merged.start) {
            let is_tail = usize::from(block >= self.head);
            if all.iter().all(|(_, _, stamps, seen)| stamps.get(block) <= seen[is_tail]) {
                continue;
            }
            let values = &mut self.values[range.clone()];
            let mut rest = all.iter();
            if let Some((sums, places, ..)) = rest.next() {
                sums.load(places[is_tail] + range.start, values);
            }
            for (sums, places, ..) in rest {
                let theirs = &mut room[..range.len()];
                sums.load(places[is_tail] + range.start, theirs);
                values.iter_mut().zip(theirs).for_each(|(value, theirs)| *value = value.plus(*theirs));
            }
            if goes_on {
                self.before[range].copy_from_slice(values);
            }
            traffic.bytes += (size_of_val(values) * (all.len() - 1)) as u64;
        }
        Ok(traffic)
    }

    /// The final values of these elements of the array, when nobody changes them any more.
    pub(crate) fn fold(
        &mut self,
        worker: &Worker,
        published: &[u64],
        range: Range<usize>,
        params: &PassParams,
    ) -> Result<&[T]> {
        let blocks = range.start / BLOCK..range.end.div_ceil(BLOCK);
        self.add_up(worker, published, blocks, false, params)?;
        Ok(&self.values[range])
    }
}

/// Whether any bit differs.
#[inline]
fn is_different<T: Element>(now: &[T], before: &[T]) -> bool {
    cast_slice::<T, u8>(now) != cast_slice::<T, u8>(before)
}

/// Σ|value|, by several sums that do not wait for each other.
fn size<T: Additive>(values: impl ExactSizeIterator<Item = T>) -> f64 {
    let mut sums = [0.0; 8];
    values.enumerate().for_each(|(at, value)| sums[at % 8] += value.magnitude());
    sums.iter().sum()
}
