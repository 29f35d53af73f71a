//! The cost of areas on two hosts, beside that of the network by itself: the same veth pair, in turns. The hosts are network
//! namespaces with a daemon each; needs root.
//!
//! `cargo bench -p hectare-daemon --bench hosts [-- barrier|visible|handed|given|whole [MTU]|sparse|idle|alone|loops|slow|stencil|rows|far|plan]`
mod alone;
#[path = "../../tests/common/mod.rs"]
mod common;
mod far;
mod given;
mod latency;
mod local;
mod loops;
mod peers;
mod ping;
mod planned;
mod relay;
mod roles;
mod rows;
mod stencil;
mod support;
mod volume;

use common::cluster::Cluster;
use hectare_hosts::Settings;
use hectare_testing::processor;

/// Measurements of each kind, in turn with the others.
const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [word, role, rest @ ..] = &arguments[..]
        && word == "role"
    {
        return roles::play(role, rest);
    }
    let only = arguments.first().map(String::as_str);
    println!("two network namespaces, {}", processor());
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    for case in latency::CASES.iter().filter(|case| is_wanted(case.name)) {
        let Some(cluster) = hosts(1500) else { return };
        latency::measure(case, &cluster);
    }
    for mtu in [9000, 1500].into_iter().filter(|_| is_wanted("given")) {
        let Some(cluster) = hosts(mtu) else { return };
        given::measure(&cluster, mtu);
    }
    let mtu: Option<u32> = arguments.get(1).map(|mtu| mtu.parse().expect("an MTU"));
    let is_asked_for = |other: &u32| is_wanted("whole") && mtu.is_none_or(|mtu| mtu == *other);
    for mtu in [9000, 1500].into_iter().filter(is_asked_for) {
        let Some(cluster) = hosts(mtu) else { return };
        volume::whole(&cluster, mtu);
    }
    if is_wanted("sparse") {
        let Some(cluster) = hosts(1500) else { return };
        volume::sparse(&cluster);
    }
    if is_wanted("alone") {
        let Some(cluster) = hosts(1500) else { return };
        alone::measure(&cluster);
    }
    for mtu in [9000, 1500].into_iter().filter(|_| is_wanted("loops")) {
        let Some(cluster) = hosts(mtu) else { return };
        loops::measure(&cluster, mtu);
    }
    for mtu in [9000, 1500].into_iter().filter(|_| is_wanted("slow")) {
        let Some(cluster) = hosts(mtu) else { return };
        loops::measure_slow(&cluster, mtu);
    }
    for mtu in [9000, 1500].into_iter().filter(|_| is_wanted("stencil")) {
        let Some(cluster) = hosts(mtu) else { return };
        stencil::measure(&cluster, mtu);
    }
    for mtu in [9000, 1500].into_iter().filter(|_| is_wanted("rows")) {
        let Some(cluster) = hosts(mtu) else { return };
        rows::measure(&cluster, mtu);
    }
    if is_wanted("far") {
        far::measure();
    }
    if is_wanted("plan") {
        let Some(cluster) = hosts(1500) else { return };
        planned::measure(&cluster);
    }
    if is_wanted("idle") {
        let Some(cluster) = hosts(1500) else { return };
        volume::idle(&cluster);
    }
}

fn hosts(mtu: u32) -> Option<Cluster> {
    let cluster = Cluster::with(2, &Settings { mtu, ..Settings::default() });
    if cluster.is_none() {
        println!("not measured: no network namespaces");
    }
    cluster
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// The figure that a program says in a line of its own.
fn figure(said: &str) -> f64 {
    let figure = said.lines().find_map(|line| line.split_once("figure "));
    figure.and_then(|(_, figure)| figure.parse().ok()).unwrap_or_else(|| panic!("no figure: {said}"))
}

fn program() -> String {
    std::env::current_exe().expect("the path of this program").display().to_string()
}

/// The command that is this program in a role.
fn in_role(role: &str) -> String {
    format!("exec {} role {role}", program())
}

/// The figure of a role on both hosts, with a worker each.
fn of_role(cluster: &Cluster, role: &str) -> f64 {
    of_role_with(cluster, "aes-128-gcm", role)
}

/// The same with packets sealed like this.
fn of_role_with(cluster: &Cluster, cipher: &str, role: &str) -> f64 {
    of_run(cluster, &["--hosts", &cluster.list(1), "--timeout", "20", "--cipher", cipher], role)
}

fn of_run(cluster: &Cluster, args: &[&str], role: &str) -> f64 {
    let before = sent(cluster);
    let said = cluster.run(args, &in_role(role));
    assert_eq!(said.code, 0, "{said:?}");
    if std::env::var_os("HOSTS_DETAILS").is_some() {
        eprintln!("{} packets sent by the first host, {}", sent(cluster).0 - before.0, said.err);
    }
    figure(&said.out)
}

/// Packets and bytes that the first host has sent.
fn sent(cluster: &Cluster) -> (u64, u64) {
    let of = |what: &str| {
        let file = format!("/sys/class/net/eth0/statistics/tx_{what}");
        let said = cluster.network.command(0, "cat").arg(file).output().expect("cat").stdout;
        String::from_utf8_lossy(&said).trim().parse().expect("a count")
    };
    (of("packets"), of("bytes"))
}
