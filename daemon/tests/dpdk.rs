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
    let device = "net_af_packet0,iface=eth0";
    format!("[dpdk]\ndevice = \"{device}\"\naddress = \"10.77.0.{}\"\nmtu = {mtu}\n", 200 + host)
}

fn cluster(hosts: usize, mtu: u32) -> Option<Cluster> {
    let ports: Vec<String> = (0..hosts).map(|host| port(host, mtu)).collect();
    Cluster::configured(&ports, &Settings { mtu, ..Settings::default() })
}

fn start(cluster: &Cluster, turns: u32) -> Running {
    let list = cluster.list(1);
    let all = ["--hosts", &list, "--timeout", "20", "--job", "seen"];
    let mut run = Running::start(cluster.command(&all, &in_role(&format!("turns:{turns}"))));
    read_until(&mut run, "turn ");
    run
}

fn over_dpdk(mtu: u32) {
    let Some(cluster) = cluster(2, mtu) else { return };
    let run = start(&cluster, 200);
    for host in 0..2 {
        let it = standing(&cluster, host);
        assert_eq!(
            (it.transport.as_str(), it.address.ip().to_string()),
            ("dpdk", format!("10.77.0.{}", 200 + host))
        );
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
    over_dpdk(1500);
}

#[test]
fn a_job_runs_over_dpdk_at_mtu_9000() {
    over_dpdk(9000);
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

#[test]
fn one_host_may_use_dpdk_and_the_other_udp() {
    let Some(cluster) = Cluster::configured(&[port(0, 1500), String::new()], &Settings::default()) else {
        return;
    };
    let run = start(&cluster, 100);
    let names: Vec<String> = (0..2).map(|host| standing(&cluster, host).transport).collect();
    assert_eq!(names, ["dpdk", "udp"]);
    ends_well(run, &cluster);
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

#[test]
fn a_port_that_does_not_open_is_named_in_its_hosts_log() {
    let wrong = port(1, 1500).replace("iface=eth0", "iface=eth9");
    let Some(cluster) = Cluster::configured(&[port(0, 1500), wrong], &Settings::default()) else { return };
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "3"], &in_role("turns:3"));
    assert!(said.code != 0, "{said:?}");
    let log = cluster.daemons[1].log.lock().unwrap().clone();
    assert!(log.contains("no driver takes it") && log.contains("iface=eth9"), "{log}");
    assert!(!cluster.daemons[0].log.lock().unwrap().contains("no driver takes it"));
    cluster.assert_nothing_is_left();
}

#[test]
fn an_address_that_is_not_the_ports_is_refused_before_anything_starts() {
    let Some(cluster) = cluster(2, 1500) else { return };
    let list = format!("{},{}@10.77.0.2", cluster.name(0), cluster.name(1));
    let said = cluster.run(&["--hosts", &list], "true");
    let part = "the list of hosts has 10.77.0.2 for this one, and its agents use DPDK at 10.77.0.201";
    assert!(said.code != 0 && said.err.contains(part) && said.err.contains(&cluster.name(1)), "{said:?}");
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
        ("device = \"net_tap0\"\naddress = \"10.0.0.1\"\ncard = 1", "unknown field `card`"),
    ] {
        std::fs::write(&file, format!("[dpdk]\n{text}\n")).unwrap();
        let said = host.hectare(&["config", "check", file.to_str().unwrap()]);
        assert!(said.code != 0 && said.err.contains(part), "{text}: {said:?}");
    }
}
