//! The plan of a loop: made when the loop is first reached with these arrays, kept for later passes.
use super::any_loop::AnyLoop;
use super::between_hosts::{BetweenHosts, LinkMeter, ReadBytes};
use super::clocks::Clocks;
use super::description::{self, DescriptionError, Treated, check};
use super::free::FreeTiles;
use super::inspection::Inspection;
use super::meter::Meter;
use super::task_graph;
use super::{AnySpace, Describe, LoopHead, Timing};
use crate::context::Context;
use crate::contract::PrefetchStats;
use crate::error::{Error, Result};
use crate::mutant::{self, Mutant};
use crate::relax::{Every, LoopReport, Relaxation, Sharing, Treatment, Trials};
use crate::site::Site;
use hectare_dependence::analysis::{Dependences, analyze};
use hectare_dependence::cuts::BlockWeights;
use hectare_dependence::hosts::{Ahead, Hosts};
use hectare_dependence::in_place::CheckTasks;
use hectare_dependence::loop_nest::{LoopNest, LoopVar, NamedArray, Order, Space};
use hectare_dependence::placement::{ArrayPlacement, TilePlan};
use hectare_dependence::reads::Reads;
use hectare_dependence::schedule::{
    Choice, ScheduleError, Team, Tile, Uncut, VISITS, cell_number, choose, for_each_cell, scrambled,
};
use hectare_dsm::Worker;
use hectare_dsm::tasks::TaskGraph;
use rustc_hash::FxHasher;
use std::cell::{RefCell, RefMut};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For so many ranges a loop whose arrays have ghost regions is planned.
const MOST_RANGES: usize = 2;

/// Describes a loop, and gives up the dependences of what it relaxes.
fn described(
    head: &LoopHead<'_>,
    space: &dyn AnySpace,
    arrays: Vec<NamedArray>,
    treated: &[Treated],
    describe: Describe<'_>,
    workers: usize,
) -> Result<LoopNest> {
    let bounds = space.bounds();
    let invalid =
        |error: DescriptionError| Error::InvalidLoop { loop_name: head.name(), what: error.to_string() };
    if bounds.len() != head.variables.len() {
        let (names, dims) = (head.variables.len(), bounds.len());
        return Err(invalid(DescriptionError::Variables { names, dims }));
    }
    let dims = head
        .variables
        .iter()
        .zip(&bounds)
        .map(|(name, bounds)| LoopVar { name: (*name).into(), bounds: Some(*bounds) })
        .collect();
    let mut nest = LoopNest::new(head.name(), head.order, space.kind(), dims);
    nest.arrays = arrays;
    describe(&mut nest);
    let written: Vec<bool> = treated.iter().map(|(written, _)| *written).collect();
    check(&nest, &written).map_err(invalid)?;
    description::relax(&mut nest, head, treated, workers).map_err(invalid)?;
    Ok(nest)
}

/// Chooses the schedule of a loop; blocks of a rotation are balanced by the entries in them. Collective.
fn scheduled(
    head: &LoopHead<'_>,
    space: &dyn AnySpace,
    nest: &LoopNest,
    dependences: &Dependences,
    (accumulates, hosts): (bool, Option<&Hosts>),
    context: &mut Context<'_>,
) -> Result<Choice> {
    let workers = context.size();
    let cut = |dim: usize, cells: usize| space.cut(dim, cells);
    let refused = |error: ScheduleError| {
        let schedule = head.schedule.map_or_else(|| "serial".into(), |schedule| schedule.name());
        Error::InvalidSchedule { loop_name: head.name(), schedule, what: error.to_string() }
    };
    let one_host = !context.fabric.spans_hosts();
    let own = head.schedule.filter(|own| !own.is_dynamic() || space.is_shareable() && one_host);
    let follows_links = context.follows_links();
    // With ghost regions, arrays are cut for the loop's range: of a loop whose range changes all the time, they would be cut all the time.
    let has_few_ranges = || own.is_some() || !context.is_planned_for(head.site, MOST_RANGES);
    let uncut = match one_host {
        true => Some(Uncut::InPlace(CheckTasks(&task_graph::check))),
        false => has_few_ranges().then_some(Uncut::Ghosts),
    };
    let on_one_host = (!one_host).then_some(CheckTasks(&task_graph::check));
    let team = Team { workers, accumulates, hosts, follows_links, uncut, on_one_host };
    let mut choice = choose(nest, dependences, own, &cut, team).map_err(refused)?;
    // Who takes blocks as they come free balances them so.
    if let Some(rotation) = choice.rotation.clone().filter(|rotation| workers > 1 && !rotation.dynamic)
        && let Some(mut weights) = space.count(&rotation.dims, &choice.cuts)
    {
        let own = weights.clone();
        weights.clear();
        context.exchange_values(head.site, &own, |_, other: BlockWeights| {
            weights.merge(&other);
            Ok(())
        })?;
        choice.rebalance(nest, dependences, &weights, workers).map_err(refused)?;
    }
    Ok(choice)
}

/// The plan of a loop: its description, its dependences, and how it runs.
#[derive(Debug)]
pub struct LoopPlan {
    /// The description.
    pub nest: LoopNest,
    /// The dependences.
    pub dependences: Dependences,
    /// The schedule, and those that were not taken.
    pub choice: Choice,
    /// Which of the program's plans this is: the same on every worker.
    pub(crate) number: u64,
    /// A number for what it has workers do.
    pub(super) digest: u64,
    pub(crate) cells: usize,
    /// The worker that runs each cell.
    pub(crate) owners: Rc<[usize]>,
    pub(crate) timing: RefCell<Timing>,
    /// One for each promise under which it has run, in the order in which they came first.
    pub(crate) reports: RefCell<Vec<LoopReport>>,
    pub(super) trials: RefCell<Trials>,
    pub(crate) sharing: Sharing,
    /// Cells that this worker runs.
    own_cells: usize,
    /// Whether it combines what its iterations give.
    pub(super) accumulates: bool,
    /// The cells of each tile of this worker's, if it does not go through them row by row.
    scrambled: Vec<Vec<usize>>,
    /// Who runs each tile, by worker.
    pub(crate) tiles: Vec<Vec<TilePlan>>,
    /// If workers are on several hosts: what can go ahead in a pass.
    pub(super) ahead: Vec<Ahead>,
    /// If workers are on several hosts: by array, what they read of it where others have it.
    pub(super) reads: Vec<Option<Reads>>,
    /// If tiles are taken as they come free.
    pub(super) free: Option<FreeTiles>,
    /// If arrays lie in place: what tiles touch, and which come before which.
    pub(super) tasks: Option<Arc<TaskGraph>>,
    /// If its subscripts come from data: what its iterations touch.
    pub(crate) inspection: Option<RefCell<Inspection>>,
    pub(super) site: Site,
    /// If workers are on several hosts.
    pub(crate) between_hosts: Option<BetweenHosts>,
    pub(crate) link_meter: RefCell<LinkMeter>,
    pub(crate) read_bytes: RefCell<ReadBytes>,
    /// How long each worker ran iterations in the last pass, in nanoseconds.
    pub(super) computes: RefCell<Vec<u64>>,
    /// The loads of this worker's cells in the last pass, if they are noted.
    pub(super) meter: RefCell<Option<Meter>>,
    /// Whether the program gave a schedule.
    pub(crate) has_own_schedule: bool,
}

impl LoopPlan {
    /// Describes, analyzes and schedules a loop.
    pub(super) fn make(
        running: &dyn AnyLoop<'_>,
        arrays: Vec<NamedArray>,
        treated: &[Treated],
        context: &mut Context<'_>,
    ) -> Result<LoopPlan> {
        let since = Instant::now();
        let (head, space) = (running.head(), running.space());
        let mut nest = described(head, space, arrays, treated, running.describe(), context.size())?;
        let collects = treated.iter().any(|(_, treatment)| *treatment == Treatment::Collected);
        let accumulates = collects || running.has_sums();
        nest.combines_in_order = nest.order == Order::Ordered && (collects || !running.sums_commute());
        let dependences = analyze(&nest);
        let hosts = context.linked_hosts(head.site)?;
        let choice = scheduled(head, space, &nest, &dependences, (accumulates, hosts.as_ref()), context)?;
        let treatments = treated.iter().map(|(_, how)| *how).collect();
        let mut plan = LoopPlan::new(head.site, nest, dependences, choice, treatments, context);
        plan.tasks = task_graph::tasks_of(&plan.choice);
        plan.accumulates = accumulates;
        plan.has_own_schedule = head.schedule.is_some();
        plan.inspection = plan.inspection(running, context).map(RefCell::new);
        if let Some(hosts) = &hosts {
            plan.ahead = Ahead::of(&plan.nest, &plan.choice.placement, hosts);
        }
        plan.between_hosts = hosts.map(|hosts| BetweenHosts::of(&plan.nest, &plan.choice.placement, &hosts));
        plan.timing.get_mut().planning = since.elapsed();
        plan.digest = digest(&plan);
        Ok(plan)
    }

    /// The plan that follows from a description and a schedule.
    fn new(
        site: Site,
        nest: LoopNest,
        dependences: Dependences,
        choice: Choice,
        treatments: Vec<Treatment>,
        context: &mut Context<'_>,
    ) -> LoopPlan {
        let tiles = choice.placement.tiles.clone();
        let owners = owners(&choice.grid, &tiles);
        let cut = choice.grid.iter().filter(|cells| **cells > 1).count();
        let sparse = matches!(nest.space, Space::Entries { .. });
        let own = &tiles[context.rank() as usize][..];
        let own = if sparse && cut > 1 && nest.order == Order::Unordered { own } else { &[] };
        let stays = choice.rotation.as_ref().map_or(0, |rotation| rotation.dims[0]);
        let visits = VISITS / own.len().max(1);
        let me = context.rank() as usize;
        let own_cells = owners.iter().filter(|owner| **owner == me).count();
        let free = choice.rotation.as_ref().filter(|rotation| rotation.dynamic);
        let free = free.map(|rotation| FreeTiles::new(rotation, &tiles, sparse));
        let scrambled = own.iter().map(|plan| scrambled(&plan.tile, stays, visits)).collect();
        let timing = Timing { loop_name: nest.name.clone(), ..Timing::default() };
        let timing = RefCell::new(timing);
        let reads = match context.fabric.spans_hosts() {
            true => reads(&nest, &choice, &tiles),
            false => Vec::new(),
        };
        tracing::debug!(
            loop_name = nest.name,
            grid = ?choice.grid,
            steps = choice.steps.len(),
            dependences = dependences.list.len(),
            "loop planned"
        );
        LoopPlan {
            nest,
            dependences,
            choice,
            number: context.plans_made(),
            digest: 0,
            cells: owners.len(),
            owners,
            timing,
            reports: RefCell::default(),
            trials: RefCell::new(Trials::new()),
            sharing: Sharing { treatments, has_slice: false, spans_hosts: context.fabric.spans_hosts() },
            own_cells,
            accumulates: false,
            scrambled,
            tiles,
            free,
            site,
            tasks: None,
            inspection: None,
            between_hosts: None,
            ahead: Vec::new(),
            reads,
            link_meter: RefCell::default(),
            read_bytes: RefCell::default(),
            computes: RefCell::default(),
            meter: RefCell::default(),
            has_own_schedule: false,
        }
    }

    /// The same plan with another choice of who runs which cells. What it has cost so far goes with it.
    pub(super) fn moved_to(&self, choice: Choice, context: &mut Context<'_>) -> LoopPlan {
        let (nest, dependences) = (self.nest.clone(), self.dependences.clone());
        let treatments = self.sharing.treatments.clone();
        let mut plan = LoopPlan::new(self.site, nest, dependences, choice, treatments, context);
        plan.number = self.number;
        plan.accumulates = self.accumulates;
        plan.sharing.has_slice = self.sharing.has_slice;
        plan.timing = self.timing.clone();
        plan.reports = self.reports.clone();
        plan.trials = RefCell::new(self.trials.replace(Trials::new()));
        plan.digest = digest(&plan);
        plan
    }

    /// The report of passes with these settings.
    pub(super) fn report(&self, relax: Relaxation) -> RefMut<'_, LoopReport> {
        let promise = self.sharing.promise(relax);
        RefMut::map(self.reports.borrow_mut(), |reports| {
            let at = reports.iter().position(|report| report.relax == promise).unwrap_or_else(|| {
                reports.push(LoopReport::of(&self.nest.name, promise));
                reports.len() - 1
            });
            &mut reports[at]
        })
    }

    /// Adds what a pass has cost.
    pub(super) fn note(&self, relax: Relaxation, spent: &LoopReport, clocks: Option<LoopReport>) {
        let mut report = self.report(relax);
        report.passes += 1;
        let PrefetchStats { relocated, replicated, planned_keys, .. } = spent.serving;
        report.merge(spent);
        // Of these, the last pass counts.
        (report.serving.relocated, report.serving.replicated, report.serving.planned_keys) =
            (relocated, replicated, planned_keys);
        if let Some(clocks) = clocks {
            // The last clock waits for all.
            report.merge(&clocks);
        }
    }

    /// Gives memory of the job back, of a plan by which no pass runs any more.
    pub(super) fn give_back(&self, worker: &mut Worker) {
        if let Some(claims) = self.free.as_ref().and_then(|free| free.claims.get())
            && let Err(error) = claims.delete(worker)
        {
            tracing::warn!(loop_name = self.nest.name, %error, "the words of tiles stay until the job ends");
        }
    }

    /// About how much memory it takes, in no unit.
    pub(super) fn weight(&self) -> usize {
        let tasks_of =
            |tasks: &Arc<TaskGraph>| (0..tasks.workers()).map(|rank| tasks.of(rank as u32).len()).sum();
        let tasks: usize = self.tasks.as_ref().map_or(0, tasks_of);
        64 + self.tiles.iter().map(Vec::len).sum::<usize>() + self.cells + 2 * tasks
    }

    /// Iterations in a cell, in the mean.
    fn per_cell(&self) -> f64 {
        hectare_dependence::schedule::iterations(&self.nest) / self.cells as f64
    }

    /// After how many cells of a tile a worker ends a clock, or with [`Every::Time`] and [`Every::Staleness`] may end one.
    pub(super) fn interval(&self, every: Every) -> usize {
        self.interval_of(self.own_cells, every)
    }

    /// The same of a worker that runs `own_cells` cells.
    pub(super) fn interval_of(&self, own_cells: usize, every: Every) -> usize {
        match every {
            Every::PerPass(times) => own_cells.div_ceil(times).max(1),
            Every::Iterations(count) => ((count as f64 / self.per_cell()) as usize).max(1),
            Every::Time(_) | Every::Staleness(_) => 1,
        }
    }

    /// Whether a worker that has run `cells` of a tile, in that time since its last clock, ends a clock.
    pub(super) fn is_due(
        &self,
        clocks: &mut Clocks,
        worker: &Worker,
        cells: usize,
        elapsed: Duration,
    ) -> Result<bool> {
        Ok(match clocks.every() {
            Every::Time(time) => elapsed >= time,
            Every::Staleness(most) => clocks.is_stale(worker, most, self.per_cell())?,
            every => cells.is_multiple_of(self.interval(every)),
        })
    }

    /// Bytes of the arrays whose dependences are given up.
    pub(super) fn relaxed_bytes(&self) -> usize {
        let bytes = |array: &NamedArray| array.shape.iter().product::<usize>() * array.element_bytes;
        self.nest.relaxed.iter().map(|number| bytes(&self.nest.arrays[*number])).sum()
    }

    pub(crate) fn workers(&self) -> usize {
        self.tiles.len()
    }

    /// Whether iterations within a cell must run in the order of their indices.
    pub(super) fn is_sorted(&self) -> bool {
        self.nest.order == Order::Ordered && !mutant::is(Mutant::Unsorted)
    }

    /// The ranges that the workers read of an array where others have it, on several hosts.
    pub(super) fn reads_of(&self, array: usize) -> Option<&Reads> {
        self.reads.get(array).and_then(Option::as_ref)
    }

    /// Calls `run` with the cells of tile `number` of this worker's: row by row, or scrambled where entries are visited
    /// in any order and several dimensions are cut.
    pub(super) fn for_each_cell(&self, number: usize, tile: &Tile, mut run: impl FnMut(&[usize])) {
        if let Some(cells) = self.scrambled.get(number) {
            return cells.chunks_exact(tile.cells.len()).for_each(run);
        }
        for_each_cell(tile, |cell| {
            run(cell);
            true
        });
    }
}

/// By array, what workers read of it where others have it.
fn reads(nest: &LoopNest, choice: &Choice, tiles: &[Vec<TilePlan>]) -> Vec<Option<Reads>> {
    let of = |(array, placement): (usize, &ArrayPlacement)| match placement {
        ArrayPlacement::Replicated | ArrayPlacement::Ghosted { .. } => {
            Reads::of(nest, array, &choice.cuts, tiles)
        }
        _ => None,
    };
    choice.placement.arrays.iter().enumerate().map(of).collect()
}

fn owners(grid: &[usize], tiles: &[Vec<TilePlan>]) -> Rc<[usize]> {
    let workers = tiles.len();
    let mut owners = vec![0; grid.iter().product()];
    for (worker, tiles) in tiles.iter().enumerate() {
        for plan in tiles {
            for_each_cell(&plan.tile, |cell| {
                let wrong = mutant::is(Mutant::WrongOwner) && cell_number(grid, cell) == 0;
                owners[cell_number(grid, cell)] = if wrong { (worker + 1) % workers } else { worker };
                true
            });
        }
    }
    owners.into()
}

/// A number for what a plan has workers do.
fn digest(plan: &LoopPlan) -> u64 {
    let mut hash = FxHasher::default();
    (&plan.nest.relaxed, &plan.choice.cuts, &plan.owners, &plan.choice.placement.arrays).hash(&mut hash);
    for tile in plan.tiles.iter().flatten() {
        (&tile.tile.cells, &tile.parts, &tile.gives).hash(&mut hash);
    }
    plan.tasks.as_ref().map(|tasks| tasks.digest()).hash(&mut hash);
    hash.finish()
}
