//! A cut that arrived before it may begin, with its packets.
use crate::intervals::Intervals;
use crate::types::HostId;
use crate::wire::Cut;

/// The most lines of a cut that is kept.
pub(super) const HELD_LINES: u64 = 1024;

/// A cut that has not begun.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) from: HostId,
    pub(super) cut: Cut,
    /// Its data frames, as they came.
    pub(super) frames: Vec<u8>,
    pub(super) came: Intervals,
    pub(super) since_ns: u64,
}
