//! The table of areas: its slots and their states, and the mutex under which they change.
//!
//! The mutex is held for microseconds: memory is taken outside of it (`create.rs`), given back in pieces
//! (`reclaim.rs`), and areas are looked up without it (`find.rs`). The table is the source of truth. The free lists
//! (`heap.rs`), the index of names, the stack of free slots and the queue of deleted areas are derived from it, and
//! rebuilt by whoever finds that a holder of the mutex died.
pub(crate) mod create;
pub(crate) mod find;
mod heap;
pub(crate) mod make;
pub(crate) mod reclaim;
pub(crate) mod spec;

use crate::engine::shared::Shared;
use crate::error::{Error, Rank, Result};
use crate::memory::allocator::Extent;
use crate::memory::mutex::Locked;
use crate::memory::process;
use crate::protocol::{area_state, lookup};
use crate::segment::layout::AreaSlot;
use crate::segment::mapping::Segment;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// In place of a worker's rank: the agent creates.
pub(crate) const AGENT: Rank = Rank::MAX;

pub(crate) use crate::protocol::area_state::{AreaId, CREATING, DELETED, FREE, LIVE, is_live};

/// How long to wait for the directory where the caller set no limit. Its holder has work for microseconds: one that
/// takes longer has stalled.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(5);

pub(crate) fn state_of(slot: &AreaSlot) -> u64 {
    area_state::get(&slot.read.state)
}

pub(crate) fn set_state(slot: &AreaSlot, to: u64) {
    area_state::set(&slot.read.state, to);
}

impl AreaId {
    #[inline]
    pub(crate) fn is_live(self, slot: &AreaSlot) -> bool {
        self.lives_in(&slot.read.state)
    }
}

/// The directory, locked.
#[derive(Debug)]
pub(crate) struct Directory<'a> {
    pub(crate) shared: &'a Shared,
}

impl Drop for Directory<'_> {
    fn drop(&mut self) {
        self.shared.segment.header().directory.unlock();
    }
}

impl<'a> Directory<'a> {
    /// Locks the directory; `wait` is called between tries while somebody else has it.
    ///
    /// # Errors
    /// [`Error::TimedOut`], which names the holder, if that one stands still.
    pub(crate) fn lock(shared: &'a Shared, mut wait: impl FnMut()) -> Result<Directory<'a>> {
        let mut since = None;
        loop {
            if let Some(directory) = Directory::try_lock(shared) {
                return Ok(directory);
            }
            let waited = since.get_or_insert_with(Instant::now).elapsed();
            if waited >= LONGEST_WAIT {
                return Err(Directory::held_by(shared, waited));
            }
            wait();
        }
    }

    /// [`Directory::lock`] for those who serve no rounds.
    pub(crate) fn lock_outside(shared: &'a Shared) -> Result<Directory<'a>> {
        let mut tries = 0;
        Directory::lock(shared, || {
            tries += 1;
            if tries < 100 {
                std::thread::yield_now();
            } else {
                std::thread::sleep(Duration::from_micros(100));
            }
        })
    }

    pub(crate) fn try_lock(shared: &'a Shared) -> Option<Directory<'a>> {
        let header = shared.segment.header();
        let how = header.directory.try_lock()?;
        let (pid, tid) = process::this_thread();
        // Relaxed: only for the errors of those who wait.
        header.directory_holder.store(u64::from(pid) << 32 | u64::from(tid), Ordering::Relaxed);
        let directory = Directory { shared };
        if how == Locked::OwnerDied {
            directory.repair();
        }
        Some(directory)
    }

    #[cold]
    fn held_by(shared: &Shared, waited: Duration) -> Error {
        let holder = shared.segment.header().directory_holder.load(Ordering::Relaxed);
        let (pid, tid) = ((holder >> 32) as u32, holder as u32);
        let how = if process::is_stopped(pid, tid) { "is stopped while it holds it" } else { "holds it" };
        Error::TimedOut {
            what: "the directory of areas".into(),
            waited,
            missing: format!("process {pid} (thread {tid}) {how}: let it go on, or end it"),
        }
    }

    pub(crate) fn segment(&self) -> &'a Segment {
        &self.shared.segment
    }

    pub(crate) fn slots(&self) -> &'a [AreaSlot] {
        &self.segment().areas()[..self.segment().used_areas()]
    }

    /// Gives up what dead creators left half made, and rebuilds everything that follows from the table. What a living
    /// creator is filling stays its own.
    pub(crate) fn repair(&self) {
        for (index, slot) in self.slots().iter().enumerate() {
            if state_of(slot) != DELETED {
                continue;
            }
            self.shared.tell_agent(index);
            if slot.about.deleted_round.load(Ordering::Relaxed) == u64::MAX {
                let now = self.segment().rounds().load_total().round();
                slot.about.deleted_round.store(now, Ordering::Relaxed);
            }
        }
        self.queue_deleted();
        self.make_index();
        self.give_up_dead_creations();
        let segment = self.segment();
        let free = (0..self.slots().len()).rev().filter(|index| state_of(&self.slots()[*index]) == FREE);
        let mut count = 0;
        for (place, index) in segment.free_slots().iter().zip(free) {
            place.store(index as u32, Ordering::Relaxed);
            count += 1;
        }
        segment.header().free_slots.store(count, Ordering::Relaxed);
        self.repair_heap();
    }

    /// Rebuilds the index of names; meanwhile, whoever does not find a name there looks at the table.
    fn make_index(&self) {
        let (segment, made) = (self.segment(), &self.segment().header().index_made);
        lookup::make_anew(made, || {
            segment.clear_index();
            for (index, slot) in self.slots().iter().enumerate() {
                if matches!(state_of(slot), LIVE | CREATING) {
                    self.enter_name(index);
                }
            }
        });
    }

    /// Takes a slot that is free.
    pub(crate) fn take_slot(&self) -> Result<usize> {
        let segment = self.segment();
        let header = segment.header();
        let count = header.free_slots.load(Ordering::Relaxed) as usize;
        if let Some(last) = count.checked_sub(1) {
            header.free_slots.store(last as u32, Ordering::Relaxed);
            return Ok(segment.free_slots()[last].load(Ordering::Relaxed) as usize);
        }
        let used = segment.used_areas();
        if used == segment.config().max_areas as usize {
            return Err(Error::TooManyAreas { max: used });
        }
        // Release: pairs with the acquire in `Segment::used_areas`.
        header.sync.areas_high.store(used as u32 + 1, Ordering::Release);
        Ok(used)
    }

    /// Makes a slot free, whose name and memory were given back.
    pub(crate) fn free_slot(&self, index: usize) {
        let segment = self.segment();
        set_state(&segment.areas()[index], FREE);
        let count = &segment.header().free_slots;
        let used = count.load(Ordering::Relaxed);
        segment.free_slots()[used as usize].store(index as u32, Ordering::Relaxed);
        count.store(used + 1, Ordering::Relaxed);
    }
}

/// The extent of the heap that an area's slot has.
pub(crate) fn extent_of(slot: &AreaSlot) -> Extent {
    let about = &slot.about;
    Extent {
        offset: about.extent_offset.load(Ordering::Relaxed),
        len: about.extent_len.load(Ordering::Relaxed),
    }
}

/// Puts the whole heap on the free list of a new segment.
pub(crate) fn initialize(shared: &Shared) {
    if let Some(directory) = Directory::try_lock(shared) {
        directory.rebuild_heap();
    }
}
