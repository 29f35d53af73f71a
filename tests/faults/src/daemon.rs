//! Faults 13 to 17 and 52: daemons that die and come back, that meet another one, what a killed one left, or a
//! wrong configuration.
use crate::constants::JOB;
use crate::host::{Daemon, Host, until};
use crate::promises::{Promise, Violation};
use crate::stage::{Stage, Verdict};
use anyhow::{Result, bail, ensure};
use hectare_wire::Connection;
use std::time::{Duration, Instant};

/// The one line in which a daemon refuses to begin.
pub(crate) fn refusal(mut daemon: Daemon) -> Result<String> {
    let status = daemon.ends()?;
    // Its last words may be on the way.
    let _ = until("its words", || !daemon.log.text().is_empty());
    let said = daemon.log.text();
    ensure!(status.code() == Some(1), "it ended with {status}: {said}");
    ensure!(said.lines().count() == 1, Violation::new(Promise::G, format!("not one line: {said:?}")));
    Ok(said)
}

/// Starts the next daemon and waits until every member has brought its job.
fn come_back(stage: &mut Stage) -> Result<Duration> {
    let since = Instant::now();
    stage.daemon = Some(stage.host.daemon("")?);
    let host = &stage.host;
    let ranks = crate::constants::AREAS.len() as u32;
    let wanted = stage.load.members.len() as u32;
    let back = until("the members to come back", || {
        host.job_line(JOB).is_ok_and(|line| (line.members, line.ranks) == (wanted, ranks))
    });
    back.map_err(|_| {
        Violation::new(Promise::E, format!("members came back as {:?}", stage.host.job_line(JOB)))
    })?;
    // Workers go on publishing: what was known comes first, so that the daemon's figure can only be larger.
    let known = stage.stats()?.published;
    let told = stage.host.open(JOB)?.stats()?.published;
    ensure!(told >= known, Violation::new(Promise::B, "the next daemon has another memory of the job"));
    Ok(since.elapsed())
}

/// The daemon is gone: workers go on, and who asks for it hears so.
fn without(stage: &mut Stage, since: Instant) -> Result<()> {
    stage.survivors_go_on(since, &[])?;
    match Connection::open(&stage.host.dir) {
        Err(hectare_wire::Error::NoDaemon { .. }) => Ok(()),
        other => bail!("somebody answers for a dead daemon: {other:?}"),
    }
}

/// 13: kill -9 the daemon; meanwhile a worker dies, which the others see without it.
pub(crate) fn killed(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(1, 10);
    let mut slowest = Duration::ZERO;
    for _ in 0..times {
        let Some(daemon) = stage.daemon.take() else { bail!("no daemon runs") };
        daemon.kill()?;
        without(stage, Instant::now())?;
        let (index, deaths) = (stage.any(), stage.stats()?.deaths);
        stage.load.members[index].child.kill()?;
        stage.load.members[index].wait()?;
        stage.survivors_go_on(Instant::now(), &[index])?;
        // The round that was under way may have gone on with what the dead one had done for it.
        let counted = || stage.stats().is_ok_and(|now| now.deaths > deaths);
        until("the death to be counted", counted)
            .map_err(|_| Violation::new(Promise::G, "a death was not counted without the daemon"))?;
        let since = Instant::now();
        stage.daemon = Some(stage.host.daemon("")?);
        // The others bring the job; the one who begins meanwhile waits for it.
        stage.replace(index)?;
        slowest = slowest.max(since.elapsed());
    }
    Ok(Verdict::Held(format!(
        "{times} killed; the workers went on, saw a death, and were back with a new one in {slowest:.0?} at most"
    )))
}

/// 14: the daemon stops and another one begins.
pub(crate) fn restart(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(2, 20);
    let mut slowest = Duration::ZERO;
    for _ in 0..times {
        let Some(daemon) = stage.daemon.take() else { bail!("no daemon runs") };
        ensure!(daemon.terminate()?.success());
        without(stage, Instant::now())?;
        slowest = slowest.max(come_back(stage)?);
        stage.survivors_go_on(Instant::now(), &[])?;
    }
    Ok(Verdict::Held(format!("{times} restarts; all members were back after {slowest:.0?} at most")))
}

/// 15: a daemon in a crash loop.
pub(crate) fn crash_loop(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(8, 100);
    for _ in 0..times {
        drop(stage.daemon.take());
        let life = Duration::from_micros(stage.random.below(40_000) as u64);
        stage.daemon = Some(stage.host.begin_daemon("")?);
        std::thread::sleep(life);
    }
    drop(stage.daemon.take());
    without(stage, Instant::now())?;
    let back = come_back(stage)?;
    stage.survivors_go_on(Instant::now(), &[])?;
    Ok(Verdict::Held(format!("{times} crashes; all members were back after {back:.0?}")))
}

/// 16: a second daemon for the same run directory.
pub(crate) fn second(stage: &mut Stage) -> Result<Verdict> {
    let times = stage.times(1, 20);
    for _ in 0..times {
        let file = stage.host.top().join("second.toml");
        std::fs::write(&file, "")?;
        let (status, _, said) = stage.host.ask(&["daemon", &file.to_string_lossy()])?;
        ensure!(!status.success() && said.contains("another daemon runs"), "{status}: {said}");
        ensure!(said.lines().count() == 1, Violation::new(Promise::G, format!("not one line: {said:?}")));
        let first = stage.daemon()?.pid();
        ensure!(stage.host.answers()? == first, "the first daemon does not answer");
        stage.survivors_go_on(Instant::now(), &[])?;
    }
    Ok(Verdict::Held(format!("{times} refused, the first went on")))
}

/// 17: a daemon after one that was killed, over and over, in the same run directory.
pub(crate) fn leftovers(stage: &mut Stage) -> Result<Verdict> {
    let (host, times) = (Host::new()?, stage.times(3, 50));
    for turn in 0..times {
        let daemon = host.daemon("")?;
        // Another name each time: that of a job whose members may come back is kept for a while.
        let held = hectare_wire::Request::Hold { job: format!("held{turn}") };
        host.connect()?.order(&held)?;
        daemon.kill()?;
        ensure!(host.dir.socket().exists(), "it left no socket, so nothing was tried");
        ensure!(host.connect().is_err());
    }
    let daemon = host.daemon("")?;
    let told = || daemon.log.count("removed the socket of a daemon that was killed") == 1;
    if until("its line in the log", told).is_err() {
        return Err(Violation::new(Promise::G, daemon.log.text()).into());
    }
    ensure!(daemon.terminate()?.success() && !host.dir.socket().exists());
    Ok(Verdict::Held(format!("{times} killed, each followed by a clean start")))
}

/// 52: configurations that are truncated, too large, of unknown keys, contradictory, or no text at all.
pub(crate) fn configurations(stage: &mut Stage) -> Result<Verdict> {
    let host = Host::new()?;
    let mut wrong: Vec<(String, &str)> = vec![
        ("max_jobs = ".into(), "line 1"),
        ("max_jobs = 3\n[limits\nbytes = 3".into(), "line 2"),
        ("max_jbos = 3".into(), "unknown key `max_jbos`; did you mean `max_jobs`?"),
        ("[limits]\nbytes = -1".into(), "line 2"),
        ("[limits]\nbytes = 99999999999999999999999".into(), "line 2"),
        ("[defaults]\nworkers = 9\n[limits]\nworkers = 8".into(), "defaults.workers"),
        ("max_clients = 0".into(), "max_clients"),
        ("version = 2".into(), "unknown key `version`"),
    ];
    let example = hectare_daemon::config::EXAMPLE;
    let large = "# a comment that fills the file\n".repeat(stage.times(10_000, 300_000));
    wrong.push((format!("{large}max_jobs = x"), "line"));
    for _ in 0..stage.times(3, 100) {
        // A prefix that ends inside of a key, of which no other key begins.
        let keys: Vec<usize> = example.match_indices(" = ").map(|(at, _)| at).collect();
        let uncommented: Vec<usize> = keys
            .into_iter()
            .filter(|at| !example[..*at].rsplit('\n').next().unwrap_or("").trim_start().starts_with('#'))
            .collect();
        let at = uncommented[stage.random.below(uncommented.len())];
        wrong.push((example[..at - 1].to_owned(), "line"));
    }
    let count = wrong.len();
    for (config, part) in wrong {
        let said = refusal(host.begin_daemon(&config)?)?;
        ensure!(said.contains(part) && said.contains("hectared.toml"), "{config:.200?}: {said}");
        ensure!(!host.dir.socket().exists(), Violation::new(Promise::E, "a refused daemon left its socket"));
    }
    Ok(Verdict::Held(format!("{count} refused in one line each, nothing left")))
}
