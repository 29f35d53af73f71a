//! Bytes: how fast a large area comes over, and how much is sent for small changes, and for none.
use crate::common::cluster::{Cluster, Running};
use crate::peers;
use crate::roles::IDLE;
use crate::{ROUNDS, best, in_role, median, of_role, of_role_with, sent};
use std::process::{Child, Command, Stdio};

const WHOLE: usize = 256 << 20;
const SPARSE: usize = 64 << 20;
const IDLE_AREAS: usize = 50;

/// An area that is written all over, from the publication to where the other host sees it; beside iperf3.
pub(crate) fn whole(cluster: &Cluster, mtu: u32) {
    let (mut sealed, mut plain, mut tcp, mut udp) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let role = format!("whole {WHOLE}");
    for _ in 0..ROUNDS {
        sealed.push(of_role(cluster, &role));
        plain.push(of_role_with(cluster, "none", &role));
        tcp.extend(iperf(cluster, &[]));
        udp.extend(iperf(cluster, &["--udp", "--bitrate", "0", "--length", "60000"]));
    }
    // Between these, so that a slow time of the machine is one of all.
    let others: [(&str, peers::Peer); 2] =
        [("Open MPI, broadcast", peers::mpi), ("gloo, broadcast", peers::gloo)];
    let mut figures: Vec<(&str, Vec<(f64, f64)>)> =
        others.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for _ in 0..3 {
        for ((_, of), (_, all)) in others.iter().zip(&mut figures) {
            all.extend(of(cluster, WHOLE));
        }
        sealed.push(of_role(cluster, &role));
        plain.push(of_role_with(cluster, "none", &role));
    }
    println!("\nan area of {} MiB, all of it written, MTU {mtu}", WHOLE >> 20);
    println!("{:<40} {:>9} {:>9}", "Gbit/s", "median", "best");
    let most = |figures: &[f64]| figures.iter().copied().fold(0.0, f64::max);
    let say = |name: &str, figures: &mut [f64]| {
        let (most, median) = (most(figures), median(figures));
        println!("{name:<40} {median:>9.2} {most:>9.2}");
        median
    };
    let (sealed, plain) = (say("ours, AES-128-GCM", &mut sealed), say("ours, no cipher", &mut plain));
    let mut bare: f64 = 0.0;
    for (name, figures) in [("iperf3 TCP", &mut tcp), ("iperf3 UDP, fragments", &mut udp)] {
        if !figures.is_empty() {
            bare = bare.max(say(name, figures));
        }
    }
    if bare > 0.0 {
        println!(
            "{:<40} {:>9.2}             (at least 0.5)",
            "AES-128-GCM / the best of those",
            sealed / bare
        );
        println!("{:<40} {:>9.2}             (at least 0.8)", "no cipher / the best of those", plain / bare);
    }
    for (name, all) in figures.iter().filter(|(_, all)| !all.is_empty()) {
        let mut medians: Vec<f64> = all.iter().map(|(median, _)| *median).collect();
        let most = most(&all.iter().map(|(_, best)| *best).collect::<Vec<_>>());
        let median = median(&mut medians);
        println!("{name:<40} {median:>9.2} {most:>9.2}");
        println!("{:<40} {:>9.2}             (more than 1)", "ours, AES-128-GCM / this", sealed / median);
    }
}

/// The rate of iperf3 with such options, in Gbit/s; `None` without iperf3.
fn iperf(cluster: &Cluster, options: &[&str]) -> Option<f64> {
    let mut serves: Child = cluster
        .network
        .command(1, "iperf3")
        .args(["--server", "--one-off"])
        .stdout(Stdio::null())
        .spawn()
        .ok()?;
    std::thread::sleep(std::time::Duration::from_millis(300));
    let address = cluster.network.address(1).to_string();
    let mut asks: Command = cluster.network.command(0, "iperf3");
    let said = asks.args(["--client", &address, "--json", "--time", "2"]).args(options).output().ok()?;
    let _ = serves.wait();
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).ok()?;
    let sum = said["end"]["sum_received"].as_object().or_else(|| said["end"]["sum"].as_object())?;
    Some(sum.get("bits_per_second")?.as_f64()? / 1e9)
}

/// Bytes on the wire for lines here and there.
pub(crate) fn sparse(cluster: &Cluster) {
    let mut figures = Vec::new();
    for _ in 0..ROUNDS {
        figures.push(of_role(cluster, &format!("sparse {SPARSE}")));
    }
    println!("\n1 % of the lines of {} MiB, scattered", SPARSE >> 20);
    let best = best(&figures);
    println!(
        "{:<40} {:>9.3} {best:>9.3}   (at most 1.3)",
        "bytes sent / bytes written",
        median(&mut figures)
    );
}

/// Packets for areas that nobody writes.
pub(crate) fn idle(cluster: &Cluster) {
    let mut run =
        Running::start(cluster.command(
            &["--hosts", &cluster.list(1), "--timeout", "20"],
            &in_role(&format!("idle {IDLE_AREAS}")),
        ));
    let mut read = |part: &str| {
        for _ in 0..2 {
            while !run.lines(1)[0].contains(part) {}
        }
    };
    read("idle from here");
    let before = sent(cluster);
    read("idle until here");
    let after = sent(cluster);
    let per_second = |count: u64| count as f64 / IDLE.as_secs_f64();
    println!("\n{IDLE_AREAS} areas of each of two hosts, nothing written");
    println!("{:<40} {:>9.1}", "packets a second, one way", per_second(after.0 - before.0));
    println!("{:<40} {:>9.1}", "bytes a second", per_second(after.1 - before.1));
    assert_eq!(run.end(), Some(0));
}
