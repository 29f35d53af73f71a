//! Memory that a worker keeps from round to round, so that planning and copying allocate nothing in the long run.
use crate::memory::copy::LineBuffer;
use crate::protocol::presence::Presences;

/// For planning.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) selected: Vec<u32>,
    /// Where each worker stands.
    pub(crate) presences: Presences,
    /// The ranks of this host: the first, and one past the last.
    pub(crate) here: (u32, u32),
    pub(crate) stuck: Vec<Stuck>,
    /// The last cut that was complete when the plan began.
    pub(crate) arrived: u64,
    /// The lowest clock before the round.
    pub(crate) lowest: u64,
    pub(crate) groups: Vec<u32>,
    /// Whether a publication is postponed because every copy is pinned, or because its owner could not look the area through: the
    /// clocks wait for it.
    pub(crate) held_back: bool,
    /// Whether a publication that was asked for is postponed because every copy is pinned: rounds try again.
    pub(crate) postponed: bool,
    /// Whether all who live are in the round, but for known stragglers.
    pub(crate) is_complete: bool,
    /// Bytes to copy, by plan entry.
    pub(crate) bytes: Vec<u64>,
    pub(crate) pinned: Vec<bool>,
}

/// A selected area that could not be planned although it may have something to publish.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stuck {
    pub(crate) area: u32,
    /// Whether the clocks wait for the areas of its group: not if it is another host's.
    pub(crate) holds_clocks: bool,
}

/// Words of the log that are looked at together: one word of the upper level.
pub(crate) const BLOCK_WORDS: usize = 64;

/// For decoding bitmaps.
#[derive(Debug)]
pub(crate) struct CopyScratch {
    pub(crate) lines: LineBuffer,
    pub(crate) bits: [u64; BLOCK_WORDS],
}

impl CopyScratch {
    pub(crate) fn new() -> CopyScratch {
        CopyScratch { lines: LineBuffer::new(), bits: [0; BLOCK_WORDS] }
    }
}
