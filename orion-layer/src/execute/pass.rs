//! One pass of a loop on one worker.
use super::body::guarded;
use super::clocks::Clocks;
use super::foresee::{Slice, serves, take_tallies};
use super::plan::{Key, LoopPlan};
use super::timing::timed;
use super::work::relaxed;
use super::{Arrays, Control, Describe, IterationSpace, LoopHead, Of};
use crate::accumulate::{Accumulators, Tree};
use crate::context::{Context, Say};
use crate::error::{Error, Result};
use crate::relax::{LoopReport, Pace, Treatment};
use hectare_dsm::Rank;
use std::rc::Rc;
use std::time::Instant;

impl Context<'_> {
    /// Runs a loop. Collective; usually written as `parallel_for!`.
    ///
    /// `describe` completes the description: inner variables and accesses. `body` gets the iterations of one cell
    /// and the views of the arrays, and returns what they add to the accumulators.
    ///
    /// # Errors
    /// [`Error::InvalidLoop`](crate::Error::InvalidLoop), [`Error::InvalidSchedule`](crate::Error::InvalidSchedule),
    /// [`Error::Outside`](crate::Error::Outside), [`Error::BodyPanicked`](crate::Error::BodyPanicked),
    /// [`Error::PeerFailed`](crate::Error::PeerFailed), [`Error::WorkerLost`](crate::Error::WorkerLost),
    /// [`Error::Poisoned`](crate::Error::Poisoned), [`Error::Diverged`](crate::Error::Diverged),
    /// [`Error::Check`](crate::Error::Check). After an error
    /// the arrays that the loop writes are poisoned.
    pub fn run_loop<S, A, C, F>(
        &mut self,
        head: &LoopHead<'_>,
        space: &S,
        arrays: A,
        accumulators: C,
        describe: Describe<'_>,
        body: F,
    ) -> Result<C::Values>
    where
        S: IterationSpace,
        A: Arrays,
        C: Accumulators,
        F: for<'a, 'b> Fn(Of<'a, S::Chunks>, &'b mut Of<'a, A::Views>) -> C::Values,
    {
        let none = |_: Of<'_, S::Chunks>, _: &mut Of<'_, A::Keys>| {};
        let slice = Slice { keys: None.or((false).then_some(&none)), basis: None };
        self.run_sliced(head, space, arrays, accumulators, (describe, slice), body)
    }

    /// Runs a loop over served arrays, as [`Context::run_loop`] does. Collective; usually written as `parallel_for!`.
    ///
    /// `keys` is a slice of the body: it gets iterations as the body does, and tells the
    /// [`KeyView`](crate::serve::KeyView)s of the served arrays which elements and rows the body will use. It is run before
    /// them, and again only if what subscripts are computed from has changed: the space, the arrays that the loop reads, or
    /// `basis`, which stands for everything else; `None` if that cannot be compared. What the body uses beyond that is looked
    /// up one by one.
    ///
    /// # Errors
    /// Those of [`Context::run_loop`].
    #[allow(clippy::too_many_arguments)]
    pub fn run_served<S, A, C, K, F>(
        &mut self,
        head: &LoopHead<'_>,
        space: &S,
        arrays: A,
        accumulators: C,
        describe: Describe<'_>,
        basis: Option<u64>,
        keys: K,
        body: F,
    ) -> Result<C::Values>
    where
        S: IterationSpace,
        A: Arrays,
        C: Accumulators,
        K: for<'a, 'b, 'c> Fn(Of<'a, S::Chunks>, &'b mut Of<'c, A::Keys>),
        F: for<'a, 'b> Fn(Of<'a, S::Chunks>, &'b mut Of<'a, A::Views>) -> C::Values,
    {
        let slice = Slice { keys: Some(&keys), basis };
        self.run_sliced(head, space, arrays, accumulators, (describe, slice), body)
    }

    fn run_sliced<S, A, C, K, F>(
        &mut self,
        head: &LoopHead<'_>,
        space: &S,
        mut arrays: A,
        accumulators: C,
        (describe, slice): (Describe<'_>, Slice<'_, K>),
        body: F,
    ) -> Result<C::Values>
    where
        S: IterationSpace,
        A: Arrays,
        C: Accumulators,
        K: for<'a, 'b, 'c> Fn(Of<'a, S::Chunks>, &'b mut Of<'c, A::Keys>),
        F: for<'a, 'b> Fn(Of<'a, S::Chunks>, &'b mut Of<'a, A::Views>) -> C::Values,
    {
        let key = Key {
            site: head.site,
            arrays: arrays.numbers(),
            space: space.key(),
            invariants: head.invariants.to_vec(),
            relax: head.relax.key(),
            schedule: head.schedule.map(|schedule| format!("{schedule:?}")),
        };
        let known = self.plans.get(&key);
        let prepared = match known {
            Some(plan) => Ok(plan),
            None => self.prepare(head, space, &mut arrays, describe, size_of::<C::Values>() != 0, key),
        };
        let checked = prepared.and_then(|plan| {
            arrays.each().iter().try_for_each(|array| array.check())?;
            Ok(plan)
        });
        let plan = match checked {
            Ok(plan) => plan,
            Err(error) => return Err(self.fail(head.site, error)),
        };
        let since = Instant::now();
        let result = match self.checking {
            false => self.pass(head, space, (&plan, slice), &mut arrays, &accumulators, body),
            true => self.checked_pass(head, space, (&plan, slice), &mut arrays, &accumulators, body),
        };
        let result = result.and_then(|values| {
            arrays.each().iter_mut().try_for_each(|array| array.settle(self, head.site))?;
            Ok(values)
        });
        let mut timing = plan.timing.borrow_mut();
        timing.running += since.elapsed();
        timing.passes += 1;
        if let Err(error) = &result {
            let cause = error.to_string();
            arrays.each().iter_mut().for_each(|array| array.poison(&cause));
        }
        result
    }

    /// Plans a loop, and brings arrays and iterations where the plan wants them. Collective.
    fn prepare<S: IterationSpace, A: Arrays>(
        &mut self,
        head: &LoopHead<'_>,
        space: &S,
        arrays: &mut A,
        describe: Describe<'_>,
        accumulates: bool,
        key: Key,
    ) -> Result<Rc<LoopPlan>> {
        let each = arrays.each();
        each.iter().try_for_each(|array| array.check())?;
        if each.len() != head.arrays.len() {
            let what = format!("{} names for {} arrays", head.arrays.len(), each.len());
            return Err(Error::InvalidLoop { loop_name: head.name(), what });
        }
        let named = each.iter().zip(head.arrays).map(|(array, name)| array.describe(name)).collect();
        let treated: Vec<_> = each.iter().map(|array| (array.is_written(), array.treatment())).collect();
        let collects = treated.iter().any(|(_, treatment)| *treatment == Treatment::Collected);
        let accumulates = accumulates || collects;
        let plan = Rc::new(LoopPlan::make(head, space, named, &treated, describe, accumulates, self)?);
        self.plans.keep(key, plan.clone());
        Ok(plan)
    }

    fn pass<S, A, C, K, F>(
        &mut self,
        head: &LoopHead<'_>,
        space: &S,
        (plan, slice): (&LoopPlan, Slice<'_, K>),
        arrays: &mut A,
        accumulators: &C,
        body: F,
    ) -> Result<C::Values>
    where
        S: IterationSpace,
        A: Arrays,
        C: Accumulators,
        K: for<'a, 'b, 'c> Fn(Of<'a, S::Chunks>, &'b mut Of<'c, A::Keys>),
        F: for<'a, 'b> Fn(Of<'a, S::Chunks>, &'b mut Of<'a, A::Views>) -> C::Values,
    {
        let mut timing = plan.timing.borrow_mut();
        let placed = timed(&mut timing.placing, || {
            space.place(self, head.site, &plan.choice.cuts, &plan.owners, plan.is_sorted())
        })?;
        drop(timing);
        let mut spent = LoopReport::default();
        self.begin(head, plan, arrays)?;
        // What is collected is merged after the pass.
        let clocked = |array: &&mut dyn Control| array.treatment() != Treatment::Collected;
        let mut clocks = match relaxed(plan, arrays).iter().any(clocked) {
            false => None,
            true => {
                let foreseen = match serves(plan, arrays) {
                    true => {
                        self.foresee::<S, A, K>(&placed, plan, head.relax.every, arrays, slice, &mut spent)
                    }
                    false => Ok(()),
                };
                Some(self.open(head, plan, arrays, foreseen)?)
            }
        };
        let mut tree = Tree::new(accumulators, plan.cells);
        let me = self.rank();
        let mut begun = 0;
        let worked = guarded(&plan.nest.name, me, || {
            self.work::<S, A, C, F>(
                &placed,
                plan,
                arrays,
                &mut tree,
                (&mut begun, &mut clocks, &mut spent),
                body,
            )
        });
        let since = Instant::now();
        let ended = worked.and_then(|()| self.end(head, plan, arrays, clocks.is_some()));
        if let Err(error) = ended {
            if clocks.is_some() {
                self.board()?.set_failed(self.worker);
            }
            self.abandon(plan, arrays, begun, &error.to_string());
            return Err(self.fail(head.site, error));
        }
        let mut bytes = Vec::new();
        tree.encode(&mut bytes);
        let mut all = Tree::new(accumulators, plan.cells);
        self.exchange(head.site, Say::Value(&bytes), |_, bytes| all.decode(bytes))?;
        spent.wait += since.elapsed();
        take_tallies(plan, arrays, &mut spent);
        plan.note(&spent, clocks.map(|clocks| clocks.report));
        Ok(all.root())
    }

    /// Brings every written array to the worker that needs it first.
    fn begin<A: Arrays>(&mut self, head: &LoopHead<'_>, plan: &LoopPlan, arrays: &mut A) -> Result<()> {
        for (number, array) in arrays.each().iter_mut().enumerate() {
            if let Some(layout) = plan.layout(number).or_else(|| {
                let buffered = array.treatment().contributes();
                plan.one_piece(number, buffered, array.layout())
            }) {
                array.rearrange(self, head.site, &layout)?;
            }
        }
        let mut each = arrays.each();
        if !each.iter().any(|array| array.is_written()) {
            return Ok(());
        }
        // Whoever is not here yet may still read what the last loop left.
        self.exchange(head.site, Say::Value(&[]), |_, _| Ok(()))?;
        let recalled = each.iter_mut().try_for_each(|array| array.recall(self.worker));
        self.agree_on(head.site, recalled)?;
        each.iter_mut().try_for_each(|array| array.finish_recall(self.worker))?;
        for (number, array) in each.iter_mut().enumerate().filter(|(_, array)| array.is_written()) {
            self.hand_out(plan, number, *array)?;
        }
        Ok(())
    }

    /// Opens what is relaxed to all, and sets the clocks.
    fn open<A: Arrays>(
        &mut self,
        head: &LoopHead<'_>,
        plan: &LoopPlan,
        arrays: &mut A,
        foreseen: Result<()>,
    ) -> Result<Clocks> {
        let mut relaxed = relaxed(plan, arrays);
        let board = self.board()?;
        let opened = relaxed.iter_mut().try_for_each(|array| array.open(self.worker));
        let opened = foreseen.and(opened).and_then(|()| board.reset(self.worker));
        self.agree_on(head.site, opened)?;
        let pace = Pace { relax: head.relax, me: self.rank() as usize, workers: self.size() };
        let entered = Clocks::enter(board, pace, self.patience, self.worker, &mut relaxed);
        self.agree_on(head.site, entered)
    }

    /// Gives what this worker owns at rest to whoever needs it first.
    fn hand_out(&mut self, plan: &LoopPlan, number: usize, array: &mut dyn Control) -> Result<()> {
        let me = self.rank();
        let owners = array.layout().owners.clone();
        for (part, owner) in owners.iter().enumerate() {
            let first = plan.first(number, part, *owner);
            if *owner == me && first != me {
                array.give(self.worker, part, first)?;
            }
        }
        let last: Vec<Rank> =
            owners.iter().enumerate().map(|(part, owner)| plan.last(number, part, *owner)).collect();
        array.set_owners(&last);
        Ok(())
    }

    /// After an error: whoever waits for a part of this worker's learns that it will not come. That goes also for
    /// parts that others have still to hand to this worker, for those after it in the schedule wait for them: tile by
    /// tile, as if it worked on, it takes them and lets go of them. `begun` tells the first tile that was not run.
    fn abandon<A: Arrays>(&mut self, plan: &LoopPlan, arrays: &mut A, begun: usize, cause: &str) {
        let mut each = arrays.each();
        each.iter_mut().for_each(|array| array.poison(cause));
        for tile in plan.tiles[self.rank() as usize].iter().skip(begun) {
            for (array, parts) in each.iter_mut().zip(&tile.parts).filter(|(array, _)| array.is_written()) {
                for part in parts.clone() {
                    // What another worker has let go of does not come either.
                    if array.take(self.worker, part).is_ok() {
                        array.poison(cause);
                    }
                }
            }
        }
    }

    /// Lends everything again; what this worker has in hand at the end is its own.
    fn end<A: Arrays>(
        &mut self,
        head: &LoopHead<'_>,
        plan: &LoopPlan,
        arrays: &mut A,
        is_relaxed: bool,
    ) -> Result<()> {
        let me = self.rank();
        if is_relaxed {
            // Whoever is not here yet may still write.
            self.exchange(head.site, Say::Value(&[]), |_, _| Ok(()))?;
            for array in relaxed(plan, arrays).iter_mut() {
                array.close(self.worker)?;
                array.finish_recall(self.worker)?;
                array.lend(self.worker)?;
            }
        }
        for (number, array) in arrays
            .each()
            .iter_mut()
            .enumerate()
            .filter(|(number, array)| array.is_written() && !plan.nest.relaxed.contains(number))
        {
            // Parts that were meant for this worker and that no tile of its needed.
            let owners = array.layout().owners.clone();
            for part in (0..owners.len()).filter(|part| owners[*part] == me) {
                debug_assert!(number < plan.nest.arrays.len());
                array.take(self.worker, part)?;
            }
            array.lend(self.worker)?;
        }
        Ok(())
    }
}
