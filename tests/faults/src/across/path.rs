//! Faults of the way between hosts: what of packets is lost, how large they may be, whence they seem to come.
use super::Stage;
use super::steps::{links, share, suffer};
use crate::promises::{Promise, Violation};
use anyhow::Result;
use hectare_hosts::Fault;
use std::time::Duration;

/// The MTU of the devices of the hosts and of the switch, in bytes.
const MTU: u32 = 1500;
/// Packets up to this size acknowledge and tell clocks and names; larger ones have lines of areas in them.
const CONTROL: u16 = 200;

/// 20: bursts of 200 packets.
pub(crate) fn rows(stage: &mut Stage) -> Result<()> {
    let lost = |from, to| Fault::LoseRows { from, to, lost: 200, of: 1000 };
    let faults: Vec<Fault> = links(stage).into_iter().map(|(from, to)| lost(from, to)).collect();
    let time = stage.brief();
    suffer(stage, &faults, time)
}

/// 21: most of one kind is lost, and nothing of the other.
pub(crate) fn sizes(stage: &mut Stage) -> Result<()> {
    match stage.random.below(2) {
        0 => share(stage, &[0.5, 0.9], |from, to, share| Fault::LoseSizes {
            from,
            to,
            share,
            least: 1,
            most: CONTROL,
        }),
        _ => share(stage, &[0.5, 0.9], |from, to, share| Fault::LoseSizes {
            from,
            to,
            share,
            least: CONTROL + 1,
            most: u16::MAX,
        }),
    }
}

/// 28: the path to a host gets narrower, and nobody says so; then it is as before.
pub(crate) fn narrow(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    stage.cluster.network.set_passes(host, 1280)?;
    let went_on = stage.goes_on();
    stage.cluster.network.set_passes(host, MTU)?;
    went_on
}

/// 28: a host's device, and its part of the switch, carry more than those of the others.
pub(crate) fn jumbo(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    stage.cluster.network.set_passes(host, 9000)?;
    stage.cluster.network.set_mtu(host, 9000)?;
    // An agent asks its device when it starts.
    let went_on = super::steps::kill_agent(stage, host)
        .and_then(|pid| super::steps::followed(stage, host, pid))
        .and_then(|()| stage.goes_on());
    stage.cluster.network.set_mtu(host, MTU)?;
    stage.cluster.network.set_passes(host, MTU)?;
    went_on
}

/// 34: what a host sends comes from another address from some moment on, and from a third later.
pub(crate) fn renumbered(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    for to in 0..stage.times(1, 2) as u8 {
        stage.cluster.network.set(&[Fault::Renumber { host, to }])?;
        stage.goes_on()?;
        let others = (0..stage.cluster.count()).filter(|other| *other != host);
        let noticed = others.map(|other| stage.cluster.counted(other, "moved_peers", ""));
        if noticed.sum::<Result<u64>>()? == 0 {
            let what = format!("host {host} has another address, and no agent has counted it");
            return Err(Violation::new(Promise::G, what).into());
        }
    }
    stage.cluster.network.set(&[])?;
    std::thread::sleep(Duration::from_millis(50));
    Ok(())
}
