//! Written arrays on several hosts that cannot be cut as the loop is, since iterations read what others have: each worker has the part
//! that it writes, and reads beyond it what was there before the pass (a ghost region).
//!
//! That is what the loop means if no worker writes in the pass what another reads, so the schedule has one step, in which nothing
//! depends on another worker's iterations: every schedule is verified for that before its arrays are placed.
use super::{ArrayPlacement, Placement, PlacementError, uncuttable};
use crate::in_place::{InPlace, tile_values, touched};
use crate::loop_nest::LoopNest;
use crate::tiles::{Rank, Steps};
use std::ops::Range;

impl Placement {
    /// Places the arrays of `nest` so, for a schedule that was verified; `cuts[d]` are the values of loop dimension `d` between the
    /// cells.
    ///
    /// # Errors
    /// [`PlacementError::Uncuttable`] for a schedule of several steps, and for an array of which workers write no disjoint rows.
    pub fn with_ghosts(
        nest: &LoopNest,
        cuts: &[Vec<i64>],
        steps: &Steps,
        workers: usize,
    ) -> Result<Placement, PlacementError> {
        let written = InPlace::arrays_of(nest);
        if let (Some(first), true) = (written.first(), steps.len() != 1) {
            return Err(uncuttable(nest, *first, cuts));
        }
        let arrays = vec![ArrayPlacement::Replicated; nest.arrays.len()];
        let mut placement = Placement::uncut(arrays, steps, workers);
        for array in written {
            let (dim, parts) =
                apart(nest, array, cuts, steps).ok_or_else(|| uncuttable(nest, array, cuts))?;
            let (written, owners): (_, Vec<Rank>) = parts.into_iter().unzip();
            for (part, owner) in owners.iter().enumerate() {
                for tile in &mut placement.tiles[*owner as usize] {
                    tile.parts[array] = part..part + 1;
                }
            }
            placement.first[array] = owners.iter().copied().map(Some).collect();
            placement.last[array] = placement.first[array].clone();
            placement.arrays[array] = ArrayPlacement::Ghosted { dim, written, owners };
        }
        Ok(placement)
    }

    /// Whether written arrays have ghost regions.
    pub fn has_ghosts(&self) -> bool {
        self.arrays.iter().any(|array| matches!(array, ArrayPlacement::Ghosted { .. }))
    }
}

/// The range that a worker writes in a dimension, and which worker.
type Written = (Range<usize>, Rank);

/// A dimension in which workers write disjoint ranges, and these in ascending order, with who writes each. Not the last one: then rows
/// would lie in several parts.
fn apart(nest: &LoopNest, array: usize, cuts: &[Vec<i64>], steps: &Steps) -> Option<(usize, Vec<Written>)> {
    let dims = nest.arrays[array].shape.len();
    (0..dims.saturating_sub(1)).find_map(|dim| {
        let mut written: Vec<Written> = Vec::new();
        for (worker, tile) in steps.iter().flatten().enumerate() {
            let Some(tile) = tile else { continue };
            let spans = touched(nest, array, &tile_values(cuts, tile)).writes;
            let spans = spans.iter().filter(|spans| spans.iter().all(|span| span.start < span.end));
            let hull = spans.map(|spans| spans[dim].start..spans[dim].end);
            let hull = hull.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
            written.extend(hull.map(|hull| (hull, worker as Rank)));
        }
        written.sort_unstable_by_key(|(range, _)| range.start);
        let is_apart = written.windows(2).all(|two| two[0].0.end <= two[1].0.start);
        (is_apart && written.len() > 1).then_some((dim, written))
    })
}

/// Bounds of parts of which each holds what its worker writes: those that the array has, if they will do, as another loop may need
/// parts that differ by little.
pub fn bounds_around(written: &[Range<usize>], extent: usize, present: Option<&[usize]>) -> Vec<usize> {
    let will_do = |bounds: &&[usize]| {
        bounds.len() == written.len() + 1
            && written
                .iter()
                .zip(bounds.windows(2))
                .all(|(range, part)| part[0] <= range.start && range.end <= part[1])
    };
    match present.filter(will_do) {
        Some(bounds) => bounds.to_vec(),
        None => {
            let inner = written.iter().skip(1).map(|range| range.start);
            std::iter::once(0).chain(inner).chain(std::iter::once(extent)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_nest::{Access, Affine, LoopVar, Mode, NamedArray, Order, Space, Subscript};
    use crate::tiles::Tile;

    /// Iterations 0..8 of two workers, the second first, which write the rows `coefficient * i + constant` of 20 by 3, or of 20 numbers.
    fn placed(coefficient: i64, constant: i64, dims: usize) -> Result<Placement, PlacementError> {
        let i = LoopVar { name: "i".into(), bounds: Some((0, 8)) };
        let mut nest = LoopNest::new("sweep", Order::Unordered, Space::Dense, vec![i]);
        nest.arrays = vec![NamedArray { name: "a".into(), shape: [20, 3][..dims].into(), element_bytes: 8 }];
        let row = Subscript::Index(Affine { constant, coefficients: vec![coefficient] });
        let subscripts = [row, Subscript::Full][..dims].to_vec();
        nest.accesses = vec![Access { array: 0, subscripts, mode: Mode::Write, text: "a".into(), line: 1 }];
        let tile = |cells: Range<usize>| Some(Tile { cells: vec![cells] });
        Placement::with_ghosts(&nest, &[vec![0, 4, 8]], &vec![vec![tile(1..2), tile(0..1), None]], 3)
    }

    #[test]
    fn each_worker_has_the_part_that_it_writes() {
        let placement = placed(2, 1, 2).unwrap();
        let (written, owners) = (vec![1..8, 9..16], vec![1, 0]);
        assert_eq!(placement.arrays, [ArrayPlacement::Ghosted { dim: 0, written, owners }]);
        let parts: Vec<_> =
            placement.tiles.iter().map(|tiles| tiles.iter().map(|tile| tile.parts.clone())).collect();
        let parts: Vec<Vec<_>> = parts.into_iter().map(Iterator::collect).collect();
        assert_eq!(parts, [vec![vec![1..2]], vec![vec![0..1]], vec![]]);
        assert_eq!(
            (&placement.first[0], &placement.last[0]),
            (&vec![Some(1), Some(0)], &vec![Some(1), Some(0)])
        );
        assert!(placement.has_ghosts());
        // Backwards, all write one row, and rows would lie in several parts.
        let ArrayPlacement::Ghosted { owners, .. } = &placed(-1, 10, 2).unwrap().arrays[0] else {
            panic!("no ghosts")
        };
        assert_eq!(owners, &[0, 1]);
        assert!(placed(0, 3, 2).is_err() && placed(2, 1, 1).is_err());
    }

    #[test]
    fn bounds_stay_where_they_will_do() {
        let written = [1..10, 11..20];
        assert_eq!(bounds_around(&written, 21, None), [0, 11, 21]);
        assert_eq!(bounds_around(&written, 21, Some(&[0, 10, 21])), [0, 10, 21]);
        // The second row of the other worker, another number of parts, and a part that ends too early.
        for other in [&[0, 12, 21][..], &[0, 5, 10, 21], &[2, 10, 21], &[0, 10, 19]] {
            assert_eq!(bounds_around(&written, 21, Some(other)), [0, 11, 21]);
        }
    }
}
