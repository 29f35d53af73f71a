//! The results of an inspection, kept from pass to pass.
use crate::text::{counted, time};
use hectare_dependence::inspect::{Batches, Growth, Kind, Tried};
use hectare_dsm::tasks::{RowMarks, RowPlan};
use serde::Serialize;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A share in percent: little is not nothing.
pub(super) fn percent(share: f64) -> String {
    match 100.0 * share {
        percent if percent > 0.0 && percent < 1.0 => "less than 1 %".into(),
        percent => format!("{percent:.0} %"),
    }
}

/// How a pass runs.
#[derive(Debug)]
pub(super) enum Found {
    /// On one worker.
    Serial,
    /// In batches.
    Batched(Batched),
}

/// The batches of a loop, as one worker runs them.
#[derive(Debug)]
pub(super) struct Batched {
    /// Which rows each worker touches in each batch.
    pub(super) rows: Arc<RowPlan>,
    /// The iterations of this worker, batch by batch.
    pub(super) iterations: Vec<u32>,
    /// Which of them are those of each batch.
    pub(super) starts: Vec<usize>,
    /// If values are accumulated: the number of each group of this worker's, and where it ends in `iterations`.
    pub(super) groups: Vec<(usize, usize)>,
    /// Groups of all workers.
    pub(super) group_count: usize,
    /// Which rows of each written array the batch under way has.
    pub(super) marks: Vec<RowMarks>,
}

impl Batched {
    /// The places in `iterations` of a batch.
    pub(super) fn of(&self, batch: usize) -> Range<usize> {
        self.starts[batch]..self.starts[batch + 1]
    }
}

/// The result of inspecting a loop whose subscripts come from data: of running its subscripts alone. The same on every worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Inspected {
    /// How the last pass ran: the kind of its batches, if it ran in batches.
    pub kind: Option<Kind>,
    /// Why the last pass ran on one worker, if it did.
    pub why_serial: Option<String>,
    /// Iterations.
    pub iterations: usize,
    /// Rows and elements that they touch, all together.
    pub accesses: usize,
    /// Batches of a pass.
    pub batches: usize,
    /// Groups that stay together, in all batches.
    pub groups: usize,
    /// How often, in a pass, a row is used by another worker than before.
    pub moved: usize,
    /// The candidates with their estimated times, the fastest first.
    pub tried: Vec<Tried>,
    /// How the largest component grows with the batch, if that was measured.
    pub growth: Vec<Growth>,
    /// Nanoseconds of the serial loop, in the estimate.
    pub serial_ns: f64,
    /// How often the loop was inspected.
    pub made: u64,
    /// In how many passes an earlier inspection held.
    pub reused: u64,
    /// How long the last inspection took on this worker.
    #[serde(skip)]
    pub took: Duration,
    /// How long this worker has looked, all in all, whether what was found earlier still holds.
    #[serde(skip)]
    pub looked: Duration,
}

/// More passes than these in advance are not paid for by inspections that were used again.
const MOST_CREDIT: u32 = 4;

/// The inspection of a loop, and what it cost and gave.
#[derive(Debug)]
pub(crate) struct Inspection {
    known: Option<(Option<u64>, Rc<Found>)>,
    /// How many inspections more are made without any being used again.
    credit: u32,
    /// The digest of the data that the last pass was to run by.
    last: Option<u64>,
    pub(crate) said: Inspected,
}

impl Default for Inspection {
    fn default() -> Inspection {
        Inspection { known: None, credit: 1, last: None, said: Inspected::default() }
    }
}

impl Inspection {
    /// The last inspection, if it was of the same data.
    pub(super) fn reuse(&mut self, basis: Option<u64>, since: Instant) -> Option<Rc<Found>> {
        let (of, found) = self.known.as_ref()?;
        if basis.is_none() || *of != basis {
            return None;
        }
        self.said.reused += 1;
        self.said.looked += since.elapsed();
        self.credit = MOST_CREDIT.min(self.credit + 1);
        Some(found.clone())
    }

    /// Whether an inspection for these data is worth its time: not if those before were of no more use than one pass each, unless
    /// these data are those of the pass before.
    pub(super) fn is_worthwhile(&mut self, basis: Option<u64>) -> bool {
        let again = basis.is_some() && self.last == basis;
        self.last = basis;
        if self.credit == 0 && !again {
            self.known = None;
            self.said.kind = None;
            self.said.why_serial = Some(
                "its subscripts change from pass to pass, and an inspection takes longer than it saves in one".into(),
            );
            return false;
        }
        self.credit = self.credit.saturating_sub(1);
        true
    }

    /// Keeps what was found.
    pub(super) fn keep(&mut self, basis: Option<u64>, found: Rc<Found>, said: Inspected) {
        let (made, reused, looked) = (self.said.made + 1, self.said.reused, self.said.looked);
        self.said = Inspected { made, reused, looked, ..said };
        self.known = Some((basis, found));
    }
}

impl Inspected {
    /// Records the batches that were chosen.
    pub(super) fn chosen(&mut self, kind: Kind, batches: &Batches) {
        self.kind = Some(kind);
        (self.batches, self.groups) = (batches.len(), batches.group_count());
    }
}

impl fmt::Display for Inspected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inspected { iterations, accesses, batches, groups, moved, made, reused, .. } = self;
        writeln!(f, "  Its subscripts are not linear in its variables, and were computed before it ran:")?;
        if *iterations > 0 {
            writeln!(
                f,
                "    {iterations} iterations touch {accesses} rows and elements, those that several touch counted several times;"
            )?;
        }
        match (&self.kind, &self.why_serial) {
            (Some(kind), _) => {
                writeln!(
                    f,
                    "    it runs in {} of {}, whose iterations stay together: {kind}.",
                    counted(*batches as u64, "batch"),
                    counted(*groups as u64, "group")
                )?;
                writeln!(f, "    Rows are used by another worker than before {moved} times.")?;
            }
            (None, Some(why)) => writeln!(f, "    it runs on one worker: {why}.")?,
            (None, None) => {}
        }
        for Tried { kind, nanoseconds, batches, parallelism } in &self.tried {
            let chosen = if self.kind == Some(*kind) { "*" } else { "-" };
            writeln!(
                f,
                "    {chosen} {kind}: about {} a pass, of {} on one worker; {}, {parallelism:.2} at once",
                time(*nanoseconds),
                time(self.serial_ns),
                counted(*batches as u64, "batch")
            )?;
        }
        if !self.growth.is_empty() {
            let shares = self
                .growth
                .iter()
                .map(|Growth { batch, largest }| format!("{} of {batch}", percent(*largest)));
            writeln!(
                f,
                "    The largest component has {} iterations.",
                shares.collect::<Vec<_>>().join(", ")
            )?;
        }
        writeln!(f, "    Found {made} times, and used again in {reused} passes.")
    }
}
