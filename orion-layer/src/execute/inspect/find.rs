//! Finding out what the iterations of a loop touch, and how they can run side by side.
use super::super::any_loop::{AnyLoop, Noting};
use super::super::body::explain;
use super::super::inspection::{Batched, Found, Inspected};
use super::super::plan::LoopPlan;
use super::super::prefetch_plan::with_versions;
use super::Context;
use super::estimate::{between_hosts_ns, moved, moved_ns, pace, pays, row_bytes, why_serial};
use super::lists::{block_lists, fill_ranges, lists, row_lists};
use crate::contract::Noted;
use crate::error::{Error, Result};
use crate::panics::unwound;
use crate::text::time;
use hectare_dependence::hosts::Hosts;
use hectare_dependence::inspect::{Touched, choose, deal, once, verify};
use hectare_dependence::loop_nest::Order;
use hectare_dependence::schedule::iterations;
use hectare_dsm::tasks::{RowMarks, RowPlan};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The workers for which batches are chosen, where the choice must not depend on how many there are.
const TEAM: usize = 2;

/// Uses of rows in components of random batches, of which one is by another of two workers than before.
const FOURTH: usize = 4;

/// Why a loop is not inspected after all.
type Why = String;

/// The rows of an array of this shape: of one dimension, its elements. None of rows without elements.
fn rows(shape: &[usize]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    let dims = if shape.len() > 1 { shape.len() - 1 } else { shape.len() };
    shape[..dims].iter().product()
}

impl Context<'_> {
    /// How the pass runs: as an inspection says, which is made if none is known. Collective.
    pub(in super::super) fn inspected(
        &mut self,
        running: &mut dyn AnyLoop<'_>,
        plan: &LoopPlan,
    ) -> Result<Rc<Found>> {
        let Some(inspection) = &plan.inspection else { return Ok(Rc::new(Found::Serial)) };
        let Some(basis) = running.slice_basis() else { return Ok(Rc::new(Found::Serial)) };
        let site = running.head().site;
        let since = Instant::now();
        // Another loop over the same entries may have placed them otherwise meanwhile.
        let times_placed = running.times_placed();
        let basis = basis.map(|basis| with_versions((basis, times_placed), running.arrays()));
        if let Some(known) = inspection.borrow_mut().reuse(basis, since) {
            return Ok(known);
        }
        if !inspection.borrow_mut().is_worthwhile(basis) {
            return Ok(Rc::new(Found::Serial));
        }
        let brought = self.bring_all(running, plan);
        let touched = brought.and_then(|brought| match brought {
            Ok(()) => self.touched(running, plan),
            Err(why) => Ok(Err(why)),
        });
        let hosts = self.linked_hosts(site)?;
        let found = touched.and_then(|touched| self.found(plan, touched, hosts.as_ref()));
        let (found, mut said) = self.agree_on(site, found)?;
        said.took = since.elapsed();
        let found = Rc::new(found);
        inspection.borrow_mut().keep(basis, found.clone(), said);
        Ok(found)
    }

    /// Lets every worker see all iterations.
    fn bring_all(&mut self, running: &mut dyn AnyLoop<'_>, plan: &LoopPlan) -> Result<Result<(), Why>> {
        if !running.space().is_shareable() {
            return Ok(Err(
                "its entries have no fixed length, so that workers cannot run each other's".into()
            ));
        }
        running.share(self)?;
        let owner = plan.only_worker();
        if owner != self.rank() {
            running.bring(self, owner as usize, &[0])?;
        }
        Ok(Ok(()))
    }

    /// Runs the slice for every iteration.
    fn touched(&mut self, running: &mut dyn AnyLoop<'_>, plan: &LoopPlan) -> Result<Result<Touched, Why>> {
        let nest = &plan.nest;
        let count = iterations(nest) as usize;
        let written: Vec<bool> = running.arrays().each().iter().map(|array| array.is_written()).collect();
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
        let (begun, failed) = (Cell::new(0), Cell::new(None));
        let noting = Noting { count, begun: &begun, noted: &noted, failed: &failed };
        let run = running.slice_all(self.fabric.worker, &plan.choice.cuts, noting)?;
        Ok(match (run, failed.get()) {
            (Ok(()), None) => {
                let touched = noted.into_touched();
                match touched.len() == count {
                    true => Ok(touched),
                    // A slice by hand.
                    false => Err(format!("its slice has left out iterations: {} of {count}", touched.len())),
                }
            }
            (Ok(()), Some(many)) => Err(many.to_string()),
            // The body fails there, too, and says so; or it does not come to it.
            (Err(payload), _) => Err(format!(
                "in iteration {} of {count}, its subscripts could not be computed: {}",
                begun.get().saturating_sub(1),
                explain(nest, self.rank(), payload)
            )),
        })
    }

    /// Puts iterations into batches, if that pays.
    fn found(
        &self,
        plan: &LoopPlan,
        touched: Result<Touched, Why>,
        hosts: Option<&Hosts>,
    ) -> Result<(Found, Inspected)> {
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
        let how = (plan.accumulates, batches.blocks.is_some());
        let mut made = lists(&batches, &dealt, workers, self.rank() as usize, how);
        let mut of_rows = match &batches.blocks {
            Some(blocks) => block_lists(&touched, &batches, blocks, &dealt, workers),
            None => row_lists(&touched, &made.all, workers, batches.len()),
        };
        let uses = batches.blocks.as_ref().map(|blocks| &blocks.uses[..]);
        said.moved = moved(&touched, &of_rows, batches.len(), uses);
        fill_ranges(&mut of_rows, batches.len());
        // Whether one worker runs it must not depend on how many there are, if sums would.
        let (moves, sharers) =
            if fixed { (touched.accesses() / FOURTH, TEAM) } else { (said.moved, workers) };
        let own_ns = said.tried.first().map_or(0.0, |best| best.nanoseconds);
        let moved_ns = moved_ns(moves, sharers, row_bytes);
        // Whether one worker runs it must not depend on where they are either, if results would: unless the program has it so.
        let is_as_serial = nest.order == Order::Ordered && !plan.accumulates;
        let hosts = hosts.filter(|_| is_as_serial || self.follows_links());
        let between_ns =
            hosts.map_or(0.0, |hosts| between_hosts_ns(hosts, batches.len(), moves, nest, row_bytes));
        if !pays(own_ns + moved_ns + between_ns, said.serial_ns) {
            let why = format!(
                "{kind} would take {} on {sharers} workers, and {} more for {moves} rows that change hands{}; one worker takes {}",
                time(own_ns),
                time(moved_ns + between_ns),
                if between_ns > 0.0 { ", some of them between hosts" } else { "" },
                time(said.serial_ns),
            );
            said.kind = None;
            return serial(why, said);
        }
        let arrays = touched.arrays().map(|rows| rows.len()).collect();
        let rows = match RowPlan::new(arrays, batches.len(), of_rows) {
            Ok(rows) => Arc::new(rows),
            Err(error) => return invalid(error.to_string()),
        };
        let marks = touched.arrays().map(|rows| RowMarks::new(rows.len())).collect();
        let (starts, iterations) = made.all.swap_remove(self.rank() as usize);
        let group_count = batches.group_count();
        let groups = made.groups;
        let batched = Batched { rows, iterations, starts, groups, group_count, marks };
        Ok((Found::Batched(batched), said))
    }
}
