//! From a candidate to a schedule for certain workers: cut into cells, verified, placed, and with its cost.
use super::cost::{self, Cost, estimate, work_ns};
use super::verify::covers;
use super::{Schedule, ScheduleError, Steps, Uncut, Wavefront, verify};
use crate::analysis::Dependences;
use crate::hosts::Hosts;
use crate::in_place::{CheckTasks, Checked, InPlace, InPlaceError, Waits};
use crate::loop_nest::LoopNest;
use crate::placement::Placement;

/// A candidate to build.
#[derive(Clone, Copy)]
pub(super) struct Plan<'a> {
    pub(super) schedule: &'a dyn Schedule,
    pub(super) wavefront: Option<&'a Wavefront>,
    pub(super) written: Written,
}

/// Where the arrays are that a candidate's loop writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// In parts.
    Cut,
    /// As [`Crew::uncut`] says.
    Uncut,
    /// All of them with the only worker that has tiles.
    Whole,
}

impl<'a> Plan<'a> {
    /// With arrays in parts.
    pub(super) fn of(schedule: &'a dyn Schedule) -> Plan<'a> {
        Plan { schedule, wavefront: None, written: Written::Cut }
    }
}

/// The workers that it is built for.
#[derive(Clone, Copy)]
pub(super) struct Crew<'a> {
    pub(super) workers: usize,
    pub(super) hosts: Option<&'a Hosts>,
    pub(super) uncut: Option<Uncut<'a>>,
}

/// A schedule for certain workers, verified, placed and with its cost.
pub(super) struct Built {
    pub(super) grid: Vec<usize>,
    pub(super) cuts: Vec<Vec<i64>>,
    pub(super) steps: Steps,
    pub(super) placement: Placement,
    pub(super) cost: Cost,
    /// If arrays lie in place, and the tasks are made: what became of them.
    pub(super) checked: Option<Checked>,
    /// If arrays lie in place, and the tasks are to be made: what they wait for.
    waits: Option<Waits>,
}

impl Built {
    /// Makes the tasks, if arrays lie in place, and has them checked. Of the many tiles of wavefronts only when one is taken.
    pub(super) fn with_tasks(mut self, nest: &LoopNest, crew: Crew<'_>) -> Result<Built, ScheduleError> {
        let Some(waits) = self.waits.take() else { return Ok(self) };
        let in_place = InPlace::of(nest, &self.cuts, &self.steps, crew.workers, waits);
        if let Some(Uncut::InPlace(CheckTasks(check))) = crew.uncut {
            self.checked = Some(check(nest, &in_place)?);
        }
        self.placement.in_place = Some(in_place);
        Ok(self)
    }
}

/// The values of the loop's dimensions between cells: dimension, number of cells.
pub type Cut<'a> = &'a dyn Fn(usize, usize) -> Vec<i64>;

/// A loop whose schedules are built.
#[derive(Clone, Copy)]
pub(super) struct Builder<'a> {
    pub(super) nest: &'a LoopNest,
    pub(super) dependences: &'a Dependences,
    pub(super) cut: Cut<'a>,
}

impl Builder<'_> {
    /// Cuts, verifies and places a candidate.
    pub(super) fn build(&self, plan: Plan<'_>, crew: Crew<'_>) -> Result<Built, ScheduleError> {
        let Builder { nest, dependences, cut } = *self;
        let Crew { workers, hosts, .. } = crew;
        let extents = extents(nest);
        let mut grid = plan.schedule.grid(&extents, workers);
        refine(&mut grid, &extents, nest.least_cells, workers);
        if grid.len() != extents.len()
            || grid.iter().zip(&extents).any(|(cells, extent)| *cells == 0 || *cells > (*extent).max(1))
        {
            return Err(ScheduleError::Grid { grid, extents });
        }
        // Cells are combined in the order of their numbers, and run through in the order of the loop.
        if nest.combines_in_order && grid.iter().skip(1).any(|cells| *cells > 1) {
            return Err(ScheduleError::Combined);
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
        let (placement, waits) = match crew.uncut.filter(|_| is_for_uncut(nest)) {
            _ if plan.written == Written::Whole => (Placement::whole(nest, &steps, workers), None),
            _ if plan.written == Written::Cut => (Placement::of(nest, &cuts, &steps, workers)?, None),
            Some(Uncut::Ghosts) if plan.wavefront.is_none() => {
                (Placement::with_ghosts(nest, &cuts, &steps, workers)?, None)
            }
            Some(Uncut::InPlace(_)) => {
                let in_place = InPlace { arrays: InPlace::arrays_of(nest), tasks: Vec::new() };
                let waits = plan.wavefront.map_or(Waits::Steps, |wavefront| wavefront.waits(&cuts));
                (Placement::in_place(nest, &steps, workers, in_place), Some(waits))
            }
            _ => {
                let what = match is_for_uncut(nest) {
                    false => "a loop must be dense and relax nothing",
                    true => "its workers must be on one host",
                };
                return Err(InPlaceError { what: what.into() }.into());
            }
        };
        let mut cost = estimate(nest, &steps, &grid, &placement, workers, hosts);
        if let Some(wavefront) = plan.wavefront.filter(|_| plan.written != Written::Whole) {
            let slowdown = wavefront.slowdown(&cuts, workers);
            cost.nanoseconds += work_ns(nest) / workers as f64 * (slowdown - 1.0).max(0.0);
        }
        let built = Built { grid, cuts, steps, placement, cost, checked: None, waits };
        if plan.wavefront.is_some() { Ok(built) } else { built.with_tasks(nest, crew) }
    }
}

/// Iterations per dimension.
pub(super) fn extents(nest: &LoopNest) -> Vec<usize> {
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

/// Whether written arrays of a loop that cannot be cut may be as [`Uncut`] says.
pub(super) fn is_for_uncut(nest: &LoopNest) -> bool {
    !InPlace::arrays_of(nest).is_empty()
}
