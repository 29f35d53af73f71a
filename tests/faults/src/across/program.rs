//! A worker of the load on several hosts: it writes areas of its own, looks at everybody's, and reports what it sees.
use crate::content;
use crate::promises::Record;
use crate::worker::say;
use anyhow::{Context, Result, bail};
use hectare_dsm::{Area, AreaSpec, Error, Job, Owned, Version, Worker};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How far workers of the style `bounded` may be apart.
const STALENESS: u64 = 3;
/// Whoever does not come within that time is missing.
const LONG: Duration = Duration::from_secs(60);
/// Between two reports of a worker.
const REPORTS: Duration = Duration::from_millis(20);
/// Elements of the areas that hold versions, by rank.
const LENGTHS: [usize; 4] = [20, 30_000, 3_000, 9_000];

static ENOUGH: AtomicBool = AtomicBool::new(false);
static HELD: AtomicBool = AtomicBool::new(false);

/// How the workers keep together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A barrier after each turn: what is seen is of that turn.
    Barrier,
    /// Clocks that are not far apart.
    Bounded,
    /// Nobody waits.
    Free,
}

impl Style {
    pub(crate) const ALL: [Style; 3] = [Style::Barrier, Style::Bounded, Style::Free];

    pub(crate) fn name(self) -> &'static str {
        ["barrier", "bounded", "free"][self as usize]
    }

    pub(crate) fn of(name: &str) -> Result<Style> {
        Style::ALL
            .into_iter()
            .find(|style| style.name() == name)
            .with_context(|| format!("no style {name:?}"))
    }
}

/// The number by which a worker's area of versions is known; that of the pair follows.
pub(crate) fn number(rank: u64) -> u64 {
    rank * 2
}

/// A worker, until standard input ends.
fn main(job: &str, size: u64, style: Style, loose: bool) {
    std::thread::spawn(|| {
        for line in std::io::stdin().lock().lines().map_while(std::result::Result::ok) {
            HELD.store(line == "hold", Ordering::Relaxed);
        }
        ENOUGH.store(true, Ordering::Relaxed);
    });
    let record = match live(job, size, style, loose) {
        Ok(()) => return,
        Err(error) => match error.downcast_ref::<Error>() {
            Some(Error::PeerFailed { .. }) => Record::Ended(error.to_string()),
            _ => Record::Failed(format!("{error:#}")),
        },
    };
    say(&record);
}

/// The areas of a worker: versions whose every byte is checked, and two areas of one group.
struct Mine {
    versions: Owned<u64>,
    pair: [Owned<u64>; 2],
    life: u64,
}

impl Mine {
    fn new(worker: &mut Worker, rank: u64) -> Result<Mine> {
        let life = u64::from(std::process::id()) << 16 | rank;
        say(&Record::Begun { life, area: number(rank) });
        let len = LENGTHS[rank as usize % LENGTHS.len()];
        let versions = worker.create(AreaSpec::new(format!("load/{rank}")).copies(2), len)?;
        say(&Record::Owns { area: number(rank), epoch: versions.epoch(), life });
        let group = |name| AreaSpec::new(format!("pair/{rank}/{name}")).group(format!("pair/{rank}"));
        let pair = [worker.create(group("a"), 1000)?, worker.create(group("b"), 16)?];
        Ok(Mine { versions, pair, life })
    }

    fn write(&mut self, worker: &Worker, rank: u64, turn: u64, last: u64) -> Result<()> {
        content::write(&mut self.versions, worker, number(rank), self.life, &mut || {})?;
        for area in &mut self.pair {
            let end = area.len() - 1;
            let mut guard = area.write(worker)?;
            guard.set(0, turn);
            guard.set(1, last);
            guard.set(end, turn);
        }
        Ok(())
    }
}

/// A worker's view of another worker's areas, or of its own.
struct Theirs {
    rank: u64,
    versions: Area<u64>,
    pair: [Area<u64>; 2],
}

impl Theirs {
    fn new(worker: &mut Worker, rank: u64) -> Result<Theirs> {
        let mut attach = |name: String| worker.attach_within::<u64>(&name, LONG);
        let versions = attach(format!("load/{rank}"))?;
        let pair = [attach(format!("pair/{rank}/a"))?, attach(format!("pair/{rank}/b"))?];
        Ok(Theirs { rank, versions, pair })
    }

    /// The turn that both areas of the pair show, and the last turn of all if it is known.
    fn turn(&self, worker: &Worker) -> Result<(u64, u64)> {
        let mut seen = Vec::new();
        for area in &self.pair {
            let data = area.read(worker)?;
            seen.extend([data[0], data[data.len() - 1]]);
        }
        if seen.iter().any(|turn| *turn != seen[0]) {
            say(&Record::Torn(format!("the pair of rank {} shows turns {seen:?}", self.rank)));
        }
        Ok((seen[0], self.pair[1].read(worker)?[1]))
    }
}

struct Eyes {
    life: u64,
    told: HashMap<u64, Version>,
    at: Instant,
}

impl Eyes {
    fn look(&mut self, worker: &Worker, all: &[Theirs]) -> Result<()> {
        let is_due = self.at.elapsed() > REPORTS;
        if is_due {
            self.at = Instant::now();
        }
        for theirs in all {
            let area = number(theirs.rank);
            let seen = match content::look(&theirs.versions, worker, area)? {
                Err(torn) => {
                    say(&Record::Torn(torn));
                    continue;
                }
                Ok(seen) => seen,
            };
            let told = self.told.get(&area).copied();
            let goes_back = told.is_some_and(|told| seen.version < told);
            if let Some(head) = seen.head
                && (goes_back || is_due && told != Some(seen.version))
            {
                self.told.insert(area, seen.version);
                say(&Record::of(self.life, area, seen.version, head));
            }
        }
        Ok(())
    }
}

fn live(job: &str, size: u64, style: Style, loose: bool) -> Result<()> {
    let mut worker = Job::connect(job)?.worker()?;
    let rank = u64::from(worker.rank());
    if style == Style::Free {
        worker.leave_clocks();
    }
    worker.wait_for_workers(size as usize, LONG)?;
    let mut mine = Mine::new(&mut worker, rank)?;
    let all = (0..size).map(|rank| Theirs::new(&mut worker, rank)).collect::<Result<Vec<_>>>()?;
    let mut eyes = Eyes { life: mine.life, told: HashMap::new(), at: Instant::now() };
    if style != Style::Free {
        worker.barrier()?;
    }
    let mut before = vec![0; all.len()];
    let (mut turn, mut last) = (0, u64::MAX);
    while turn < last {
        if style == Style::Free && ENOUGH.load(Ordering::Relaxed) {
            return Ok(());
        }
        if HELD.load(Ordering::Relaxed) {
            worker.service()?;
        } else {
            turn += 1;
            // All hear of the end before it comes: the first worker tells it.
            if rank == 0 && last == u64::MAX && ENOUGH.load(Ordering::Relaxed) {
                last = turn + STALENESS + 2;
            }
            mine.write(&worker, rank, turn, last)?;
            keep_up(&mut worker, style, &mine, turn)?;
        }
        for (theirs, before) in all.iter().zip(&mut before) {
            let (seen, end) = theirs.turn(&worker)?;
            if theirs.rank == 0 && seen > 0 {
                last = last.min(end);
            }
            judge(style, loose, turn, (*before, seen), theirs.rank);
            *before = seen;
        }
        eyes.look(&worker, &all)?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn keep_up(worker: &mut Worker, style: Style, mine: &Mine, turn: u64) -> Result<()> {
    match style {
        Style::Barrier => worker.barrier()?,
        Style::Bounded => {
            worker.tick()?;
            worker.wait_clocks(STALENESS)?;
        }
        Style::Free => match turn % 3 {
            0 => worker.service()?,
            1 => drop(worker.sync_area(&mine.versions.area())?),
            _ => drop(worker.sync()?),
        },
    }
    Ok(())
}

/// Whether a worker at `turn` may see this turn of another; `loose` if others may have died.
fn judge(style: Style, loose: bool, turn: u64, (before, seen): (u64, u64), rank: u64) {
    let mut allowed = match style {
        Style::Barrier => turn..=turn,
        Style::Bounded => turn.saturating_sub(STALENESS)..=turn + STALENESS + 1,
        Style::Free => 0..=u64::MAX,
    };
    if loose {
        allowed = 0..=*allowed.end();
    }
    if seen < before || !allowed.contains(&seen) {
        let what = format!("turn {seen} of rank {rank} after {before} at turn {turn} ({})", style.name());
        say(&Record::Torn(what));
    }
}

/// The role of a worker: job, number of workers, style, and whether others may die.
pub(crate) fn play(job: &str, size: &str, style: &str, loose: &str) -> Result<()> {
    let size: u64 = size.parse()?;
    if size == 0 {
        bail!("no workers");
    }
    main(job, size, Style::of(style)?, loose == "loose");
    Ok(())
}
