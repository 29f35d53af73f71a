//! Faults 16, 17 and 52: daemons that meet another one, what a killed one left, or a wrong configuration.
use crate::host::{Daemon, Host};
use crate::promises::{Promise, Violation};
use crate::stage::{Stage, Verdict};
use anyhow::{Result, ensure};
use std::time::Instant;

/// The one line in which a daemon refuses to begin.
pub(crate) fn refusal(mut daemon: Daemon) -> Result<String> {
    let status = daemon.ends()?;
    // Its last words may be on the way.
    let _ = crate::host::until("its words", || !daemon.log.text().is_empty());
    let said = daemon.log.text();
    ensure!(status.code() == Some(1), "it ended with {status}: {said}");
    ensure!(said.lines().count() == 1, Violation::new(Promise::G, format!("not one line: {said:?}")));
    Ok(said)
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
    for _ in 0..times {
        let daemon = host.daemon("")?;
        let held = hectare_wire::Request::Hold { job: "held".into() };
        host.connect()?.order(&held)?;
        daemon.kill()?;
        ensure!(host.dir.socket().exists(), "it left no socket, so nothing was tried");
        ensure!(host.connect().is_err());
    }
    let daemon = host.daemon("")?;
    let named = daemon.log.count("removed the socket of a daemon that was killed") == 1;
    ensure!(named, Violation::new(Promise::G, daemon.log.text()));
    ensure!(daemon.terminate()?.success() && !host.dir.socket().exists());
    Ok(Verdict::Held(format!("{times} killed, each followed by a clean start")))
}

/// 52: configurations that are truncated, too large, of unknown keys, contradictory, or no text at all.
pub(crate) fn configurations(stage: &mut Stage) -> Result<Verdict> {
    let host = Host::new()?;
    let mut wrong: Vec<(String, &str)> = vec![
        ("max_jobs = ".into(), "line 1"),
        ("max_jobs = 3\n[limits\nbytes = 3".into(), "line 2"),
        ("max_jbos = 3".into(), "unknown field `max_jbos`"),
        ("[limits]\nbytes = -1".into(), "line 2"),
        ("[limits]\nbytes = 99999999999999999999999".into(), "line 2"),
        ("[defaults]\nworkers = 9\n[limits]\nworkers = 8".into(), "defaults.workers"),
        ("max_clients = 0".into(), "max_clients"),
        ("version = 2".into(), "unknown field `version`"),
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
