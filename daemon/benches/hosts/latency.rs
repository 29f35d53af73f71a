//! Barriers, how soon the other host sees what was written, and how soon it has an area that it is given.
use crate::common::cluster::Cluster;
use crate::{ROUNDS, best, figure, median, of_role, program};
use std::process::Stdio;

/// A case that is measured.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    what: &'static str,
    /// The role of our program, on both hosts.
    role: &'static str,
    /// The most that our time may be, over a round trip, if that is set.
    target: Option<f64>,
}

pub(crate) const CASES: [Case; 3] = [
    Case {
        name: "barrier",
        what: "barrier of two hosts, a worker each",
        role: "barriers",
        target: Some(1.5),
    },
    Case {
        name: "visible",
        what: "write of 64 bytes to visible on the other host, there and back",
        role: "visible",
        target: Some(2.0),
    },
    Case {
        name: "handed",
        what: "an area of 64 bytes, written and given to the other host, there and back",
        role: "handed",
        target: None,
    },
];

/// Beside a datagram there and back: of programs that sleep until it comes, which the wake-ups of the system make slow; of those that
/// spin, as no program can whose host has other work; and of workers with a program that forwards for them (`relay.rs`).
pub(crate) fn measure(case: &Case, cluster: &Cluster) {
    let (mut ours, mut sleeping, mut spinning) = (Vec::new(), Vec::new(), Vec::new());
    let mut relayed = Vec::new();
    for _ in 0..ROUNDS {
        sleeping.push(of_ping(cluster, "ping"));
        ours.push(of_role(cluster, case.role));
        spinning.push(of_ping(cluster, "ping-spinning"));
        relayed.push(crate::relay::measure(cluster));
    }
    println!("\n{}", case.what);
    println!("{:<40} {:>9} {:>9} {:>12}", "us", "median", "best", "ours / this");
    let least = best(&ours);
    let ours = median(&mut ours);
    println!("{:<40} {ours:>9.1} {least:>9.1}", "ours");
    let others = [
        ("UDP ping-pong, asleep", sleeping),
        ("UDP ping-pong, spinning", spinning),
        ("shared memory and UDP, 4 processes", relayed),
    ];
    for (name, mut times) in others {
        let (least, middle) = (best(&times), median(&mut times));
        println!("{name:<40} {middle:>9.1} {least:>9.1} {:>12.2}", ours / middle);
    }
    if let Some(target) = case.target {
        println!("{:<40} {target:>32.2}", "at most");
    }
}

fn of_ping(cluster: &Cluster, role: &str) -> f64 {
    let address = format!("{}:7717", cluster.network.address(1));
    let mut answers = cluster.network.command(1, program());
    let mut answers = answers.args(["role", role, "answer", &address]).spawn().expect("a program");
    let mut asks = cluster.network.command(0, program());
    let asked =
        asks.args(["role", role, "ask", &address]).stdout(Stdio::piped()).output().expect("a program");
    answers.kill().expect("it answers until it is ended");
    answers.wait().expect("its end");
    figure(&String::from_utf8_lossy(&asked.stdout))
}
