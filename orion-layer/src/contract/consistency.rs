//! The consistency of the arrays that a loop relaxes, and how often workers merge their changes.
use super::Tail;
use crate::error::Error;
use crate::text::counted;
use std::time::Duration;

/// The consistency, between the iterations of a loop, of the arrays that it *relaxes* or *buffers*. The dependences
/// of arrays under `read` and `write` are always preserved. Clocks are local to a pass: every worker begins at 0 and
/// ticks as often as [`Every`] says.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Consistency {
    /// Nothing is relaxed: all accesses count as dependences. The default of this type; the default of `parallel_for!` is
    /// [`Consistency::Bsp`] for loops that relax or buffer something.
    #[default]
    Serializable,
    /// Bulk-synchronous: within a clock, a worker sees its own changes, and everybody's up to the beginning of the clock.
    /// The same bits for a given number of workers.
    Bsp,
    /// Stale-synchronous (Ho et al., 2013): a worker at clock `c` sees all changes that others made before their clocks
    /// passed `c - s`, and possibly more; it waits if it must. `Bounded(0)` waits like [`Consistency::Bsp`], but merges
    /// changes in the order of their arrival.
    Bounded(u64),
    /// Without waiting, whichever is fastest: relaxed arrays are read and written in place while others do the same
    /// (HogWild!, Recht et al., 2011), or in copies as under [`Consistency::UNBOUNDED`]. In place, elements are never
    /// torn, but if two workers change one at the same time, one change may be lost. Buffered arrays merge contributions
    /// as they arrive, and lose none.
    ///
    /// In place is best if workers rarely change the same elements; if they always do, cache lines bounce between cores.
    /// So if the arrays that a loop relaxes total at most 4 MiB, both are tried, two passes each; the faster is kept, and
    /// the other is retried now and then. Larger ones are shared in place. [`LoopReport`](crate::relax::LoopReport)
    /// counts the passes of both.
    Async,
}

impl Consistency {
    /// Copies, as under [`Consistency::Bounded`], but workers never wait for each other within a pass: at its clocks,
    /// each publishes its changes and applies those that others have published. No change is lost.
    pub const UNBOUNDED: Consistency = Consistency::Bounded(u64::MAX);

    /// By how many clocks a worker may run ahead of the slowest.
    pub(crate) fn bound(self) -> u64 {
        match self {
            Consistency::Serializable | Consistency::Bsp => 0,
            Consistency::Bounded(bound) => bound,
            Consistency::Async => u64::MAX,
        }
    }
}

impl std::fmt::Debug for Consistency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Consistency::Serializable => f.write_str("Serializable"),
            Consistency::Bsp => f.write_str("Bsp"),
            Consistency::UNBOUNDED => f.write_str("UNBOUNDED"),
            Consistency::Bounded(bound) => write!(f, "Bounded({bound})"),
            Consistency::Async => f.write_str("Async"),
        }
    }
}

impl std::fmt::Display for Consistency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Consistency::Serializable => f.write_str("serializable"),
            Consistency::Bsp => f.write_str("bulk-synchronous"),
            Consistency::UNBOUNDED => f.write_str("staleness without bound"),
            Consistency::Bounded(bound) => write!(f, "staleness of at most {}", counted(bound, "clock")),
            Consistency::Async => f.write_str("asynchronous"),
        }
    }
}

impl std::str::FromStr for Consistency {
    type Err = Error;

    /// `serializable`, `bsp`, `bounded:3`, `unbounded` or `async`, for command lines.
    fn from_str(text: &str) -> Result<Consistency, Error> {
        let bad = || {
            Error::Invalid(format!(
                "{text:?}: a consistency is serializable, bsp, bounded:S, unbounded or async"
            ))
        };
        match text.split_once(':') {
            None if text == "serializable" => Ok(Consistency::Serializable),
            None if text == "bsp" => Ok(Consistency::Bsp),
            None if text == "unbounded" => Ok(Consistency::UNBOUNDED),
            None if text == "async" => Ok(Consistency::Async),
            Some(("bounded", bound)) => bound.parse().map(Consistency::Bounded).map_err(|_| bad()),
            _ => Err(bad()),
        }
    }
}

/// How often a worker ticks: publishes its changes, and applies those of others. This bounds the delay of a contribution (of one to a [`Tail`], the clocks that merge it do).
/// Workers also tick at the end of every tile, and so whenever a part of another array is handed over, and at the end of
/// the pass.
///
/// In the head of a loop, a number stands for [`Every::Iterations`] and a [`Duration`] for [`Every::Time`]:
///
/// ```
/// use hectare_orion::relax::Every;
/// use hectare_orion::{parallel_for, run};
/// use std::time::Duration;
///
/// run(2, |w| {
///     let mut bins = w.zeros::<u32, 1>([10])?;
///     // Four times in a pass, on each of the two workers.
///     parallel_for!(w, unordered, relax bins, every = Every::PerPass(4); for i in 0..1200 { bins.add(i % 10, 1); })?;
///     // After every hundred iterations of a worker, which runs 600: six times.
///     parallel_for!(w, unordered, relax bins, every = 100; for i in 0..1200 { bins.add(i % 10, 1); })?;
///     // After an hour, or when the pass ends: once.
///     let hour = Duration::from_secs(3600);
///     parallel_for!(w, unordered, relax bins, every = hour; for i in 0..1200 { bins.add(i % 10, 1); })?;
///     let clocks: Vec<u64> = w.reports()?.iter().map(|report| report.clocks).collect();
///     assert_eq!(clocks, [2 * 4, 2 * 6, 2]);
///     Ok(())
/// })?;
/// # Ok::<(), hectare_orion::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Every {
    /// This many times in a pass, on each worker.
    PerPass(usize),
    /// When a worker has run this many iterations, or slightly fewer: the loop is divided into cells accordingly.
    Iterations(u64),
    /// When this time has passed, checked between cells.
    Time(Duration),
    /// By measured staleness: when some worker's reads *miss* more than this many iterations, which are those that the
    /// other workers have run in this pass and that are not merged yet (for a buffered array, also its own). They are
    /// counted in cells of the loop, each of average length.
    ///
    /// Every worker measures this at the end of each of its cells, and all tick at the end of the cell in which one of
    /// them exceeds it. Cells are made so small that those of all other workers together have an eighth of this many
    /// iterations. Under [`Consistency::Bsp`], no read misses more than this plus a cell of each worker; where workers do
    /// not wait for each other, one that stalls in a cell may miss more. If all workers are equally fast, it is
    /// equivalent to [`Every::Iterations`] of this many, divided by the number of other workers; workers that stall or
    /// wait make nothing stale, and cause no clocks.
    ///
    /// [`LoopReport::stale_iterations`](crate::relax::LoopReport::stale_iterations) reports the measured staleness. As
    /// with [`Every::Time`], what is merged when depends on timing: results are not reproducible.
    Staleness(u64),
}

impl Every {
    /// Whether the plan of a loop says after which cells clocks end.
    pub(crate) fn is_planned(self) -> bool {
        !matches!(self, Every::Time(_) | Every::Staleness(_))
    }
}

impl Default for Every {
    /// Sixteen times in a pass, or a few less: clocks end between cells of the loop.
    fn default() -> Every {
        Every::PerPass(16)
    }
}

impl std::str::FromStr for Every {
    type Err = Error;

    /// `per-pass:64`, `iterations:1000`, `seconds:0.01` or `staleness:5000`, for command lines.
    fn from_str(text: &str) -> Result<Every, Error> {
        let (kind, value) = text.split_once(':').unwrap_or((text, ""));
        let every = match kind {
            "per-pass" => value.parse().ok().map(Every::PerPass),
            "iterations" => value.parse().ok().map(Every::Iterations),
            "staleness" => value.parse().ok().map(Every::Staleness),
            "seconds" => {
                let seconds = value.parse().ok();
                seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).map(Every::Time)
            }
            _ => None,
        };
        every.ok_or_else(|| {
            let kinds = "per-pass:TIMES in a pass, iterations:COUNT, seconds:TIME or staleness:ITERATIONS";
            Error::Invalid(format!("{text:?}: {kinds}"))
        })
    }
}

impl From<u64> for Every {
    fn from(iterations: u64) -> Every {
        Every::Iterations(iterations)
    }
}

impl From<Duration> for Every {
    fn from(time: Duration) -> Every {
        Every::Time(time)
    }
}

/// The consistency of a loop's relaxed arrays, and how often workers merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Relaxation {
    /// The consistency.
    pub consistency: Consistency,
    /// How often workers merge.
    pub every: Every,
    /// The elements that they merge less often.
    #[serde(default)]
    pub tail: Tail,
}

impl Relaxation {
    /// Whether the loop keeps all dependences.
    pub(crate) fn is_exact(&self) -> bool {
        self.consistency == Consistency::Serializable
    }

    /// Why this cannot be.
    pub(crate) fn complaint(&self) -> Option<String> {
        let what = match self.every {
            Every::PerPass(0) => "workers would never merge: take at least one clock in a pass, PerPass(1)",
            Every::Iterations(0) | Every::Time(Duration::ZERO) | Every::Staleness(0) => {
                "clocks would come with nothing between them: take more, or PerPass(16), sixteen in a pass"
            }
            Every::Iterations(u64::MAX) | Every::Time(Duration::MAX) | Every::Staleness(u64::MAX) => {
                "a clock would never come: take fewer, or PerPass(1), one in a pass"
            }
            Every::Staleness(_) if !self.tail.is_none() => {
                "staleness is not measured where there is a `tail`: give an interval, as PerPass(64)"
            }
            _ if self.tail.clocks == 0 => {
                return Some(format!("`tail = {:?}`: it would never be merged: take at least 1", self.tail));
            }
            _ => return None,
        };
        Some(format!("`every = {:?}`: {what}", self.every))
    }

    /// Into how many cells the dimension that is cut has to be cut at least, for `iterations` iterations on `workers`
    /// workers.
    pub(crate) fn cells(&self, iterations: f64, workers: usize) -> usize {
        let cells = match self.every {
            Every::PerPass(times) => times.saturating_mul(workers),
            Every::Iterations(count) => (iterations / count as f64).ceil().min(MOST_CELLS as f64) as usize,
            Every::Time(_) => 64 * workers,
            Every::Staleness(most) => {
                let cell = most as f64 / (8 * (workers - 1).max(1)) as f64;
                (iterations / cell).ceil().min(MOST_CELLS as f64) as usize
            }
        };
        cells.min(MOST_CELLS)
    }

    /// The key by which a plan is kept.
    pub(crate) fn key(&self) -> [u64; 4] {
        let kind = match self.consistency {
            Consistency::Serializable => return [0; 4],
            Consistency::Bsp => 1,
            Consistency::Bounded(_) => 2,
            Consistency::Async => 3,
        };
        let (kind, often) = match self.every {
            Every::PerPass(times) => (kind, times as u64),
            Every::Iterations(count) => (kind | 4, count),
            Every::Time(_) => (kind | 8, 0),
            Every::Staleness(most) => (kind | 12, most),
        };
        [kind, often, self.tail.first as u64, self.tail.clocks]
    }
}

/// More cells than this cost more than the calls of the body that they are.
const MOST_CELLS: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_from_command_lines() {
        assert_eq!("bounded:3".parse::<Consistency>().unwrap(), Consistency::Bounded(3));
        assert_eq!("unbounded".parse::<Consistency>().unwrap(), Consistency::UNBOUNDED);
        assert_eq!("async".parse::<Consistency>().unwrap(), Consistency::Async);
        for bad in ["", "bounded", "bounded:-1", "bsp:1", "sync"] {
            assert!(bad.parse::<Consistency>().is_err(), "{bad}");
        }
    }

    #[test]
    fn cells_keep_the_delay() {
        let relax = |every| Relaxation { consistency: Consistency::Bsp, every, tail: Tail::NONE };
        assert_eq!(relax(Every::Iterations(100)).cells(1050.0, 2), 11);
        assert_eq!(relax(Every::PerPass(16)).cells(1e6, 3), 48);
        let complaint = relax(Every::Iterations(0)).complaint();
        assert!(
            complaint.is_some_and(
                |text| text.contains("every = Iterations(0)") && text.contains("nothing between")
            )
        );
        assert_eq!(relax(Every::default()).complaint(), None);
        // Of each of two others, a sixteenth of the bound.
        assert_eq!(relax(Every::Staleness(160)).cells(1000.0, 3), 100);
        assert_eq!(relax(Every::Staleness(80)).cells(1000.0, 1), 100);
        assert!(relax(Every::Staleness(0)).complaint().is_some_and(|text| text.contains("Staleness(0)")));
        for every in [Every::Staleness(u64::MAX), Every::Iterations(u64::MAX), Every::Time(Duration::MAX)] {
            assert!(relax(every).complaint().is_some_and(|text| text.contains("never come")), "{every:?}");
        }
    }

    #[test]
    fn intervals_read_from_command_lines() {
        assert_eq!("per-pass:64".parse::<Every>().unwrap(), Every::PerPass(64));
        assert_eq!("iterations:1000".parse::<Every>().unwrap(), Every::Iterations(1000));
        assert_eq!("seconds:0.5".parse::<Every>().unwrap(), Every::Time(Duration::from_millis(500)));
        assert_eq!("staleness:5000".parse::<Every>().unwrap(), Every::Staleness(5000));
        for bad in ["", "per-pass", "per-pass:-1", "seconds:-1", "seconds:inf", "staleness:x", "often:3"] {
            assert!(bad.parse::<Every>().is_err(), "{bad}");
        }
    }
}
