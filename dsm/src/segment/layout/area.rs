//! An area's slot in the table, and what lies in its extent.
use super::{AgentLine, Config, HUGE, LINE, PAGE};
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::protocol::generations::{GenerationRecord, GenerationWords};
use crate::protocol::record::CopyRecord;
use crate::protocol::tasks::OpeningWords;
use std::cell::UnsafeCell;

/// An area's slot in the table.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct AreaSlot {
    pub(crate) read: ReadLine,
    pub(crate) own: OwnLine,
    pub(crate) round: RoundLine,
    pub(crate) about: AboutLines,
    pub(crate) agent: AgentLine,
    /// Written while the slot is being created, read while the area lives.
    pub(crate) layout: UnsafeCell<AreaLayout>,
}

/// The layout as words that may be read while the slot is made another area's.
type LayoutWords = [AtomicU64; size_of::<AreaLayout>() / 8];

impl AreaSlot {
    fn layout_words(&self) -> &LayoutWords {
        const { assert!(size_of::<AreaLayout>().is_multiple_of(8) && align_of::<AreaLayout>() == 8) };
        // SAFETY: as large and as aligned; the layout is written only through these atomics (`set_layout`), and read
        // otherwise only while nobody writes it.
        unsafe { &*self.layout.get().cast::<LayoutWords>() }
    }

    /// Writes the layout; the caller is creating the area.
    pub(crate) fn set_layout(&self, layout: &AreaLayout) {
        let words: [u64; size_of::<AreaLayout>() / 8] = bytemuck::cast(*layout);
        for (place, word) in self.layout_words().iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
    }

    /// A copy of the layout; mixed, unless the caller finds the slot unchanged afterwards.
    pub(crate) fn layout_copy(&self) -> AreaLayout {
        let mut words = [0u64; size_of::<AreaLayout>() / 8];
        for (word, place) in words.iter_mut().zip(self.layout_words()) {
            *word = place.load(Ordering::Relaxed);
        }
        bytemuck::cast(words)
    }
}

// SAFETY: everything but `layout` is atomics; `layout` is written by the creator alone, before the release
// store of the state that makes the area live, and read only after an acquire load of that state or by
// those who created it.
unsafe impl Sync for AreaSlot {}

/// The line that every read looks at.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct ReadLine {
    /// `generation << 3 | state`, see `area::table`.
    pub(crate) state: AtomicU64,
    /// The index of the newest published reader copy.
    pub(crate) current: AtomicU32,
}

/// The line that the owner writes.
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
    /// Of an area that is open to tasks: their runs.
    pub(crate) runs: OpeningWords,
}

/// The line that rounds write.
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
    pub(crate) generations: GenerationWords,
    pub(crate) postponed: AtomicU64,
    /// The round of the last state of the label before the newest, in a job on several hosts; `label::NONE`: there is none.
    pub(crate) kept: AtomicU64,
}

/// The lines that do not change while the area lives.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct AboutLines {
    pub(crate) extent_offset: AtomicU64,
    pub(crate) extent_len: AtomicU64,
    /// Elements.
    pub(crate) len: AtomicU64,
    pub(crate) interval_ns: AtomicU64,
    pub(crate) external_interval_ns: AtomicU64,
    pub(crate) elem_size: AtomicU32,
    pub(crate) elem_align: AtomicU32,
    pub(crate) elem_kind: AtomicU32,
    pub(crate) copies: AtomicU32,
    pub(crate) flags: AtomicU32,
    pub(crate) group: AtomicU32,
    pub(crate) row_len: AtomicU32,
    pub(crate) name_len: AtomicU32,
    pub(crate) group_len: AtomicU32,
    /// The last round in which somebody may have seen the area; `u64::MAX` until it is known, 0 if nobody has.
    pub(crate) deleted_round: AtomicU64,
    /// While the area is being created: `incarnation << 32 | rank` of the worker that does.
    pub(crate) creator: AtomicU64,
    /// If the area is a small one, the bytes with which it counts in `Header::small_bytes`.
    pub(crate) small: AtomicU64,
    /// Not 0: the extent goes to the memory that is reserved ahead when the area is gone.
    pub(crate) backed: AtomicU32,
    /// After deletion: how much of the extent was given back.
    pub(crate) punched: AtomicU64,
}

/// Where the parts of an area lie, in bytes from the start of its extent.
///
/// Computed when the area is created and kept in its slot.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
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

    /// Bytes of memory that the area takes, at worst, if `present` of its reader copies have memory.
    pub(crate) fn footprint(&self, present: u32) -> u64 {
        self.meta_end + self.data_bytes() * (u64::from(present.min(self.copies)) + 1)
    }

    /// Bytes of one copy that are backed by memory, in whole pages.
    pub(crate) fn data_bytes(&self) -> u64 {
        (self.lines * LINE).next_multiple_of(PAGE)
    }
}
