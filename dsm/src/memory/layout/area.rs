//! An area's slot in the table, and what lies in its extent.
use super::{Config, HUGE, LINE, PAGE};
use crate::primitive::{AtomicU32, AtomicU64};
use std::cell::UnsafeCell;

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
