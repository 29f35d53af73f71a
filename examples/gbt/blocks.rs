//! The rows to learn from, by blocks: slots of histograms instead of values.
use super::bins::Bins;
use super::data::Data;
use super::loss::Loss;
use super::slot::{PAD, Slot};
use hectare::orion::array::random::Permutation;
use hectare::orion::array::random::Stream;
use hectare::orion::{Context, Result, parallel_for};
use hectare::{DistArray, SparseArray};
use std::cell::RefCell;

/// The most rows by whose values bins are cut; they are drawn at random if there are more.
const SAMPLE: usize = 100_000;
/// Blocks of small data: each of up to twelve workers gets as many.
const BLOCKS: usize = 24;
/// Rows of a block, at most: what a block is about stays in the cache of its core.
const LARGEST: usize = 4096;

/// How rows are divided into blocks, the same for every number of workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) count: usize,
    /// Rows of a block; the last one may have fewer.
    pub(crate) rows: usize,
}

impl Shape {
    pub(crate) fn new(count: usize) -> Shape {
        Shape { count, rows: count.div_ceil(BLOCKS).clamp(1, LARGEST) }
    }

    pub(crate) fn blocks(self) -> usize {
        self.count.div_ceil(self.rows)
    }

    /// Rows of block `number`.
    pub(crate) fn rows_of(self, number: usize) -> usize {
        (self.count - number * self.rows).min(self.rows)
    }
}

/// The bins of the rows to learn from. Collective.
pub(crate) fn bins(w: &mut Context<'_>, data: &Data, most: usize) -> Result<Bins> {
    let count = data.train.len();
    let sampled = match count > SAMPLE {
        false => data.train.to_vec(w)?,
        true => {
            let place = Permutation::new(Stream::new(19, "rows for bins"), count);
            data.train.filter(w, |[row], _| (place.apply(row as u32) as usize) < SAMPLE)?.to_vec(w)?
        }
    };
    Ok(Bins::new(data.features, most, sampled.iter().map(|entry| &entry.value)))
}

/// The rows as blocks of all workers.
#[derive(Debug)]
pub(crate) struct Blocks<S: Slot> {
    pub(crate) shape: Shape,
    /// Where the slots of each row begin, in multiples of [`PAD`], and where the last one's end.
    pub(crate) starts: DistArray<u32, 2>,
    pub(crate) slots: DistArray<S, 2>,
    pub(crate) targets: DistArray<f32, 2>,
}

impl<S: Slot> Blocks<S> {
    /// Collective.
    pub(crate) fn new(w: &mut Context<'_>, data: &Data, bins: &Bins, loss: Loss) -> Result<Blocks<S>> {
        let shape = Shape::new(data.train.len());
        let (blocks, rows) = (shape.blocks(), shape.rows);
        let local = data.train.local();
        let keyed = local.lazy().cloned().rekey(|[row], _| [row / rows, row % rows]);
        let train: SparseArray<_, 2> = keyed.materialize_in(w, [blocks, rows])?.named("train");
        let mut starts = w.zeros::<u32, 2>([blocks, rows + 1])?.named("starts");
        let mut targets = w.zeros::<f32, 2>([blocks, rows])?.named("targets");
        let labels = data.labels;
        let room = RefCell::new(Vec::new());
        parallel_for!(w, unordered, write [starts, targets]; for ((b, at), row) in train {
            let slots = &mut *room.borrow_mut();
            bins.slots_of(row, slots);
            starts.row_mut(b)[at + 1] = (Bins::padded(slots) / PAD) as u32;
            targets.row_mut(b)[at] = loss.target(row.label, labels);
        })?;
        let longest = parallel_for!(w, unordered, write starts, max longest: u32; for b in 0..blocks {
            let ends = starts.row_mut(b);
            for at in 1..=rows {
                ends[at] += ends[at - 1];
            }
            longest = longest.max(ends[rows]);
        })?;
        let padding = S::new(bins.slots);
        let mut all = w.fill([blocks, longest as usize * PAD], padding)?.named("slots");
        parallel_for!(w, unordered, read starts, write all; for ((b, at), row) in train {
            let slots = &mut *room.borrow_mut();
            bins.slots_of(row, slots);
            let first = starts.row(b)[at] as usize * PAD;
            for (place, slot) in all.row_mut(b)[first..].iter_mut().zip(&*slots) {
                *place = S::new(*slot);
            }
        })?;
        Ok(Blocks { shape, starts, slots: all, targets })
    }
}
