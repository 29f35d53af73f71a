//! The record of a loop for the planner: its passes here, and those that the model predicts on other numbers of hosts.
use super::any_loop::AnyLoop;
use super::plan::LoopPlan;
use crate::context::Context;
use crate::error::{Error, Result};
use hectare_dependence::cuts::BlockWeights;
use hectare_dependence::hosts::{
    Forecast, Hosts, Link, LoopRecord, PassesRecord, PlanRequest, RECORD_VERSION, Traffic, Work, pass_time,
};
use hectare_dependence::in_place::CheckTasks;
use hectare_dependence::schedule::{Choice, Team, Uncut, choose, iterations};
use std::fs;
use std::time::Duration;

/// Passes after which predictions are made, with what was measured until then.
const AFTER: [usize; 4] = [1, 3, 10, 30];
/// With more workers, bounds of blocks stay where equal numbers of cells put them: to look for better ones takes longer than a pass.
const BALANCED: usize = 64;

/// Numbers of workers for which a loop could have more tiles are left out.
const MOST_TILES: usize = 1 << 20;

/// The loops of a program that a planner has started.
#[derive(Debug)]
struct Recorder {
    path: String,
    record: PassesRecord,
    loops: Vec<Passes>,
}

/// The passes of a plan: of each, how long it took and how long each worker ran iterations.
#[derive(Debug)]
struct Passes {
    plan: u64,
    took: Vec<f64>,
    computes: Vec<Vec<f64>>,
}

impl Passes {
    /// Those that count: not the first, which brings entries to their places, if there are others.
    fn counted<T>(all: &[T]) -> &[T] {
        &all[usize::from(all.len() > 1)..]
    }

    fn took_ns(&self) -> f64 {
        median(Passes::counted(&self.took).to_vec())
    }

    fn compute_ns(&self) -> Vec<f64> {
        let passes = Passes::counted(&self.computes);
        let workers = passes.first().map_or(0, Vec::len);
        (0..workers).map(|worker| median(passes.iter().map(|pass| pass[worker]).collect())).collect()
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

impl Recorder {
    fn write(&self) -> Result<()> {
        let failed = |source| Error::Io { file: self.path.clone(), source };
        let text = serde_json::to_vec(&self.record).map_err(|error| failed(error.into()))?;
        fs::write(&self.path, text).map_err(failed)
    }

    fn passes(&mut self, plan: &LoopPlan) -> usize {
        let at = self.loops.iter().position(|passes| passes.plan == plan.number);
        at.unwrap_or_else(|| {
            self.loops.push(Passes { plan: plan.number, took: Vec::new(), computes: Vec::new() });
            let nest = &plan.nest;
            let relaxed = nest.relaxed.iter().map(|array| nest.arrays[*array].name.clone()).collect();
            self.record.loops.push(LoopRecord {
                name: nest.name.clone(),
                iterations: iterations(nest),
                passes: 0,
                compute_ns: Vec::new(),
                measured_ns: 0.0,
                relaxed,
                forecasts: Vec::new(),
            });
            self.loops.len() - 1
        })
    }
}

/// The last figures are written when the program ends.
impl Drop for Recorder {
    fn drop(&mut self) {
        if let Err(error) = self.write() {
            tracing::error!(%error, "the record for the planner cannot be written");
        }
    }
}

/// The tiles of the largest rotation over which `workers` workers could run a loop.
fn most_tiles(plan: &LoopPlan, workers: usize) -> usize {
    let dims = plan.dependences.rotation_sets().iter().map(Vec::len).filter(|dims| *dims <= 3).max();
    let around = (1..dims.unwrap_or(1)).map(|_| 2 * workers);
    around.fold(workers, |tiles, turns| tiles.saturating_mul(turns))
}

impl Context<'_> {
    /// After a pass, notes it for the planner, if that has started the program. Collective.
    pub(super) fn forecast(
        &mut self,
        running: &dyn AnyLoop<'_>,
        plan: &LoopPlan,
        took: Duration,
    ) -> Result<()> {
        let Some(request) = self.plan_request.clone() else { return Ok(()) };
        let site = running.head().site;
        let link = request.link.or(plan.between_hosts.as_ref().map(|between| between.link));
        if self.extensions.get::<Recorder>().is_none() && self.rank() == 0 {
            let record = PassesRecord {
                version: RECORD_VERSION,
                workers: self.size(),
                hosts: if self.fabric.spans_hosts() { self.fabric.hosts() } else { 1 },
                link,
                loops: Vec::new(),
            };
            self.extensions.put(Recorder { path: request.record.clone(), record, loops: Vec::new() });
        }
        if plan.computes.borrow().is_empty() {
            // A checked pass, whose times say nothing.
            return Ok(());
        }
        let passes = plan.timing.borrow().passes as usize;
        let mut noted = Ok(());
        let mut compute = Vec::new();
        if let Some(recorder) = self.extensions.get_mut::<Recorder>() {
            let at = recorder.passes(plan);
            recorder.loops[at].took.push(took.as_nanos() as f64);
            let computes = plan.computes.borrow().iter().map(|compute| *compute as f64).collect();
            recorder.loops[at].computes.push(computes);
            compute = recorder.loops[at].compute_ns();
            let counted = recorder.loops[at].took.len();
            let loop_record = &mut recorder.record.loops[at];
            loop_record.passes = counted as u64;
            loop_record.measured_ns = recorder.loops[at].took_ns();
            loop_record.compute_ns.clone_from(&compute);
            if counted == 1 {
                noted = recorder.write();
            }
        }
        if !AFTER.contains(&passes) {
            return Ok(());
        }
        self.agree_on_same(site, noted)?;
        let Some(link) = link else { return Ok(()) };
        let mut forecasts = Vec::new();
        for hosts in &request.hosts {
            forecasts.extend(self.forecast_on(
                running,
                plan,
                (&request, *hosts, link),
                compute.iter().sum(),
            )?);
        }
        if let Some(recorder) = self.extensions.get_mut::<Recorder>() {
            let at = recorder.passes(plan);
            recorder.record.loops[at].forecasts = forecasts;
        }
        Ok(())
    }

    /// A pass on `hosts` hosts; `None` on other workers than the first, which has the times, and where the schedule does not fit.
    fn forecast_on(
        &mut self,
        running: &dyn AnyLoop<'_>,
        plan: &LoopPlan,
        (request, hosts, link): (&PlanRequest, usize, Link),
        nanoseconds: f64,
    ) -> Result<Option<Forecast>> {
        let (head, space) = (running.head(), running.space());
        let workers = hosts * request.workers_per_host;
        let on = Hosts::even(hosts, workers, link);
        let cut = |dim: usize, cells: usize| space.cut(dim, cells);
        let team = Team {
            workers,
            accumulates: plan.accumulates,
            hosts: (hosts > 1).then_some(&on),
            follows_links: self.follows_links(),
            uncut: Some(match hosts {
                1 => Uncut::InPlace(CheckTasks(&super::task_graph::check)),
                _ => Uncut::Ghosts,
            }),
            // In whatever cells: one worker takes as long.
            on_one_host: None,
        };
        let own = head.schedule.filter(|own| !own.is_dynamic());
        let mut choice = None;
        if self.rank() == 0 && most_tiles(plan, workers) <= MOST_TILES {
            choice = choose(&plan.nest, &plan.dependences, own, &cut, team).ok();
        }
        // Where iterations are, all say together.
        let cuts_of = |choice: &Choice| {
            let dims: Vec<usize> = (0..choice.grid.len()).filter(|dim| choice.grid[*dim] > 1).collect();
            let dims = choice.rotation.as_ref().map_or(dims, |rotation| rotation.dims.clone());
            (dims, choice.cuts.clone())
        };
        let (dims, cuts): (Vec<usize>, Vec<Vec<i64>>) =
            self.broadcast(|| Ok(choice.as_ref().map(cuts_of).unwrap_or_default()))?;
        let counted = if dims.is_empty() { None } else { space.count(&dims, &cuts) };
        let mut weights: Option<BlockWeights> = None;
        self.exchange_values(head.site, &counted, |_, other: Option<BlockWeights>| {
            match (&mut weights, other) {
                (Some(weights), Some(other)) => weights.merge(&other),
                (weights, other) => *weights = other.or(weights.take()),
            }
            Ok(())
        })?;
        let Some(mut choice) = choice else { return Ok(None) };
        if let Some(weights) = weights.as_ref().filter(|_| workers > 1 && workers <= BALANCED) {
            // Bounds that do not fit stay as they were.
            let _ = choice.rebalance(&plan.nest, &plan.dependences, weights, workers);
        }
        let work = match &weights {
            Some(weights) => {
                Work::counted(&choice.steps, workers, (weights, &dims), &choice.cuts, nanoseconds)
            }
            None => Work::even(&choice.steps, &choice.grid, workers, nanoseconds),
        };
        let traffic = Traffic::of(&plan.nest, &choice.placement, &on);
        let handed = traffic.handed.iter().map(|to| to.iter().sum::<f64>()).fold(0.0, f64::max);
        Ok(Some(Forecast {
            hosts,
            workers,
            schedule: choice.chosen().into(),
            steps: choice.steps.len(),
            sent_bytes: traffic.busiest(),
            handed_bytes: handed,
            imbalance: work.imbalance(),
            time: pass_time(&plan.nest, &choice.steps, &choice.placement, &work, &on),
        }))
    }
}
