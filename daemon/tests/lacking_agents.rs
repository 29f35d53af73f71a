//! Agents that are started again and lack what they cannot do without: the key, or their port.
use crate::areas_on_hosts::{ends_well, in_role, read_until};
use crate::common::cluster::{Cluster, Running};
use crate::common::until;
use crate::peers::standing;
use rustix::process::{Pid, Signal, kill_process};
use std::net::{SocketAddr, UdpSocket};

/// After so many seconds others give up a host that is silent.
const SILENCE: u32 = 8;

fn start(cluster: &Cluster, turns: u32) -> Running {
    let (list, silence) = (cluster.list(1), SILENCE.to_string());
    let all = ["--hosts", &list, "--timeout", &silence, "--job", "seen", "--grace-s", "2"];
    let mut run = Running::start(cluster.command(&all, &in_role(&format!("turns:{turns}"))));
    read_until(&mut run, "turn ");
    run
}

/// The run ends, and says what the agent of host 1 lacks.
fn ends_since(cluster: &Cluster, mut run: Running, what: &str) {
    std::io::copy(&mut run.out, &mut std::io::sink()).unwrap();
    let code = run.end();
    let said = run.said();
    let named = format!("host {} ({}", cluster.name(1), cluster.network.address(1));
    assert!(said.contains(&named) && said.contains(what), "{said}");
    assert_eq!(code, Some(8), "{said}");
    cluster.assert_nothing_is_left();
}

#[test]
fn an_agent_whose_key_is_gone_ends_the_job_with_the_reason() {
    let Some(cluster) = Cluster::new(2) else { return };
    let run = start(&cluster, 1_000_000);
    std::fs::write(cluster.key(1), "no key").unwrap();
    cluster.kill_agent(1);
    ends_since(&cluster, run, "the key file ");
}

#[test]
fn a_key_that_comes_back_is_taken() {
    let Some(cluster) = Cluster::new(2) else { return };
    let run = start(&cluster, 2000);
    let (key, kept) = (cluster.key(1), cluster.top.path().join("kept"));
    std::fs::rename(&key, &kept).unwrap();
    let killed = cluster.kill_agent(1);
    cluster.daemons[1].wait_for("the key file ");
    std::fs::rename(&kept, &key).unwrap();
    until("another agent that answers", || {
        cluster.agents(1).first().is_some_and(|agent| *agent != killed)
            && cluster.hectare(1, &["peers", "seen"]).code == 0
    });
    ends_well(run, &cluster);
}

/// Kills the agent of host 1, and takes its port before the next one.
fn take_port(cluster: &Cluster) -> UdpSocket {
    let address = SocketAddr::new(cluster.network.address(1).into(), standing(cluster, 1).address.port());
    let daemon = Pid::from_child(&cluster.daemons[1].child);
    kill_process(daemon, Signal::STOP).unwrap();
    cluster.kill_agent(1);
    let mut socket = None;
    until("the port", || {
        socket = cluster.network.run_on(1, || UdpSocket::bind(address)).unwrap().ok();
        socket.is_some()
    });
    kill_process(daemon, Signal::CONT).unwrap();
    socket.unwrap()
}

#[test]
fn an_agent_whose_port_is_taken_for_a_moment_comes_back() {
    let Some(cluster) = Cluster::new(2) else { return };
    let run = start(&cluster, 2000);
    let socket = take_port(&cluster);
    cluster.daemons[1].wait_for("Address already in use");
    drop(socket);
    ends_well(run, &cluster);
}

#[test]
fn an_agent_whose_port_stays_taken_ends_the_job_with_the_reason() {
    let Some(cluster) = Cluster::new(2) else { return };
    let run = start(&cluster, 1_000_000);
    let _socket = take_port(&cluster);
    ends_since(&cluster, run, "Address already in use");
}
