//! In the guest with RDMA devices: areas over RDMA and over UDP, and perftest on the same devices. Its one processor is emulated, so
//! that only ratios mean something.
use crate::Options;
use crate::areas::{self, Hosts};
use crate::common::cluster::Running;
use crate::common::flat::{DEVICE, Flat};
use crate::measure::{Figures, Flow, Row};
use anyhow::{Context, Result};
use std::process::{Command, Stdio};

/// The MTU of the guest's link.
const MTU: u32 = 4200;
/// Size and number of the messages of `ib_write_bw`.
const MESSAGE: u64 = 1 << 20;
const MESSAGES: u64 = 64;

/// A row of the table.
enum Link {
    /// A program of the package perftest.
    Perftest(&'static str),
    /// Areas over a transport, with a cipher.
    Areas(&'static str, &'static str),
}

pub(crate) fn is_here() -> bool {
    std::env::var_os("HECTARE_RDMA_GUEST").is_some()
}

impl Hosts for Flat {
    fn start(&self, args: &[&str], script: &str) -> Running {
        Running::start(self.command(args, script))
    }

    fn agents(&self) -> Vec<i32> {
        let is_agent = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("\0agent\0")
        };
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_agent).collect()
    }

    fn are_idle(&self) -> bool {
        self.agents().is_empty()
    }
}

pub(crate) fn measure_all(options: &Options) {
    let flat = Flat::new(&[DEVICE, DEVICE]).expect("devices");
    let links = [
        ("ib_write_bw", Link::Perftest("ib_write_bw")),
        ("ib_send_bw, by events", Link::Perftest("ib_send_bw")),
        ("rdma, areas, no cipher", Link::Areas("rdma", "none")),
        ("udp, areas, no cipher", Link::Areas("udp", "none")),
        ("udp, areas, AES-128-GCM", Link::Areas("udp", "aes-128-gcm")),
    ];
    let row =
        |(name, _): &(&str, _)| Row { name: (*name).into(), mtu: MTU, rounds: Vec::new(), missing: None };
    let mut rows: Vec<Row> = links.iter().map(row).collect();
    println!("one emulated processor, two devices of software RoCE, median of {}", options.rounds());
    println!("{:<34} {:>5} {:>8} {:>8} {:>8} {:>8}", "link", "MTU", "Gbit/s", "ns/kB", "64 B us", "p99 us");
    for _ in 0..options.rounds() {
        for ((_, link), row) in links.iter().zip(&mut rows).filter(|(_, row)| row.missing.is_none()) {
            let measured = match *link {
                Link::Areas(transport, cipher) => Ok(areas::measure(&flat, transport, cipher, options)),
                Link::Perftest(program) => bandwidth(program),
            };
            match measured {
                Ok(figures) => row.rounds.push(figures),
                Err(why) => row.missing = Some(format!("{why:#}")),
            }
        }
    }
    rows.iter().for_each(Row::print);
    let Some(areas) = rows[2].gbits() else { return };
    for (rival, target) in rows[..2].iter().zip([" (at least 0.8)", ""]) {
        if let Some(gbits) = rival.gbits() {
            println!("areas over rdma / {}, goodput: {:.2}{target}", rival.name, areas / gbits);
        }
    }
}

/// The GID of an address of RoCE version 2.
fn gid_index(device: &str, address: &str) -> Option<usize> {
    let last = address.parse::<std::net::Ipv4Addr>().ok()?.octets();
    let end = format!("ffff:{:02x}{:02x}:{:02x}{:02x}", last[0], last[1], last[2], last[3]);
    let port = format!("/sys/class/infiniband/{device}/ports/1");
    (0..16).find(|index| {
        let read = |what: &str| std::fs::read_to_string(format!("{port}/{what}/{index}")).unwrap_or_default();
        read("gids").trim().ends_with(&end) && read("gid_attrs/types").contains("v2")
    })
}

/// `ib_write_bw` or `ib_send_bw` of the package perftest, from one device to the other. The first polls for completions, which takes the
/// one processor from the devices; that it waits for them is possible with the second only.
fn bandwidth(program: &str) -> Result<Figures> {
    let command = |device: &str, address: &str| {
        let index = gid_index(device, address).context("no GID")?;
        let mut command = Command::new(program);
        command.args(["--ib-dev", device, "--gid-index", &index.to_string(), "--report_gbits", "-F"]);
        command.args(["--size", &MESSAGE.to_string(), "--iters", &MESSAGES.to_string()]);
        if program == "ib_send_bw" {
            command.arg("--events");
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok::<_, anyhow::Error>(command)
    };
    let needed = || format!("{program} (apt-get install perftest)");
    let mut server = command("rxe1", "10.9.0.2")?.spawn().with_context(needed)?;
    // It listens a moment later.
    std::thread::sleep(std::time::Duration::from_secs(2));
    let output = command("rxe0", "10.9.0.1")?.arg("10.9.0.2").output().with_context(needed);
    let ended = server.wait().with_context(needed)?;
    let output = output?;
    let text = String::from_utf8_lossy(&output.stdout);
    // bytes, iterations, peak, average, messages.
    let line = text.lines().find(|line| line.trim_start().starts_with(&MESSAGE.to_string()));
    let average = line.and_then(|line| line.split_whitespace().nth(3)?.parse::<f64>().ok());
    let said = || format!("{text} {} {ended}", String::from_utf8_lossy(&output.stderr));
    let gbits = average.with_context(said)?;
    Ok(Figures { flow: Some(Flow { gbits, cpu: f64::NAN }), times: None })
}
