//! Other programs to compare with: iperf3, a UDP ping-pong, and a minimal program over DPDK.
use crate::common::cluster::Cluster;
use crate::measure::{Figures, Flow, flow, times};
use crate::raw::times_line;
use crate::{Options, program};
use anyhow::{Context, Result, ensure};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TURNS: usize = 20_000;
const WARM_TURNS: usize = 500;

/// iperf3 from the first host to the second, with such options.
pub(crate) fn iperf(cluster: &Cluster, options: &Options, more: &[&str]) -> Result<Figures> {
    Command::new("iperf3").arg("--version").output().context("iperf3")?;
    let mut serves = cluster.network.command(1, "iperf3");
    let mut serves = serves.args(["--server", "--one-off"]).stdout(Stdio::null()).spawn()?;
    std::thread::sleep(Duration::from_millis(300));
    let address = cluster.network.address(1).to_string();
    let seconds = options.window().as_secs_f64().ceil().to_string();
    let mut asks = cluster.network.command(0, "iperf3");
    asks.args(["--client", &address, "--json", "--time", &seconds]).args(more);
    let said = asks.output()?;
    let _ = serves.wait();
    let said: serde_json::Value = serde_json::from_slice(&said.stdout)?;
    let end = &said["end"];
    let sum = if end["sum_received"].is_object() { &end["sum_received"] } else { &end["sum"] };
    // Of UDP, the sender's rate, and what part of it was lost.
    let kept = 1.0 - if more.is_empty() { 0.0 } else { sum["lost_percent"].as_f64().unwrap_or(0.0) / 100.0 };
    let rate = sum["bits_per_second"].as_f64().context("iperf3 says no rate")?;
    let kept = if end["sum_received"].is_object() { 1.0 } else { kept };
    let gbits = rate * kept / 1e9;
    let busy = &end["cpu_utilization_percent"];
    let percent = busy["host_total"].as_f64().unwrap_or(0.0) + busy["remote_total"].as_f64().unwrap_or(0.0);
    // Of a second, so many nanoseconds of processors for so many bytes.
    Ok(Figures {
        flow: Some(Flow { gbits, cpu: percent / 100.0 * 1e9 / (gbits * 1e9 / 8.0) * 1e3 }),
        times: None,
    })
}

/// A datagram of 64 bytes there and back, by sockets that spin.
pub(crate) fn ping(cluster: &Cluster) -> Result<Figures> {
    let address = format!("{}:7717", cluster.network.address(1));
    let side = |host: usize, side: &str| {
        let mut command = cluster.network.command(host, program());
        command.args(["role", "ping", side, &address]);
        command
    };
    Ok(Figures { flow: None, times: Some(times(side(1, "answer"), side(0, "ask"))?) })
}

/// A side of the ping-pong.
pub(crate) fn play_ping(side: &str, address: &str) {
    let socket = UdpSocket::bind(if side == "ask" { "0.0.0.0:0" } else { address }).expect("a socket");
    socket.set_nonblocking(true).expect("a socket that spins");
    let mut bytes = [0; 64];
    if side == "answer" {
        println!("ready");
        loop {
            if let Ok((_, from)) = socket.recv_from(&mut bytes) {
                socket.send_to(&bytes, from).expect("an answer");
            }
        }
    }
    let mut times = Vec::new();
    for turn in 0..WARM_TURNS + TURNS {
        let since = Instant::now();
        socket.send_to(&bytes, address).expect("a question");
        while socket.recv_from(&mut bytes).is_err() && since.elapsed() < Duration::from_millis(100) {}
        if turn >= WARM_TURNS {
            times.push(since.elapsed());
        }
    }
    println!("{}", times_line(times));
}

/// Compiles the C program; why that is not possible.
pub(crate) fn compile(into: &Path) -> Result<PathBuf> {
    let asked = Command::new("pkg-config").args(["--cflags", "--libs-only-L", "libdpdk"]).output();
    let said = asked.context("pkg-config")?;
    ensure!(said.status.success(), "no DPDK for C: libdpdk-dev is not there");
    let flags = String::from_utf8_lossy(&said.stdout);
    let (source, to) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/transports/bare.c"), into.join("bare"));
    let mut compiler = Command::new("cc");
    compiler.arg("-O2").arg(&source).arg("-o").arg(&to).args(flags.split_whitespace());
    for library in ["ethdev", "mbuf", "mempool", "ring", "eal"] {
        compiler.arg(format!("-lrte_{library}"));
    }
    let said = compiler.output().context("cc")?;
    let fault = String::from_utf8_lossy(&said.stderr);
    ensure!(said.status.success(), "{}", fault.lines().next().unwrap_or("cc fails"));
    Ok(to)
}

fn mac(cluster: &Cluster, host: usize) -> Result<String> {
    let said = cluster.network.command(host, "cat").arg("/sys/class/net/eth0/address").output()?;
    Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

/// The C program over the device that our port is on.
pub(crate) fn bare(cluster: &Cluster, program: &Path, mtu: u32, options: &Options) -> Result<Figures> {
    // As our port chooses them.
    let room = (mtu + 128).next_multiple_of(1024);
    let device = format!("net_af_packet0,iface=eth0,framesz={room},blocksz={},framecnt=512", room * 4);
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
    let macs = [mac(cluster, 0)?, mac(cluster, 1)?];
    let ip = |host: usize| format!("10.77.0.{}", 200 + host);
    let side = |host: usize, role: &str, frame: u32| {
        let mut command = cluster.network.command(host, program);
        command.args([role, &device, &frame.to_string(), &room.to_string()]);
        command.args([options.window().as_millis().to_string(), processors.to_string()]);
        command.args([ip(host), ip(1 - host), macs[1 - host].clone()]);
        command
    };
    // A packet of the MTU, and 64 bytes of payload with the headers that ours has.
    let (large, small) = (mtu + 14, 64 + 42);
    Ok(Figures {
        flow: Some(flow(side(1, "receive", large), side(0, "send", large))?),
        times: Some(times(side(1, "answer", small), side(0, "ask", small))?),
    })
}
