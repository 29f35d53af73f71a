//! One pass of a loop that is checked: serially, on worker 0, with everything noted.
use super::any_loop::AnyLoop;
use super::body::guarded;
use super::findings::{Covers, Findings, PrefetchCheck, Races};
use super::plan::LoopPlan;
use super::{AnyArrays, LoopHead, PassTrace};
use crate::context::{Context, Outcome};
use crate::contract::Layout;
use crate::error::{Error, Result};
use crate::view::Recording;

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

    pub(super) fn checked_pass(&mut self, running: &mut dyn AnyLoop<'_>, plan: &LoopPlan) -> Result<()> {
        let head = running.head();
        let bounds = running.space().bounds();
        let whole: Vec<Vec<i64>> = bounds.iter().map(|(start, end)| vec![*start, *end]).collect();
        running.place(self, &whole, &vec![0].into(), plan.is_sorted())?;
        self.gather(head, running.arrays())?;
        running.begin_sums(1);
        if self.rank() == 0 {
            let worked = guarded(&plan.nest, 0, || {
                let prefetched = self.slice_each(running, &whole)?;
                let lines = self.run_recorded(running, &whole, plan, prefetched)?.into_lines(&plan.nest);
                let found = Error::Check { loop_name: plan.nest.name.clone(), findings: lines.join("\n  ") };
                if lines.is_empty() { Ok(()) } else { Err(found) }
            });
            let mut each = running.arrays().each();
            let ended =
                worked.and_then(|()| each.iter_mut().try_for_each(|array| array.lend(self.fabric.worker)));
            if let Err(error) = ended {
                return Err(self.fail(head.site, error));
            }
        }
        let mut bytes = Vec::new();
        running.encode_sums(&mut bytes);
        self.exchange(head.site, Outcome::Value(&bytes), |_, bytes| running.add_sums(bytes))
    }

    /// Brings every written array to worker 0, in one part.
    fn gather(&mut self, head: &LoopHead<'_>, arrays: &mut dyn AnyArrays) -> Result<()> {
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

    fn run_recorded(
        &mut self,
        running: &mut dyn AnyLoop<'_>,
        whole: &[Vec<i64>],
        plan: &LoopPlan,
        mut prefetched: PrefetchCheck,
    ) -> Result<Findings> {
        let parts = vec![0..1; plan.nest.arrays.len()];
        let recording = Recording::default();
        let cell = std::cell::Cell::new(0);
        let (covers, mut races) = (Covers::new(&plan.nest), Races::new(plan));
        let mut findings = Findings::default();
        let trace = PassTrace::recording(&cell, &recording);
        running.run_one_by_one(self.fabric.worker, whole, &parts, trace, &mut |index| {
            let touches = recording.take();
            covers.check(index, &touches, &mut findings);
            races.check(index, &touches, &mut findings);
            prefetched.check(&plan.nest, index, &touches, &mut findings);
        })?;
        Ok(findings)
    }

    /// The keys that the slice names for each iteration.
    fn slice_each(&mut self, running: &mut dyn AnyLoop<'_>, whole: &[Vec<i64>]) -> Result<PrefetchCheck> {
        let mut prefetched = PrefetchCheck::default();
        running.slice_one_by_one(self.fabric.worker, whole, &mut |arrays| {
            for (number, array) in arrays.each().into_iter().enumerate() {
                if let Some(served) = array.serves() {
                    prefetched.add(number, served.take_keys());
                }
            }
        })?;
        Ok(prefetched)
    }
}
