//! Which schedule a loop gets: those that its dependences allow, the cheapest of them.
use super::build::{Builder, Built, Crew, Cut, Plan, Written, extents, is_for_uncut};
use super::candidates::{Considered, Kind, candidates, in_place, with_ghosts};
use super::cost::Cost;
use super::in_turn::InTurn;
use super::kinds::SERIAL;
use super::{Rotation, Schedule, ScheduleError, Steps, verify_dynamic};
use crate::analysis::Dependences;
use crate::cuts::BlockWeights;
use crate::hosts::Hosts;
use crate::in_place::{CheckTasks, Checked};
use crate::loop_nest::{LoopNest, Order};
use crate::placement::{ArrayPlacement, Placement};

/// The most tiles that are taken as they come free: every worker goes over all of them whenever it takes one.
const MOST_FREE: usize = 4096;

/// The verdict on a candidate.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub enum Verdict {
    /// It runs.
    Chosen(Cost),
    /// It would be right, and costs more.
    Costlier(Cost),
    /// It would be right, and faster between the hosts of the program, and would make other bits than one host does.
    DifferentBits(Cost),
    /// It would be wrong, or cannot be; why, in words.
    Refused(String),
}

/// A schedule that was considered.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Candidate {
    /// Its name, with the names of the loop's variables.
    pub name: String,
    /// The verdict on it.
    pub verdict: Verdict,
}

/// The schedule of a loop, and what else was considered.
#[derive(Debug)]
pub struct Choice {
    /// All candidates.
    pub candidates: Vec<Candidate>,
    /// Cells per dimension.
    pub grid: Vec<usize>,
    /// The tiles.
    pub steps: Steps,
    /// The values of each dimension of the loop between its cells.
    pub cuts: Vec<Vec<i64>>,
    /// The places of the loop's arrays.
    pub placement: Placement,
    /// If it is a rotation of the runtime's own whose arrays lie in parts: which.
    pub rotation: Option<Rotation>,
    /// If arrays lie in place: what has been made of the tasks by [`CheckTasks`].
    pub checked: Option<Checked>,
}

impl Choice {
    /// Whether tiles are taken as they come free, and not step by step.
    pub fn is_dynamic(&self) -> bool {
        self.rotation.as_ref().is_some_and(|rotation| rotation.dynamic)
    }

    fn new(candidates: Vec<Candidate>, built: Built, rotation: Option<Rotation>) -> Choice {
        let Built { grid, cuts, steps, placement, checked, .. } = built;
        Choice { candidates, grid, steps, cuts, placement, rotation, checked }
    }

    /// Whether no schedule but the serial one was possible.
    pub fn is_serial(&self) -> bool {
        let is_out = |one: &Candidate| one.name == SERIAL || matches!(one.verdict, Verdict::Refused(_));
        !self.is_in_turn() && self.candidates.iter().all(is_out)
    }

    /// Whether one worker runs, on several hosts, what workers of one host would run on arrays in place, in the same cells: a loop that is
    /// serial has one cell.
    pub fn is_in_turn(&self) -> bool {
        self.placement.arrays.contains(&ArrayPlacement::Whole) && self.grid.iter().any(|cells| *cells > 1)
    }

    /// The name of the schedule.
    pub fn chosen(&self) -> &str {
        let chosen = self.candidates.iter().find(|one| matches!(one.verdict, Verdict::Chosen(_)));
        chosen.map_or("", |one| &one.name)
    }

    /// Moves the bounds of a rotation's blocks to where its steps are short, by the iterations in each cell.
    pub fn rebalance(
        &mut self,
        nest: &LoopNest,
        dependences: &Dependences,
        weights: &BlockWeights,
        workers: usize,
    ) -> Result<(), ScheduleError> {
        if let Some(mut rotation) = self.rotation.clone() {
            rotation.rebalance(weights, workers);
            *self = self.with_rotation(nest, dependences, rotation, workers)?;
        }
        Ok(())
    }

    /// The same cells, run as this rotation says: verified and placed.
    pub(super) fn with_rotation(
        &self,
        nest: &LoopNest,
        dependences: &Dependences,
        rotation: Rotation,
        workers: usize,
    ) -> Result<Choice, ScheduleError> {
        let cut = |dim: usize, _: usize| self.cuts[dim].clone();
        let crew = Crew { workers, hosts: None, uncut: None };
        let built = Builder { nest, dependences, cut: &cut }.build(Plan::of(&rotation), crew)?;
        if built.grid != self.grid {
            return Err(ScheduleError::Grid { grid: built.grid, extents: extents(nest) });
        }
        let rotation = self.rotation.is_some().then_some(rotation);
        Ok(Choice::new(self.candidates.clone(), built, rotation))
    }
}

/// The workers that run a loop, and what decides how.
#[derive(Clone, Copy, Debug)]
pub struct Team<'t> {
    /// How many workers.
    pub workers: usize,
    /// Whether the loop combines what its iterations give.
    pub accumulates: bool,
    /// The hosts, if there are several.
    pub hosts: Option<&'t Hosts>,
    /// Whether the links between hosts may decide where the bits of the results depend on the schedule.
    pub follows_links: bool,
    /// If the loop may run in parallel though written arrays cannot be cut as it is: where these are.
    pub uncut: Option<Uncut<'t>>,
    /// On several hosts: how one would check its tasks. Then a loop that has its arrays in place on one host has the same bits here, where one
    /// worker runs its blocks ([`Choice::is_in_turn`]); without, it is serial.
    pub on_one_host: Option<CheckTasks<'t>>,
}

/// Where written arrays are that cannot be cut as the loop is.
#[derive(Clone, Copy, Debug)]
pub enum Uncut<'t> {
    /// In one piece, in place, as a plan says that is checked: on one host.
    InPlace(CheckTasks<'t>),
    /// In a part for each worker, which reads beyond it what was there before the pass
    /// ([`Placement::with_ghosts`](crate::placement::Placement::with_ghosts)): on several.
    Ghosts,
}

impl Team<'_> {
    /// Workers of one host.
    pub fn of_one_host(workers: usize, accumulates: bool) -> Team<'static> {
        Team { workers, accumulates, hosts: None, follows_links: false, uncut: None, on_one_host: None }
    }

    /// The time that decides.
    fn time(&self, cost: &Cost, same_bits: bool) -> f64 {
        if same_bits || self.follows_links { cost.here() } else { cost.nanoseconds }
    }
}

/// Whether all schedules make the same bits: nothing is combined or given up, and what depends on each other keeps its order.
fn makes_same_bits(nest: &LoopNest, dependences: &Dependences, accumulates: bool) -> bool {
    !accumulates && nest.relaxed.is_empty() && (dependences.is_empty() || nest.order == Order::Ordered)
}

/// Why a candidate is refused for `workers` workers: it may have been tried for more than there are.
fn refusal(why: &ScheduleError, workers: usize) -> String {
    match why {
        ScheduleError::Conflict { workers: two, conflict, .. } if two.iter().any(|one| *one >= workers) => {
            format!("two workers would run conflicting iterations at once: {conflict}")
        }
        why => why.to_string(),
    }
}

/// The team for which a loop with accumulators gets its schedule, if fewer run it. Floats are combined cell by cell,
/// and schedules differ in their cells: the same one for all numbers of workers makes the same sums. This many
/// rather than two, for what is balanced and pays among many does so among few, but for the smallest loops.
const TEAM: usize = 12;

/// Chooses. A loop on one worker gets the schedule that two would get, so that their results compare; a loop that
/// accumulates gets that of twelve workers. On several hosts, the links between them decide too, but not where that would
/// change the bits of the results, unless [`Team::follows_links`].
pub fn choose(
    nest: &LoopNest,
    dependences: &Dependences,
    own: Option<&dyn Schedule>,
    cut: Cut<'_>,
    members: Team<'_>,
) -> Result<Choice, ScheduleError> {
    let Team { workers, hosts, .. } = members;
    let builder = Builder { nest, dependences, cut };
    let crew = Crew { workers, hosts, uncut: members.uncut };
    let runtimes_own = || {
        let choice = choose_cheapest(builder, crew, members)?.0;
        match members.on_one_host.filter(|_| !members.follows_links && choice.chosen() == SERIAL) {
            Some(check) => in_turn(builder, crew, members, (choice, check)),
            None => Ok(choice),
        }
    };
    match own {
        None => runtimes_own(),
        Some(schedule) if schedule.is_dynamic() => Ok(taken_as_free(builder, crew, runtimes_own()?)),
        Some(schedule) => use_own(builder, crew, members, schedule),
    }
}

/// A loop that would be serial on several hosts, and that one host would run on arrays in place: in the same cells and in an order that is
/// possible there, if the bits of its results depend on that.
fn in_turn(
    builder: Builder<'_>,
    crew: Crew<'_>,
    members: Team<'_>,
    (mut serial, check): (Choice, CheckTasks<'_>),
) -> Result<Choice, ScheduleError> {
    let Builder { nest, dependences, .. } = builder;
    if !is_for_uncut(nest) || makes_same_bits(nest, dependences, members.accumulates) {
        return Ok(serial);
    }
    let alone = of_one_host(crew, check);
    let team = Team { hosts: None, uncut: alone.uncut, on_one_host: None, ..members };
    let (_, best) = choose_cheapest(builder, alone, team)?;
    // What does not fit, rarely, is serial, which always does.
    let Some(Ok(built)) = best.uncut.then(|| build_in_turn(builder, crew, best.plan())) else {
        return Ok(serial);
    };
    let why = "its arrays lie in place, on one host; here one worker runs its blocks, for the same results";
    serial.candidates.push(Candidate { name: best.name, verdict: Verdict::Refused(why.into()) });
    Ok(Choice::new(serial.candidates, built, None))
}

/// As many workers, of one host.
fn of_one_host<'a>(crew: Crew<'a>, check: CheckTasks<'a>) -> Crew<'a> {
    Crew { hosts: None, uncut: Some(Uncut::InPlace(check)), ..crew }
}

/// What workers of one host would run on arrays in place, on one of `crew`.
fn build_in_turn(builder: Builder<'_>, crew: Crew<'_>, plan: Plan<'_>) -> Result<Built, ScheduleError> {
    let schedule = InTurn { schedule: plan.schedule, wavefront: plan.wavefront };
    builder.build(Plan { schedule: &schedule, written: Written::Whole, ..plan }, crew)
}

/// The loop by a schedule of the program's own. On several hosts, one worker runs what would need arrays in place.
fn use_own(
    builder: Builder<'_>,
    crew: Crew<'_>,
    members: Team<'_>,
    schedule: &dyn Schedule,
) -> Result<Choice, ScheduleError> {
    let wavefront = schedule.wavefront();
    // The wavefront itself, and not what says that it is one.
    let schedule = wavefront.map_or(schedule, |wavefront| wavefront as &dyn Schedule);
    let written = if wavefront.is_some() { Written::Uncut } else { Written::Cut };
    let plan = Plan { schedule, wavefront, written };
    let built = match (build_own(builder, crew, plan), members.on_one_host) {
        (Err(error), Some(check)) => {
            let alone = build_own(builder, of_one_host(crew, check), plan)?;
            if alone.placement.in_place.is_none() {
                return Err(error);
            }
            build_in_turn(builder, crew, plan)?
        }
        (built, _) => built?,
    };
    let candidates = vec![Candidate { name: schedule.name(), verdict: Verdict::Chosen(built.cost) }];
    Ok(Choice::new(candidates, built, None))
}

fn build_own(builder: Builder<'_>, crew: Crew<'_>, plan: Plan<'_>) -> Result<Built, ScheduleError> {
    let built = builder.build(plan, crew).or_else(|error| match error {
        ScheduleError::Placement(_) if is_for_uncut(builder.nest) && crew.uncut.is_some() => {
            builder.build(Plan { written: Written::Uncut, ..plan }, crew)
        }
        error => Err(error),
    })?;
    built.with_tasks(builder.nest, crew)
}

/// The cheapest of the runtime's own schedules, as what it was considered.
fn choose_cheapest(
    builder: Builder<'_>,
    crew: Crew<'_>,
    members: Team<'_>,
) -> Result<(Choice, Considered), ScheduleError> {
    let Team { workers, accumulates, hosts, .. } = members;
    let team = workers.max(if accumulates { TEAM } else { 2 });
    let widened = hosts.map(|hosts| if team == workers { hosts.clone() } else { hosts.spread_over(team) });
    let team = Crew { workers: team, hosts: widened.as_ref(), ..crew };
    let same_bits = makes_same_bits(builder.nest, builder.dependences, accumulates);
    let mut comparison = Comparison::new(builder, crew, team);
    let (best, built) = comparison.take_best(|cost| members.time(cost, same_bits))?;
    let candidates = comparison.verdicts(best, same_bits);
    let considered = comparison.list.swap_remove(best);
    let rotation = match &considered {
        Considered { kind: Kind::Rotation(rotation), uncut: false, .. } => Some(rotation.clone()),
        _ => None,
    };
    Ok((Choice::new(candidates, built, rotation), considered))
}

/// A rotation whose tiles are taken as they come free. Where that does not fit, blocks go around as planned.
fn taken_as_free(builder: Builder<'_>, crew: Crew<'_>, planned: Choice) -> Choice {
    let Some(rotation) =
        planned.rotation.as_ref().filter(|_| crew.workers > 1 && builder.nest.relaxed.is_empty())
    else {
        return planned;
    };
    let free = Rotation { dynamic: true, ..rotation.clone() };
    match builder.build(Plan::of(&free), crew) {
        Ok(built)
            if built.steps.len() * crew.workers <= MOST_FREE
                && verify_dynamic(builder.nest, builder.dependences, &built.placement).is_ok() =>
        {
            Choice::new(planned.candidates, built, Some(free))
        }
        _ => planned,
    }
}

/// The runtime's own schedules for a loop, built and compared for a team that may have more workers than run it.
struct Comparison<'a> {
    builder: Builder<'a>,
    /// The workers that run the loop.
    crew: Crew<'a>,
    /// Those for which the schedules are compared.
    team: Crew<'a>,
    list: Vec<Considered>,
    /// The schedules of `list`, for the team.
    built: Vec<Result<Built, ScheduleError>>,
    costs: Vec<Result<Cost, ScheduleError>>,
}

impl<'a> Comparison<'a> {
    fn new(builder: Builder<'a>, crew: Crew<'a>, team: Crew<'a>) -> Comparison<'a> {
        let Builder { nest, dependences, .. } = builder;
        let mut list = candidates(nest, dependences);
        let mut built: Vec<_> = list.iter().map(|one| one.build(builder, team)).collect();
        let is_parallel = |(one, built): (&Considered, &Result<Built, _>)| {
            !matches!(one.kind, Kind::Serial) && built.is_ok()
        };
        let uncut = crew.uncut.filter(|_| is_for_uncut(nest));
        if let Some(uncut) = uncut.filter(|_| !list.iter().zip(&built).any(is_parallel)) {
            let more = match uncut {
                Uncut::InPlace(_) => in_place(nest, dependences, &list, &built),
                Uncut::Ghosts => with_ghosts(&list, &built),
            };
            built.extend(more.iter().map(|one| one.build(builder, team)));
            list.extend(more);
        }
        let costs =
            built.iter().map(|built| built.as_ref().map(|built| built.cost).map_err(Clone::clone)).collect();
        Comparison { builder, crew, team, list, built, costs }
    }

    /// Takes the schedule that takes the least time, for the workers that run the loop. A schedule that fits the blocks of the
    /// team may, rarely, not fit those of the workers; serial always does.
    fn take_best(&mut self, time: impl Fn(&Cost) -> f64) -> Result<(usize, Built), ScheduleError> {
        let cost = |number: usize| self.costs[number].as_ref().map_or(f64::INFINITY, &time);
        let mut by_cost: Vec<usize> = (0..self.list.len()).collect();
        by_cost.sort_by(|a, b| cost(*a).total_cmp(&cost(*b)));
        let mut refused = None;
        for number in by_cost {
            match self.take(number) {
                Ok(built) => return Ok((number, built)),
                Err(why) => refused = Some(why),
            }
        }
        // There is always a serial candidate.
        refused.map_or_else(unbuilt, Err)
    }

    /// A schedule with its tasks, for the workers that run the loop.
    fn take(&mut self, number: usize) -> Result<Built, ScheduleError> {
        let Builder { nest, .. } = self.builder;
        let for_team = std::mem::replace(&mut self.built[number], unbuilt());
        let for_team = for_team.and_then(|built| built.with_tasks(nest, self.team)).inspect_err(|why| {
            self.costs[number] = Err(why.clone());
        })?;
        if self.team.workers == self.crew.workers {
            return Ok(for_team);
        }
        self.list[number].build(self.builder, self.crew)?.with_tasks(nest, self.crew)
    }

    /// The verdicts on all of them, when number `best` is taken. The costs are those of the workers that run the loop.
    fn verdicts(&mut self, best: usize, same_bits: bool) -> Vec<Candidate> {
        if self.crew.workers < self.team.workers {
            for (one, cost) in self.list.iter().zip(&mut self.costs).filter(|(_, cost)| cost.is_ok()) {
                *cost = one.build(self.builder, self.crew).map(|built| built.cost);
            }
        }
        let taken = self.costs[best].as_ref().map_or(f64::INFINITY, Cost::here);
        let verdict = |number: usize| match &self.costs[number] {
            Err(why) => Verdict::Refused(refusal(why, self.crew.workers)),
            Ok(cost) if number == best => Verdict::Chosen(*cost),
            Ok(cost) if self.crew.hosts.is_some() && !same_bits && cost.here() < taken => {
                Verdict::DifferentBits(*cost)
            }
            Ok(cost) => Verdict::Costlier(*cost),
        };
        let named = self.list.iter().enumerate();
        named.map(|(number, one)| Candidate { name: one.name.clone(), verdict: verdict(number) }).collect()
    }
}

/// In the place of a schedule that was taken or never built.
fn unbuilt<T>() -> Result<T, ScheduleError> {
    Err(ScheduleError::Grid { grid: Vec::new(), extents: Vec::new() })
}
