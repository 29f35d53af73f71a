//! Which batches a loop gets.
use super::blocks::Cut;
use super::levels::Levels;
use super::{Batches, Growth, Touched, blocks, components, deal};
use crate::loop_nest::Order;
use serde::Serialize;
use std::fmt;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Nanoseconds of an iteration in the serial loop.
    pub iteration_ns: f64,
    /// Nanoseconds that an iteration takes longer where rows are looked up among those of a batch.
    pub overhead_ns: f64,
    /// Nanoseconds from batch to batch.
    pub batch_ns: f64,
}

/// A way to put iterations into batches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub enum Kind {
    /// Components of batches of this many iterations.
    Components(usize),
    /// Levels of the graph.
    Levels,
    /// Blocks of rows, coloured: this number of ranges of neighbours of each array.
    Ranges(usize),
    /// Blocks of rows, coloured: this number of each array, over which rows are spread by their weight.
    Spread(usize),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Components(size) => write!(f, "components of batches of {size} iterations"),
            Kind::Levels => f.write_str("levels of the graph of dependences"),
            Kind::Ranges(parts) => write!(f, "{parts} blocks of neighbouring rows of each array"),
            Kind::Spread(parts) => write!(f, "{parts} blocks of rows of each array, spread by weight"),
        }
    }
}

/// A kind that was tried, and the time it would take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// The kind.
    pub kind: Kind,
    /// Nanoseconds of a pass, in the estimate.
    pub nanoseconds: f64,
    /// How many batches.
    pub batches: usize,
    /// How many times faster the batches are than one worker would be, were there nothing to wait for and no overhead.
    pub parallelism: f64,
}

/// The result of an inspection.
#[derive(Clone, Debug)]
pub struct Inspected {
    /// The batches, if they pay.
    pub batches: Option<(Kind, Batches)>,
    /// The candidates, the best first.
    pub tried: Vec<Tried>,
    /// How the largest component grows with the batch, if that was measured.
    pub growth: Vec<Growth>,
    /// Nanoseconds of the serial loop, in the estimate.
    pub serial_ns: f64,
}

/// Batches pay if they take less than this fraction of the serial loop's time.
const PAYS: f64 = 0.9;

/// How near to the number of workers it is that runs at once, for blocks that are taken without looking for others.
const EVEN: f64 = 0.93;

/// Chooses batches for a loop, for `team` workers.
pub fn choose(touched: &Touched, order: Order, team: usize, pace: Pace) -> Inspected {
    let total = touched.total_weight() as f64;
    let per_weight = (pace.iteration_ns + pace.overhead_ns) * touched.len() as f64 / total.max(1.0);
    let serial_ns = pace.iteration_ns * touched.len() as f64;
    let time = |longest: f64, batches: usize| longest * per_weight + batches as f64 * pace.batch_ns;
    let tried = |kind: Kind, longest: f64, batches: usize| Tried {
        kind,
        nanoseconds: time(longest, batches),
        batches,
        parallelism: total / longest.max(1.0),
    };
    let mut found: Vec<(Tried, Option<Batches>)> = Vec::new();
    let mut built = |kind: Kind, batches: Batches| {
        let longest = deal(touched, &batches, team).longest as f64;
        let tried = tried(kind, longest, batches.len());
        found.push((tried, Some(batches)));
        tried
    };
    if touched.is_empty() {
        return Inspected { batches: None, tried: Vec::new(), growth: Vec::new(), serial_ns };
    }
    if order == Order::Unordered {
        // The larger the blocks, the more of the arrays that are only read is read in a row; and ranges of neighbours lie side by
        // side. Where that is even, nothing else is looked for.
        for (parts, cut) in [(team, Cut::Ranges), (2 * team, Cut::Ranges), (2 * team, Cut::Spread)] {
            let kind = if cut == Cut::Ranges { Kind::Ranges(parts) } else { Kind::Spread(parts) };
            let tried = blocks(touched, parts, cut).map(|batches| built(kind, batches));
            if tried.is_some_and(|tried| tried.parallelism > EVEN * team as f64) {
                break;
            }
        }
    }
    let best = |found: &[(Tried, Option<Batches>)]| {
        found.iter().map(|(tried, _)| tried.nanoseconds).fold(f64::INFINITY, f64::min)
    };
    let mut growth = Vec::new();
    // Where order does not matter, blocks that pay are taken: what keeps the order can hardly be better.
    if !(order == Order::Unordered && best(&found) < PAYS * serial_ns) {
        growth = Growth::measure(touched);
        let mut sizes: Vec<(f64, usize)> =
            growth.iter().map(|one| (estimate(one, touched, team, &time), one.batch)).collect();
        sizes.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, size)) = sizes.into_iter().next().filter(|(time, _)| *time < serial_ns) {
            let batches = components(touched, size);
            let longest = deal(touched, &batches, team).longest as f64;
            found.push((tried(Kind::Components(size), longest, batches.len()), Some(batches)));
        }
        // Levels that are too many take longer to wait for than the loop.
        let most = (serial_ns / pace.batch_ns.max(1.0)) as usize;
        let is_even = found.iter().any(|(tried, _)| tried.parallelism > EVEN * team as f64);
        if let Some(levels) = (!is_even).then(|| Levels::of(touched, most)).flatten() {
            let longest: f64 =
                levels.weights.iter().map(|weight| (*weight as f64 / team as f64).ceil()).sum();
            let batches =
                (time(longest, levels.weights.len()) < best(&found)).then(|| levels.batches(touched));
            found.push((tried(Kind::Levels, longest, levels.weights.len()), batches));
        }
    }
    found.sort_by(|a, b| a.0.nanoseconds.total_cmp(&b.0.nanoseconds));
    let tried = found.iter().map(|(tried, _)| *tried).collect();
    let batches = found
        .into_iter()
        .next()
        .filter(|(tried, _)| tried.nanoseconds < PAYS * serial_ns)
        .and_then(|(tried, batches)| Some((tried.kind, batches?)));
    Inspected { batches, tried, growth, serial_ns }
}

/// The time with batches of one size, by their largest component.
fn estimate(growth: &Growth, touched: &Touched, team: usize, time: &impl Fn(f64, usize) -> f64) -> f64 {
    let longest = growth.largest.max(1.0 / team as f64) * touched.total_weight() as f64;
    time(longest, touched.len().div_ceil(growth.batch))
}
