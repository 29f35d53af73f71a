//! What lies where in the segment. Offsets and ids only: every process maps it at an address of its own.
//!
//! ```text
//! header        configuration, map of the tables, the words of the round, counters
//! seats         one per worker: arrival word and clock, on lines of their own
//! workers       one per worker: process, thread, the mutex that tells its death
//! tallies       one per worker and one for reapers: what it counts, on lines of its own
//! observers     one per observer, each with its pins
//! areas         one slot per area: ownership, lock, description
//! names         one name per area slot, one group name per area slot
//! flags         dirty and forced: a byte per area each
//! plan          entries and chunks of the round under way
//! extents       the free list of the heap
//! heap          the areas (see `AreaLayout`)
//! ```
use super::mutex::RobustMutex;
use crate::primitive::{AtomicU32, AtomicU64};
use crate::sync::round::Seat;
use crate::sync::tally::{Counters, Tally};
use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

/// The first eight bytes of a segment.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"hectare\0");
/// Rises with every change of what this file describes.
pub(crate) const LAYOUT_VERSION: u32 = 6;
/// Smallest page.
pub(crate) const PAGE: u64 = 4096;
/// Huge page.
pub(crate) const HUGE: u64 = 2 << 20;
/// Unit of the write log: one bit per line.
pub(crate) const LINE: u64 = 64;

/// The configuration of a job, fixed when its segment is made.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Config {
    pub(crate) reserve_bytes: u64,
    pub(crate) patience_ns: u64,
    pub(crate) stall_after_ns: u64,
    pub(crate) max_workers: u32,
    pub(crate) max_observers: u32,
    pub(crate) pins_per_observer: u32,
    pub(crate) max_areas: u32,
    pub(crate) max_name_bytes: u32,
    pub(crate) generations: u32,
    pub(crate) seal_every: u32,
    pub(crate) stall_policy: u32,
    pub(crate) huge_pages: u32,
    pub(crate) check: u32,
}

/// Where each table begins, in bytes from the start of the segment.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Map {
    pub(crate) seats: u64,
    pub(crate) workers: u64,
    pub(crate) tallies: u64,
    pub(crate) observers: u64,
    pub(crate) pins: u64,
    pub(crate) areas: u64,
    pub(crate) names: u64,
    pub(crate) groups: u64,
    pub(crate) dirty: u64,
    pub(crate) forced: u64,
    pub(crate) plan_entries: u64,
    pub(crate) plan_chunks: u64,
    pub(crate) max_chunks: u64,
    pub(crate) extents: u64,
    pub(crate) max_extents: u64,
    pub(crate) heap: u64,
    pub(crate) end: u64,
}

impl Map {
    /// Lays the tables out one after the other, each on a page of its own.
    pub(crate) fn of(config: &Config) -> Option<Map> {
        let mut at = (size_of::<Header>() as u64).next_multiple_of(PAGE);
        let mut place = |count: u64, size: usize| -> Option<u64> {
            let here = at;
            at = at.checked_add(count.checked_mul(size as u64)?)?.checked_next_multiple_of(PAGE)?;
            Some(here)
        };
        let (workers, areas) = (u64::from(config.max_workers), u64::from(config.max_areas));
        let observers = u64::from(config.max_observers);
        let max_chunks = areas + 16 * workers + 1024;
        let max_extents = areas + 2;
        let map = Map {
            seats: place(workers, size_of::<Seat>())?,
            workers: place(workers, size_of::<WorkerRecord>())?,
            tallies: place(workers + 1, size_of::<Tally>())?,
            observers: place(observers, size_of::<ObserverRecord>())?,
            pins: place(observers * u64::from(config.pins_per_observer), 8)?,
            areas: place(areas, size_of::<AreaSlot>())?,
            names: place(areas, config.max_name_bytes as usize)?,
            groups: place(areas, config.max_name_bytes as usize)?,
            dirty: place(areas, 1)?,
            forced: place(areas, 1)?,
            plan_entries: place(areas, size_of::<PlanEntry>())?,
            plan_chunks: place(max_chunks, size_of::<Chunk>())?,
            max_chunks,
            extents: place(max_extents, 16)?,
            max_extents,
            heap: 0,
            end: 0,
        };
        let heap = at.checked_next_multiple_of(HUGE)?;
        let end = heap.checked_add(config.reserve_bytes)?.checked_next_multiple_of(HUGE)?;
        Some(Map { heap, end, ..map })
    }
}

/// The head of the segment.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    pub(crate) layout_version: AtomicU32,
    /// Where non-temporal stores begin, in KiB, as the first process measured it; 0 before.
    pub(crate) non_temporal_kib: AtomicU32,
    pub(crate) config: Config,
    pub(crate) map: Map,
    /// Creation and deletion of areas, and the heap.
    pub(crate) directory: RobustMutex,
    /// Who frees the slots of dead workers.
    pub(crate) membership: RobustMutex,
    /// Process of the last that held `membership` to do so, and its start time in clock ticks.
    pub(crate) reaper_pid: AtomicU32,
    pub(crate) reaper_started: AtomicU64,
    /// As `WorkerRecord::condemned`, of a reaper without a slot.
    pub(crate) reaper_condemned: AtomicU64,
    pub(crate) extents_len: AtomicU64,
    /// Areas that were deleted and whose memory waits for its grace round.
    pub(crate) pending_frees: AtomicU32,
    pub(crate) next_group: AtomicU32,
    /// Processes with a thread that sleeps on `SyncWords::published`.
    pub(crate) notifiers: AtomicU32,
    /// `counts << 32 | workers`, see `Shared::recount`.
    pub(crate) live_workers: AtomicU64,
    pub(crate) sync: SyncWords,
    pub(crate) counters: Counters,
}

/// The words of the round, each on lines of its own.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SyncWords {
    pub(crate) word: Padded<AtomicU64>,
    /// What the actor of a round writes, together: the line changes hands once per round.
    pub(crate) acting: Padded<ActorWords>,
    /// Nanoseconds (monotonic) at which the next area falls due; `u64::MAX` for never.
    pub(crate) next_due_ns: Padded<AtomicU64>,
    /// Somebody outside the rounds asks for one.
    pub(crate) requested: AtomicU32,
    pub(crate) areas_high: AtomicU32,
    pub(crate) workers_high: AtomicU32,
    pub(crate) observers_high: AtomicU32,
    /// Rises with every round that published something: what notifiers sleep on.
    pub(crate) published: Padded<AtomicU32>,
}

/// What only the actor of a round writes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ActorWords {
    pub(crate) actor: AtomicU64,
    /// The last round that was completed, as against given up.
    pub(crate) completed: AtomicU64,
    /// The last round that was planned without some live worker.
    pub(crate) partial: AtomicU64,
    /// The lowest clock that every worker had reached when it arrived in the last round.
    pub(crate) lowest_clock: AtomicU64,
    /// Rounds that began.
    pub(crate) rounds: AtomicU64,
    pub(crate) plan: PlanHeader,
}

/// A value on cache lines of its own.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> std::ops::Deref for Padded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Who sits in a worker slot.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct WorkerRecord {
    /// Held by the worker's thread for as long as it is a worker; the kernel releases it on death.
    pub(crate) life: RobustMutex,
    pub(crate) pid: AtomicU32,
    pub(crate) tid: AtomicU32,
    /// Start time of the process in clock ticks, against reused ids.
    pub(crate) started: AtomicU64,
    /// The process of the slot that was last killed for a stall: its id and the low half of its start time.
    pub(crate) condemned: AtomicU64,
    /// The PID namespace that `pid` and `tid` belong to; 0 if it is not known.
    pub(crate) namespace: AtomicU64,
    /// 1: the launcher says that the process for this rank failed and that nobody will come in its place.
    pub(crate) absent: AtomicU32,
}

/// An observer: reads without taking part in rounds.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct ObserverRecord {
    pub(crate) life: RobustMutex,
    pub(crate) state: AtomicU32,
    pub(crate) pid: AtomicU32,
}

/// An area's slot in the table.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct AreaSlot {
    pub(crate) read: ReadLine,
    pub(crate) own: OwnLine,
    pub(crate) round: RoundLine,
    pub(crate) about: AboutLines,
    /// Written while the slot is being created, read while the area lives.
    pub(crate) layout: UnsafeCell<AreaLayout>,
}

// SAFETY: everything but `layout` is atomics; `layout` is written by the creator alone, before the release
// store of the state that makes the area live, and read only after an acquire load of that state or by
// those who created it.
unsafe impl Sync for AreaSlot {}

/// What every read looks at.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct ReadLine {
    /// `generation << 3 | state`, see `area::table`.
    pub(crate) state: AtomicU64,
    /// The index of the newest published reader copy.
    pub(crate) current: AtomicU32,
}

/// What the owner writes.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct OwnLine {
    /// `epoch << 24 | state << 20 | rank`, see `area::transfer`.
    pub(crate) ownership: AtomicU64,
    /// Nonzero once a raw pointer was handed out: unlogged lines may differ.
    pub(crate) raw: AtomicU32,
    /// The last round for which the owner looked the area through, if it is one to be looked through.
    pub(crate) scanned: AtomicU64,
    /// Nonzero once the area was lent: a claimer waits for those who may still read the writer copy.
    pub(crate) lent: AtomicU32,
}

/// What rounds write.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct RoundLine {
    /// The last round that planned this area; a claimer waits for that round to be past.
    pub(crate) lock: AtomicU64,
    pub(crate) next_due_ns: AtomicU64,
    /// Rises when ownership is taken without consent.
    pub(crate) term: AtomicU64,
    /// Monotonic nanoseconds at which the newest copy was last known to equal the writer's.
    pub(crate) confirmed_ns: AtomicU64,
    /// Which generation the log goes to now.
    pub(crate) open_generation: AtomicU32,
    pub(crate) since_seal: AtomicU32,
    pub(crate) seal_requested: AtomicU32,
    /// Rises before and after generations change places; odd in between.
    pub(crate) generations_seq: AtomicU32,
    pub(crate) put_off: AtomicU64,
}

/// What does not change while the area lives.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct AboutLines {
    pub(crate) extent_offset: AtomicU64,
    pub(crate) extent_len: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Elements.
    pub(crate) len: AtomicU64,
    pub(crate) interval_ns: AtomicU64,
    pub(crate) elem_size: AtomicU32,
    pub(crate) elem_align: AtomicU32,
    pub(crate) elem_kind: AtomicU32,
    pub(crate) copies: AtomicU32,
    pub(crate) flags: AtomicU32,
    pub(crate) group: AtomicU32,
    pub(crate) row_len: AtomicU32,
    pub(crate) name_len: AtomicU32,
    pub(crate) group_len: AtomicU32,
    pub(crate) deleted_round: AtomicU64,
}

/// A reader copy's record, at the start of the area's extent.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct CopyRecord {
    /// The round that published what the copy holds.
    pub(crate) round: AtomicU64,
    pub(crate) term: AtomicU64,
    pub(crate) counter: AtomicU64,
    /// Monotonic nanoseconds of that round.
    pub(crate) timestamp_ns: AtomicU64,
    /// The owner's clock at that round.
    pub(crate) clock: AtomicU64,
    /// 0: holds a version; 1: being written; 2: quarantined.
    pub(crate) state: AtomicU32,
    /// Whether the copy's `owed` bitmap has any bit.
    pub(crate) owes: AtomicU32,
    /// For a quarantined copy: the round whose participants may still be writing it.
    pub(crate) quarantine: AtomicU64,
}

/// The range of versions that a generation covers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct GenerationRecord {
    /// The newest counter whose changes it holds; 0: none.
    pub(crate) newest: AtomicU64,
}

/// The head of the plan.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PlanHeader {
    pub(crate) entries: AtomicU32,
    pub(crate) chunks: AtomicU32,
    pub(crate) bytes: AtomicU64,
    pub(crate) workers: AtomicU32,
    pub(crate) now_ns: AtomicU64,
    /// What `ActorWords::lowest_clock` becomes when the plan is published as a whole.
    pub(crate) lowest_clock: AtomicU64,
}

/// One area in the plan: everything that publication will write, as absolute values.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PlanEntry {
    pub(crate) area: AtomicU32,
    pub(crate) copy: AtomicU32,
    pub(crate) owner: AtomicU32,
    /// 0: copy and publish; 1: abandoned, its copy is quarantined.
    pub(crate) abandoned: AtomicU32,
    /// 1: every line, whatever the log says.
    pub(crate) whole: AtomicU32,
    pub(crate) _spare: AtomicU32,
    pub(crate) term: AtomicU64,
    pub(crate) counter: AtomicU64,
    pub(crate) clock: AtomicU64,
}

impl PlanEntry {
    /// Takes over what another entry says.
    pub(crate) fn copy_from(&self, other: &PlanEntry) {
        let small = |to: &AtomicU32, from: &AtomicU32| to.store(from.load(Relaxed), Relaxed);
        let large = |to: &AtomicU64, from: &AtomicU64| to.store(from.load(Relaxed), Relaxed);
        small(&self.area, &other.area);
        small(&self.copy, &other.copy);
        small(&self.owner, &other.owner);
        small(&self.abandoned, &other.abandoned);
        small(&self.whole, &other.whole);
        large(&self.term, &other.term);
        large(&self.counter, &other.counter);
        large(&self.clock, &other.clock);
    }
}

/// A piece of an area to copy.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Chunk {
    /// See `sync::claim`.
    pub(crate) claim: AtomicU64,
    pub(crate) entry: AtomicU32,
    pub(crate) owner: AtomicU32,
    /// First log word and number of log words (64 lines each).
    pub(crate) first: AtomicU64,
    pub(crate) words: AtomicU64,
}

/// Where the parts of an area lie, in bytes from the start of its extent.
///
/// Computed when the area is created and kept in its slot.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AreaLayout {
    pub(crate) copies: u32,
    logged: u32,
    pub(crate) generations: u32,
    _spare: u32,
    pub(crate) lines: u64,
    pub(crate) words: u64,
    pub(crate) upper_words: u64,
    pub(crate) writers: u64,
    pub(crate) level0: u64,
    pub(crate) level1: u64,
    pub(crate) generation_records: u64,
    pub(crate) generation_bits: u64,
    pub(crate) owed: u64,
    /// End of the part before the data.
    pub(crate) meta_end: u64,
    pub(crate) writer: u64,
    /// Distance between the writer copy and the first reader copy, and between reader copies.
    pub(crate) stride: u64,
    pub(crate) end: u64,
    pub(crate) align: u64,
}

impl AreaLayout {
    /// `None` if the sizes overflow.
    pub(crate) fn of(bytes: u64, copies: u32, logged: bool, config: &Config) -> Option<AreaLayout> {
        let lines = bytes.div_ceil(LINE);
        let words = lines.div_ceil(64);
        let upper_words = words.div_ceil(64);
        let logged = logged && copies > 0;
        let generations = if logged { config.generations } else { 0 };
        let mut at = 0u64;
        let mut place = |count: u64, size: u64| -> Option<u64> {
            let here = at;
            at = at.checked_add(count.checked_mul(size)?)?.checked_next_multiple_of(128)?;
            Some(here)
        };
        place(u64::from(copies), size_of::<CopyRecord>() as u64)?;
        let writers = place(u64::from(config.max_workers).div_ceil(64), 8)?;
        let bits = if logged { words } else { 0 };
        let level0 = place(bits, 8)?;
        let level1 = place(if logged { upper_words } else { 0 }, 8)?;
        let generation_records = place(u64::from(generations), size_of::<GenerationRecord>() as u64)?;
        let generation_bits = place(u64::from(generations).checked_mul(bits)?, 8)?;
        let owed = place(if copies > 1 { u64::from(copies).checked_mul(bits)? } else { 0 }, 8)?;
        let meta_end = at.checked_next_multiple_of(PAGE)?;
        let align = if bytes >= HUGE && config.huge_pages != 0 { HUGE } else { PAGE };
        let stride = bytes.checked_next_multiple_of(align)?;
        let writer = meta_end.checked_next_multiple_of(align)?;
        let end = writer.checked_add(stride.checked_mul(u64::from(copies) + 1)?)?;
        Some(AreaLayout {
            copies,
            logged: u32::from(logged),
            _spare: 0,
            lines,
            words,
            upper_words,
            generations,
            writers,
            level0,
            level1,
            generation_records,
            generation_bits,
            owed,
            meta_end,
            writer,
            stride,
            end: end.max(PAGE),
            align,
        })
    }

    /// Whether the area has a log.
    #[inline]
    pub(crate) fn is_logged(&self) -> bool {
        self.logged != 0
    }

    /// Bytes of memory that the area takes, at worst.
    pub(crate) fn footprint(&self) -> u64 {
        self.meta_end + self.data_bytes() * (u64::from(self.copies) + 1)
    }

    /// Bytes of one copy that are backed by memory, in whole pages.
    pub(crate) fn data_bytes(&self) -> u64 {
        (self.lines * LINE).next_multiple_of(PAGE)
    }
}

/// The byte flags of the area table.
pub(crate) type Flags<'a> = &'a [AtomicU8];
