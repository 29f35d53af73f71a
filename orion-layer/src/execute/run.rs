//! Running a loop: its plan, a pass, and what follows an error.
use super::any_loop::{AnyLoop, Running};
use super::called::{Called, Slice, Types, Values};
use super::divergence::{fingerprint, with_plan};
use super::plan::LoopPlan;
use super::plans::Key;
use super::{AnyArrays, Arrays, Describe, IterationSpace, LoopHead, Of, Pieces, SlicePieces};
use crate::accumulate::Accumulators;
use crate::context::Context;
use crate::error::{Error, Result};
use std::rc::Rc;
use std::time::Instant;

/// A body of single pieces as one of several.
fn of_pieces<S, A, C, F>(
    accumulators: &C,
    body: F,
) -> impl for<'a, 'b> Fn(Pieces<'a, S>, &'b mut Of<'a, A::Views>) -> C::Values
where
    S: IterationSpace,
    A: Arrays,
    C: Accumulators,
    F: for<'a, 'b> Fn(Of<'a, S::Chunks>, &'b mut Of<'a, A::Views>) -> C::Values,
{
    move |mut pieces, views| {
        // Lists are for bodies that have a slice.
        let first = pieces.next().map(|piece| body(piece, views));
        let rest = pieces.map(|piece| body(piece, views));
        rest.fold(first.unwrap_or_else(|| accumulators.identities()), |sum, values| {
            accumulators.combine(sum, values)
        })
    }
}

impl Context<'_> {
    /// Runs a loop. Collective; usually written as `parallel_for!`.
    ///
    /// `describe` completes the description: inner variables and accesses. `body` gets the iterations of one cell
    /// and the views of the arrays, and returns what they add to the accumulators.
    ///
    /// # Errors
    /// [`Error::InvalidLoop`](crate::Error::InvalidLoop), [`Error::InvalidSchedule`](crate::Error::InvalidSchedule),
    /// [`Error::OutOfBounds`](crate::Error::OutOfBounds), [`Error::BodyPanicked`](crate::Error::BodyPanicked),
    /// [`Error::RulePanicked`](crate::Error::RulePanicked), [`Error::Entry`](crate::Error::Entry),
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
        let none = |_: SlicePieces<'_, S>, _: &mut Of<'_, A::Keys>| {};
        let slice = Slice { keys: None.or((false).then_some(&none)), basis: None };
        let body = of_pieces::<S, A, C, F>(&accumulators, body);
        self.run_called(
            Called::<(S, A, C, _, _)> {
                head,
                space,
                accumulators: &accumulators,
                describe,
                slice,
                body: &body,
            },
            arrays,
        )
    }

    /// Runs a loop over served arrays, as [`Context::run_loop`] does. Collective; usually written as `parallel_for!`.
    ///
    /// `body` gets iterations in [`Pieces`], of which each is as the one of a body without a slice.
    ///
    /// `keys` is a slice of the body: it gets such pieces as well ([`SlicePieces`]), and tells the
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
        K: for<'a, 'b, 'c> Fn(SlicePieces<'a, S>, &'b mut Of<'c, A::Keys>),
        F: for<'a, 'b> Fn(Pieces<'a, S>, &'b mut Of<'a, A::Views>) -> C::Values,
    {
        let slice = Slice { keys: Some(&keys), basis };
        self.run_called(
            Called::<(S, A, C, _, _)> {
                head,
                space,
                accumulators: &accumulators,
                describe,
                slice,
                body: &body,
            },
            arrays,
        )
    }

    fn run_called<L: Types>(&mut self, called: Called<'_, L>, arrays: L::Arrays) -> Result<Values<L>> {
        let mut running = Running::new(called, arrays);
        self.run_any(&mut running)?;
        Ok(running.into_values())
    }

    fn run_any(&mut self, running: &mut dyn AnyLoop<'_>) -> Result<()> {
        let (head, space) = (running.head(), running.space());
        let key = Key {
            site: head.site,
            arrays: running.arrays().numbers(),
            space: space.key(),
            invariants: head.invariants.to_vec(),
            relax: head.relax.key(),
            schedule: head.schedule.map(|schedule| format!("{schedule:?}")),
            follows_links: self.follows_links(),
        };
        let says = (key.space, self.checking);
        let fingerprint = fingerprint(head, says, key.schedule.as_ref(), running.arrays());
        let result = self.run_fingerprinted(running, key, fingerprint);
        let fingerprint = self.set_fingerprint(0);
        match self.take_divergence() {
            false => result,
            true => Err(self.loop_divergence(head, space, running.arrays(), fingerprint)),
        }
    }

    /// Runs a loop of which this worker says `fingerprint`.
    fn run_fingerprinted(&mut self, running: &mut dyn AnyLoop<'_>, key: Key, fingerprint: u64) -> Result<()> {
        let head = running.head();
        let (known, told) = (self.plan_of(&key), self.told);
        let prepared = match known {
            Some(plan) => Ok(plan),
            None => {
                self.set_fingerprint(fingerprint);
                self.agree_to_plan(head.site)?;
                self.prepare(running, key.clone())
            }
        };
        if let Ok(plan) = &prepared {
            self.set_fingerprint(with_plan(fingerprint, plan));
            // All workers have a report, also of a pass that fails.
            drop(plan.report(head.relax));
        }
        let checked = prepared.and_then(|plan| {
            running.arrays().each().iter().try_for_each(|array| array.check())?;
            Ok(plan)
        });
        let plan = match checked {
            Ok(plan) => plan,
            // Errors of an exchange during planning are known to all.
            Err(error @ (Error::PeerFailed { .. } | Error::WorkerLost { .. } | Error::Diverged { .. })) => {
                return Err(error);
            }
            // Of one that this worker has told them, too: they do not wait for another.
            Err(error) if self.told > told => return Err(error),
            Err(error) => return Err(self.fail(head.site, error)),
        };
        let passes = plan.timing.borrow().passes;
        // Of the passes after the second, in which more goes ahead than came so: some, fewer and fewer.
        let is_metered = plan.between_hosts.is_some() && passes > 1 && passes.is_power_of_two();
        let before = is_metered.then(|| self.counted_by_agent()).flatten();
        let since = Instant::now();
        let result = match self.checking {
            false => self.pass(running, &plan),
            true => self.checked_pass(running, &plan),
        };
        let result = result.and_then(|()| self.settle(head, running.arrays()));
        let mut timing = plan.timing.borrow_mut();
        let took = since.elapsed();
        timing.running += took;
        timing.passes += 1;
        drop(timing);
        match &result {
            Err(error) => {
                self.has_to_meet = true;
                let cause = error.to_string();
                running.arrays().each().iter_mut().for_each(|array| array.poison(&cause));
                running.forget_sums();
            }
            Ok(()) => {
                if let Some(before) = before
                    && let Some(after) = self.counted_by_agent()
                {
                    let here = self.fabric.host_of(self.rank() as usize);
                    plan.link_meter.borrow_mut().note(here, &before, &after);
                }
                self.forecast(running, &plan, took)?;
                self.rebalanced(&key, &plan)?;
            }
        }
        result
    }

    /// Merges what the loop collected. If that fails for one array, those that were before it have changed.
    fn settle(&mut self, head: &LoopHead<'_>, arrays: &mut dyn AnyArrays) -> Result<()> {
        let mut each = arrays.each();
        for at in 0..each.len() {
            if let Err(error) = each[at].settle(self, head.site) {
                let cause = error.to_string();
                each[..at].iter_mut().for_each(|array| array.unsettle(&cause));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Plans a loop. Collective.
    fn prepare(&mut self, running: &mut dyn AnyLoop<'_>, key: Key) -> Result<Rc<LoopPlan>> {
        let head = running.head();
        let each = running.arrays().each();
        each.iter().try_for_each(|array| array.check())?;
        if each.len() != head.arrays.len() {
            let what = format!("{} names for {} arrays", head.arrays.len(), each.len());
            return Err(Error::InvalidLoop { loop_name: head.name(), what });
        }
        let named = each.iter().zip(head.arrays).map(|(array, name)| array.describe(name)).collect();
        let treated: Vec<_> = each.iter().map(|array| (array.is_written(), array.treatment())).collect();
        let mut plan = LoopPlan::make(running, named, &treated, self)?;
        plan.sharing.has_slice = running.slice_basis().is_some();
        let plan = Rc::new(plan);
        self.keep_plan(key, plan.clone());
        Ok(plan)
    }
}
