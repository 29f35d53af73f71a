//! Elements that are merged at fewer clocks than the others.
use std::ops::Range;

/// The elements of a loop's relaxed and buffered arrays that are merged at fewer clocks than the others: those of rows (in one
/// dimension, elements) from a number on, at every n-th clock, and at the last of a pass.
///
/// In between, a worker sees its own changes of a relaxed array, and of a buffered one what it was when it was merged last. A clock may merge
/// a few more elements of a relaxed array, up to a multiple of 64. Reports of staleness are about the others.
///
/// For long arrays of which few elements are changed all the time and most seldom, as the weights of words or features, whose
/// frequencies follow Zipf's law: with the frequent ones first, these can be merged at many clocks, which keeps steps from overshooting, at
/// the cost of a short array, and all others once or twice in a pass. (Bösen sends what changed most first, for the same reason: Wei et al.,
/// 2015.)
///
/// The guarantees of [`Consistency`](super::Consistency) hold for these elements with *their* clocks: under `Bounded(1)`, a worker
/// has read everybody's changes of them up to the last but one clock at which they are merged. Under
/// [`Consistency::Async`](super::Consistency::Async) in place there are no clocks, and this changes nothing.
///
/// ```
/// use hectare_orion::relax::{Consistency, Every, Tail};
/// use hectare_orion::{parallel_for, run};
///
/// run(2, |w| {
///     let mut counts = w.zeros::<u32, 1>([1000])?;
///     // The first ten at each of 64 clocks, the others at every 32nd: twice in a pass.
///     parallel_for!(w, unordered, relax counts, consistency = Consistency::Bsp, every = Every::PerPass(64), tail = Tail::new(10, 32);
///         for i in 0..100_000 {
///             counts.add(if i % 2 == 0 { i / 2 % 10 } else { i % 1000 }, 1);
///         })?;
///     assert_eq!(counts.get(w, [3])?, 5000 + 100);
///     Ok(())
/// })?;
/// # Ok::<(), hectare_orion::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Tail {
    /// The first row.
    pub(crate) first: usize,
    /// They are merged at every clock whose number is a multiple of this.
    pub(crate) clocks: u64,
}

impl Tail {
    /// All elements are merged at every clock.
    pub const NONE: Tail = Tail { first: usize::MAX, clocks: 1 };

    /// Rows from `first` on are merged at one clock of `clocks`.
    pub const fn new(first: usize, clocks: u64) -> Tail {
        Tail { first, clocks }
    }

    pub(crate) fn is_none(self) -> bool {
        self.first == usize::MAX || self.clocks == 1
    }

    /// How many elements of an array of this shape are merged at every clock.
    pub(crate) fn head(self, shape: &[usize]) -> usize {
        let row: usize = shape.iter().skip(1).product();
        let len = shape.first().map_or(0, |rows| rows * row);
        if self.is_none() { len } else { len.min(self.first.saturating_mul(row)) }
    }

    /// Whether all elements are merged at the end of clock `clock`, from 0.
    pub(crate) fn is_due(self, clock: u64) -> bool {
        (clock + 1).is_multiple_of(self.clocks)
    }
}

impl Default for Tail {
    fn default() -> Tail {
        Tail::NONE
    }
}

/// The elements of an array by how often they are merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The number of those that are merged at every clock.
    pub(crate) head: usize,
    pub(crate) len: usize,
}

impl Extent {
    /// The elements that are merged at a clock: of the whole array, or of the head alone.
    pub(crate) fn merged(self, whole: bool) -> Range<usize> {
        0..if whole { self.len } else { self.head }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_rows_and_no_longer_than_the_array() {
        assert_eq!(Tail::NONE.head(&[5, 3]), 15);
        assert_eq!(Tail::new(2, 4).head(&[5, 3]), 6);
        assert_eq!(Tail::new(0, 4).head(&[5]), 0);
        assert_eq!(Tail::new(9, 4).head(&[5, 3]), 15);
        assert_eq!(Tail::new(2, 1).head(&[5, 3]), 15, "at every clock");
        assert_eq!(Tail::new(usize::MAX - 1, 4).head(&[5, 3]), 15);
    }

    #[test]
    fn tails_are_due_at_the_last_of_their_clocks() {
        let due: Vec<u64> = (0..9).filter(|clock| Tail::new(0, 4).is_due(*clock)).collect();
        assert_eq!(due, [3, 7]);
        assert!((0..9).all(|clock| Tail::NONE.is_due(clock)));
    }
}
