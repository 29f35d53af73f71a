//! Faults 1 to 4, 8 to 12: processes that die, or seem to.
use crate::constants::JOB;
use crate::host::{descriptors, until};
use crate::promises::{Promise, Violation};
use crate::stage::{Stage, Verdict};
use crate::system;
use anyhow::{Context, Result, ensure};
use hectare_testing::Random;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Lets one member die and the survivors go on, and puts another in its place.
fn death(stage: &mut Stage, deadly: impl FnOnce(&mut Stage, usize) -> Result<()>) -> Result<()> {
    let index = stage.any();
    let (before, deaths) = (stage.stats()?, stage.deaths()?);
    deadly(stage, index)?;
    stage.load.members[index].wait()?;
    stage.survivors_go_on(Instant::now(), &[index])?;
    stage.seen_dead(&before, deaths)?;
    stage.replace(index)
}

fn deaths(
    stage: &mut Stage,
    times: usize,
    mut deadly: impl FnMut(&mut Stage, usize) -> Result<()>,
) -> Result<Verdict> {
    let before = stage.stats()?;
    for _ in 0..times {
        death(stage, &mut deadly)?;
    }
    let now = stage.stats()?;
    Ok(Verdict::Held(format!(
        "{} deaths, {} claims, {} chunks taken over",
        now.deaths - before.deaths,
        now.claims - before.claims,
        now.takeovers - before.takeovers
    )))
}

/// 1: kill -9 in the middle of a write.
pub(crate) fn in_write(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(2, 20);
    deaths(stage, times, |stage, index| stage.load.members[index].order("die-in-write"))
}

/// 2: kill -9 between writing and logging.
pub(crate) fn in_log(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(2, 20);
    deaths(stage, times, |stage, index| stage.load.members[index].order("die-in-log"))
}

/// 3: kill -9 at a step of a round: at fault points where the library has them, else at any time.
pub(crate) fn in_round(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(3, 100);
    let verdict = deaths(stage, times, |stage, index| {
        let step = stage.random.below(300);
        if cfg!(feature = "fault-points") {
            stage.load.members[index].order(&format!("die-at {step}"))
        } else {
            std::thread::sleep(Duration::from_micros(step as u64 * 30));
            Ok(stage.load.members[index].child.kill()?)
        }
    })?;
    let Verdict::Held(what) = verdict else { return Ok(verdict) };
    let how = if cfg!(feature = "fault-points") { "at fault points" } else { "at random times" };
    Ok(Verdict::Held(format!("{what}; {how}")))
}

/// The role of a process that is killed while it attaches.
pub(crate) fn attacher(points: &str) -> Result<()> {
    #[cfg(feature = "fault-points")]
    hectare_dsm::fault::die_after(points.parse()?);
    #[cfg(not(feature = "fault-points"))]
    let _ = points;
    let job = hectare_dsm::Job::connect(JOB)?;
    let mut worker = job.worker()?;
    let mut owned = worker.create::<u64>(format!("scratch/{}", std::process::id()), 3000)?;
    owned.write(&worker)?.fill(1);
    worker.sync()?;
    owned.delete(&mut worker)?;
    worker.sync()?;
    drop(worker);
    Ok(())
}

/// 4: kill -9 while attaching, and just after.
pub(crate) fn attaching(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(5, 100);
    let before = stage.deaths()?;
    for _ in 0..times {
        let points = if cfg!(feature = "fault-points") { stage.random.below(150) } else { 0 };
        let mut child = stage.host.role(&["attach", &points.to_string()])?.spawn()?;
        std::thread::sleep(Duration::from_micros(stage.random.below(20_000) as u64));
        child.kill()?;
        child.wait()?;
        stage.survivors_go_on(Instant::now(), &[])?;
    }
    let mut left = 0;
    for area in stage.view.areas()? {
        if area.name.starts_with("scratch/") {
            stage.view.delete(&area.name)?;
            left += 1;
        }
    }
    stage.survivors_go_on(Instant::now(), &[])?;
    let deaths = stage.deaths()? - before;
    Ok(Verdict::Held(format!("{times} killed, {deaths} of them as members, {left} areas of theirs deleted")))
}

/// 8: a panic while a write guard is alive; the process goes on with another worker.
pub(crate) fn panic_in_write(stage: &mut Stage) -> Result<Verdict> {
    let (times, before) = (stage.times(2, 20), stage.stats()?);
    for _ in 0..times {
        let index = stage.any();
        stage.load.members[index].order("panic")?;
        let said = stage.load.answer()?;
        ensure!(said == "panicked", Violation::new(Promise::E, format!("instead of a panic: {said}")));
        stage.survivors_go_on(Instant::now(), &[])?;
    }
    let claims = stage.stats()?.claims - before.claims;
    let wanted = times as u64;
    ensure!(claims >= wanted, Violation::new(Promise::G, format!("{claims} claims after {wanted} panics")));
    Ok(Verdict::Held(format!("{times} panics, {claims} claims")))
}

/// 9: a fork without exec: the child is refused, the parent goes on.
pub(crate) fn forked(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(2, 20);
    for _ in 0..times {
        let index = stage.any();
        stage.load.members[index].order("fork")?;
        let said = stage.load.answer()?;
        ensure!(said == "refused", Violation::new(Promise::E, said));
        stage.survivors_go_on(Instant::now(), &[])?;
    }
    Ok(Verdict::Held(format!("{times} children refused")))
}

/// 10: the id of a dead member is another process's before the daemon looks.
pub(crate) fn reused_pid(stage: &mut Stage) -> Result<Verdict> {
    const NEXT: &str = "/proc/sys/kernel/ns_last_pid";
    if std::fs::OpenOptions::new().write(true).open(NEXT).is_err() {
        return Ok(Verdict::Skipped(format!("{NEXT} cannot be written")));
    }
    let index = stage.any();
    let (before, deaths, daemon) = (stage.stats()?, stage.deaths()?, stage.daemon()?.pid());
    system::signal(daemon, libc::SIGSTOP)?;
    let pid = stage.load.members[index].pid();
    let impostor = (|| {
        stage.load.members[index].child.kill()?;
        stage.load.members[index].wait()?;
        for _ in 0..2000 {
            std::fs::write(NEXT, (pid - 1).to_string())?;
            let mut child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn()?;
            if child.id() == pid {
                return anyhow::Ok(Some(child));
            }
            child.kill()?;
            child.wait()?;
        }
        Ok(None)
    })();
    system::signal(daemon, libc::SIGCONT)?;
    let impostor = impostor?;
    let survivors = stage.survivors_go_on(Instant::now(), &[index]);
    let seen = stage.seen_dead(&before, deaths);
    let mut alive = false;
    let got_it = impostor.is_some();
    if let Some(mut impostor) = impostor {
        alive = impostor.try_wait()?.is_none();
        impostor.kill()?;
        impostor.wait()?;
    }
    survivors?;
    seen?;
    stage.replace(index)?;
    if !got_it {
        return Ok(Verdict::Skipped(format!("no process got the id {pid} again")));
    }
    ensure!(alive, Violation::new(Promise::E, "the process that has the dead one's id was killed"));
    Ok(Verdict::Held(format!("death of {pid} seen while another process had the id")))
}

/// 11: a dead member that nobody waits for.
pub(crate) fn zombie(stage: &mut Stage) -> Result<Verdict> {
    for _ in 0..stage.times(1, 10) {
        let index = stage.any();
        let (before, deaths) = (stage.stats()?, stage.deaths()?);
        stage.load.members[index].child.kill()?;
        stage.survivors_go_on(Instant::now(), &[index])?;
        stage.seen_dead(&before, deaths)?;
        let stat = format!("/proc/{}/stat", stage.load.members[index].pid());
        let mut state = String::new();
        // Its connection closes and its mutex is marked a little before that.
        until("a zombie", || {
            state = std::fs::read_to_string(&stat).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        })?;
        ensure!(!state.is_empty(), "it was waited for");
        stage.load.members[index].wait()?;
        stage.replace(index)?;
    }
    Ok(Verdict::Held("seen dead by the job and the daemon while a zombie".into()))
}

/// The role of a process of many workers, or of one that is killed.
pub(crate) fn crowd(job: &str, workers: usize, victim: bool) -> Result<()> {
    let job = hectare_dsm::Job::connect(job)?;
    let enough = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        for _ in 0..workers {
            scope.spawn(|| {
                let mut worker = job.worker().expect("a rank");
                println!("ready");
                while !enough.load(std::sync::atomic::Ordering::Relaxed) {
                    worker.service().expect("rounds go on");
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
        }
        if victim {
            let mut worker = job.worker()?;
            let mut owned = match worker.create::<u64>("victim", 2000) {
                Ok(owned) => owned,
                Err(_) => worker.claim::<u64>("victim")?.owned,
            };
            println!("ready");
            for turn in 0.. {
                owned.write(&worker)?.fill(turn);
                worker.sync()?;
            }
        }
        std::io::stdin().lines().for_each(drop);
        enough.store(true, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    })
}

/// 12: one of 64 workers killed, over and over: no slot, descriptor or byte is lost.
pub(crate) fn one_of_many(stage: &mut Stage) -> Result<Verdict> {
    const MANY: &str = "many";
    let (workers, kills) = (stage.times(15, 63), stage.times(25, 1000));
    let mut random = Random(stage.random.next());
    let settings =
        hectare_wire::JobSettings { workers: Some(workers as u32 + 1), ..crate::stage::settings() };
    let host = &stage.host;
    let create = hectare_wire::Request::Create { job: MANY.into(), settings, keep: true };
    host.connect()?.order(&create)?;
    let ready = |stdout: &mut BufReader<std::process::ChildStdout>| -> Result<()> {
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        ensure!(
            line == "ready\n",
            Violation::new(Promise::E, format!("a worker of {MANY:?} could not begin"))
        );
        Ok(())
    };
    let mut crowds = Vec::new();
    for part in 0..3 {
        let count = (workers + part) / 3;
        let mut command = host.role(&["crowd", MANY, &count.to_string()])?;
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().context("standard output")?);
        for _ in 0..count {
            ready(&mut stdout)?;
        }
        crowds.push((child, stdout));
    }
    let view = host.open(MANY)?;
    let daemon = stage.daemon()?.pid();
    let accounts = || -> Result<_> {
        let line = host.job_line(MANY)?;
        let each: Vec<usize> = crowds.iter().map(|(child, _)| descriptors(child.id())).collect();
        let live = view.workers()?.iter().filter(|info| info.state != hectare_dsm::WorkerState::Dead).count();
        Ok(((line.ranks, line.members, live, view.free_bytes()?), [vec![descriptors(daemon)], each].concat()))
    };
    let mut before = None;
    for kill in 0..=kills {
        let mut command = host.role(&["victim", MANY])?;
        let mut victim = command.stderr(Stdio::inherit()).spawn()?;
        ready(&mut BufReader::new(victim.stdout.take().context("standard output")?))?;
        std::thread::sleep(Duration::from_micros(random.below(3000) as u64));
        victim.kill()?;
        victim.wait()?;
        // The first death leaves the victim's area behind, which later ones take over.
        if kill == 0 {
            until("the first death", || host.job_line(MANY).is_ok_and(|line| line.ranks == workers as u32))?;
            // The daemon closes the connections that asked a moment later.
            until("the accounts to stand still", || {
                std::thread::sleep(Duration::from_millis(20));
                let now = accounts().ok();
                let same = now.is_some() && now == before;
                before = now;
                same
            })?;
        }
    }
    let mut now = None;
    let back = until("the accounts", || {
        now = accounts().ok();
        now.as_ref().zip(before.as_ref()).is_some_and(|((now, open), (before, opened))| {
            // At first, connections may have been on their way out.
            now == before && open.iter().zip(opened).all(|(open, opened)| open <= opened)
        })
    });
    back.map_err(|_| Violation::new(Promise::E, format!("held before {before:?}, held now {now:?}")))?;
    let (line, stats) = (host.job_line(MANY)?, view.stats()?);
    ensure!(
        line.deaths == kills as u64 + 1,
        Violation::new(Promise::G, format!("{} deaths counted", line.deaths))
    );
    for (mut child, stdout) in crowds {
        drop(child.stdin.take());
        let status = child.wait()?;
        ensure!(status.success(), Violation::new(Promise::E, format!("a survivor ended with {status}")));
        drop(stdout);
    }
    drop(view);
    host.connect()?.order(&hectare_wire::Request::Remove { job: MANY.into(), force: false })?;
    Ok(Verdict::Held(format!("{kills} kills in a row beside {workers} workers, {} claims", stats.claims)))
}
