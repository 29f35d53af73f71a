//! Faults of a job on several hosts that it has to survive. Each heals what it did.
use super::cluster::Cluster;
use super::steps::{agent, back, followed, kill_agent, links, share, suffer};
use super::{Stage, clocks, outsiders, path, traitor};
use crate::host::until;
use crate::promises::{Promise, Violation};
use crate::system;
use anyhow::Result;
use hectare_hosts::Fault;
use std::time::Duration;

/// A fault, and what it does to the stage.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// Which of the fault list it is of.
    pub(crate) number: u8,
    pub(crate) name: &'static str,
    pub(crate) happen: fn(&mut Stage) -> Result<()>,
}

const fn trouble(number: u8, name: &'static str, happen: fn(&mut Stage) -> Result<()>) -> Trouble {
    Trouble { number, name, happen }
}

/// Those that there are.
pub(crate) const TROUBLES: &[Trouble] = &[
    trouble(19, "loss", |stage| {
        share(stage, &[0.01, 0.1, 0.5], |from, to, share| Fault::Lose { from, to, share })
    }),
    trouble(20, "200 packets lost in a row", path::rows),
    trouble(21, "only control lost, or only data", path::sizes),
    trouble(22, "reordering", |stage| {
        share(stage, &[0.1, 0.5], |from, to, share| Fault::Detour { from, to, share })
    }),
    trouble(23, "duplicates", |stage| {
        share(stage, &[0.05, 0.5], |from, to, share| Fault::Duplicate { from, to, share })
    }),
    trouble(24, "corruption", |stage| {
        share(stage, &[0.02, 0.2], |from, to, share| Fault::Corrupt { from, to, share })
    }),
    trouble(24, "all of these", everything),
    trouble(25, "a link cut one way", |stage| cut(stage, false)),
    trouble(26, "a link cut both ways", |stage| cut(stage, true)),
    trouble(26, "a host cut off for a while", part),
    trouble(27, "a link that comes and goes", flapping),
    trouble(28, "a path that carries smaller packets than before", path::narrow),
    trouble(28, "jumbo packets on one side only", path::jumbo),
    trouble(29, "a slow link", slow),
    trouble(33, "an agent killed", agent_killed),
    trouble(33, "all agents killed", agents_killed),
    trouble(33, "an agent killed over and over", agent_crash_loop),
    trouble(33, "an agent killed while its host is cut off", agent_killed_in_the_dark),
    trouble(34, "a host whose address changes", path::renumbered),
    trouble(40, "the wall clock jumps", clocks::jump),
    trouble(40, "the wall clock jumps, then an agent is killed", clocks::jump_before_an_agent),
    trouble(40, "the wall clock jumps, then daemon and agent are killed", clocks::jump_before_a_daemon),
    trouble(57, "garbage and half-open connections at a host's sockets", outsiders::control),
    trouble(58, "datagrams of no meaning", outsiders::garbage),
    trouble(58, "frames of no meaning, sealed by a host of another job", traitor::fuzzed),
    trouble(59, "frames with hostile numbers, of such a host", traitor::hostile),
    trouble(63, "such a host that writes areas of others", traitor::foreign),
    trouble(60, "a caller with another key", outsiders::wrong_key),
    trouble(60, "packets that come again, also to the next agent", outsiders::replay),
    trouble(61, "a flood of greetings", outsiders::flood),
    trouble(62, "callers of other versions", outsiders::versions),
    trouble(6, "an agent stopped for a while", agent_stopped),
    trouble(6, "a worker stopped for a while", worker_stopped),
    trouble(13, "a daemon killed and started", daemon_killed),
    trouble(13, "a daemon killed, its agent too, then started", daemon_and_agent_killed),
    trouble(13, "a daemon killed and started, then its agent killed", daemon_then_agent_killed),
];

fn everything(stage: &mut Stage) -> Result<()> {
    let faults = links(stage).into_iter().flat_map(|(from, to)| {
        let share = 0.05;
        [
            Fault::Lose { from, to, share },
            Fault::Duplicate { from, to, share },
            Fault::Corrupt { from, to, share },
            Fault::Detour { from, to, share },
        ]
    });
    let (faults, time) = (faults.collect::<Vec<_>>(), stage.brief());
    suffer(stage, &faults, time)
}

fn cut(stage: &mut Stage, both: bool) -> Result<()> {
    let links = links(stage);
    let (from, to) = links[stage.random.below(links.len())];
    let mut faults = vec![Fault::Cut { from, to }];
    if both {
        faults.push(Fault::Cut { from: to, to: from });
    }
    let time = stage.brief();
    suffer(stage, &faults, time)
}

/// Everything to and from a host is lost.
pub(crate) fn all_of(stage: &Stage, host: usize) -> Vec<Fault> {
    let of = links(stage).into_iter().filter(|(from, to)| *from == host || *to == host);
    of.map(|(from, to)| Fault::Cut { from, to }).collect()
}

fn part(stage: &mut Stage) -> Result<()> {
    let (host, time) = (stage.any_host(), stage.brief());
    let faults = all_of(stage, host);
    suffer(stage, &faults, time)
}

fn flapping(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    let faults = all_of(stage, host);
    for _ in 0..stage.times(5, 15) {
        suffer(stage, &faults, Duration::from_millis(100))?;
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn slow(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    stage.cluster.network.limit(host, 1_000_000)?;
    std::thread::sleep(stage.brief());
    stage.cluster.network.unlimit(host)?;
    stage.load()?.check()
}

fn agent_killed(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    let pid = kill_agent(stage, host)?;
    followed(stage, host, pid)?;
    let named = || stage.cluster.said(host).contains("the agent has ended and is started again");
    until("a line of the log", named).map(drop).map_err(|_| {
        Violation::new(Promise::G, format!("the log of host {host} does not name the agent's end")).into()
    })
}

fn agents_killed(stage: &mut Stage) -> Result<()> {
    let killed: Vec<(usize, u32)> =
        (0..stage.cluster.count()).map(|host| Ok((host, kill_agent(stage, host)?))).collect::<Result<_>>()?;
    killed.into_iter().try_for_each(|(host, pid)| followed(stage, host, pid))
}

fn agent_crash_loop(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    for _ in 0..stage.times(3, 5) {
        let pid = kill_agent(stage, host)?;
        followed(stage, host, pid)?;
        std::thread::sleep(Duration::from_millis(stage.random.below(60) as u64));
    }
    Ok(())
}

/// Stops a process for a while.
fn stop(stage: &mut Stage, pid: u32) -> Result<()> {
    system::signal(pid, libc::SIGSTOP)?;
    until("it to stand still", || Cluster::is_stopped(pid))?;
    std::thread::sleep(stage.brief());
    Ok(system::signal(pid, libc::SIGCONT)?)
}

fn agent_stopped(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    let pid = agent(stage, host)?;
    stop(stage, pid)
}

fn worker_stopped(stage: &mut Stage) -> Result<()> {
    let size = stage.load()?.size();
    let rank = stage.random.below(size);
    let pid = stage.load()?.pid(rank);
    stop(stage, pid)
}

fn daemon_killed(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    stage.cluster.kill_daemon(host)?;
    stage.goes_on()?;
    stage.cluster.start_daemon(host)?;
    back(stage, host)
}

fn daemon_and_agent_killed(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    stage.cluster.kill_daemon(host)?;
    kill_agent(stage, host)?;
    stage.cluster.start_daemon(host)?;
    back(stage, host)
}

fn daemon_then_agent_killed(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    stage.cluster.kill_daemon(host)?;
    stage.cluster.start_daemon(host)?;
    back(stage, host)?;
    kill_agent(stage, host).map(drop)
}

fn agent_killed_in_the_dark(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    let faults = all_of(stage, host);
    stage.cluster.network.set(&faults)?;
    let pid = kill_agent(stage, host)?;
    followed(stage, host, pid)?;
    std::thread::sleep(stage.brief());
    Ok(stage.cluster.network.set(&[])?)
}
