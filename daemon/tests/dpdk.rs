//! Jobs whose agents reach each other by ports of DPDK: virtual devices on hosts that are network namespaces.
use crate::areas_on_hosts::{ends_well, in_role, read_until};
use crate::common::cluster::{Cluster, Running};
use crate::common::{Host, example, until};
use crate::matrix_completion::ratings_in;
use crate::peers::{metrics, standing, value};
use hectare_hosts::Settings;
use std::process::Command;

/// A port on a host's interface, at an address that its system does not have.
fn port(host: usize, mtu: u32) -> String {
    port_at("eth0", host, mtu)
}

fn port_at(interface: &str, host: usize, mtu: u32) -> String {
    let device = format!("net_af_packet0,iface={interface}");
    format!("[dpdk]\ndevice = \"{device}\"\naddress = \"10.77.0.{}\"\nmtu = {mtu}\n", 200 + host)
}

/// How a host reaches each of the others: the other, the link, and why.
fn links(cluster: &Cluster, host: usize) -> Vec<(u16, String, String)> {
    let it = standing(cluster, host);
    it.peers.into_iter().map(|peer| (peer.host, peer.link, peer.link_reason)).collect()
}

fn link(host: u16, link: &str, why: &str) -> (u16, String, String) {
    (host, link.into(), why.into())
}

const BOTH: &str = "both have a DPDK port on one link";
const PEER_HAS_NONE: &str = "the peer's agent has no DPDK port";
const IN_VAIN: &str = "it could not be reached by DPDK when the session began";

fn cluster(hosts: usize, mtu: u32) -> Option<Cluster> {
    let ports: Vec<String> = (0..hosts).map(|host| port(host, mtu)).collect();
    Cluster::configured(&ports, &Settings { mtu, ..Settings::default() })
}

fn start(cluster: &Cluster, turns: u32) -> Running {
    start_by(cluster, turns, "auto")
}

fn start_by(cluster: &Cluster, turns: u32, transport: &str) -> Running {
    let list = cluster.list(1);
    let all = ["--hosts", &list, "--timeout", "20", "--job", "seen", "--transport", transport];
    let mut run = Running::start(cluster.command(&all, &in_role(&format!("turns:{turns}"))));
    read_until(&mut run, "turn ");
    run
}

fn over_dpdk(mtu: u32, transport: &str) {
    let Some(cluster) = cluster(2, mtu) else { return };
    let run = start_by(&cluster, 200, transport);
    for host in 0..2 {
        let it = standing(&cluster, host);
        let port = it.port.expect("it has a port");
        assert_eq!(
            (it.transport.as_str(), port.ip().to_string()),
            (transport, format!("10.77.0.{}", 200 + host))
        );
        assert_eq!(it.address == port, transport == "dpdk", "{it:?}");
        assert_eq!(links(&cluster, host), [link(1 - host as u16, "dpdk", BOTH)]);
        let counted = |name: &str, cause: &str| {
            let found = it.counters.iter().find(|(n, c, _)| (n.as_str(), c.as_str()) == (name, cause));
            found.unwrap_or_else(|| panic!("no {name} {cause} in {it:?}")).2
        };
        assert!(counted("port_frames", "received") > 0 && counted("port_frames", "sent") > 0, "{it:?}");
        assert_eq!(
            (counted("port_ignored", "broken"), counted("port_ignored", "address_clash")),
            (0, 0),
            "{it:?}"
        );
        let text = metrics(&cluster, host);
        assert!(
            value(&text, "hectare_agent_port_bytes_total{job=\"seen\",cause=\"received\"} ") > 0.0,
            "{text}"
        );
    }
    // Probes as large as the port's frames find the size that the path carries.
    until("large packets", || {
        standing(&cluster, 0).peers[0].session.as_ref().is_some_and(|it| it.path_mtu >= mtu * 9 / 10)
    });
    ends_well(run, &cluster);
}

#[test]
fn a_job_runs_over_dpdk_at_mtu_1500() {
    over_dpdk(1500, "auto");
}

#[test]
fn a_job_runs_over_dpdk_at_mtu_9000() {
    over_dpdk(9000, "dpdk");
}

/// The port of a killed agent is the next one's.
#[test]
fn a_killed_agent_leaves_its_port_to_the_next() {
    let Some(cluster) = cluster(2, 1500) else { return };
    let mut run = start(&cluster, 300);
    for host in [0, 1] {
        let killed = cluster.kill_agent(host);
        until("another agent", || cluster.agents(host).iter().any(|pid| *pid != killed));
        read_until(&mut run, "turn ");
    }
    ends_well(run, &cluster);
}

/// A daemon that is killed in the middle of a job leaves the agent its port; the next daemon follows it, also when that has died
/// while there was none.
#[test]
fn a_killed_daemon_leaves_the_agent_its_dpdk_port_and_the_next_follows() {
    let Some(mut cluster) = cluster(2, 1500) else { return };
    let mut run = start(&cluster, 1000);
    let first = standing(&cluster, 0);
    cluster.daemons.remove(0).kill();
    read_until(&mut run, "turn ");
    let now = standing(&cluster, 0);
    assert_eq!((now.pid, links(&cluster, 0)), (first.pid, vec![link(1, "dpdk", BOTH)]));
    cluster.start_daemon(0);
    let daemon = cluster.daemons.pop().unwrap();
    daemon.wait_for("the agent of an earlier daemon goes on");
    read_until(&mut run, "turn ");
    daemon.kill();
    let killed = cluster.kill_agent(0);
    until("nobody", || cluster.agents(0).is_empty());
    cluster.start_daemon(0);
    until("another agent", || cluster.agents(0).first().is_some_and(|other| *other != killed));
    read_until(&mut run, "turn ");
    until("the link", || cluster.hectare(0, &["peers", "seen"]).out.contains("is reached by dpdk"));
    ends_well(run, &cluster);
}

/// Two hosts with a port reach each other by it, and the third one by UDP.
#[test]
fn the_link_is_chosen_for_each_peer_and_it_is_said_why_with_dpdk() {
    let ports = [port(0, 1500), port(1, 1500), String::new()];
    let Some(cluster) = Cluster::configured(&ports, &Settings::default()) else { return };
    let run = start(&cluster, 200);
    let third = link(2, "udp", PEER_HAS_NONE);
    assert_eq!(links(&cluster, 0), [link(1, "dpdk", BOTH), third.clone()]);
    assert_eq!(links(&cluster, 1), [link(0, "dpdk", BOTH), third]);
    let why = "this agent has no DPDK port";
    assert_eq!(links(&cluster, 2), [link(0, "udp", why), link(1, "udp", why)]);
    let said = cluster.hectare(0, &["peers", "seen"]);
    for (host, part) in
        [(1, format!("is reached by dpdk: {BOTH}")), (2, format!("is reached by udp: {PEER_HAS_NONE}"))]
    {
        assert!(said.out.contains(&format!("host {} {part}", cluster.name(host))), "{said:?}");
    }
    ends_well(run, &cluster);
    // A job that is to use UDP alone does, whatever there is.
    let run = start_by(&cluster, 50, "udp");
    let why = "this agent uses UDP alone (transport = \"udp\")";
    assert_eq!(links(&cluster, 0), [link(1, "udp", why), link(2, "udp", why)]);
    assert_eq!(standing(&cluster, 0).port, None);
    ends_well(run, &cluster);
    // One that is to use DPDK alone says which host has none, before anything starts.
    let said = cluster.run(&["--hosts", &cluster.list(1), "--transport", "dpdk"], "true");
    let part = "its agents are to reach others by DPDK alone (transport = \"dpdk\"), and there is no [dpdk] in the configuration";
    assert!(said.code != 0 && said.err.contains(part) && said.err.contains(&cluster.name(2)), "{said:?}");
    cluster.assert_nothing_is_left();
}

/// A host that is to use DPDK alone, by its configuration, and one that has no port and need not: the first one refuses.
#[test]
fn a_host_with_dpdk_alone_names_the_peer_without_a_port() {
    let alone = format!("transport = \"dpdk\"\n{}", port(0, 1500));
    let Some(cluster) = Cluster::configured(&[alone, String::new()], &Settings::default()) else { return };
    let said = cluster.run(&["--hosts", &cluster.list(1)], "true");
    let part = format!("{} has no DPDK port", cluster.name(1));
    assert!(said.code != 0 && said.err.contains(&part) && said.err.contains(&cluster.name(0)), "{said:?}");
    cluster.assert_nothing_is_left();
}

/// A port whose link leads nowhere: with "auto" its peers are reached by UDP, with "dpdk" the job ends and names the peer.
#[test]
fn a_peer_that_does_not_answer_by_dpdk_is_reached_by_udp_or_named() {
    let ports = [port(0, 1500), port_at("lo", 1, 1500)];
    let Some(cluster) = Cluster::configured(&ports, &Settings::default()) else { return };
    let run = start(&cluster, 50);
    for host in 0..2 {
        assert_eq!(links(&cluster, host), [link(1 - host as u16, "udp", IN_VAIN)]);
    }
    ends_well(run, &cluster);
    let list = cluster.list(1);
    let said = cluster.run(&["--hosts", &list, "--timeout", "3", "--transport", "dpdk"], &in_role("turns:3"));
    assert!(said.code != 0 && said.err.contains("it is to be reached by DPDK alone"), "{said:?}");
    assert!(said.err.contains("10.77.0.20") && said.err.contains("nobody answers"), "{said:?}");
    cluster.assert_nothing_is_left();
}

/// The application, on three hosts, learns to the last digit what three threads learn.
fn learns_the_same(mtu: u32) {
    let Some(cluster) = cluster(3, mtu) else { return };
    let (host, program) = (Host::new(), example("matrix_completion"));
    let data = ratings_in(cluster.top.path());
    let common = |out: &str| {
        let out = cluster.top.path().join(out);
        let (data, out) = (data.display(), out.display());
        format!("--ratings {data} --rank 8 --batch 150 --mode areas --epochs 3 --quiet --out {out}")
    };
    let losses = |out: &str| {
        let text = std::fs::read_to_string(cluster.top.path().join(out).join("loss.csv")).unwrap();
        // The fourth is a time.
        let fields = |line: &str| line.split(',').take(3).collect::<Vec<_>>().join(",");
        text.lines().skip(1).map(fields).collect::<Vec<String>>()
    };
    let mut alone: Command = host.command(program.to_str().unwrap());
    let status = alone.args(common("threads").split(' ')).args(["--workers", "3"]).status().unwrap();
    assert!(status.success());
    let said = cluster.run(
        &["--hosts", &cluster.list(1), "--timeout", "30"],
        &format!("exec {} {}", program.display(), common("hosts")),
    );
    assert_eq!(said.code, 0, "{said:?}");
    let expected = losses("threads");
    assert_eq!((expected.len(), losses("hosts")), (3, expected), "{said:?}");
    cluster.assert_nothing_is_left();
}

#[test]
fn three_hosts_learn_what_three_threads_do_at_mtu_1500() {
    learns_the_same(1500);
}

#[test]
fn three_hosts_learn_what_three_threads_do_at_mtu_9000() {
    learns_the_same(9000);
}

/// With "auto" the job goes on by UDP, and the agent says why; with "dpdk" it ends, and the caller hears which host it was.
#[test]
fn a_dpdk_port_that_does_not_open_is_named() {
    let ports = [port(0, 1500), port_at("eth9", 1, 1500)];
    let Some(cluster) = Cluster::configured(&ports, &Settings::default()) else { return };
    let run = start(&cluster, 100);
    assert_eq!(links(&cluster, 0), [link(1, "udp", IN_VAIN)]);
    let (_, by, why) = links(&cluster, 1).remove(0);
    assert!(by == "udp" && why.contains("does not open") && why.contains("iface=eth9"), "{why}");
    ends_well(run, &cluster);
    let said = cluster
        .run(&["--hosts", &cluster.list(1), "--timeout", "20", "--transport", "dpdk"], &in_role("turns:3"));
    let part = format!("host {} (10.77.0.201:", cluster.name(1));
    assert!(
        said.code != 0 && said.err.contains(&part) && said.err.contains("no driver takes it"),
        "{said:?}"
    );
    let log = |host: usize| cluster.daemons[host].log.lock().unwrap().clone();
    assert!(log(1).contains("no driver takes it") && !log(0).contains("no driver takes it"));
    cluster.assert_nothing_is_left();
}

#[test]
fn a_configuration_that_cannot_be_is_refused_at_the_start() {
    let host = Host::new();
    let file = host.top.path().join("hectared.toml");
    for (text, part) in [
        ("device = \"net_tap0\"", "missing field `address`"),
        (
            "device = \"net_af_packet0\"\naddress = \"10.0.0.1\"",
            "dpdk: `net_af_packet0`: it needs an interface",
        ),
        ("device = \"net_tap0\"\naddress = \"10.0.0.1\"\nmtu = 100", "dpdk: MTU 100"),
        ("device = \"net_tap0\"\naddress = \"10.0.0.1\"\ncore = 100000", "dpdk: core 100000"),
        ("device = \"net_tap0\"\naddress = \"10.0.0.1\"\ncard = 1", "unknown key `dpdk.card`"),
    ] {
        std::fs::write(&file, format!("[dpdk]\n{text}\n")).unwrap();
        let said = host.hectare(&["config", "check", file.to_str().unwrap()]);
        assert!(said.code != 0 && said.err.contains(part), "{text}: {said:?}");
    }
}
