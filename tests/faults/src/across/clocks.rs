//! Faults 40 and 41: wall clocks that jump. Those of the hosts differ from the start, and so do the times since their starts
//! ([`Cluster`](super::cluster::Cluster)).
use super::Stage;
use super::steps::{back, followed, kill_agent};
use anyhow::Result;

const HOUR: i64 = 3600;

/// An hour to and fro, or a day.
fn turn(stage: &mut Stage, host: usize) -> Result<()> {
    let jumps = [HOUR, -HOUR, -HOUR, -24 * HOUR];
    let seconds = jumps[stage.random.below(jumps.len())];
    stage.cluster.jump(host, seconds)
}

/// 40: while everything runs.
pub(crate) fn jump(stage: &mut Stage) -> Result<()> {
    for host in 0..stage.cluster.count() {
        turn(stage, host)?;
    }
    Ok(())
}

/// 40: the next agent begins at an earlier time, maybe, than the one before.
pub(crate) fn jump_before_an_agent(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    turn(stage, host)?;
    let pid = kill_agent(stage, host)?;
    followed(stage, host, pid)
}

/// 40: and who starts it is another daemon, which knows nothing of the time before.
pub(crate) fn jump_before_a_daemon(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    turn(stage, host)?;
    stage.cluster.kill_daemon(host)?;
    stage.cluster.start_daemon(host)?;
    back(stage, host)?;
    let pid = kill_agent(stage, host)?;
    followed(stage, host, pid)
}
