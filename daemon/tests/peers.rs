//! Looking at agents: `hectare peers`, metrics; and daemons that are started again, whose jobs' agents go on and are looked after.
use crate::areas_on_hosts::{ends_well, in_role, read_until};
use crate::common::cluster::{Cluster, Running};
use crate::common::until;
use hectare_hosts::Fault;
use hectare_wire::{AgentStatus, Socket};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

fn start(cluster: &Cluster, job: &str, role: &str) -> Running {
    start_with(cluster, job, role, &[])
}

fn start_with(cluster: &Cluster, job: &str, role: &str, options: &[&str]) -> Running {
    let list = cluster.list(1);
    let all = [&["--hosts", &list, "--timeout", "20", "--job", job], options].concat();
    let mut run = Running::start(cluster.command(&all, &in_role(role)));
    read_until(&mut run, "turn ");
    run
}

pub(crate) fn standing(cluster: &Cluster, host: usize) -> AgentStatus {
    let said = cluster.hectare(host, &["peers", "seen", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let mut agents: Vec<AgentStatus> = serde_json::from_str(&said.out).unwrap();
    assert_eq!(agents.len(), 1);
    agents.remove(0)
}

/// A scrape of a host's daemon.
pub(crate) fn metrics(cluster: &Cluster, host: usize) -> String {
    let mut stream = UnixStream::connect(cluster.dir(host).metrics()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

pub(crate) fn value(text: &str, sample: &str) -> f64 {
    let found = text.lines().find_map(|line| line.strip_prefix(sample));
    found.unwrap_or_else(|| panic!("no {sample} in\n{text}")).parse().unwrap()
}

#[test]
fn hosts_that_are_told_so_seal_nothing() {
    let Some(cluster) = Cluster::new(2) else { return };
    let run = start_with(&cluster, "seen", "turns:5000", &["--cipher", "none"]);
    for host in 0..2 {
        let it = standing(&cluster, host);
        assert_eq!(it.peers[0].session.as_ref().expect("it is connected").seal, "none");
        // Areas of workers of the other host have an owner, too.
        let checked = cluster.hectare(host, &["check", "seen"]);
        assert!(checked.code == 0 && checked.out.contains("nothing found"), "{checked:?}");
    }
    let of = format!("{{job=\"seen\",peer=\"{}\"}}", cluster.name(1));
    let text = metrics(&cluster, 0);
    assert!(text.contains(&format!("hectare_peer_sealed{of} 0\n")), "{text}");
    ends_well(run, &cluster);
    let said = cluster.run(&["--hosts", &cluster.list(1), "--cipher", "rot13"], "true");
    assert!(said.code == 2 && said.err.contains("expected aes-128-gcm or none"), "{said:?}");
}

#[test]
fn peers_says_how_each_host_is_reached() {
    let Some(cluster) = Cluster::new(3) else { return };
    let run = start(&cluster, "seen", "turns:400");
    for host in 0..3 {
        let it = standing(&cluster, host);
        assert_eq!((it.job.as_str(), usize::from(it.host), it.peers.len()), ("seen", host, 2));
        assert_eq!((it.name.clone(), it.transport.as_str()), (cluster.name(host), "auto"));
        for peer in &it.peers {
            assert_eq!((peer.name.as_str(), peer.link.as_str()), (&*cluster.name(peer.host.into()), "udp"));
            assert!(peer.link_reason.starts_with("this agent "), "{peer:?}");
            let session = peer.session.as_ref().expect("it is connected");
            assert!(session.path_mtu >= 1280 && session.round_trip_ns > 0, "{peer:?}");
            assert!(session.sent_bytes > 0 && session.received_bytes > 0 && session.acked > 0, "{peer:?}");
            assert_eq!(session.seal, "aes-128-gcm");
        }
        let lines = it.counters.iter().find(|(name, cause, _)| name == "lines" && cause == "received");
        assert!(lines.unwrap().2 > 0, "{it:?}");
    }
    // Those who connect and say nothing keep nobody out.
    let place = std::fs::read_dir(cluster.dir(0).path().join("agents")).unwrap().next().unwrap().unwrap();
    let connect = |_| Socket::connect(&place.path()).unwrap().unwrap();
    let _silent: Vec<Socket> = (0..100).map(connect).collect();
    let said = cluster.hectare(0, &["peers"]);
    let line =
        said.out.lines().find(|line| line.contains("10.77.0.2:")).unwrap_or_else(|| panic!("{said:?}"));
    assert!(
        line.starts_with("seen") && line.contains("connected") && line.contains("aes-128-gcm"),
        "{said:?}"
    );
    // One that is stopped is not left out without a word.
    let process = standing(&cluster, 0).pid;
    let agent = Pid::from_raw(process as i32).unwrap();
    kill_process(agent, Signal::STOP).unwrap();
    let said = cluster.hectare(0, &["peers"]);
    kill_process(agent, Signal::CONT).unwrap();
    let named = format!("the agent of process {process} cannot be asked: it does not answer within ");
    assert!(said.err.contains(&named) && !said.out.contains("seen"), "{said:?}");
    let said = cluster.hectare(0, &["top", "seen", "--once", "--interval", "0.3"]);
    let line =
        said.out.lines().find(|line| line.contains("10.77.0.2:")).unwrap_or_else(|| panic!("{said:?}"));
    assert!(line.starts_with("seen") && line.contains("connected") && line.contains("/s"), "{said:?}");
    let said = cluster.hectare(0, &["peers", "other"]);
    assert!(said.code == 4 && said.err.contains("there is no job \"other\""), "{said:?}");
    let text = metrics(&cluster, 0);
    let of = format!("{{job=\"seen\",peer=\"{}\"}}", cluster.name(2));
    for line in [format!("hectare_peer_connected{of} 1"), format!("hectare_peer_sealed{of} 1")] {
        assert!(text.lines().any(|other| other == line), "no {line} in\n{text}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../dist/grafana-dashboard.json");
    let dashboard = std::fs::read_to_string(path).unwrap();
    let words = dashboard.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let shown: Vec<&str> = words.filter(|word| word.starts_with("hectare_peer_")).collect();
    assert!(shown.len() >= 5, "{shown:?}");
    for name in shown {
        assert!(text.contains(&format!("{name}{{")), "no {name}, which the dashboard shows, in\n{text}");
    }
    for name in ["hectare_peer_sent_bytes_total", "hectare_peer_round_trip_seconds"] {
        assert!(value(&text, &format!("{name}{of} ")) > 0.0, "{text}");
    }
    assert!(value(&text, "hectare_agent_lines_total{job=\"seen\",cause=\"sent\"} ") > 0.0, "{text}");
    assert!(text.contains("hectare_scrape_errors_total 0\n"), "{text}");
    // The next agent answers in the place of one that was killed.
    let killed = cluster.kill_agent(1);
    until("another agent that answers", || standing(&cluster, 1).pid != killed as u32);
    ends_well(run, &cluster);
    assert_eq!(cluster.hectare(0, &["peers"]).out.lines().count(), 1, "no agent is left");
}

#[test]
fn a_path_that_becomes_too_narrow_ends_the_job_and_is_named() {
    let Some(mut cluster) = Cluster::new(2) else { return };
    let list = cluster.list(1);
    let all = ["--hosts", &list, "--timeout", "6", "--job", "seen", "--grace-s", "2"];
    let mut run = Running::start(cluster.command(&all, &in_role("turns:1000000")));
    read_until(&mut run, "turn ");
    // Keep-alives still come through.
    cluster.network.set_passes(1, 1000).unwrap();
    std::io::copy(&mut run.out, &mut std::io::sink()).unwrap();
    let code = run.end();
    let said = run.said();
    let named = format!("host {} ({}", cluster.name(1), cluster.network.address(1));
    assert!(said.contains(&named) && said.contains("IP packets of 1228 bytes"), "{said}");
    assert_eq!(code, Some(8), "{said}");
    cluster.assert_nothing_is_left();
}

/// The steps of an area's versions through a host: what happened, to or at which host, with a version.
fn steps(cluster: &Cluster, host: usize, area: &str) -> Vec<serde_json::Value> {
    let said = cluster.hectare(host, &["trace", "seen", area, "--for", "3", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_way_of_a_version_is_told_on_both_hosts() {
    let Some(cluster) = Cluster::new(2) else { return };
    let mut run = start(&cluster, "seen", "turns:100000");
    let times = |steps: &[serde_json::Value], expected: &[&str]| {
        let version = |step: &serde_json::Value| step["version"]["counter"].as_u64().unwrap();
        // Of a version in the middle, so that nothing of it was before the first look or is after the last.
        let complete = steps.iter().map(version).find(|counter| {
            expected.iter().all(|what| steps.iter().any(|it| version(it) == *counter && it["step"] == *what))
        });
        let counter = complete.unwrap_or_else(|| panic!("no version has {expected:?}: {steps:#?}"));
        let of = |what: &str| steps.iter().find(|it| version(it) == counter && it["step"] == what).unwrap();
        expected.iter().map(|what| of(what)["unix_ns"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let there = steps(&cluster, 0, "count/0");
    let at = times(&there, &["published", "picked_up", "sent", "complete_there", "visible_there"]);
    assert!(at.is_sorted(), "{at:?}");
    let sent = there.iter().find(|step| step["step"] == "sent").unwrap();
    assert!(sent["bytes"].as_u64() > Some(0) && sent["packets"].as_u64() > Some(0), "{sent}");
    assert_eq!(sent["host"].as_str().unwrap(), cluster.name(1));
    let here = steps(&cluster, 1, "count/0");
    let at = times(&here, &["begins", "complete", "visible"]);
    assert!(at.is_sorted(), "{at:?}");
    // For people.
    let said = cluster.hectare(1, &["trace", "seen", "count/0", "--for", "1"]);
    let head = format!("area count/0 of host {}, seen by host {}", cluster.name(0), cluster.name(1));
    assert!(said.out.starts_with(&head) && said.out.contains("  visible here"), "{said:?}");
    let said = cluster.hectare(1, &["trace", "seen", "no/area", "--for", "1"]);
    assert!(said.code == 4 && said.err.contains("has no area \"no/area\""), "{said:?}");
    run.signal(rustix::process::Signal::INT);
    run.end();
    cluster.assert_nothing_is_left();
}

#[test]
fn a_host_that_is_away_is_named_with_the_cause() {
    let Some(mut cluster) = Cluster::new(2) else { return };
    let run = start(&cluster, "seen", "turns:400");
    let address = cluster.network.address(1).to_string();
    let both = [Fault::Cut { from: 0, to: 1 }, Fault::Cut { from: 1, to: 0 }];
    cluster.network.set(&both).unwrap();
    until("silence", || cluster.hectare(0, &["peers", "seen"]).out.contains(" silent "));
    let said = cluster.hectare(0, &["peers", "seen"]).out;
    assert!(said.contains(": nothing was heard of it for ") || said.contains(" away "), "{said}");
    until("the session to end", || standing(&cluster, 0).peers[0].session.is_none());
    let said = cluster.hectare(0, &["peers", "seen"]);
    let why = format!("host {} ({address}:", cluster.name(1));
    assert!(said.out.contains(" away ") && said.out.contains(&why), "{said:?}");
    assert!(said.out.contains("nothing was heard of it for too long"), "{said:?}");
    let said = cluster.hectare(0, &["check", "seen"]);
    assert!(said.code == 1 && said.out.contains(&why), "{said:?}");
    cluster.network.set(&[]).unwrap();
    until("the next session", || standing(&cluster, 0).peers[0].sessions > 1);
    ends_well(run, &cluster);
}

/// The next daemon has what the one before knew of the job's hosts, and looks after its agent.
#[test]
fn a_daemon_that_is_started_again_follows_an_agent_that_dies() {
    let Some(mut cluster) = Cluster::new(2) else { return };
    let run = start(&cluster, "seen", "turns:1500");
    let first = standing(&cluster, 0);
    cluster.daemons.remove(0).kill();
    assert_eq!(standing(&cluster, 0).pid, first.pid, "no daemon is needed to ask it");
    cluster.start_daemon(0);
    let log = cluster.daemons.last().unwrap();
    log.wait_for("the agent of an earlier daemon goes on");
    assert_eq!(standing(&cluster, 0).pid, first.pid);
    let killed = cluster.kill_agent(0);
    until("another agent", || cluster.agents(0).first().is_some_and(|other| *other != killed));
    // One that dies while no daemon runs is followed as soon as one does.
    let daemon = cluster.daemons.pop().unwrap();
    daemon.kill();
    let killed = cluster.kill_agent(0);
    until("nobody", || cluster.agents(0).is_empty());
    cluster.start_daemon(0);
    until("another agent", || cluster.agents(0).first().is_some_and(|other| *other != killed));
    assert!(standing(&cluster, 0).boot > first.boot);
    ends_well(run, &cluster);
}
