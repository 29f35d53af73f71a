//! The cost of a schedule, by a model of bytes, steps and balance.
use super::Steps;
use crate::hosts::{HAND_OVER_NS, Hosts, MOVED_PER_NS, PASS_NS, PassTime, Work, pass_time};
use crate::loop_nest::{LoopNest, Space};
use crate::placement::Placement;

/// Bytes that a core gets through in a nanosecond while it computes on rows.
const BYTES_PER_NS: f64 = 8.0;

/// To begin and end a tile of an array that lies in place, and to look whether those before it are done.
const TASK_NS: f64 = 200.0;

/// Elements of a dimension that an iteration looks up, where data say which: a guess.
const LOOKED_UP: usize = 64;

/// The estimate of one pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Cost {
    /// Iterations of the busiest worker, as a multiple of the average.
    pub imbalance: f64,
    /// Bytes that change hands in a pass.
    pub moved_bytes: f64,
    /// Steps.
    pub steps: usize,
    /// Nanoseconds, all in all, on one host.
    pub nanoseconds: f64,
    /// The time on the hosts of the program, if there are several.
    pub on_hosts: Option<PassTime>,
}

impl Cost {
    /// Nanoseconds where the program runs.
    pub fn here(&self) -> f64 {
        self.on_hosts.map_or(self.nanoseconds, |time| time.total_ns())
    }
}

/// How many iterations.
pub fn iterations(nest: &LoopNest) -> f64 {
    match nest.space {
        Space::Entries { count, .. } => count as f64,
        Space::Dense => nest.dims.iter().map(|dim| extent(dim.bounds) as f64).product(),
    }
}

pub(crate) fn extent(bounds: Option<(i64, i64)>) -> usize {
    bounds.map_or(0, |(start, end)| end.saturating_sub(start).max(0) as usize)
}

/// Nanoseconds of all iterations on one worker, by the bytes that they touch.
pub(crate) fn work_ns(nest: &LoopNest) -> f64 {
    iterations(nest) * touched(nest) / BYTES_PER_NS
}

/// Bytes that one iteration touches.
fn touched(nest: &LoopNest) -> f64 {
    use crate::loop_nest::Subscript;
    let of = |access: &crate::loop_nest::Access| {
        let array = &nest.arrays[access.array];
        let elements =
            access.subscripts.iter().zip(&array.shape).map(|(subscript, extent)| match subscript {
                Subscript::Index(_) => 1.0,
                Subscript::Range(start, end) => (end.constant - start.constant).max(1) as f64,
                Subscript::Unknown => *extent.min(&LOOKED_UP) as f64,
                Subscript::Full => *extent as f64,
            });
        elements.product::<f64>() * array.element_bytes as f64 * if access.mode.writes() { 2.0 } else { 1.0 }
    };
    nest.accesses.iter().map(of).sum::<f64>().max(8.0)
}

/// The estimate for one schedule.
pub(crate) fn estimate(
    nest: &LoopNest,
    steps: &Steps,
    grid: &[usize],
    placement: &Placement,
    workers: usize,
    hosts: Option<&Hosts>,
) -> Cost {
    let work = work_ns(nest);
    let on_hosts = hosts.map(|hosts| {
        let work = Work::even(steps, grid, workers, work);
        let time = pass_time(nest, steps, placement, &work, hosts);
        // What lies beyond a part is asked for, and comes.
        let asked_ns = if placement.has_ghosts() { hosts.link.hand_over_ns } else { 0.0 };
        PassTime { steps_ns: time.steps_ns + asked_ns, ..time }
    });
    // Cells carry the same weight: they were cut by histogram.
    let cells: f64 = grid.iter().map(|cells| *cells as f64).product();
    let mut busy = 0.0;
    let mut load = vec![0.0; workers];
    for step in steps {
        let mut longest: f64 = 0.0;
        for (worker, tile) in step.iter().enumerate() {
            if let Some(tile) = tile {
                let share = tile.cells.iter().map(|range| range.len() as f64).product::<f64>() / cells;
                load[worker] += share;
                longest = longest.max(share);
            }
        }
        busy += longest;
    }
    let average = load.iter().sum::<f64>() / workers as f64;
    let heaviest = load.iter().fold(0.0f64, |a, b| a.max(*b));
    let moved_bytes = placement.moved_bytes(nest);
    let hand_overs = placement.hand_overs() as f64 / workers as f64;
    // Those with ghost regions are the tasks that they are on one host, so that both choose alike.
    let tasks = match placement.in_place.is_some() || placement.has_ghosts() {
        true => placement.tiles.iter().map(Vec::len).max().unwrap_or(0),
        false => 0,
    };
    Cost {
        imbalance: if average > 0.0 { heaviest / average } else { 1.0 },
        moved_bytes,
        steps: steps.len(),
        nanoseconds: work * busy.max(heaviest)
            + moved_bytes / MOVED_PER_NS / workers as f64
            + hand_overs * HAND_OVER_NS
            + tasks as f64 * TASK_NS
            + PASS_NS,
        on_hosts,
    }
}
