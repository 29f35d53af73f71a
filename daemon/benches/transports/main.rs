//! Every link between hosts that this machine has, side by side: goodput, the processors' time for a byte, and 64 bytes there and back,
//! of our transports by themselves, of areas over each, and of what else there is. The hosts are two network namespaces; needs root, and
//! for DPDK the feature of that name. For C, cc and pkg-config; what is missing is said.
//!
//! `cargo bench -p hectare-daemon --features dpdk --bench transports [-- [--quick] [--json FILE] [1500|9000]]`
//!
//! In a virtual machine with RDMA devices (`net/rdma/guest/test bench`), areas over RDMA and UDP beside `ib_write_bw`.
mod areas;
#[path = "../../tests/common/mod.rs"]
mod common;
mod guest;
mod measure;
mod raw;
mod rivals;

use anyhow::{Result, anyhow, ensure};
use common::cluster::Cluster;
use hectare_hosts::Settings;
use hectare_testing::processor;
use measure::{Figures, Row};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A link of ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LinkKind {
    Udp,
    Dpdk,
}

impl LinkKind {
    pub(crate) fn name(self) -> &'static str {
        if self == LinkKind::Udp { "udp" } else { "dpdk" }
    }

    fn is_built(self) -> Result<()> {
        ensure!(self == LinkKind::Udp || cfg!(feature = "dpdk"), "built without the feature dpdk");
        Ok(())
    }
}

/// How much is measured.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    quick: bool,
    json: Option<PathBuf>,
    mtus: Vec<u32>,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Options {
        let mut options = Options { quick: false, json: None, mtus: Vec::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--bench" => {}
                "--quick" => options.quick = true,
                "--json" => options.json = Some(words.next().expect("--json FILE").into()),
                mtu => options.mtus.push(mtu.parse().expect("--quick, --json FILE, or an MTU")),
            }
        }
        if options.mtus.is_empty() {
            options.mtus = vec![1500, 9000];
        }
        options
    }

    fn rounds(&self) -> usize {
        if self.quick { 1 } else { 3 }
    }

    pub(crate) fn window(&self) -> Duration {
        Duration::from_millis(if self.quick { 300 } else { 500 })
    }

    pub(crate) fn area_bytes(&self) -> usize {
        if self.quick { 16 << 20 } else { 64 << 20 }
    }

    pub(crate) fn area_turns(&self) -> usize {
        if self.quick { 3 } else { 5 }
    }

    pub(crate) fn visible_turns(&self) -> u64 {
        if self.quick { 500 } else { 2000 }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    if let ["role", rest @ ..] = &texts[..] {
        return play(rest);
    }
    let options = Options::parse(words.into_iter());
    if guest::is_here() {
        return guest::measure_all(&options);
    }
    let top = tempfile::tempdir().expect("a folder");
    let bare = rivals::compile(top.path());
    println!(
        "two network namespaces, a veth pair each and a bridge, {}, median of {}",
        processor(),
        options.rounds()
    );
    println!("{:<34} {:>5} {:>8} {:>8} {:>8} {:>8}", "link", "MTU", "Gbit/s", "ns/kB", "64 B us", "p99 us");
    let mut rows = Vec::new();
    for mtu in options.mtus.clone() {
        let Some(cluster) = hosts(mtu) else { return println!("not measured: no network namespaces") };
        let measured = measure(&cluster, mtu, &bare, &options);
        measured.iter().for_each(Row::print);
        rows.extend(measured);
    }
    ratios(&rows);
    if let Some(path) = &options.json {
        let all: Vec<_> = rows.iter().map(Row::json).collect();
        let all = serde_json::json!({ "processor": processor(), "quick": options.quick, "links": all });
        std::fs::write(path, format!("{all:#}\n")).expect("the file of figures");
        println!("\nfigures in {}", path.display());
    }
}

fn play(words: &[&str]) {
    let number = |word: &str| word.parse::<usize>().expect("a number");
    match words {
        ["raw", side, kind, own, peer, mtu, window] => {
            let kind = if *kind == "udp" { LinkKind::Udp } else { LinkKind::Dpdk };
            let at = |word: &str| word.parse::<SocketAddr>().expect("an address");
            raw::play(
                side,
                kind,
                at(own),
                at(peer),
                number(mtu),
                Duration::from_millis(number(window) as u64),
            );
        }
        ["ping", side, address] => rivals::play_ping(side, address),
        ["area", bytes, turns] => areas::area(number(bytes), number(turns)).expect("an area"),
        ["visible", turns] => areas::visible(number(turns) as u64).expect("writes"),
        other => panic!("no role: {other:?}"),
    }
}

/// Hosts with a port each beside the system's network, if this bench has DPDK.
fn hosts(mtu: u32) -> Option<Cluster> {
    let port = |host: u32| {
        let device = "device = \"net_af_packet0,iface=eth0\"";
        format!("[dpdk]\n{device}\naddress = \"10.77.0.{}\"\nmtu = {mtu}\n", 200 + host)
    };
    let ports: Vec<String> = (0..2).map(port).collect();
    Cluster::configured(&ports, &Settings { mtu, segments: true, ..Settings::default() })
}

type Link<'a> = (String, Box<dyn Fn() -> Result<Figures> + 'a>);

/// All links, in turns, so that a slow time of the machine is one of all.
fn measure(cluster: &Cluster, mtu: u32, bare: &Result<PathBuf>, options: &Options) -> Vec<Row> {
    let mut links: Vec<Link<'_>> = Vec::new();
    for kind in [LinkKind::Udp, LinkKind::Dpdk] {
        links.push((format!("{}, raw", kind.name()), Box::new(move || of_raw(cluster, kind, mtu, options))));
        for (cipher, said) in [("none", "no cipher"), ("aes-128-gcm", "AES-128-GCM")] {
            let of = move || kind.is_built().map(|()| areas::measure(cluster, kind.name(), cipher, options));
            links.push((format!("{}, areas, {said}", kind.name()), Box::new(of)));
        }
    }
    links.push((
        "C over DPDK, same device".into(),
        Box::new(|| rivals::bare(cluster, bare.as_ref().map_err(|why| anyhow!("{why:#}"))?, mtu, options)),
    ));
    links.push(("iperf3 TCP".into(), Box::new(|| rivals::iperf(cluster, options, &[]))));
    let length = (mtu - 28).to_string();
    let udp = ["--udp", "--bitrate", "0", "--length"].map(str::to_owned).into_iter().chain([length]);
    let udp: Vec<String> = udp.collect();
    links.push((
        "iperf3 UDP".into(),
        Box::new(move || {
            rivals::iperf(cluster, options, &udp.iter().map(String::as_str).collect::<Vec<_>>())
        }),
    ));
    links.push(("UDP ping-pong, spinning".into(), Box::new(|| rivals::ping(cluster))));
    let row = |(name, _): &Link<'_>| Row { name: name.clone(), mtu, rounds: Vec::new(), missing: None };
    let mut rows: Vec<Row> = links.iter().map(row).collect();
    for _ in 0..options.rounds() {
        for ((_, measure), row) in links.iter().zip(&mut rows).filter(|(_, row)| row.missing.is_none()) {
            match measure() {
                Ok(figures) => row.rounds.push(figures),
                Err(why) => row.missing = Some(format!("{why:#}")),
            }
        }
    }
    rows
}

fn of_raw(cluster: &Cluster, kind: LinkKind, mtu: u32, options: &Options) -> Result<Figures> {
    kind.is_built()?;
    let at = |host: usize| match kind {
        LinkKind::Udp => SocketAddr::from((cluster.network.address(host), 7200 + host as u16)),
        LinkKind::Dpdk => SocketAddr::from(([10, 77, 0, 200 + host as u8], 7200 + host as u16)),
    };
    let side = |host: usize, side: &str| {
        let mut command = cluster.network.command(host, program());
        command.args(["role", "raw", side, kind.name(), &at(host).to_string(), &at(1 - host).to_string()]);
        command.args([mtu.to_string(), options.window().as_millis().to_string()]);
        command
    };
    Ok(Figures {
        flow: Some(measure::flow(side(1, "receive"), side(0, "send"))?),
        times: Some(measure::times(side(1, "answer"), side(0, "ask"))?),
    })
}

/// The figures beside which ours are to stand.
fn ratios(rows: &[Row]) {
    let row = |name: &str, mtu: u32| rows.iter().find(|row| row.name == name && row.mtu == mtu);
    let say = |what: &str, mtu: u32, ratio: Option<f64>, target: &str| {
        if let Some(ratio) = ratio {
            println!("{what:<60} {mtu:>5} {ratio:>6.2}  ({target})");
        }
    };
    println!();
    let mut mtus: Vec<u32> = rows.iter().map(|row| row.mtu).collect();
    mtus.dedup();
    for mtu in mtus {
        let goodput = |ours: &str, other: &str| Some(row(ours, mtu)?.gbits()? / row(other, mtu)?.gbits()?);
        let times =
            |ours: &str, other: &str| Some(row(ours, mtu)?.round_trip()? / row(other, mtu)?.round_trip()?);
        let bare = goodput("dpdk, raw", "C over DPDK, same device");
        say("dpdk raw / C over DPDK, goodput", mtu, bare, "at least 0.9");
        let plain = goodput("dpdk, areas, no cipher", "dpdk, raw");
        say("areas over dpdk, no cipher / dpdk raw, goodput", mtu, plain, "at least 0.85 at MTU 9000");
        let visible = times("dpdk, areas, no cipher", "dpdk, raw");
        say("64 B written to visible over dpdk / dpdk raw, there and back", mtu, visible, "at most 1.5");
        let udp = times("udp, areas, no cipher", "udp, raw");
        say("64 B written to visible over udp / udp raw, there and back", mtu, udp, "no target");
    }
}

pub(crate) fn program() -> String {
    std::env::current_exe().expect("the path of this program").display().to_string()
}
