//! How fast sessions over UDP move bytes, beside iperf3, on the same path in the same minute: over loopback, and over a veth
//! pair between two network namespaces (as root) with an MTU of 1500 and of 9000.
//!
//! `lossy` is another measurement: how a session fares where packets are lost, and how a TCP flow beside it.
//!
//! `cargo bench -p hectare-transport --bench goodput [-- loopback|1500|9000|lossy]`
mod lossy;
mod moving;
mod paths;

use hectare_testing::processor;
use paths::Namespaces;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Bytes that a measurement moves.
const BYTES: u64 = 256 << 20;
/// Measurements of each kind, in turn with the others.
const ROUNDS: usize = 3;

/// Who moves the bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mover {
    Plain,
    Sealed,
    IperfTcp,
    IperfTcpZeroCopy,
    IperfUdp,
}

impl Mover {
    const ALL: [Mover; 5] =
        [Mover::Plain, Mover::Sealed, Mover::IperfTcp, Mover::IperfTcpZeroCopy, Mover::IperfUdp];

    fn name(self) -> &'static str {
        match self {
            Mover::Plain => "session, plain",
            Mover::Sealed => "session, AES-128-GCM",
            Mover::IperfTcp => "iperf3 TCP",
            Mover::IperfTcpZeroCopy => "iperf3 TCP, zero copy",
            Mover::IperfUdp => "iperf3 UDP",
        }
    }

    fn is_ours(self) -> bool {
        matches!(self, Mover::Plain | Mover::Sealed)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.first().map(String::as_str) {
        Some("receive" | "send") => moving::run(&arguments),
        Some(only @ ("loopback" | "1500" | "9000")) => measure_path(only),
        Some("lossy") => lossy::measure(),
        _ => {
            ["loopback", "1500", "9000"].into_iter().for_each(measure_path);
            lossy::measure();
        }
    }
}

fn measure_path(path: &str) {
    let namespaces = match path {
        "loopback" => None,
        mtu => match Namespaces::make(mtu.parse().expect("a number")) {
            Ok(namespaces) => Some(namespaces),
            Err(error) => return println!("veth, MTU {path}: not measured, {error}"),
        },
    };
    let has_iperf = Command::new("iperf3").arg("--version").stdout(Stdio::null()).status().is_ok();
    let movers = Mover::ALL.iter().filter(|mover| has_iperf || mover.is_ours());
    let mut results: Vec<(Mover, Vec<f64>)> = movers.map(|mover| (*mover, Vec::new())).collect();
    for _ in 0..ROUNDS {
        for (mover, gbits) in &mut results {
            gbits.push(measure(*mover, namespaces.as_ref()));
        }
    }
    drop(namespaces);
    let what = if path == "loopback" { "loopback".to_owned() } else { format!("veth pair, MTU {path}") };
    println!("\n{what}, {} MiB, {}", BYTES >> 20, processor());
    let best_of = |gbits: &[f64]| gbits.iter().copied().fold(0.0, f64::max);
    let others = results.iter().filter(|(mover, _)| !mover.is_ours());
    let best = others.map(|(_, gbits)| best_of(gbits)).fold(0.0, f64::max);
    for (mover, gbits) in &results {
        let each: Vec<String> = gbits.iter().map(|one| format!("{one:.1}")).collect();
        let ratio = best_of(gbits) / best;
        println!(
            "  {:<22} {:>5.1} Gbit/s ({}), {ratio:.2} of the best iperf3",
            mover.name(),
            best_of(gbits),
            each.join(" ")
        );
    }
}

/// Goodput in Gbit/s, as the receiving side's sender knows it: all bytes acknowledged.
fn measure(mover: Mover, namespaces: Option<&Namespaces>) -> f64 {
    let (to, mtu) = match namespaces {
        Some(namespaces) => (Namespaces::ADDRESSES[1], namespaces.mtu),
        None => ("127.0.0.1", 65_536),
    };
    let from = namespaces.map_or("127.0.0.1", |_| Namespaces::ADDRESSES[0]);
    let program = |side: usize, name: &str| match namespaces {
        Some(_) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", Namespaces::NAMES[side], name]);
            command
        }
        None => Command::new(name),
    };
    if mover.is_ours() {
        let suite = if mover == Mover::Plain { "plain" } else { "sealed" };
        return measure_session(&program, (from, to), mtu, suite, BYTES);
    }
    let mut server =
        program(1, "iperf3").args(["-s", "-1", "-p", "7102"]).stdout(Stdio::null()).spawn().expect("iperf3");
    std::thread::sleep(Duration::from_millis(300));
    let mut client = program(0, "iperf3");
    client.args(["-c", to, "-p", "7102", "-J", "-n", &BYTES.to_string()]);
    match mover {
        Mover::IperfTcpZeroCopy => {
            client.arg("-Z");
        }
        Mover::IperfUdp => {
            client.args(["-u", "-b", "0", "-l", &(mtu.min(65_000 + 28) - 28).to_string()]);
        }
        _ => {}
    }
    let said = client.output().expect("iperf3");
    server.wait().expect("iperf3 serves one client");
    let report: serde_json::Value = serde_json::from_slice(&said.stdout).expect("iperf3 speaks JSON");
    let end = &report["end"];
    // Of UDP only what arrived counts.
    let lost = end["sum"]["lost_percent"].as_f64().unwrap_or(0.0) / 100.0;
    let rate = if mover == Mover::IperfUdp { &end["sum"] } else { &end["sum_received"] };
    rate["bits_per_second"].as_f64().unwrap_or(0.0) * (1.0 - lost) / 1e9
}

/// Goodput of a session in Gbit/s; `program` makes a command on the sender's side, 0, or the receiver's.
fn measure_session(
    program: &dyn Fn(usize, &str) -> Command,
    (from, to): (&str, &str),
    mtu: usize,
    suite: &str,
    bytes: u64,
) -> f64 {
    let this = std::env::current_exe().expect("a path").display().to_string();
    let side = |side: usize, role: &str| {
        let mut command = program(side, &this);
        command.args([role, &format!("{from}:7100"), &format!("{to}:7101"), &mtu.to_string(), suite]);
        command.arg(bytes.to_string());
        command
    };
    let mut receiver = side(1, "receive").stdout(Stdio::null()).spawn().expect("this program");
    let sent = side(0, "send").output().expect("this program");
    receiver.wait().expect("it ends with the session");
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    if std::env::var_os("GOODPUT_DETAILS").is_some() {
        eprint!("{}", String::from_utf8_lossy(&sent.stderr));
    }
    String::from_utf8_lossy(&sent.stdout).trim().parse().expect("Gbit/s")
}
