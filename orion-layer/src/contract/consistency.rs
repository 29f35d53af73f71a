//! The consistency of the arrays that a loop relaxes, and how often workers merge their changes.
use crate::error::Error;
use crate::text::counted;
use std::time::Duration;

/// The consistency between the iterations of a loop of the arrays that it *relaxes* or *buffers*. What it names under `read`
/// and `write` keeps its dependences under all of them.
///
/// Clocks are those of a pass: every worker begins at 0 and ticks as often as [`Every`] says.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Consistency {
    /// Nothing is relaxed: all accesses count as dependences. The default of this type; `parallel_for!` takes
    /// [`Consistency::Bsp`] for a loop that relaxes or buffers something and does not say how.
    #[default]
    Serializable,
    /// Bulk-synchronous: within a clock a worker sees its own changes and what all had changed when the clock began.
    /// The same bits for a given number of workers.
    Bsp,
    /// Stale-synchronous (Ho et al., 2013): a worker at clock `c` sees all that others changed before their clocks
    /// passed `c - s`, and perhaps more; it waits where it must. `Bounded(0)` waits as [`Consistency::Bsp`] does, but
    /// merges in the order in which changes come.
    Bounded(u64),
    /// Without waiting, and whatever is fastest: relaxed arrays are read and written in place while others do the same
    /// (HogWild!, Recht et al., 2011), or in copies as under [`Consistency::UNBOUNDED`]. In place, elements are whole, and
    /// of two workers that change one at once, one change may be lost. BufferViewFamily are merged when contributions come, and
    /// lose none.
    ///
    /// In place is best where workers seldom change the same elements; where they do all the time, lines of memory go from
    /// core to core. If the arrays that a loop relaxes have up to 4 MiB together, both are therefore tried, two passes each;
    /// what took less time goes on, and the other is tried again now and then. Larger ones are shared in place. [`LoopReport`](crate::relax::LoopReport) tells in how many passes it was which.
    Async,
}

impl Consistency {
    /// Copies, as under [`Consistency::Bounded`], whose workers never wait for each other within a pass: each tells at its
    /// clocks what it did, and learns what others have told. No change is lost.
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

/// How often a worker ticks: tells the others what it changed, and learns what they did. The bound on the delay of a
/// contribution. Also at the end of every tile, and so whenever a part of another array is handed over, and at the end
/// of the pass.
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
    /// So many times in a pass, on each worker.
    PerPass(usize),
    /// When a worker has run so many iterations, or a few less: the loop is cut into cells accordingly.
    Iterations(u64),
    /// When this time has passed, looked at between cells.
    Time(Duration),
    /// By measured staleness: when what some worker reads *lacks* more than so many iterations, which are those that the
    /// other workers have run in this pass and that are not merged in it (of a buffered array, also its own). They are
    /// counted in cells of the loop, each as long as the mean one.
    ///
    /// Every worker measures this at the end of each of its cells, and all tick at the ends of the cells in which one of
    /// them finds it. Cells are made so small that those of all other workers together have an eighth of this many
    /// iterations. Under [`Consistency::Bsp`] no read lacks more than this and a cell of each worker; where workers do not
    /// wait for each other, one that stands still in a cell may come to lack more. If all run alike, it is as
    /// [`Every::Iterations`] of this many, divided by the number of other workers; workers that stand still, or wait,
    /// make nothing stale, and cause no clocks.
    ///
    /// [`LoopReport::stale_iterations`](crate::relax::LoopReport::stale_iterations) tells what was measured. As with [`Every::Time`], who is faster
    /// decides what is merged when: not the same bits again.
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

/// How a loop relaxes what it relaxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Relax {
    /// The consistency.
    pub consistency: Consistency,
    /// How often workers merge.
    pub every: Every,
}

impl Relax {
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
    pub(crate) fn key(&self) -> [u64; 2] {
        let kind = match self.consistency {
            Consistency::Serializable => return [0, 0],
            Consistency::Bsp => 1,
            Consistency::Bounded(_) => 2,
            Consistency::Async => 3,
        };
        match self.every {
            Every::PerPass(times) => [kind, times as u64],
            Every::Iterations(count) => [kind | 4, count],
            Every::Time(_) => [kind | 8, 0],
            Every::Staleness(most) => [kind | 12, most],
        }
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
        let relax = |every| Relax { consistency: Consistency::Bsp, every };
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
