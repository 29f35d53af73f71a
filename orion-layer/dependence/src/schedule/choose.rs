//! Which schedule a loop gets: those that its dependences allow, the cheapest of them.
use super::cost::{self, Cost, estimate, work_ns};
use super::verify::covers;
use super::{Blocks, Rotation, Schedule, ScheduleError, Serial, Steps, Wavefront, verify, verify_dynamic};
use crate::analysis::Dependences;
use crate::cuts::BlockWeights;
use crate::hosts::Hosts;
use crate::in_place::{CheckTasks, Checked, InPlace, Waits};
use crate::loop_nest::{LoopNest, Order};
use crate::placement::Placement;

/// The most dimensions that a rotation is tried over.
const MOST_ROTATED: usize = 3;

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
}

impl Choice {
    fn new(candidates: Vec<Candidate>, built: Built, rotation: Option<Rotation>) -> Choice {
        let Built { grid, cuts, steps, placement, checked, .. } = built;
        Choice { candidates, grid, steps, cuts, placement, rotation, checked }
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
        let crew = Crew { workers, hosts: None, in_place: None };
        let built = build(nest, dependences, Plan::of(&rotation), &cut, crew)?;
        if built.grid != self.grid {
            return Err(ScheduleError::Grid { grid: built.grid, extents: extents(nest) });
        }
        let rotation = self.rotation.is_some().then_some(rotation);
        Ok(Choice::new(self.candidates.clone(), built, rotation))
    }
}

/// One of the runtime's own schedules.
enum Kind {
    Blocks(Blocks),
    Rotation(Rotation),
    Wavefront(Wavefront),
    Serial,
}

/// A candidate: its name in the loop's terms, and whether its arrays lie in place.
struct Considered {
    name: String,
    kind: Kind,
    in_place: bool,
}

impl Considered {
    fn new(name: String, kind: Kind) -> Considered {
        Considered { name, kind, in_place: false }
    }

    fn plan(&self) -> Plan<'_> {
        let schedule: &dyn Schedule = match &self.kind {
            Kind::Blocks(blocks) => blocks,
            Kind::Rotation(rotation) => rotation,
            Kind::Wavefront(wavefront) => wavefront,
            Kind::Serial => &Serial,
        };
        let wavefront = if let Kind::Wavefront(wavefront) = &self.kind { Some(wavefront) } else { None };
        Plan { schedule, wavefront, in_place: self.in_place }
    }
}

/// A candidate to build.
#[derive(Clone, Copy)]
struct Plan<'a> {
    schedule: &'a dyn Schedule,
    wavefront: Option<&'a Wavefront>,
    in_place: bool,
}

impl<'a> Plan<'a> {
    /// With arrays in parts.
    fn of(schedule: &'a dyn Schedule) -> Plan<'a> {
        Plan { schedule, wavefront: None, in_place: false }
    }
}

/// For whom it is built.
#[derive(Clone, Copy)]
struct Crew<'a> {
    workers: usize,
    hosts: Option<&'a Hosts>,
    in_place: Option<CheckTasks<'a>>,
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
    /// If arrays can lie in place, where they cannot be cut.
    pub in_place: Option<CheckTasks<'t>>,
}

impl Team<'_> {
    /// Workers of one host.
    pub fn of_one_host(workers: usize, accumulates: bool) -> Team<'static> {
        Team { workers, accumulates, hosts: None, follows_links: false, in_place: None }
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

struct Built {
    grid: Vec<usize>,
    cuts: Vec<Vec<i64>>,
    steps: Steps,
    placement: Placement,
    cost: Cost,
    /// If arrays lie in place, and the tasks are made: what became of them.
    checked: Option<Checked>,
    /// If arrays lie in place, and the tasks are to be made: what they wait for.
    waits: Option<Waits>,
}

impl Built {
    /// Makes the tasks, if arrays lie in place, and has them checked. Of the many tiles of wavefronts only when one is taken.
    fn with_tasks(mut self, nest: &LoopNest, crew: Crew<'_>) -> Result<Built, ScheduleError> {
        let Some(waits) = self.waits.take() else { return Ok(self) };
        let in_place = InPlace::of(nest, &self.cuts, &self.steps, crew.workers, waits);
        if let Some(CheckTasks(check)) = crew.in_place {
            self.checked = Some(check(nest, &in_place).map_err(|what| ScheduleError::Race { what })?);
        }
        self.placement.in_place = Some(in_place);
        Ok(self)
    }
}

/// The values of the loop's dimensions between cells: dimension, number of cells.
pub type Cut<'a> = &'a dyn Fn(usize, usize) -> Vec<i64>;

fn build(
    nest: &LoopNest,
    dependences: &Dependences,
    plan: Plan<'_>,
    cut: Cut<'_>,
    crew: Crew<'_>,
) -> Result<Built, ScheduleError> {
    let Crew { workers, hosts, .. } = crew;
    let extents = extents(nest);
    let mut grid = plan.schedule.grid(&extents, workers);
    refine(&mut grid, &extents, nest.least_cells, workers);
    if grid.len() != extents.len()
        || grid.iter().zip(&extents).any(|(cells, extent)| *cells == 0 || *cells > (*extent).max(1))
    {
        return Err(ScheduleError::Grid { grid, extents });
    }
    let mut steps = plan.schedule.steps(&grid, workers);
    // A tile without cells needs nothing, whatever its bounds are.
    steps.iter_mut().flatten().for_each(|tile| *tile = tile.take().filter(|tile| !tile.is_empty()));
    let cuts: Vec<Vec<i64>> = grid.iter().enumerate().map(|(dim, cells)| cut(dim, *cells)).collect();
    match plan.wavefront {
        None => verify(nest, dependences, &grid, &steps, workers)?,
        Some(wavefront) => {
            covers(&grid, &steps)?;
            wavefront.check(nest, dependences, &cuts)?;
        }
    }
    let waits =
        plan.in_place.then(|| plan.wavefront.map_or(Waits::Steps, |wavefront| wavefront.waits(&cuts)));
    let placement = match waits {
        None => Placement::of(nest, &cuts, &steps, workers)?,
        Some(_) if !can_lie_in_place(nest, crew) => {
            let what =
                "they cannot: it is on one host that arrays lie in place, of dense loops that relax nothing";
            return Err(ScheduleError::Race { what: what.into() });
        }
        Some(_) => {
            let arrays = InPlace::arrays_of(nest);
            Placement::in_place(nest, &steps, workers, InPlace { arrays, tasks: Vec::new() })
        }
    };
    let mut cost = estimate(nest, &steps, &grid, &placement, workers, hosts);
    if let Some(wavefront) = plan.wavefront {
        let slowdown = wavefront.slowdown(&cuts, workers);
        cost.nanoseconds += work_ns(nest) / workers as f64 * (slowdown - 1.0).max(0.0);
    }
    let built = Built { grid, cuts, steps, placement, cost, checked: None, waits };
    if plan.wavefront.is_some() { Ok(built) } else { built.with_tasks(nest, crew) }
}

fn extents(nest: &LoopNest) -> Vec<usize> {
    nest.dims.iter().map(|dim| cost::extent(dim.bounds)).collect()
}

/// Cuts the one dimension that is cut into `least` cells or more.
fn refine(grid: &mut [usize], extents: &[usize], least: usize, workers: usize) {
    let cut: Vec<usize> = (0..grid.len()).filter(|dim| grid[*dim] > 1).collect();
    if let [dim] = cut[..]
        && grid[dim] < least
    {
        grid[dim] = least.next_multiple_of(workers).min(extents[dim]);
    }
}

/// The schedules worth a look, with their names in the loop's terms.
fn candidates(nest: &LoopNest, dependences: &Dependences) -> Vec<Considered> {
    let name = |dim: usize| nest.dims[dim].name.clone();
    let mut list: Vec<Considered> = Vec::new();
    let free = dependences.is_empty();
    for dim in 0..nest.dims.len() {
        let kind = if free { "fully parallel" } else { "one dimension" };
        list.push(Considered::new(
            format!("{kind}, in blocks of {}", name(dim)),
            Kind::Blocks(Blocks { dim }),
        ));
    }
    if nest.order == Order::Unordered {
        let sets = dependences.rotation_sets();
        for set in sets.iter().filter(|set| (2..=MOST_ROTATED).contains(&set.len())) {
            for stays in set {
                let others: Vec<usize> = set.iter().copied().filter(|dim| dim != stays).collect();
                let going: Vec<String> = others.iter().map(|dim| name(*dim)).collect();
                let dims = std::iter::once(*stays).chain(others).collect();
                list.push(Considered::new(
                    format!(
                        "rotation: {} stays, {} around",
                        name(*stays),
                        if going.len() == 1 {
                            format!("{} goes", going[0])
                        } else {
                            format!("{} go", going.join(" and "))
                        }
                    ),
                    Kind::Rotation(Rotation::over(dims)),
                ));
            }
        }
    }
    list.push(Considered::new("serial".into(), Kind::Serial));
    list
}

/// Schedules whose arrays lie in place: those of `list` whose arrays cannot be cut, by their `results`, and wavefronts.
fn in_place(
    nest: &LoopNest,
    dependences: &Dependences,
    list: &[Considered],
    results: &[Result<Built, ScheduleError>],
) -> Vec<Considered> {
    let name = |dim: usize| nest.dims[dim].name.as_str();
    let mut found = Vec::new();
    for (one, result) in list.iter().zip(results) {
        if !matches!(result, Err(ScheduleError::Placement(_))) {
            continue;
        }
        let kind = match &one.kind {
            Kind::Blocks(blocks) => Kind::Blocks(blocks.clone()),
            Kind::Rotation(rotation) => Kind::Rotation(rotation.clone()),
            Kind::Wavefront(_) | Kind::Serial => continue,
        };
        found.push(Considered { name: format!("{}, arrays in place", one.name), kind, in_place: true });
    }
    for wavefront in Wavefront::all(nest, dependences, &extents(nest), work_ns(nest)) {
        let Wavefront { outer, inner, .. } = wavefront;
        let name =
            format!("wavefront: {} in turn, each some {} behind the one before", name(outer), name(inner));
        found.push(Considered { name, kind: Kind::Wavefront(wavefront), in_place: true });
    }
    found
}

/// In the place of what is not there.
fn unbuilt<T>() -> Result<T, ScheduleError> {
    Err(ScheduleError::Grid { grid: Vec::new(), extents: Vec::new() })
}

/// Whether written arrays of a loop can lie in place for its workers.
fn can_lie_in_place(nest: &LoopNest, crew: Crew<'_>) -> bool {
    crew.in_place.is_some() && !InPlace::arrays_of(nest).is_empty()
}

/// Why a candidate is refused, for so many workers: it may have been tried for more than there are.
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
    let Team { workers, accumulates, hosts, .. } = members;
    let crew = Crew { workers, hosts, in_place: members.in_place.filter(|_| hosts.is_none()) };
    if let Some(schedule) = own.filter(|schedule| !schedule.is_dynamic()) {
        let wavefront = schedule.wavefront();
        // The wavefront itself, and not what says that it is one.
        let schedule = wavefront.map_or(schedule, |wavefront| wavefront as &dyn Schedule);
        let plan = Plan { schedule, wavefront, in_place: wavefront.is_some() };
        let built = build(nest, dependences, plan, cut, crew).or_else(|error| match error {
            ScheduleError::Placement(_) if can_lie_in_place(nest, crew) => {
                build(nest, dependences, Plan { in_place: true, ..plan }, cut, crew)
            }
            error => Err(error),
        })?;
        let built = built.with_tasks(nest, crew)?;
        let candidates = vec![Candidate { name: schedule.name(), verdict: Verdict::Chosen(built.cost) }];
        return Ok(Choice::new(candidates, built, None));
    }
    let mut list = candidates(nest, dependences);
    let team = workers.max(if accumulates { TEAM } else { 2 });
    let same_bits = makes_same_bits(nest, dependences, accumulates);
    let widened = hosts.map(|hosts| if team == workers { hosts.clone() } else { hosts.spread_over(team) });
    let whole_team = Crew { workers: team, hosts: widened.as_ref(), ..crew };
    let build_for = |one: &Considered, crew| build(nest, dependences, one.plan(), cut, crew);
    let mut built: Vec<_> = list.iter().map(|one| build_for(one, whole_team)).collect();
    let is_parallel =
        |(one, built): (&Considered, &Result<Built, _>)| !matches!(one.kind, Kind::Serial) && built.is_ok();
    if can_lie_in_place(nest, crew) && !list.iter().zip(&built).any(is_parallel) {
        let more = in_place(nest, dependences, &list, &built);
        built.extend(more.iter().map(|one| build_for(one, whole_team)));
        list.extend(more);
    }
    let mut results: Vec<Result<Cost, ScheduleError>> =
        built.iter().map(|built| built.as_ref().map(|built| built.cost).map_err(Clone::clone)).collect();
    let cost = |result: &Result<Cost, ScheduleError>| {
        result.as_ref().map_or(f64::INFINITY, |cost| members.time(cost, same_bits))
    };
    let mut by_cost: Vec<usize> = (0..list.len()).collect();
    by_cost.sort_by(|a, b| cost(&results[*a]).total_cmp(&cost(&results[*b])));
    // A schedule that fits the blocks of the team may, rarely, not fit those of the workers; serial always does.
    let (mut found, mut refused) = (None, None);
    for number in by_cost {
        let taken = built.get_mut(number).map_or_else(unbuilt, |built| std::mem::replace(built, unbuilt()));
        let taken = taken.and_then(|taken| taken.with_tasks(nest, whole_team)).inspect_err(|why| {
            results[number] = Err(why.clone());
        });
        let taken = match team == workers {
            true => taken,
            false => taken.and_then(|_| build_for(&list[number], crew)?.with_tasks(nest, crew)),
        };
        match taken {
            Ok(taken) => {
                found = Some((number, taken));
                break;
            }
            Err(why) => refused = Some(why),
        }
    }
    let (best, built) = match (found, refused) {
        (Some(found), _) => found,
        (None, Some(why)) => return Err(why),
        // There is always a serial candidate.
        (None, None) => return unbuilt(),
    };
    if workers < team {
        // The costs are those of the workers that there are.
        for (one, result) in list.iter().zip(&mut results).filter(|(_, result)| result.is_ok()) {
            *result = build_for(one, crew).map(|built| built.cost);
        }
    }
    let taken = results[best].as_ref().map_or(f64::INFINITY, Cost::here);
    let candidates = list
        .iter()
        .zip(results)
        .enumerate()
        .map(|(number, (one, result))| Candidate {
            name: one.name.clone(),
            verdict: match result {
                Err(why) => Verdict::Refused(refusal(&why, workers)),
                Ok(cost) if number == best => Verdict::Chosen(cost),
                Ok(cost) if hosts.is_some() && !same_bits && cost.here() < taken => {
                    Verdict::DifferentBits(cost)
                }
                Ok(cost) => Verdict::Costlier(cost),
            },
        })
        .collect();
    let rotation = match list.into_iter().nth(best) {
        Some(Considered { kind: Kind::Rotation(rotation), in_place: false, .. }) => Some(rotation),
        _ => None,
    };
    if let Some(planned) =
        rotation.as_ref().filter(|_| own.is_some() && workers > 1 && nest.relaxed.is_empty())
    {
        let free = Rotation { dynamic: true, ..planned.clone() };
        // Where that does not fit, blocks go around as planned.
        if let Ok(built) = build(nest, dependences, Plan::of(&free), cut, crew)
            && built.steps.len() * workers <= MOST_FREE
            && verify_dynamic(nest, dependences, &built.placement).is_ok()
        {
            return Ok(Choice::new(candidates, built, Some(free)));
        }
    }
    Ok(Choice::new(candidates, built, rotation))
}
