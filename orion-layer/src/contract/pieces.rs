//! The iterations that the body of a loop with a `slice` closure gets in one call: those of a cell, or of a list, in consecutive pieces.
use super::arrays::Of;
use super::notes::Noted;
use super::space::IterationSpace;
use hectare_dependence::inspect::TooMany;
use std::cell::Cell;
use std::fmt;

/// Iterations in pieces, one piece after the other: a whole cell, or those of a list.
pub struct Pieces<'a, S: IterationSpace> {
    whole: Option<Of<'a, S::Chunks>>,
    rest: &'a [u32],
    from: Option<(&'a S::Placed, &'a [Vec<i64>])>,
}

/// The least number of consecutive iterations that are passed as one piece. Shorter runs are passed one iteration at a time: their
/// lengths change from one to the next, and a loop whose length changes each time costs mispredicted branches.
const LONG: usize = 8;

impl<'a, S: IterationSpace> Pieces<'a, S> {
    /// One piece.
    pub fn one(piece: Of<'a, S::Chunks>) -> Pieces<'a, S> {
        Pieces { whole: Some(piece), rest: &[], from: None }
    }

    /// The iterations of a list, by their numbers, of a space that is placed in one cell.
    #[inline(always)]
    pub(crate) fn of_list(placed: &'a S::Placed, cuts: &'a [Vec<i64>], list: &'a [u32]) -> Pieces<'a, S> {
        Pieces { whole: None, rest: list, from: Some((placed, cuts)) }
    }
}

/// How many iterations at the beginning of a list are next to each other, if they are many; otherwise 1.
#[inline(always)]
fn side_by_side(list: &[u32], most: usize) -> usize {
    match (list.first(), list.get(LONG - 1)) {
        (Some(first), Some(last)) if most >= LONG && last.wrapping_sub(*first) == LONG as u32 - 1 => {
            run_of(list, most)
        }
        _ => 1,
    }
}

#[cold]
#[inline(never)]
fn run_of(list: &[u32], most: usize) -> usize {
    let all = list.windows(2).take_while(|pair| pair[1] == pair[0].wrapping_add(1)).count() + 1;
    if all < LONG { 1 } else { all.min(most) }
}

impl<'a, S: IterationSpace> Iterator for Pieces<'a, S> {
    type Item = Of<'a, S::Chunks>;

    #[inline(always)]
    fn next(&mut self) -> Option<Of<'a, S::Chunks>> {
        let Some((placed, cuts)) = self.from else { return self.whole.take() };
        let first = *self.rest.first()? as usize;
        let count = side_by_side(self.rest, S::LONGEST_PIECE);
        self.rest = &self.rest[count..];
        Some(S::piece(placed, cuts, first..first + count))
    }
}

impl<S: IterationSpace> fmt::Debug for Pieces<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("is_list", &self.from.is_some()).finish_non_exhaustive()
    }
}

/// Iterations for one call of a slice: a cell, or all of a loop that is inspected, of which each has ended when the next is asked for.
pub struct SlicePieces<'a, S: IterationSpace> {
    whole: Option<Of<'a, S::Chunks>>,
    each: Option<Each<'a, S>>,
}

/// All iterations of a space that is placed in one cell, one at a time.
pub(crate) struct Each<'a, S: IterationSpace> {
    pub(crate) placed: &'a S::Placed,
    pub(crate) cuts: &'a [Vec<i64>],
    pub(crate) count: usize,
    /// How many have begun.
    pub(crate) begun: &'a Cell<usize>,
    pub(crate) noted: &'a Noted,
    /// Why it ended early.
    pub(crate) failed: &'a Cell<Option<TooMany>>,
}

impl<'a, S: IterationSpace> SlicePieces<'a, S> {
    /// One piece.
    pub fn one(piece: Of<'a, S::Chunks>) -> SlicePieces<'a, S> {
        SlicePieces { whole: Some(piece), each: None }
    }

    pub(crate) fn of_each(each: Each<'a, S>) -> SlicePieces<'a, S> {
        SlicePieces { whole: None, each: Some(each) }
    }
}

impl<'a, S: IterationSpace> Iterator for SlicePieces<'a, S> {
    type Item = Of<'a, S::Chunks>;

    #[inline(always)]
    fn next(&mut self) -> Option<Of<'a, S::Chunks>> {
        let Some(Each { placed, cuts, count, begun, noted, failed }) = self.each else {
            return self.whole.take();
        };
        let at = begun.get();
        if at > 0
            && let Err(many) = noted.end_iteration()
        {
            failed.set(Some(many));
            return None;
        }
        (at < count).then(|| {
            begun.set(at + 1);
            S::piece(placed, cuts, at..at + 1)
        })
    }
}

impl<S: IterationSpace> Clone for Each<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: IterationSpace> Copy for Each<'_, S> {}

impl<S: IterationSpace> fmt::Debug for SlicePieces<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlicePieces").field("is_one", &self.whole.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Ranges;

    #[test]
    fn pieces_are_the_list_in_its_order() {
        let lists: [&[u32]; 6] = [
            &[],
            &[3],
            &[0, 1, 2, 5],
            // As far from each other as neighbours, and not neighbours.
            &[0, 2, 1, 3, 4, 5, 6, 7, 20],
            &[9, 10, 11, 12, 13, 14, 15, 16, 17, 4, 5],
            &[7, 6, 5, 4, 3, 2, 1, 0],
        ];
        let cuts = vec![vec![100, 200]];
        for list in lists {
            let pieces = || Pieces::<Ranges<1>>::of_list(&(), &cuts, list);
            let all: Vec<usize> = pieces().flat_map(|[range]| range).collect();
            assert_eq!(all, list.iter().map(|at| 100 + *at as usize).collect::<Vec<_>>());
        }
        let lengths = |list| Pieces::<Ranges<1>>::of_list(&(), &cuts, list).map(|[range]| range.len());
        assert_eq!(lengths(lists[4]).collect::<Vec<_>>(), [9, 1, 1]);
        assert_eq!(lengths(lists[3]).collect::<Vec<_>>(), [1; 9]);
        let one = Pieces::<Ranges<2>>::one([4..9, 0..2]).collect::<Vec<_>>();
        assert_eq!(one, [[4..9, 0..2]]);
        // Of several dimensions one at a time, however many are next to each other.
        let cuts = vec![vec![0, 4], vec![0, 4]];
        let list: Vec<u32> = (2..14).collect();
        let all: Vec<_> = Pieces::<Ranges<2>>::of_list(&(), &cuts, &list).collect();
        assert_eq!((all.len(), &all[3]), (12, &[1..2, 1..2]));
    }
}
