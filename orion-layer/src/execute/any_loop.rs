//! A loop whatever its types: what passes need of one. What they do beside it is compiled once, and not again for each loop of a program.
use super::called::{Called, Placed, Slice, Types, Values};
use super::cells::Cells;
use super::{
    AnyArrays, AnySpace, Arrays, Describe, IterationSpace, LoopHead, PassTrace, Pieces, SlicePieces,
};
use crate::accumulate::{Accumulators, Tree};
use crate::context::Context;
use crate::contract::{Each, KeyNotes, Noted};
use crate::error::Result;
use crate::mutant::{self, Mutant};
use crate::panics::unwound::end_iterations;
use hectare_dependence::inspect::TooMany;
use hectare_dependence::schedule::cell_number;
use hectare_dsm::Worker;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::thread;

/// Is given what runs a cell, and calls it for each.
pub(super) type VisitCells<'v> = dyn FnMut(&mut dyn FnMut(&[usize])) + 'v;
/// Is given what runs a part of a list of iterations, and calls it for each: the group whose sums it belongs to, if any are kept, and the part.
pub(super) type VisitLists<'v> = dyn FnMut(&mut dyn FnMut(Option<usize>, Range<usize>)) + 'v;

/// The notes and counts of an inspection, while a slice runs for all iterations.
pub(super) struct Noting<'n> {
    pub(super) count: usize,
    /// How many have begun.
    pub(super) begun: &'n Cell<usize>,
    pub(super) noted: &'n Noted,
    /// Why it ended early.
    pub(super) failed: &'n Cell<Option<TooMany>>,
}

/// A loop that was called, with its arrays, and what a pass has made of it so far.
pub(super) trait AnyLoop<'c> {
    fn head(&self) -> &'c LoopHead<'c>;
    fn describe(&self) -> Describe<'c>;
    fn space(&self) -> &'c dyn AnySpace;
    fn arrays(&mut self) -> &mut dyn AnyArrays;
    /// If it has a slice: the basis of that, if it can be compared.
    fn slice_basis(&self) -> Option<Option<u64>>;
    /// Whether anything is added up.
    fn has_sums(&self) -> bool;
    /// Whether that may be combined in any order.
    fn sums_commute(&self) -> bool;

    /// [`IterationSpace::place`]. Collective.
    fn place(
        &mut self,
        context: &mut Context<'_>,
        cuts: &[Vec<i64>],
        owners: &Rc<[usize]>,
        sorted: bool,
    ) -> Result<()>;
    /// [`IterationSpace::times_placed`].
    fn times_placed(&self) -> u64;
    /// [`IterationSpace::share`]. Collective.
    fn share(&mut self, context: &mut Context<'_>) -> Result<()>;
    /// [`IterationSpace::bring`].
    fn bring(&self, context: &mut Context<'_>, from: usize, cells: &[usize]) -> Result<()>;

    /// Begins to add up what the cells of a pass give, of which there are so many.
    fn begin_sums(&mut self, cells: usize);
    /// Appends the part of its sums that this worker has to send.
    fn encode_sums(&mut self, bytes: &mut Vec<u8>);
    /// Adds what a worker sent to the sums of all.
    fn add_sums(&mut self, bytes: &[u8]) -> Result<()>;
    /// Takes what cells have set aside in a pass that failed: it is not for another.
    fn forget_sums(&mut self);

    /// Runs cells with views of these parts, and notes what they add to the accumulators.
    fn run(
        &mut self,
        worker: &Worker,
        cells: &Cells<'_>,
        parts: &[Range<usize>],
        trace: PassTrace<'_>,
        visit: &mut VisitCells<'_>,
    ) -> Result<()>;
    /// Runs parts of a list of iterations in the same way: of a space that is placed in one cell, cut so.
    fn run_lists(
        &mut self,
        worker: &Worker,
        list: (&[u32], &[Vec<i64>]),
        parts: &[Range<usize>],
        trace: PassTrace<'_>,
        visit: &mut VisitLists<'_>,
    ) -> Result<()>;
    /// Runs all iterations, one at a time, and calls `after` after each, with its index.
    fn run_one_by_one(
        &mut self,
        worker: &Worker,
        cuts: &[Vec<i64>],
        parts: &[Range<usize>],
        trace: PassTrace<'_>,
        after: &mut dyn FnMut(&[i64]),
    ) -> Result<()>;

    /// Runs the slice for cells; whether it came to its end.
    fn slice_cells(&mut self, worker: &Worker, cells: &Cells<'_>, list: &[Vec<usize>]) -> Result<bool>;
    /// Runs the slice for all iterations of a space that is placed in one cell.
    fn slice_all(
        &mut self,
        worker: &Worker,
        cuts: &[Vec<i64>],
        noting: Noting<'_>,
    ) -> Result<thread::Result<()>>;
    /// Runs the slice for each iteration, and calls `after` after each. Of a slice that fails, what it named until then counts.
    fn slice_one_by_one(
        &mut self,
        worker: &Worker,
        cuts: &[Vec<i64>],
        after: &mut dyn FnMut(&mut dyn AnyArrays),
    ) -> Result<()>;
}

/// A loop that runs.
pub(super) struct Running<'c, L: Types> {
    called: Called<'c, L>,
    arrays: L::Arrays,
    placed: Option<Placed<L>>,
    /// The sums of this worker's cells, and those of all workers' cells.
    own: Tree<'c, L::Sums>,
    all: Tree<'c, L::Sums>,
}

impl<'c, L: Types> Running<'c, L> {
    pub(super) fn new(called: Called<'c, L>, arrays: L::Arrays) -> Running<'c, L> {
        let [own, all] = [0; 2].map(|cells| Tree::new(called.accumulators, cells));
        Running { called, arrays, placed: None, own, all }
    }

    /// The sums of all workers, when a pass has ended.
    pub(super) fn into_values(self) -> Values<L> {
        self.all.root()
    }
}

/// Of a loop that was placed.
fn placed<P>(placed: &Option<P>) -> &P {
    let Some(placed) = placed else { unreachable!("its iterations are placed before they run") };
    placed
}

impl<'c, L: Types> AnyLoop<'c> for Running<'c, L> {
    fn head(&self) -> &'c LoopHead<'c> {
        self.called.head
    }

    fn describe(&self) -> Describe<'c> {
        self.called.describe
    }

    fn space(&self) -> &'c dyn AnySpace {
        self.called.space
    }

    fn arrays(&mut self) -> &mut dyn AnyArrays {
        &mut self.arrays
    }

    fn slice_basis(&self) -> Option<Option<u64>> {
        let Slice { keys, basis } = self.called.slice;
        keys.map(|_| basis)
    }

    fn has_sums(&self) -> bool {
        size_of::<Values<L>>() != 0
    }

    fn sums_commute(&self) -> bool {
        L::Sums::COMMUTE
    }

    fn place(
        &mut self,
        context: &mut Context<'_>,
        cuts: &[Vec<i64>],
        owners: &Rc<[usize]>,
        sorted: bool,
    ) -> Result<()> {
        // What is placed elsewhere must not be held by anybody.
        self.placed = None;
        self.placed = Some(self.called.space.place(context, self.called.head.site, cuts, owners, sorted)?);
        Ok(())
    }

    fn times_placed(&self) -> u64 {
        L::Space::times_placed(placed(&self.placed))
    }

    fn share(&mut self, context: &mut Context<'_>) -> Result<()> {
        self.called.space.share(context, self.called.head.site, placed(&self.placed))
    }

    fn bring(&self, context: &mut Context<'_>, from: usize, cells: &[usize]) -> Result<()> {
        L::Space::bring(placed(&self.placed), context, from, cells)
    }

    fn begin_sums(&mut self, cells: usize) {
        [self.own, self.all] = [0; 2].map(|_| Tree::new(self.called.accumulators, cells));
    }

    fn encode_sums(&mut self, bytes: &mut Vec<u8>) {
        self.own.encode(bytes);
    }

    fn add_sums(&mut self, bytes: &[u8]) -> Result<()> {
        self.all.decode(bytes)
    }

    fn forget_sums(&mut self) {
        drop(self.called.accumulators.identities());
    }

    fn run(
        &mut self,
        worker: &Worker,
        cells: &Cells<'_>,
        parts: &[Range<usize>],
        trace: PassTrace<'_>,
        visit: &mut VisitCells<'_>,
    ) -> Result<()> {
        let (body, placed, count) = (self.called.body, placed(&self.placed), cells.count());
        let mut views = self.arrays.views(worker, parts, trace)?;
        visit(&mut |cell| {
            let number = cells.begin(cell);
            let chunk = Pieces::one(L::Space::chunk(placed, &cells.choice.cuts, cell, number));
            let values = match cells.meter {
                None => body(chunk, &mut views),
                Some(meter) => meter.cell(number, || body(chunk, &mut views)),
            };
            end_iterations();
            if number + 1 < count || !mutant::is(Mutant::LostPartial) {
                self.own.add(number, values);
            }
        });
        Ok(())
    }

    fn run_lists(
        &mut self,
        worker: &Worker,
        (list, cuts): (&[u32], &[Vec<i64>]),
        parts: &[Range<usize>],
        trace: PassTrace<'_>,
        visit: &mut VisitLists<'_>,
    ) -> Result<()> {
        let (body, placed) = (self.called.body, placed(&self.placed));
        let mut views = self.arrays.views(worker, parts, trace)?;
        visit(&mut |group, part| {
            let values = body(Pieces::of_list(placed, cuts, &list[part]), &mut views);
            if let Some(group) = group {
                self.own.add(group, values);
            }
        });
        end_iterations();
        Ok(())
    }

    fn run_one_by_one(
        &mut self,
        worker: &Worker,
        cuts: &[Vec<i64>],
        parts: &[Range<usize>],
        trace: PassTrace<'_>,
        after: &mut dyn FnMut(&[i64]),
    ) -> Result<()> {
        let Called { body, accumulators, .. } = self.called;
        let mut views = self.arrays.views(worker, parts, trace)?;
        let mut sum = Some(accumulators.identities());
        L::Space::one_by_one(placed(&self.placed), cuts, &mut |index, chunk| {
            let values = body(Pieces::one(chunk), &mut views);
            sum = sum.take().map(|sum| accumulators.combine(sum, values));
            after(index);
        });
        sum.into_iter().for_each(|sum| self.own.add(0, sum));
        Ok(())
    }

    fn slice_cells(&mut self, worker: &Worker, cells: &Cells<'_>, list: &[Vec<usize>]) -> Result<bool> {
        let Some(keys) = self.called.slice.keys else { return Ok(true) };
        let (placed, choice) = (placed(&self.placed), cells.choice);
        let mut views = self.arrays.keys(worker, KeyNotes::NONE)?;
        let run = || {
            for cell in list {
                let chunk = L::Space::chunk(placed, &choice.cuts, cell, cell_number(&choice.grid, cell));
                keys(SlicePieces::one(chunk), &mut views);
            }
        };
        Ok(catch_unwind(AssertUnwindSafe(run)).is_ok())
    }

    fn slice_all(
        &mut self,
        worker: &Worker,
        cuts: &[Vec<i64>],
        noting: Noting<'_>,
    ) -> Result<thread::Result<()>> {
        let Some(keys) = self.called.slice.keys else { return Ok(Ok(())) };
        let Noting { count, begun, noted, failed } = noting;
        let mut views = self.arrays.keys(worker, KeyNotes::of(noted))?;
        let each = Each { placed: placed(&self.placed), cuts, count, begun, noted, failed };
        Ok(catch_unwind(AssertUnwindSafe(|| keys(SlicePieces::of_each(each), &mut views))))
    }

    fn slice_one_by_one(
        &mut self,
        worker: &Worker,
        cuts: &[Vec<i64>],
        after: &mut dyn FnMut(&mut dyn AnyArrays),
    ) -> Result<()> {
        let Some(keys) = self.called.slice.keys else { return Ok(()) };
        let mut result = Ok(());
        L::Space::one_by_one(placed(&self.placed), cuts, &mut |_, chunk| {
            let run = self.arrays.keys(worker, KeyNotes::NONE).map(|mut views| {
                let _ = catch_unwind(AssertUnwindSafe(|| keys(SlicePieces::one(chunk), &mut views)));
            });
            if let Err(error) = run {
                result = Err(error);
            }
            after(&mut self.arrays);
        });
        result
    }
}
