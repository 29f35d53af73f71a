//! A session over a link of 200 Mbit/s with a queue of 50 ms, on which packets are lost: alone, and with a TCP flow of a third
//! host beside it, whose packets are not lost. As root.
use crate::measure_session;
use hectare_hosts::{Fault, Network, Settings};
use std::process::{Command, Stdio};
use std::time::Duration;

const BITS: u64 = 200_000_000;
/// Bytes that a session moves: about four seconds of the link.
const BYTES: u64 = 96 << 20;
/// Seconds that a TCP flow runs and is measured, after so many that are not: Cubic takes long to grow where the queue is. A
/// session beside it is there longer.
const SECONDS: u64 = 20;
const OMITTED: u64 = 10;
const ROUNDS: usize = 3;

pub(crate) fn measure() {
    let mut network = match Network::new(3, &Settings::default()) {
        Ok(network) => network,
        Err(error) => return println!("a link with losses: not measured, {error}"),
    };
    network.limit(1, BITS).expect("a limit");
    println!("\na link of {} Mbit/s, queue 50 ms", BITS / 1_000_000);
    let mut without = 0.0;
    for share in [0.0, 0.01, 0.1] {
        network.set(&[Fault::Lose { from: 0, to: 1, share }]).expect("a fault");
        let mut rates: Vec<f64> = (0..ROUNDS).map(|_| session(&network, BYTES)).collect();
        rates.sort_by(f64::total_cmp);
        let median = rates[ROUNDS / 2];
        without = if share == 0.0 { median } else { without };
        let ratio = median / without;
        println!("  {:>3.0} % lost: {:.3} of the link, {ratio:.2} of that without", share * 100.0, median);
    }
    network.set(&[]).expect("no faults");
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| tcp_flow(&network, 2));
        (tcp_flow(&network, 0), other.join().expect("it only waits"))
    });
    println!("  two TCP flows have {one:.2} and {other:.2} of the link");
    for share in [0.0, 0.1] {
        network.set(&[Fault::Lose { from: 0, to: 1, share }]).expect("a fault");
        let (tcp, session) = std::thread::scope(|scope| {
            let tcp = scope.spawn(|| tcp_flow(&network, 2));
            // More than the link takes meanwhile: the session outlasts the flow.
            let session = session(&network, BITS / 8 * (SECONDS + OMITTED));
            (tcp.join().expect("it only waits"), session)
        });
        println!(
            "  {:>3.0} % of the session's lost: TCP beside it has {tcp:.2} of the link; the session, which is there longer, {session:.2}",
            share * 100.0
        );
    }
}

/// The rate of a TCP flow from a host to host 1.
fn tcp_flow(network: &Network, from: usize) -> f64 {
    let port = (7200 + from).to_string();
    let mut server = network.command(1, "iperf3");
    let mut server = server.args(["-s", "-1", "-p", &port]).stdout(Stdio::null()).spawn().expect("iperf3");
    std::thread::sleep(Duration::from_millis(300));
    let (to, seconds, omitted) = (network.address(1).to_string(), SECONDS.to_string(), OMITTED.to_string());
    let mut client = network.command(from, "iperf3");
    client.args(["-c", &to, "-p", &port, "-J", "-O", &omitted, "-t", &seconds]);
    let said = client.output().expect("iperf3");
    server.wait().expect("iperf3 serves one client");
    let report: serde_json::Value = serde_json::from_slice(&said.stdout).expect("iperf3 speaks JSON");
    report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap_or(0.0) / BITS as f64
}

/// The rate of a session from host 0 to host 1.
fn session(network: &Network, bytes: u64) -> f64 {
    let command = |side: usize, program: &str| -> Command { network.command(side, program) };
    let (from, to) = (network.address(0).to_string(), network.address(1).to_string());
    measure_session(&command, (&from, &to), 1500, "sealed", bytes) * 1e9 / BITS as f64
}
