//! A process of the load: workers that write areas of their own, read everybody's, and report what they see.
use crate::constants::{AREAS, JOB};
use crate::content::{self, Head};
use crate::promises::Record;
use crate::system;
use hectare_dsm::{Area, AreaSpec, Error, Job, Owned, Result, Version, Worker};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Orders that the workers of this process have not carried out yet.
static ORDERS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Whether this process is to leave its job.
static ENOUGH: AtomicBool = AtomicBool::new(false);

/// How an order ends the writer in the middle of its next write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Write,
    Log,
    Panic,
}

pub(crate) fn say(record: &Record) {
    let line = format!("{record}\n");
    // Nobody listens any more: the campaign is over, and this process is about to be.
    if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
        std::process::exit(3);
    }
}

/// The time when a worker began tells it from all others.
fn new_life(area: u64) -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (since.as_nanos() as u64) << 3 | area
}

/// Runs workers of job `name` for areas `first..first + count` until standard input ends.
pub(crate) fn main(name: &str, first: u64, count: u64) {
    std::thread::spawn(|| {
        for line in std::io::stdin().lines().map_while(std::result::Result::ok) {
            ORDERS.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
        ENOUGH.store(true, Ordering::Relaxed);
    });
    let job = match Job::connect(name) {
        Ok(job) => job,
        Err(error) => return say(&Record::Failed(format!("connecting: {error}"))),
    };
    std::thread::scope(|scope| {
        for area in first..first + count {
            let job = &job;
            scope.spawn(move || {
                // A worker that panics on order is followed by another one.
                while !ENOUGH.load(Ordering::Relaxed) {
                    let life = std::panic::catch_unwind(|| live(job, name, area, area == first));
                    match life {
                        Ok(Ok(())) => return,
                        Ok(Err(error)) => return say(&Record::Failed(error.to_string())),
                        Err(_) => say(&Record::Answer("panicked".into())),
                    }
                }
            });
        }
    });
}

/// The area of this number, created or taken over from whoever had it before.
fn own(worker: &mut Worker, job: &str, number: u64) -> Result<Owned<u64>> {
    let (name, (len, copies)) = (format!("load/{number}"), AREAS[number as usize]);
    let copies = if job == JOB { copies } else { 3 };
    match worker.create::<u64>(AreaSpec::new(name.as_str()).copies(copies), len) {
        Err(Error::NameTaken { .. }) => {}
        other => return other,
    }
    loop {
        match worker.claim::<u64>(&name) {
            Ok(claimed) => return Ok(claimed.owned),
            // The worker before is on its way out.
            Err(Error::OwnerAlive { .. }) if !ENOUGH.load(Ordering::Relaxed) => {
                worker.service()?;
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(error),
        }
    }
}

struct Witness {
    life: u64,
    number: u64,
    area: Option<Area<u64>>,
    last: Option<Version>,
}

impl Witness {
    fn look(&mut self, worker: &Worker) -> Result<()> {
        if self.area.is_none() {
            match worker.attach_here(&format!("load/{}", self.number)) {
                Ok(area) => self.area = Some(area),
                Err(Error::NoSuchArea { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        let Some(area) = &self.area else { return Ok(()) };
        match content::look(area, worker, self.number)? {
            Err(torn) => say(&Record::Torn(torn)),
            Ok(seen) if self.last != Some(seen.version) => {
                self.last = Some(seen.version);
                let nobody = Head { counter: 0, epoch: 0, life: 0, area: self.number };
                say(&Record::of(self.life, self.number, seen.version, seen.head.unwrap_or(nobody)));
            }
            Ok(_) => {}
        }
        Ok(())
    }
}

/// One worker, until it is told to leave. Only one worker of a process obeys orders.
fn live(job: &Job, job_name: &str, number: u64, obeys: bool) -> Result<()> {
    let mut worker = job.worker()?;
    worker.leave_clocks();
    let life = new_life(number);
    say(&Record::Begun { life, area: number });
    let mut owned = own(&mut worker, job_name, number)?;
    say(&Record::Owns { area: number, epoch: owned.epoch(), life });
    let mut witnesses: Vec<Witness> =
        (0..AREAS.len() as u64).map(|number| Witness { life, number, area: None, last: None }).collect();
    let mut end = None;
    for turn in 0u64.. {
        if ENOUGH.load(Ordering::Relaxed) {
            break;
        }
        if obeys && let Some(order) = next_order() {
            obey(&order, &mut worker, &mut end)?;
        }
        let next = owned.area().newest_version().unwrap_or_default().counter + 1;
        let now = match end {
            Some(End::Log) => next % 3 == 2,
            Some(_) => next % 3 != 2,
            None => false,
        };
        content::write(&mut owned, &worker, number, life, &mut || match end {
            Some(End::Panic) if now => std::panic::resume_unwind(Box::new("on order")),
            Some(_) if now => system::kill_self(),
            _ => {}
        })?;
        match (turn + number) % 4 {
            0 => worker.service()?,
            1 => worker.sync_area(&owned.area()).map(drop)?,
            _ => worker.sync().map(drop)?,
        }
        for witness in &mut witnesses {
            witness.look(&worker)?;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    Ok(())
}

fn next_order() -> Option<String> {
    let mut orders = ORDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if orders.is_empty() { None } else { Some(orders.remove(0)) }
}

fn obey(order: &str, worker: &mut Worker, end: &mut Option<End>) -> Result<()> {
    let (what, number) = order.split_once(' ').unwrap_or((order, "0"));
    let number: u64 = number.parse().unwrap_or(0);
    match what {
        "die-in-write" => *end = Some(End::Write),
        "die-in-log" => *end = Some(End::Log),
        "panic" => *end = Some(End::Panic),
        #[cfg(feature = "fault-points")]
        "die-at" => hectare_dsm::fault::die_after(number as u32),
        "eat" => crate::limits::eat(),
        "idle" => std::thread::sleep(Duration::from_millis(number)),
        "fork" => say(&Record::Answer(forked(worker))),
        "storm" => say(&Record::Answer(storm(worker, number)?)),
        other => say(&Record::Failed(format!("unknown order {other:?}"))),
    }
    Ok(())
}

/// The calls that a forked child tries with its parent's worker.
fn forked(worker: &mut Worker) -> String {
    let code = system::in_forked_child(|| {
        let refused = |result: Result<()>| matches!(result, Err(Error::ForkedChild));
        let all = refused(worker.service())
            && refused(worker.sync().map(drop))
            && refused(worker.attach::<u64>("load/0").map(drop))
            && refused(worker.job().worker().map(drop));
        u8::from(!all)
    });
    match code {
        Ok(0) => "refused".into(),
        Ok(code) => format!("the child got through: {code}"),
        Err(error) => format!("no child: {error}"),
    }
}

/// Attaches, subscribes and observes, and lets go, over and over.
fn storm(worker: &mut Worker, turns: u64) -> Result<String> {
    let job = worker.job();
    for turn in 0..turns {
        let area = worker.attach::<u64>(&format!("load/{}", turn % AREAS.len() as u64))?;
        let notification = area.notify()?;
        let observer = job.observer()?;
        let pinned = observer.read(&area)?;
        if let Err(torn) = content::check(&pinned, pinned.version(), turn % AREAS.len() as u64) {
            return Ok(format!("torn: {torn}"));
        }
        drop(pinned);
        drop((observer, notification));
        area.detach();
        if turn % 16 == 0 {
            worker.service()?;
        }
    }
    Ok(format!("{turns} times"))
}
