//! The layout of the segment. Offsets and ids only: every process maps it at an address of its own.
//!
//! ```text
//! header        configuration, map of the tables, the words of the round, counters
//! hosts         one per host of a job that is on several: its ranks and their clock
//! host_names    what they are called
//! seats         one per worker: arrival word and clock, on lines of their own
//! workers       one per worker: process, thread, the mutex that tells its death
//! tallies       one per worker and one for reapers: what it counts, on lines of its own
//! observers     one per observer, each with its pins
//! areas         one slot per area: ownership, lock, description
//! names         one name per area slot, one group name per area slot
//! marks         forced, dirty and others: a bit per area each
//! plan          entries and chunks of the round under way
//! index         hashes of names
//! wanted        names that are waited for and that no area here has
//! free slots    a stack of the area slots that are free; deleted: a queue of those that wait for their grace round
//! extents       the free list of the heap, and that of memory that was reserved ahead
//! heap          the areas (see `AreaLayout`)
//! ```
mod agent;
mod area;
mod ending;
mod host_name;
mod marks;
mod plan;

pub(crate) use self::agent::{ANSWER_WORDS, AgentLine, AgentRecord};
pub(crate) use self::area::{AboutLines, AreaLayout, AreaSlot};
pub(crate) use self::ending::Ending;
pub(crate) use self::host_name::HostName;
pub(crate) use self::marks::{Mark, Marks, bits};
pub(crate) use self::plan::{Chunk, PlanEntry, PlanHeader};

pub(crate) use crate::memory::LINE;
use crate::memory::mutex::RobustMutex;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::protocol::division::Speeds;
use crate::protocol::due::Due;
use crate::protocol::remote_clocks::HostRecord;
use crate::protocol::round::Seat;
use crate::segment::tally::{Counters, Tally};

/// The first eight bytes of a segment.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"hectare\0");
/// Rises with every change of what this file describes.
pub(crate) const LAYOUT_VERSION: u32 = 30;
/// Smallest page.
pub(crate) const PAGE: u64 = 4096;
/// Huge page.
pub(crate) const HUGE: u64 = 2 << 20;

/// Names that may be wanted at a time; who finds no room asks again.
pub(crate) const MAX_WANTED: usize = 64;

/// The words of a name on the list of wanted ones, beside its bytes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct WantedWords {
    pub(crate) len: AtomicU32,
    /// Somebody took the elements of the area for such: size, alignment, kind. Zeros: somebody waits for the name.
    pub(crate) taken_for: [AtomicU32; 3],
}

/// Values of `Config::stall_policy`.
pub(crate) const STALL_WAIT: u32 = 0;
pub(crate) const STALL_KILL: u32 = 1;
pub(crate) const STALL_PIN: u32 = 2;

/// The configuration of a job, fixed when its segment is made.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Config {
    pub(crate) reserve_bytes: u64,
    pub(crate) round_timeout_ns: u64,
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
    /// How many hosts the job is on; 0: one that knows of no other. And which one this is.
    pub(crate) hosts: u32,
    pub(crate) here: u32,
    /// The fewest reader copies of an area that has any.
    pub(crate) min_copies: u32,
    pub(crate) _spare: u32,
}

/// Where each table begins, in bytes from the start of the segment.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Map {
    pub(crate) hosts: u64,
    pub(crate) host_names: u64,
    pub(crate) seats: u64,
    pub(crate) workers: u64,
    pub(crate) tallies: u64,
    pub(crate) observers: u64,
    pub(crate) pins: u64,
    pub(crate) areas: u64,
    pub(crate) names: u64,
    pub(crate) groups: u64,
    pub(crate) marks: u64,
    pub(crate) plan_entries: u64,
    pub(crate) plan_chunks: u64,
    pub(crate) max_chunks: u64,
    pub(crate) index: u64,
    pub(crate) index_cells: u64,
    pub(crate) wanted: u64,
    pub(crate) wanted_words: u64,
    pub(crate) free_slots: u64,
    pub(crate) deleted: u64,
    pub(crate) extents: u64,
    pub(crate) max_extents: u64,
    pub(crate) backed: u64,
    pub(crate) max_backed: u64,
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
        // Extents of memory that was reserved ahead lie between areas; free ones between both.
        let (max_backed, max_extents) = (areas + 2, 2 * (areas + 2));
        let index_cells = (4 * areas).next_power_of_two();
        let map = Map {
            hosts: place(u64::from(config.hosts), size_of::<HostRecord>())?,
            host_names: place(u64::from(config.hosts), size_of::<HostName>())?,
            seats: place(workers, size_of::<Seat>())?,
            workers: place(workers, size_of::<WorkerRecord>())?,
            tallies: place(workers + 1, size_of::<Tally>())?,
            observers: place(observers, size_of::<ObserverRecord>())?,
            pins: place(observers * u64::from(config.pins_per_observer), 8)?,
            areas: place(areas, size_of::<AreaSlot>())?,
            names: place(areas, config.max_name_bytes as usize)?,
            groups: place(areas, config.max_name_bytes as usize)?,
            marks: place(areas.div_ceil(64), size_of::<Marks>())?,
            plan_entries: place(areas, size_of::<PlanEntry>())?,
            plan_chunks: place(max_chunks, size_of::<Chunk>())?,
            max_chunks,
            index: place(index_cells, 4)?,
            index_cells,
            wanted: place(MAX_WANTED as u64, config.max_name_bytes as usize)?,
            wanted_words: place(MAX_WANTED as u64, size_of::<WantedWords>())?,
            free_slots: place(areas, 4)?,
            deleted: place(areas, 4)?,
            extents: place(max_extents, 16)?,
            max_extents,
            backed: place(max_backed, 16)?,
            max_backed,
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
    /// The first process's measurements of the copy kernels (`Measured` of `copy/calibrate.rs`); 0 before.
    pub(crate) copy_measured: AtomicU32,
    pub(crate) config: Config,
    pub(crate) map: Map,
    /// Creation and deletion of areas, and the heap.
    pub(crate) directory: RobustMutex,
    /// `process << 32 | thread` of the last that held `directory`.
    pub(crate) directory_holder: AtomicU64,
    /// Who frees the slots of dead workers.
    pub(crate) membership: RobustMutex,
    /// Process of the last that held `membership` to do so, and its start time in clock ticks.
    pub(crate) reaper_pid: AtomicU32,
    pub(crate) reaper_started: AtomicU64,
    /// As `WorkerRecord::condemned`, of a reaper without a slot.
    pub(crate) reaper_condemned: AtomicU64,
    pub(crate) extents_len: AtomicU64,
    /// Of the list of memory that was reserved ahead: its length, and the bytes in it.
    pub(crate) backed_len: AtomicU64,
    pub(crate) backed_bytes: AtomicU64,
    /// Bytes of the areas that are made of such memory.
    pub(crate) small_bytes: AtomicU64,
    /// Odd while the index of names is rebuilt.
    pub(crate) index_made: AtomicU64,
    /// How many slots are on the stack of free ones.
    pub(crate) free_slots: AtomicU32,
    /// Where the queue of deleted areas begins.
    pub(crate) deleted_head: AtomicU32,
    /// Areas that were deleted and whose memory waits for its grace round: the length of that queue.
    pub(crate) pending_frees: AtomicU32,
    /// Not 0: some `WorkerRecord::creating` may not be.
    pub(crate) creations: AtomicU32,
    pub(crate) next_group: AtomicU32,
    /// How many names are wanted. Written under the directory mutex.
    pub(crate) wanted: AtomicU32,
    /// Processes with a thread that sleeps on `SyncWords::published`.
    pub(crate) notifiers: AtomicU32,
    /// `counts << 32 | workers`, see `Shared::recount`.
    pub(crate) live_workers: AtomicU64,
    pub(crate) sync: SyncWords,
    /// Who stands in for other hosts.
    pub(crate) agent: AgentRecord,
    /// Why the job has ended on all hosts, if it has.
    pub(crate) ending: Ending,
    /// How fast small areas are copied.
    pub(crate) speeds: Padded<Speeds>,
    pub(crate) counters: Counters,
}

/// The words of the round, each on lines of its own.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct SyncWords {
    pub(crate) word: Padded<AtomicU64>,
    /// The words that the actor of a round writes, together: the line changes hands once per round.
    pub(crate) acting: Padded<ActorWords>,
    /// Nanoseconds (monotonic) at which the next area falls due; `u64::MAX` for never.
    pub(crate) next_due_ns: Padded<AtomicU64>,
    /// Somebody outside the rounds asks for one.
    requested: AtomicU32,
    pub(crate) areas_high: AtomicU32,
    pub(crate) workers_high: AtomicU32,
    pub(crate) observers_high: AtomicU32,
    /// Rises when an area with an interval was created: [`Due::entered`].
    pub(crate) timed_areas: AtomicU32,
    /// Rises with every round that published something: what notifiers sleep on.
    pub(crate) published: Padded<AtomicU32>,
}

impl SyncWords {
    /// The words that say when an area falls due.
    pub(crate) fn due(&self) -> Due<'_> {
        Due { entered: &self.timed_areas, next_ns: &self.next_due_ns }
    }

    /// Asks for a round, which publishes what was forced before.
    pub(crate) fn request(&self) {
        // Release: pairs with the acquire in `take_request`.
        self.requested.store(1, Ordering::Release);
    }

    /// Whether somebody asks for a round that nobody has opened.
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed) != 0
    }

    /// Whether somebody asks for a round; the caller opens it.
    pub(crate) fn take_request(&self) -> bool {
        // Acquire: pairs with the release in `request`. The first look is Relaxed: only a hint.
        self.requested.load(Ordering::Relaxed) != 0 && self.requested.swap(0, Ordering::Acquire) != 0
    }
}

/// The words that only the actor of a round writes.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ActorWords {
    pub(crate) actor: AtomicU64,
    /// The last round that was completed, as against given up.
    pub(crate) completed: AtomicU64,
    /// The last round that was planned without some live worker.
    pub(crate) partial: AtomicU64,
    /// The last round that was completed with all in it whom rounds wait for: not one that waited for nobody.
    pub(crate) whole: AtomicU64,
    /// The lowest clock that every worker had reached when it arrived in the last round, those of other hosts as far as
    /// their agents have told.
    pub(crate) lowest_clock: AtomicU64,
    /// The same of the workers of this host alone.
    pub(crate) local_clock: AtomicU64,
    /// Rounds that began.
    pub(crate) rounds: AtomicU64,
    /// How many rounds in a row, the last one among them, have postponed what was asked for because every copy is pinned.
    pub(crate) postponed: AtomicU32,
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
    /// Where the stack of the process begins, against ids reused within a tick; 0 if it is not known.
    pub(crate) stack: AtomicU64,
    /// The process of the slot that was last to be killed for a stall: its id and the low half of its start time. The highest
    /// bit: it was killed, and counted.
    pub(crate) condemned: AtomicU64,
    /// The slot of the area that the worker is creating, plus one; 0 for none. Set under the directory mutex.
    pub(crate) creating: AtomicU32,
    /// The PID namespace that `pid` and `tid` belong to; 0 if it is not known.
    pub(crate) namespace: AtomicU64,
    /// Not 0: the launcher says that the process for this rank has failed and that nobody comes in its place. The
    /// lowest is of the one that failed first. Of a worker of another host, its host says so.
    pub(crate) absent: AtomicU32,
    /// Not 0: the worker that has the rank, or had it last, says that it fails because another one has.
    pub(crate) follows: AtomicU32,
    /// When the thread of the worker was first seen to have ended without leaving, in nanoseconds (monotonic); 0 before.
    pub(crate) ended_ns: AtomicU64,
}

/// An observer: reads without taking part in rounds.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct ObserverRecord {
    pub(crate) life: RobustMutex,
    pub(crate) state: AtomicU32,
    pub(crate) pid: AtomicU32,
}
