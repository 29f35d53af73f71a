//! One pass of a loop that is checked: serially, on worker 0, with everything noted.
use super::body::guarded;
use super::called::{Called, KeySlice, Slice, Types, Values};
use super::findings::{Covers, Findings, PrefetchCheck, Races};
use super::plan::LoopPlan;
use super::{Arrays, IterationSpace, LoopHead, PassTrace, Pieces, SlicePieces};
use crate::accumulate::{Accumulators, Tree};
use crate::context::{Context, Outcome};
use crate::contract::{KeyNotes, Layout};
use crate::error::{Error, Result};
use crate::view::Recording;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// All iterations of a loop, as they lie at one worker.
struct Iterations<'p, S: IterationSpace> {
    placed: &'p S::Placed,
    /// Each dimension in one part.
    whole: &'p [Vec<i64>],
}

impl Context<'_> {
    /// Runs loops serially from now on, and compares what their bodies touch with their descriptions and schedules: a
    /// loop that touches what its description does not name, or whose schedule would let two workers touch an
    /// element at once that one of them writes, ends with [`Error::Check`]. Results are those of the serial
    /// program. What the closures of [`Context::entries`] and [`Context::from_fn`] make is made by every worker, and compared:
    /// [`Error::Diverged`] if it differs. To be called by every worker with the same value; also switched on by
    /// `HECTARE_CHECK=1`.
    ///
    /// It is slow, and keeps a note of every element that is touched: meant for small data.
    pub fn check_loops(&mut self, on: bool) {
        self.checking = on;
    }

    pub(super) fn checked_pass<L: Types>(
        &mut self,
        called: &Called<'_, L>,
        plan: &LoopPlan,
        arrays: &mut L::Arrays,
    ) -> Result<Values<L>> {
        let Called { head, space, accumulators, slice, body, .. } = *called;
        let whole: Vec<Vec<i64>> = space.bounds().iter().map(|(start, end)| vec![*start, *end]).collect();
        let placed = space.place(self, head.site, &whole, &vec![0].into(), plan.is_sorted())?;
        let iterations = Iterations::<L::Space> { placed: &placed, whole: &whole };
        self.gather(head, arrays)?;
        let mut tree = Tree::new(accumulators, 1);
        if self.rank() == 0 {
            let worked = guarded(&plan.nest, 0, || {
                let mut sum = Some(accumulators.identities());
                let prefetched =
                    self.slice_each::<L::Space, L::Arrays, L::Keys>(&iterations, arrays, slice)?;
                let findings =
                    self.run_recorded::<L>(&iterations, plan, prefetched, arrays, body, |values| {
                        sum = sum.take().map(|sum| accumulators.combine(sum, values));
                    })?;
                sum.into_iter().for_each(|sum| tree.add(0, sum));
                let lines = findings.into_lines(&plan.nest);
                let found = Error::Check { loop_name: plan.nest.name.clone(), findings: lines.join("\n  ") };
                if lines.is_empty() { Ok(()) } else { Err(found) }
            });
            let ended = worked
                .and_then(|()| arrays.each().iter_mut().try_for_each(|array| array.lend(self.fabric.worker)));
            if let Err(error) = ended {
                return Err(self.fail(head.site, error));
            }
        }
        let mut bytes = Vec::new();
        tree.encode(&mut bytes);
        let mut all = Tree::new(accumulators, 1);
        self.exchange(head.site, Outcome::Value(&bytes), |_, bytes| all.decode(bytes))?;
        Ok(all.root())
    }

    /// Brings every written array to worker 0, in one part.
    fn gather<A: Arrays>(&mut self, head: &LoopHead<'_>, arrays: &mut A) -> Result<()> {
        for array in arrays.each().iter_mut().filter(|array| array.is_written()) {
            let extent = array.describe("").shape[0];
            let whole = Layout { dim: 0, bounds: vec![0, extent], owners: vec![0] };
            array.rearrange(self, head.site, &whole)?;
        }
        let mut each = arrays.each();
        self.exchange(head.site, Outcome::Value(&[]), |_, _| Ok(()))?;
        let recalled = each.iter_mut().try_for_each(|array| array.recall(self.fabric.worker));
        self.agree_on(head.site, recalled)?;
        each.iter_mut().try_for_each(|array| array.finish_recall(self.fabric.worker))?;
        for array in each.iter_mut().filter(|array| array.is_written()) {
            match array.layout().owners[0] {
                owner if owner == self.fabric.worker.rank() && owner != 0 => {
                    array.give(self.fabric.worker, 0, 0)?
                }
                _ if self.fabric.worker.rank() == 0 => array.take(self.fabric.worker, 0)?,
                _ => {}
            }
            array.set_owners(&[0]);
        }
        Ok(())
    }

    fn run_recorded<L: Types>(
        &mut self,
        iterations: &Iterations<'_, L::Space>,
        plan: &LoopPlan,
        mut prefetched: PrefetchCheck,
        arrays: &mut L::Arrays,
        body: &L::Body,
        mut add: impl FnMut(Values<L>),
    ) -> Result<Findings> {
        let parts = vec![0..1; plan.nest.arrays.len()];
        let recording = Recording::default();
        let cell = std::cell::Cell::new(0);
        let mut views = arrays.views(self.fabric.worker, &parts, PassTrace::recording(&cell, &recording))?;
        let (covers, mut races) = (Covers::new(&plan.nest), Races::new(plan));
        let mut findings = Findings::default();
        L::Space::one_by_one(iterations.placed, iterations.whole, &mut |index, chunk| {
            add(body(Pieces::one(chunk), &mut views));
            let touches = recording.take();
            covers.check(index, &touches, &mut findings);
            races.check(index, &touches, &mut findings);
            prefetched.check(&plan.nest, index, &touches, &mut findings);
        });
        Ok(findings)
    }

    /// The keys that the slice names for each iteration.
    fn slice_each<S, A, K>(
        &mut self,
        iterations: &Iterations<'_, S>,
        arrays: &mut A,
        slice: Slice<'_, K>,
    ) -> Result<PrefetchCheck>
    where
        S: IterationSpace,
        A: Arrays,
        K: KeySlice<S, A>,
    {
        let mut prefetched = PrefetchCheck::default();
        let Some(keys) = slice.keys else { return Ok(prefetched) };
        let mut result = Ok(());
        S::one_by_one(iterations.placed, iterations.whole, &mut |_, chunk| {
            let run = arrays.keys(self.fabric.worker, KeyNotes::NONE).map(|mut views| {
                // Of a slice that fails, what it named until then counts.
                let _ = catch_unwind(AssertUnwindSafe(|| keys(SlicePieces::one(chunk), &mut views)));
            });
            if let Err(error) = run {
                result = Err(error);
            }
            for (number, array) in arrays.each().into_iter().enumerate() {
                if let Some(served) = array.serves() {
                    prefetched.add(number, served.take_keys());
                }
            }
        });
        result.map(|()| prefetched)
    }
}
