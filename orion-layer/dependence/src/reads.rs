//! The ranges that each worker reads of an array that others have.
use crate::in_place::{Span, tile_values, touched};
use crate::loop_nest::{LoopNest, Subscript};
use crate::placement::TilePlan;
use std::ops::Range;

/// A box of elements: one range for each dimension of the array.
pub type ElementBox = Vec<Range<usize>>;

/// The ranges that the workers of a loop read of one array, by its subscripts: at least all that they read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reads {
    /// For each worker, the smallest box that holds all that it reads; `None` for one that reads nothing.
    pub boxes: Vec<Option<ElementBox>>,
    /// For each dimension of the array, whether every access has a single index there, and no range.
    pub single: Vec<bool>,
}

impl Reads {
    /// Of array `array`; `None` if the loop is not known to access it. `cuts[d]` are the values of loop
    /// dimension `d` between the cells, `tiles` those of each worker.
    pub fn of(nest: &LoopNest, array: usize, cuts: &[Vec<i64>], tiles: &[Vec<TilePlan>]) -> Option<Reads> {
        nest.accesses_of(array).next()?;
        let of_worker = |tiles: &Vec<TilePlan>| {
            let boxes = tiles
                .iter()
                .flat_map(|plan| touched(nest, array, &tile_values(cuts, &plan.tile)).reads)
                .filter(|spans| spans.iter().all(|span| span.start < span.end));
            boxes.map(|spans| spans.iter().map(whole).collect()).reduce(hull)
        };
        let is_single = |dim: usize| {
            nest.accesses_of(array)
                .all(|access| matches!(access.subscripts.get(dim), Some(Subscript::Index(_))))
        };
        Some(Reads {
            boxes: tiles.iter().map(of_worker).collect(),
            single: (0..nest.arrays[array].shape.len()).map(is_single).collect(),
        })
    }

    /// The range that worker `worker` reads in dimension `dim`; empty if it reads nothing.
    pub fn range(&self, worker: usize, dim: usize) -> Range<usize> {
        self.boxes[worker].as_ref().map_or(0..0, |all| all[dim].clone())
    }
}

fn whole(span: &Span) -> Range<usize> {
    span.start..span.end
}

fn hull(a: ElementBox, b: ElementBox) -> ElementBox {
    a.into_iter().zip(b).map(|(a, b)| a.start.min(b.start)..a.end.max(b.end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_nest::{Access, Affine, LoopVar, Mode, NamedArray, Order, Space};
    use crate::tiles::Tile;

    fn var(coefficient: i64, constant: i64, of: usize) -> Subscript {
        let mut coefficients = vec![0, 0];
        coefficients[of] = coefficient;
        Subscript::Index(Affine { constant, coefficients })
    }

    /// A loop over 1..9 by 0..6, whose rows two workers share, and that reads array 0 of 10 by 6 at these subscripts.
    fn reads(subscripts: &[[Subscript; 2]]) -> Option<Reads> {
        let dims = [("i", (1, 9)), ("j", (0, 6))];
        let dims = dims.map(|(name, bounds)| LoopVar { name: name.into(), bounds: Some(bounds) });
        let mut nest = LoopNest::new("sweep", Order::Unordered, Space::Dense, dims.into());
        nest.arrays = vec![NamedArray { name: "a".into(), shape: vec![10, 6], element_bytes: 8 }];
        nest.accesses = subscripts
            .iter()
            .map(|subscripts| Access {
                array: 0,
                subscripts: subscripts.to_vec(),
                mode: Mode::Read,
                text: "a".into(),
                line: 1,
            })
            .collect();
        let tile = |cells: Range<usize>| TilePlan {
            tile: Tile { cells: vec![cells, 0..1] },
            parts: Vec::new(),
            gives: Vec::new(),
        };
        // The second worker has two tiles, the third none.
        let tiles = [vec![tile(0..1)], vec![tile(1..2), tile(2..3)], vec![]];
        Reads::of(&nest, 0, &[vec![1, 4, 6, 9], vec![0, 6]], &tiles)
    }

    #[test]
    fn a_worker_reads_its_rows_and_those_beside_them() {
        let found = reads(&[[var(1, -1, 0), Subscript::Full], [var(1, 1, 0), var(1, 0, 1)]]).unwrap();
        assert_eq!(found.boxes, [Some(vec![0..5, 0..6]), Some(vec![3..10, 0..6]), None]);
        assert_eq!(found.single, [true, false]);
        assert_eq!((found.range(1, 0), found.range(2, 0)), (3..10, 0..0));
    }

    #[test]
    fn what_is_not_known_is_all_of_a_dimension() {
        let found = reads(&[[Subscript::Unknown, var(2, 1, 1)]]).unwrap();
        assert_eq!(found.boxes[0], Some(vec![0..10, 1..6]));
        assert_eq!(found.single, [false, true]);
        assert_eq!(reads(&[]), None);
    }
}
