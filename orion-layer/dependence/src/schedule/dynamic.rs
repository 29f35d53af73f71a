//! Blocks that are taken as they come free, for loops whose order does not matter.
use super::{Schedule, Serial, Steps};

/// The runtime's own choice, but the blocks of a rotation are taken as they come free: a worker runs its own, that which was
/// used longest ago first, and then those that others have not come to. So who has the slower core runs less, and nobody
/// waits for a worker whose core another program has taken, but at the end of a pass for the block that it has in hand.
///
/// Iterations run in another order each time, so floats have other bits; on one worker, on more than 32 (4 in a rotation over three
/// dimensions), and in loops that are no rotations, that relax something or run on several hosts, it changes nothing. Blocks that conflict share a part of an array, which one worker
/// has at a time.
///
/// A worker that runs another's tile reads that one's entries: entries that may be run elsewhere are in memory twice, and have
/// numbers as values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dynamic;

/// By itself it is serial; the runtime takes its own choice instead.
impl Schedule for Dynamic {
    fn name(&self) -> String {
        "as free".into()
    }

    fn grid(&self, extents: &[usize], workers: usize) -> Vec<usize> {
        Serial.grid(extents, workers)
    }

    fn steps(&self, grid: &[usize], workers: usize) -> Steps {
        Serial.steps(grid, workers)
    }

    fn is_dynamic(&self) -> bool {
        true
    }
}
