//! The reports of all loops and workers.
use crate::context::Context;
use crate::error::Result;
use crate::relax::LoopReport;
use crate::site::{Site, by_place};
use std::time::Duration;

impl Context<'_> {
    /// The time of each loop by what it went to, over all workers and passes so far, in the order of the program's source. A loop
    /// that ran under several consistencies, or with several intervals between clocks, has a report for each, in the order
    /// in which they came first. Collective.
    ///
    /// ```
    /// use hectare_orion::relax::Consistency;
    /// use hectare_orion::{parallel_for, run};
    ///
    /// run(2, |w| {
    ///     let mut sums = w.zeros::<u64, 1>([10])?;
    ///     for consistency in [Consistency::Bsp, Consistency::Bounded(1), Consistency::Bsp] {
    ///         parallel_for!(w, unordered, relax sums, consistency = consistency;
    ///             for i in 0..1000 {
    ///                 sums.add(i % 10, 1);
    ///             })?;
    ///     }
    ///     let reports = w.reports()?;
    ///     let passes = |at: usize| (reports[at].relax.unwrap().consistency, reports[at].passes);
    ///     assert_eq!([passes(0), passes(1)], [(Consistency::Bsp, 2), (Consistency::Bounded(1), 1)]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Diverged`](crate::Error::Diverged), [`Error::WorkerLost`](crate::Error::WorkerLost).
    #[track_caller]
    pub fn reports(&mut self) -> Result<Vec<LoopReport>> {
        let site = Site::here();
        let mut mine: Vec<LoopReport> = Vec::new();
        // The same loop may have several plans, which are numbered alike on all workers.
        let mut plans: Vec<_> = self.plans().collect();
        plans.sort_by(|a, b| by_place(&a.nest.name, &b.nest.name).then(a.number.cmp(&b.number)));
        for report in plans.iter().flat_map(|plan| plan.reports.borrow().clone()) {
            LoopReport::collect(&mut mine, report);
        }
        let mut all: Vec<LoopReport> = Vec::new();
        let (mut longest, mut busy) = (vec![Duration::ZERO; mine.len()], vec![0; mine.len()]);
        self.exchange_values(site, &mine, |_, other: Vec<LoopReport>| {
            for ((longest, busy), report) in longest.iter_mut().zip(&mut busy).zip(&other) {
                *longest = (*longest).max(report.compute);
                *busy += u64::from(report.compute > Duration::ZERO);
            }
            match all.is_empty() {
                true => all = other,
                false => all.iter_mut().zip(&other).for_each(|(report, other)| report.merge(other)),
            }
            Ok(())
        })?;
        let workers = self.size() as f64;
        for ((report, longest), busy) in all.iter_mut().zip(longest).zip(busy) {
            report.busy = busy;
            let mean = report.compute.as_secs_f64() / workers;
            report.imbalance = if mean > 0.0 { longest.as_secs_f64() / mean } else { 1.0 };
            report.drift /= report.drift_samples.max(1) as f64;
            report.stale_iterations /= report.stale_samples.max(1) as f64;
        }
        Ok(all)
    }
}
