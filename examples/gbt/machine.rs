//! Who goes through all rows: workers, by loops, or the serial twin.
use super::block::{Kept, Kernel, Rows, Scratch, Task};
use super::blocks::{Blocks, Shape};
use super::grow::Split;
use super::loss::{Packed, Scale};
use super::slot::Slot;
use hectare::DistArray;
use hectare::orion::{Context, Result, parallel_for};
use std::cell::RefCell;

/// Numbers of histograms that workers search together; of fewer, each searches all.
const SHARED: usize = 10_000;

/// The operations on rows that growing a tree needs.
pub(crate) trait Machine {
    /// Ends a tree, and begins the next one: its histogram, and the greatest size of a first derivative. Collective.
    fn begin(
        &mut self,
        w: &mut Context<'_>,
        tasks: &[Task],
        values: &[f32],
        scale: &Scale,
    ) -> Result<(Vec<Packed>, f32)>;

    /// Splits leaves; `wanted` of their parts get histograms, one after the other. Collective.
    fn step(&mut self, w: &mut Context<'_>, tasks: &[Task], wanted: usize) -> Result<Vec<Packed>>;

    /// The results of `search` for each leaf. Collective.
    fn each(
        &mut self,
        w: &mut Context<'_>,
        count: usize,
        search: &dyn Fn(usize) -> Split,
    ) -> Result<Vec<Split>>;
}

/// The rows of all workers. Its loops add to histograms as accumulators.
pub(crate) struct Workers<S: Slot> {
    kernel: Kernel,
    blocks: Blocks<S>,
    margins: DistArray<f32, 2>,
    order: DistArray<u16, 2>,
    ranges: DistArray<u32, 2>,
    derivatives: DistArray<Packed, 2>,
    splits: DistArray<Split, 1>,
    scratch: RefCell<Scratch>,
}

impl<S: Slot> Workers<S> {
    /// Collective.
    pub(crate) fn new(
        w: &mut Context<'_>,
        kernel: Kernel,
        blocks: Blocks<S>,
        begin: f32,
        leaves: usize,
    ) -> Result<Workers<S>> {
        let (count, rows) = (blocks.shape.blocks(), blocks.shape.rows);
        Ok(Workers {
            margins: w.fill([count, rows], begin)?.named("margins"),
            order: w.zeros([count, rows])?.named("order"),
            ranges: w.zeros([count, 2 * leaves])?.named("ranges"),
            derivatives: w.zeros([count, rows])?.named("derivatives"),
            splits: w.zeros([2 * leaves])?.named("splits"),
            kernel,
            blocks,
            scratch: RefCell::default(),
        })
    }
}

impl<S: Slot> Machine for Workers<S> {
    fn begin(
        &mut self,
        w: &mut Context<'_>,
        tasks: &[Task],
        values: &[f32],
        scale: &Scale,
    ) -> Result<(Vec<Packed>, f32)> {
        let Workers { kernel, blocks, margins, order, ranges, derivatives, scratch, .. } = self;
        let Blocks { shape, starts, slots, targets } = blocks;
        let (kernel, shape) = (*kernel, *shape);
        let (sums, most) = parallel_for!(w, unordered, read [starts, slots, targets],
            write [margins, order, ranges, derivatives], sum sums: [Packed; kernel.width], max most: f32;
        for b in 0..shape.blocks() {
            let count = shape.rows_of(b);
            let rows = Rows { starts: starts.row(b), slots: slots.row(b) };
            let mut kept = Kept { order: &mut order.row_mut(b)[..count], ranges: ranges.row_mut(b) };
            let mut view = sums.view(0, kernel.width);
            let derived =
                (&targets.row(b)[..count], &mut margins.row_mut(b)[..count], &mut derivatives.row_mut(b)[..count]);
            let size =
                kernel.begin((tasks, values), scale, rows, derived, &mut kept, &mut scratch.borrow_mut(), &mut view);
            most = most.max(size);
        })?;
        Ok((sums.into_vec(), most))
    }

    fn step(&mut self, w: &mut Context<'_>, tasks: &[Task], wanted: usize) -> Result<Vec<Packed>> {
        let Workers { kernel, blocks, order, ranges, derivatives, scratch, .. } = self;
        let Blocks { shape, starts, slots, .. } = blocks;
        let (kernel, shape) = (*kernel, *shape);
        let sums = parallel_for!(w, unordered, read [starts, slots, derivatives], write [order, ranges],
            sum sums: [Packed; wanted * kernel.width];
        for b in 0..shape.blocks() {
            let count = shape.rows_of(b);
            let rows = Rows { starts: starts.row(b), slots: slots.row(b) };
            let mut kept = Kept { order: &mut order.row_mut(b)[..count], ranges: ranges.row_mut(b) };
            let mut view = sums.view(0, wanted * kernel.width);
            kernel.step(tasks, rows, derivatives.row(b), &mut kept, &mut scratch.borrow_mut(), &mut view);
        })?;
        Ok(sums.into_vec())
    }

    fn each(
        &mut self,
        w: &mut Context<'_>,
        count: usize,
        search: &dyn Fn(usize) -> Split,
    ) -> Result<Vec<Split>> {
        if count * self.kernel.width < SHARED {
            return Ok((0..count).map(search).collect());
        }
        let splits = &mut self.splits;
        parallel_for!(w, unordered, write splits; for leaf in 0..count {
            splits[leaf] = search(leaf);
        })?;
        let mut found = splits.to_vec(w)?;
        found.truncate(count);
        Ok(found)
    }
}

/// The same rows in plain memory.
pub(crate) struct Plain<S> {
    kernel: Kernel,
    shape: Shape,
    starts: Vec<u32>,
    slots: Vec<S>,
    targets: Vec<f32>,
    margins: Vec<f32>,
    order: Vec<u16>,
    ranges: Vec<u32>,
    derivatives: Vec<Packed>,
    scratch: Scratch,
}

impl<S: Slot> Plain<S> {
    pub(crate) fn new(
        w: &mut Context<'_>,
        kernel: Kernel,
        blocks: &Blocks<S>,
        begin: f32,
        leaves: usize,
    ) -> Result<Plain<S>> {
        let shape = blocks.shape;
        let all = shape.blocks() * shape.rows;
        Ok(Plain {
            kernel,
            shape,
            starts: blocks.starts.to_vec(w)?,
            slots: blocks.slots.to_vec(w)?,
            targets: blocks.targets.to_vec(w)?,
            margins: vec![begin; all],
            order: vec![0; all],
            ranges: vec![0; 2 * leaves * shape.blocks()],
            derivatives: vec![0; all],
            scratch: Scratch::default(),
        })
    }
}

/// Row `number` of a matrix of `rows` rows.
fn row<T>(all: &[T], rows: usize, number: usize) -> &[T] {
    let width = all.len() / rows;
    &all[number * width..][..width]
}

fn row_mut<T>(all: &mut [T], rows: usize, number: usize) -> &mut [T] {
    let width = all.len() / rows;
    &mut all[number * width..][..width]
}

impl<S: Slot> Machine for Plain<S> {
    fn begin(
        &mut self,
        _: &mut Context<'_>,
        tasks: &[Task],
        values: &[f32],
        scale: &Scale,
    ) -> Result<(Vec<Packed>, f32)> {
        let (kernel, shape, blocks) = (self.kernel, self.shape, self.shape.blocks());
        let (mut sums, mut most) = (vec![0; kernel.width], 0.0f32);
        for b in 0..blocks {
            let count = shape.rows_of(b);
            let rows = Rows { starts: row(&self.starts, blocks, b), slots: row(&self.slots, blocks, b) };
            let mut kept = Kept {
                order: &mut row_mut(&mut self.order, blocks, b)[..count],
                ranges: row_mut(&mut self.ranges, blocks, b),
            };
            let targets = &row(&self.targets, blocks, b)[..count];
            let margins = &mut row_mut(&mut self.margins, blocks, b)[..count];
            let derivatives = &mut row_mut(&mut self.derivatives, blocks, b)[..count];
            let derived = (targets, margins, derivatives);
            most = most.max(kernel.begin(
                (tasks, values),
                scale,
                rows,
                derived,
                &mut kept,
                &mut self.scratch,
                &mut sums[..],
            ));
        }
        Ok((sums, most))
    }

    fn step(&mut self, _: &mut Context<'_>, tasks: &[Task], wanted: usize) -> Result<Vec<Packed>> {
        let (kernel, shape, blocks) = (self.kernel, self.shape, self.shape.blocks());
        let mut sums = vec![0; wanted * kernel.width];
        for b in 0..blocks {
            let rows = Rows { starts: row(&self.starts, blocks, b), slots: row(&self.slots, blocks, b) };
            let mut kept = Kept {
                order: &mut row_mut(&mut self.order, blocks, b)[..shape.rows_of(b)],
                ranges: row_mut(&mut self.ranges, blocks, b),
            };
            let derivatives = row(&self.derivatives, blocks, b);
            kernel.step(tasks, rows, derivatives, &mut kept, &mut self.scratch, &mut sums[..]);
        }
        Ok(sums)
    }

    fn each(
        &mut self,
        _: &mut Context<'_>,
        count: usize,
        search: &dyn Fn(usize) -> Split,
    ) -> Result<Vec<Split>> {
        Ok((0..count).map(search).collect())
    }
}
