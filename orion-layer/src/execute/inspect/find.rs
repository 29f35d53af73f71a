//! Finding out what the iterations of a loop touch, and how they can run side by side.
use super::super::body::explain;
use super::super::called::{KeySlice, Slice};
use super::super::inspection::{Batched, Found, Inspected};
use super::super::plan::LoopPlan;
use super::super::prefetch_plan::with_versions;
use super::{Called, Context};
use crate::contract::{Arrays, IterationSpace, KeyNotes, Noted};
use crate::error::{Error, Result};
use crate::panics::unwound;
use hectare_dependence::inspect::{Batches, Dealt, Pace, Touched, choose, deal, once, verify};
use hectare_dependence::loop_nest::{LoopNest, Order};
use hectare_dependence::schedule::iterations;
use hectare_dsm::tasks::{RowList, RowPlaces, RowPlan, Touched as TouchedRows};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The workers for which batches are chosen, where the choice must not depend on how many there are.
const TEAM: usize = 2;

/// Bytes of rows that a core gets through in a nanosecond.
const BYTES_PER_NS: f64 = 16.0;

/// What an iteration takes besides its rows.
const ITERATION_NS: f64 = 10.0;

/// What it takes longer where its rows are found in the lists of a batch.
const OVERHEAD_NS: f64 = 2.0;

/// From one batch to the next.
const BATCH_NS: f64 = 1_500.0;

/// To get at a row that another worker has used, besides its bytes.
const MOVED_NS: f64 = 50.0;

/// Of so many uses of rows in components of random batches, one is by another of two workers than before.
const FOURTH: usize = 4;

/// What is left of the serial loop's time has to be less than so much of it.
const PAYS: f64 = 0.9;

/// Why a loop is not inspected after all.
type Why = String;

/// The rows of an array of this shape: of one dimension, its elements.
fn rows(shape: &[usize]) -> usize {
    let dims = if shape.len() > 1 { shape.len() - 1 } else { shape.len() };
    shape[..dims].iter().product()
}

impl Context<'_> {
    /// How the pass runs: as an inspection says, which is made if none is known. Collective.
    pub(in super::super) fn inspected<S, A, C, K, F>(
        &mut self,
        called: &Called<'_, S, C, K, F>,
        plan: &LoopPlan,
        placed: &S::Placed,
        arrays: &mut A,
    ) -> Result<Rc<Found>>
    where
        S: IterationSpace,
        A: Arrays,
        K: KeySlice<S, A>,
    {
        let Some(inspection) = &plan.inspection else { return Ok(Rc::new(Found::Serial)) };
        let Slice { keys: Some(keys), basis } = called.slice else { return Ok(Rc::new(Found::Serial)) };
        let since = Instant::now();
        // Another loop over the same entries may have placed them otherwise meanwhile.
        let of_placement = |basis: u64| basis ^ S::times_placed(placed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let basis = basis.map(|basis| of_placement(with_versions(basis, arrays)));
        if let Some(known) = inspection.borrow_mut().reuse(basis, since) {
            return Ok(known);
        }
        if !inspection.borrow_mut().is_worthwhile(basis) {
            return Ok(Rc::new(Found::Serial));
        }
        let brought = self.bring_all(called, plan, placed);
        let touched = brought.and_then(|brought| match brought {
            Ok(()) => self.touched::<S, A, K>(plan, placed, arrays, keys),
            Err(why) => Ok(Err(why)),
        });
        let found = touched.and_then(|touched| self.found(plan, touched));
        let (found, mut said) = self.agree_on(called.head.site, found)?;
        said.took = since.elapsed();
        let found = Rc::new(found);
        inspection.borrow_mut().keep(basis, found.clone(), said);
        Ok(found)
    }

    /// Lets every worker see all iterations.
    fn bring_all<S, C, K, F>(
        &mut self,
        called: &Called<'_, S, C, K, F>,
        plan: &LoopPlan,
        placed: &S::Placed,
    ) -> Result<Result<(), Why>>
    where
        S: IterationSpace,
    {
        if !called.space.is_shareable() {
            return Ok(Err(
                "its entries have no fixed length, so that workers cannot run each other's".into()
            ));
        }
        called.space.share(self, called.head.site, placed)?;
        let owner = plan.only_worker();
        if owner != self.rank() {
            S::bring(placed, self, owner as usize, &[0])?;
        }
        Ok(Ok(()))
    }

    /// Runs the slice for every iteration.
    fn touched<S, A, K>(
        &mut self,
        plan: &LoopPlan,
        placed: &S::Placed,
        arrays: &mut A,
        keys: &K,
    ) -> Result<Result<Touched, Why>>
    where
        S: IterationSpace,
        A: Arrays,
        K: KeySlice<S, A>,
    {
        let nest = &plan.nest;
        let count = iterations(nest) as usize;
        let written: Vec<bool> = arrays.each().iter().map(|array| array.is_written()).collect();
        let of = |(array, written): (&hectare_dependence::loop_nest::NamedArray, &bool)| {
            written.then(|| rows(&array.shape))
        };
        let rows: Vec<Option<usize>> = nest.arrays.iter().zip(&written).map(of).collect();
        if rows.contains(&Some(0)) {
            return Ok(Err("an array that it writes is empty".into()));
        }
        let noted = match Noted::new(&rows, count) {
            Ok(noted) => noted,
            Err(many) => return Ok(Err(many.to_string())),
        };
        unwound::forget();
        let at = Cell::new(0);
        let mut views = arrays.keys(self.fabric.worker, KeyNotes::of(&noted))?;
        let cuts = &plan.choice.cuts;
        let run = catch_unwind(AssertUnwindSafe(|| {
            (0..count).try_for_each(|iteration| {
                at.set(iteration);
                keys(S::piece(placed, cuts, iteration..iteration + 1), &mut views);
                noted.end_iteration()
            })
        }));
        drop(views);
        Ok(match run {
            Ok(Ok(())) => Ok(noted.into_touched()),
            Ok(Err(many)) => Err(many.to_string()),
            // The body fails there, too, and says so; or it does not come to it.
            Err(payload) => Err(format!(
                "in iteration {} of {count}, its subscripts could not be computed: {}",
                at.get(),
                explain(nest, self.rank(), payload)
            )),
        })
    }

    /// Puts iterations into batches, if that pays.
    fn found(&self, plan: &LoopPlan, touched: Result<Touched, Why>) -> Result<(Found, Inspected)> {
        let nest = &plan.nest;
        let serial = |why: Why, said| Ok((Found::Serial, Inspected { why_serial: Some(why), ..said }));
        let touched = match touched {
            Ok(touched) => touched,
            Err(why) => return serial(why, Inspected::default()),
        };
        let workers = self.size();
        let fixed = plan.accumulates && nest.order == Order::Ordered;
        let team = if fixed { TEAM } else { workers.max(TEAM) };
        let row_bytes = row_bytes(nest);
        let found = choose(&touched, nest.order, team, pace(row_bytes, &touched));
        let mut said = Inspected {
            iterations: touched.len(),
            accesses: touched.accesses(),
            tried: found.tried,
            growth: found.growth,
            serial_ns: found.serial_ns,
            ..Inspected::default()
        };
        let Some((kind, batches)) = found.batches else {
            let why = why_serial(&said, team);
            return serial(why, said);
        };
        let invalid = |what: String| {
            Err(Error::InvalidSchedule { loop_name: nest.name.clone(), schedule: kind.to_string(), what })
        };
        // That workers do not conflict is found by the core, which refuses the rows otherwise.
        let verified = match nest.order {
            Order::Ordered => verify(&touched, &batches, nest.order),
            Order::Unordered => once(&touched, &batches),
        };
        if let Err(broken) = verified {
            return invalid(broken.to_string());
        }
        said.chosen(kind, &batches);
        let dealt = deal(&touched, &batches, workers);
        let mut made = lists(&batches, &dealt, workers, self.rank() as usize, plan.accumulates);
        let of_rows = row_lists(&touched, &made.all, workers, batches.len());
        said.moved = moved(&touched, &of_rows, batches.len());
        // Whether one worker runs it must not depend on how many there are, if sums would.
        let (moves, sharers) =
            if fixed { (touched.accesses() / FOURTH, TEAM) } else { (said.moved, workers) };
        let own_ns = said.tried.first().map_or(0.0, |best| best.nanoseconds);
        let moved_ns = moves as f64 / sharers as f64 * (MOVED_NS + row_bytes / BYTES_PER_NS);
        if own_ns + moved_ns > PAYS * said.serial_ns {
            let why = format!(
                "{kind} would take {:.3} ms of {:.3} ms on {sharers} workers, and {:.3} ms more for {moves} rows that change hands",
                own_ns / 1e6,
                said.serial_ns / 1e6,
                moved_ns / 1e6,
            );
            said.kind = None;
            return serial(why, said);
        }
        let arrays = touched.arrays().map(|rows| rows.len()).collect();
        let rows = match RowPlan::new(arrays, batches.len(), of_rows) {
            Ok(rows) => Arc::new(rows),
            Err(error) => return invalid(error.to_string()),
        };
        let places = RefCell::new(touched.arrays().map(|rows| RowPlaces::new(rows.len())).collect());
        let (starts, iterations) = made.all.swap_remove(self.rank() as usize);
        let group_count = batches.group_count();
        let groups = made.groups;
        let batched = Batched { rows, iterations, starts, groups, group_count, places };
        Ok((Found::Batched(batched), said))
    }
}

/// Bytes of a row that the loop writes: all are held to be as long as the mean of the arrays'.
fn row_bytes(nest: &LoopNest) -> f64 {
    let written = nest.arrays.iter().enumerate().filter(|(array, _)| nest.is_written(*array));
    let bytes = written.map(|(_, array)| {
        let row = if array.shape.len() > 1 { array.shape[array.shape.len() - 1] } else { 1 };
        (row * array.element_bytes) as f64
    });
    let bytes: Vec<f64> = bytes.collect();
    bytes.iter().sum::<f64>() / bytes.len().max(1) as f64
}

/// How long iterations take, by the bytes of the rows that they touch.
fn pace(row_bytes: f64, touched: &Touched) -> Pace {
    let each = touched.accesses() as f64 / touched.len().max(1) as f64;
    let iteration_ns = ITERATION_NS + each * row_bytes / BYTES_PER_NS;
    Pace { iteration_ns, overhead_ns: OVERHEAD_NS, batch_ns: BATCH_NS }
}

/// How often rows are used by another worker than before.
fn moved(touched: &Touched, of_rows: &[Vec<TouchedRows>], batches: usize) -> usize {
    let mut moved = 0;
    for (array, rows) in touched.arrays().enumerate() {
        let mut last = vec![u32::MAX; rows.len()];
        for batch in 0..batches {
            for (worker, lists) in (0u32..).zip(of_rows) {
                for row in lists[array].writes.of(batch) {
                    let before = std::mem::replace(&mut last[*row as usize], worker);
                    moved += usize::from(before != worker && before != u32::MAX);
                }
            }
        }
    }
    moved
}

/// Why no batches pay, in figures.
fn why_serial(said: &Inspected, team: usize) -> Why {
    let percent = |share: f64| (100.0 * share).round();
    let first = match (said.growth.first(), said.growth.last()) {
        (Some(first), Some(last)) if first.batch < last.batch => format!(
            "{} % of a batch of {} iterations is one component, and {} % of one of {}; ",
            percent(first.largest),
            first.batch,
            percent(last.largest),
            last.batch
        ),
        (Some(one), _) => {
            format!("{} % of a batch of {} iterations is one component; ", percent(one.largest), one.batch)
        }
        _ => String::new(),
    };
    let best = said.tried.first().map(|best| {
        format!(
            "the best of what was tried, {}, would take {:.3} ms of {:.3} ms on {team} workers",
            best.kind,
            best.nanoseconds / 1e6,
            said.serial_ns / 1e6
        )
    });
    format!("{first}{}", best.unwrap_or_else(|| "nothing else was found".into()))
}

/// The iterations of all workers, batch by batch.
struct Lists {
    /// For each worker, where its batches begin, and the iterations.
    all: Vec<(Vec<usize>, Vec<u32>)>,
    /// The groups of this worker, if they are told apart.
    groups: Vec<(usize, usize)>,
}

fn lists(batches: &Batches, dealt: &Dealt, workers: usize, me: usize, by_group: bool) -> Lists {
    let mut lists = Lists { all: vec![(vec![0], Vec::new()); workers], groups: Vec::new() };
    for batch in 0..batches.len() {
        for (worker, (starts, list)) in lists.all.iter_mut().enumerate() {
            match by_group {
                false => dealt.list(batches, (batch, worker), list),
                true => {
                    for group in batches.groups_of(batch) {
                        if dealt.workers[group] as usize == worker {
                            list.extend_from_slice(batches.of_group(group));
                            if worker == me {
                                lists.groups.push((group, list.len()));
                            }
                        }
                    }
                }
            }
            starts.push(list.len());
        }
    }
    lists
}

/// The rows that each worker touches of each array, batch by batch.
fn row_lists(
    touched: &Touched,
    lists: &[(Vec<usize>, Vec<u32>)],
    workers: usize,
    batches: usize,
) -> Vec<Vec<TouchedRows>> {
    let arrays: Vec<_> = touched.arrays().collect();
    // The array of a row is found among their ends.
    let array_of = |row: usize| arrays.iter().position(|rows| row < rows.end).unwrap_or(0);
    let mut seen = vec![(0u32, 0u32); touched.rows()];
    let mut stamp = 0;
    (0..workers)
        .map(|worker| {
            let (starts, list) = &lists[worker];
            let empty = || (vec![0usize], Vec::new());
            let mut of: Vec<[(Vec<usize>, Vec<u32>); 2]> =
                arrays.iter().map(|_| [empty(), empty()]).collect();
            for batch in 0..batches {
                stamp += 1;
                for iteration in &list[starts[batch]..starts[batch + 1]] {
                    for key in touched.of(*iteration as usize) {
                        let (row, writes) = (key.number(), key.writes());
                        let (written, read) = &mut seen[row];
                        let known = *written == stamp || !writes && *read == stamp;
                        if known {
                            continue;
                        }
                        *(if writes { written } else { read }) = stamp;
                        let array = array_of(row);
                        of[array][usize::from(!writes)].1.push((row - arrays[array].start) as u32);
                    }
                }
                for (starts, rows) in of.iter_mut().flatten() {
                    starts.push(rows.len());
                }
            }
            let list = |(starts, rows)| RowList::new(starts, rows);
            of.into_iter()
                .map(|[writes, reads]| TouchedRows { writes: list(writes), reads: list(reads) })
                .collect()
        })
        .collect()
}
