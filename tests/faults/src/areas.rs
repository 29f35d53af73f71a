//! Faults 42, 43, 47, 48, 51, 64: what a program asks of areas and tables that they cannot do.
use crate::constants::JOB;
use crate::content;
use crate::host::{Host, until};
use crate::promises::{Promise, Violation};
use crate::stage::{Stage, Verdict};
use anyhow::{Context, Result, bail, ensure};
use hectare_dsm::{AreaSpec, Error, Job, Tracking};
use hectare_wire::{Connection, JobSettings, Refusal, Reply, Request};
use std::time::{Duration, Instant};

/// This process as a member of a job.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) job: Job,
    /// Ends the membership when it is dropped.
    pub(crate) connection: Connection,
}

impl Guest {
    pub(crate) fn of(host: &Host, job: &str) -> Result<Guest> {
        let connection = host.connect()?;
        match connection.ask(&Request::Attach { job: job.into(), rank: None })? {
            (Reply::Attached { .. }, Some(memory)) => {
                Ok(Guest { job: Job::from_descriptor(memory)?, connection })
            }
            (other, _) => bail!("{other:?} instead of a job"),
        }
    }
}

/// 42: areas deleted while others read, observe and subscribe to them.
pub(crate) fn deleted(stage: &mut Stage) -> Result<Verdict> {
    let guest = Guest::of(&stage.host, JOB)?;
    let mut worker = guest.job.worker()?;
    worker.leave_clocks();
    let times = stage.times(5, 200);
    for turn in 0..times {
        let name = format!("doomed/{turn}");
        let mut owned = worker.create::<u64>(AreaSpec::new(name.as_str()).copies(2), 4000)?;
        content::write(&mut owned, &worker, 9, 1, &mut || ())?;
        worker.sync()?;
        let area = worker.attach::<u64>(&name)?;
        let observer = guest.job.observer()?;
        let (watched, _notification) = (guest.job.attach::<u64>(&name)?, area.notify()?);
        let pinned = observer.read(&watched)?;
        stage.view.delete(&name)?;
        // A pinned copy stays whole until it is let go.
        for _ in 0..3 {
            worker.sync()?;
        }
        content::check(&pinned, pinned.version(), 9).map_err(|what| Violation::new(Promise::A, what))?;
        ensure!(matches!(area.read(&worker), Err(Error::Deleted { .. })), "a deleted area can be read");
        ensure!(matches!(owned.write(&worker), Err(Error::Deleted { .. } | Error::NotOwner { .. })));
        drop(pinned);
        ensure!(matches!(observer.read(&watched), Err(Error::Deleted { .. })));
        ensure!(matches!(worker.attach::<u64>(&name), Err(Error::NoSuchArea { .. })));
        worker.sync()?;
    }
    drop(worker);
    stage.survivors_go_on(Instant::now(), &[])?;
    Ok(Verdict::Held(format!("{times} areas deleted under readers, observers and subscribers")))
}

/// 43: every process subscribes and lets go, over and over.
pub(crate) fn storm(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(200, 10_000);
    for member in &mut stage.load.members {
        member.order(&format!("storm {times}"))?;
    }
    for _ in 0..stage.load.members.len() {
        let said = stage.load.answer()?;
        ensure!(!said.starts_with("torn"), Violation::new(Promise::A, said));
    }
    stage.load.all_go_on(Instant::now(), &[])?;
    Ok(Verdict::Held(format!("{times} times by each of {} processes", stage.load.members.len())))
}

/// 47: areas larger than memory, of size 0, and of a size that overflows.
pub(crate) fn sizes(stage: &mut Stage) -> Result<Verdict> {
    let huge = "huge";
    let settings = JobSettings { bytes: Some(1 << 45), ..crate::stage::settings() };
    stage.host.connect()?.order(&Request::Create { job: huge.into(), settings, keep: false })?;
    let guest = Guest::of(&stage.host, huge)?;
    let mut worker = guest.job.worker()?;
    let free = guest.job.free_bytes()?;
    let bare = |name: &str| AreaSpec::new(name).copies(0).tracking(Tracking::Whole);
    for len in [1usize << 40, 1 << 44, usize::MAX / 8, usize::MAX] {
        match worker.create::<u64>(bare("ocean"), len) {
            Err(Error::AreaTooLong { len: asked, .. }) => ensure!(asked == len, "{asked} asked for {len}"),
            other => bail!("an area of {len} elements: {other:?}"),
        }
    }
    let mut empty = worker.create::<u64>("empty", 0)?;
    empty.write(&worker)?.fill(1);
    worker.sync()?;
    ensure!(empty.area().read(&worker)?.is_empty());
    empty.delete(&mut worker)?;
    for _ in 0..2 {
        worker.sync()?;
    }
    ensure!(guest.job.free_bytes()? == free, Violation::new(Promise::E, "a refused area took memory"));
    Ok(Verdict::Held("refused before memory was taken; an empty area is one".into()))
}

/// 48: every table of a job and of the daemon full, then free again.
pub(crate) fn tables(stage: &mut Stage) -> Result<Verdict> {
    let host = Host::new()?;
    let daemon = host.daemon("max_jobs = 2\nmax_clients = 6\n")?;
    for _ in 0..stage.times(2, 20) {
        let settings = JobSettings { workers: Some(2), areas: Some(3), ..crate::stage::settings() };
        let create = |job: &str| {
            let settings = settings.clone();
            host.connect()?.order(&Request::Create { job: job.into(), settings, keep: true })?;
            anyhow::Ok(())
        };
        let refused = |result: Result<()>, by: &str| match result.map_err(|error| error.downcast()) {
            Err(Ok(hectare_wire::Error::Refused(Refusal::Quota { by: it, .. }))) if it.contains(by) => Ok(()),
            other => bail!("{other:?} instead of a refusal by {by}"),
        };
        create("a")?;
        create("b")?;
        refused(create("c"), "max_jobs")?;
        let (one, two) = (Guest::of(&host, "a")?, Guest::of(&host, "a")?);
        refused(Guest::of(&host, "a").map(drop), "settings of job")?;
        ensure!(one.connection.ask(&Request::Rank).is_err(), "a third rank of two");
        let mut clients = Vec::new();
        while clients.len() < 10 {
            let client = host.connect()?;
            // Whoever comes later may only look.
            match client.order(&Request::Hold { job: "a".into() }) {
                Ok(()) => clients.push(client),
                Err(_) => break,
            }
        }
        ensure!(clients.len() < 10, "max_clients was not reached");
        drop(clients);
        until("connections to be free again", || host.answers().is_ok())?;

        let (mut worker, other) = (one.job.worker()?, two.job.worker()?);
        ensure!(matches!(one.job.worker(), Err(Error::TooManyWorkers { .. })));
        drop(other);
        let areas: Result<Vec<_>, _> = (0..3).map(|n| worker.create::<u64>(format!("{n}"), 10)).collect();
        ensure!(matches!(worker.create::<u64>("3", 10), Err(Error::TooManyAreas { max: 3 })));
        let areas = areas?;
        worker.sync()?;
        let mut observers = Vec::new();
        let full = loop {
            match one.job.observer() {
                Ok(observer) => observers.push(observer),
                Err(error) => break error,
            }
        };
        ensure!(matches!(full, Error::TooManyObservers { max } if max == observers.len()), "{full}");
        let area = areas[0].area();
        let mut pins = Vec::new();
        let full = loop {
            match observers[0].read(&area) {
                Ok(pin) => pins.push(pin),
                Err(error) => break error,
            }
        };
        ensure!(matches!(full, Error::TooManyPins { max } if max == pins.len()), "{full}");
        drop(pins);
        ensure!(observers[0].read(&area).is_ok(), "pins that were let go are taken");
        drop(observers);
        for owned in areas {
            owned.delete(&mut worker)?;
        }
        // Each slot is free after a round that all took part in.
        worker.sync()?;
        worker.sync()?;
        let again = worker.create::<u64>("again", 10).context("a slot of a deleted area")?;
        drop((again, worker, one, two));
        for job in ["a", "b"] {
            let remove = Request::Remove { job: job.into(), force: false };
            until("the job to be free", || host.connect().is_ok_and(|client| client.order(&remove).is_ok()))?;
        }
    }
    ensure!(daemon.terminate()?.success());
    Ok(Verdict::Held("jobs, connections, ranks, areas, observers and pins refused, then free again".into()))
}

/// 51: logs outside of an area, or of nothing: refused, and nothing is written.
pub(crate) fn log_ranges(stage: &mut Stage) -> Result<Verdict> {
    let guest = Guest::of(&stage.host, JOB)?;
    let mut worker = guest.job.worker()?;
    worker.leave_clocks();
    let name = "scratch/ranges";
    let mut owned = worker.create::<u64>(AreaSpec::new(name).copies(2), 1000)?;
    worker.sync()?;
    let before = owned.area().newest_version();
    #[expect(clippy::reversed_empty_ranges, reason = "one of the mistakes")]
    let wrong =
        [0..1001, 1000..1001, 5..usize::MAX, usize::MAX..usize::MAX, 7..3, usize::MAX - 1..usize::MAX];
    let mut refused = 0;
    for range in wrong {
        match owned.log(&worker, range.clone()) {
            Err(Error::OutOfRange { .. }) => refused += 1,
            other => bail!("log of {range:?}: {other:?}"),
        }
        let out = std::panic::AssertUnwindSafe(|| {
            owned.write(&worker).map(|mut guard| guard.range_mut(range.clone()).len())
        });
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        let written = std::panic::catch_unwind(out);
        std::panic::set_hook(hook);
        ensure!(written.is_err(), "a write guard gave out {range:?}");
    }
    worker.sync()?;
    ensure!(
        owned.area().newest_version() == before,
        Violation::new(Promise::A, "a refused log was published")
    );
    ensure!(owned.area().read(&worker)?.iter().all(|value| *value == 0));
    owned.delete(&mut worker)?;
    worker.sync()?;
    Ok(Verdict::Held(format!("{refused} logs refused, nothing published")))
}

/// 64: a forgotten log in check mode: found, named, and published all the same.
pub(crate) fn forgotten_log(stage: &mut Stage) -> Result<Verdict> {
    let job = "checked";
    let settings = JobSettings { check: Some(true), ..crate::stage::settings() };
    stage.host.connect()?.order(&Request::Create { job: job.into(), settings, keep: false })?;
    let guest = Guest::of(&stage.host, job)?;
    let mut worker = guest.job.worker()?;
    let mut owned = worker.create::<u64>(AreaSpec::new("forgetful").copies(2), 10_000)?;
    let times = stage.times(5, 200);
    for turn in 1..=times as u64 {
        let line = stage.random.below(10_000 / 8);
        owned.write(&worker)?.set((line * 8 + 800) % 10_000, turn);
        crate::system::fill_raw(owned.as_mut_ptr(&worker)?, line * 8 + 3, &[turn]);
        worker.sync()?;
        let found = worker.unlogged_writes();
        let named = found.len() == 1
            && found[0].area == "forgetful"
            && found[0].bytes.contains(&((line * 8 + 3) * 8))
            && found[0].rank == worker.rank();
        ensure!(named, Violation::new(Promise::G, format!("found {found:?} instead of line {line}")));
        let published = owned.area().read(&worker)?[line * 8 + 3] == turn;
        ensure!(published, Violation::new(Promise::A, format!("line {line} was not published")));
    }
    let counted = guest.job.stats()?.unlogged_lines;
    ensure!(
        counted == times as u64,
        Violation::new(Promise::G, format!("{counted} lines counted of {times}"))
    );
    drop(worker);
    std::thread::sleep(Duration::from_millis(1));
    Ok(Verdict::Held(format!("{times} of {times} lines named and counted")))
}
