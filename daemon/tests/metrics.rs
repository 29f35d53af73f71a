//! Scrapes: what they say, in which form, and what clients cannot do to them.
use crate::common::{Daemon, Host};
use hectare_dsm::Job;
use hectare_wire::{Connection, Reply, Request};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

const LISTEN: &str = "[metrics]\nlisten = \"127.0.0.1:0\"\n[defaults]\nbytes = 1048576\n";

fn address(daemon: &Daemon) -> SocketAddr {
    daemon.wait_for("\"message\":\"metrics\"");
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains("\"message\":\"metrics\"")).expect("its address");
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    line["address"].as_str().unwrap().parse().unwrap()
}

fn scrape(daemon: &Daemon) -> Scrape {
    let (address, mut said) = (address(daemon), String::new());
    // Who is held up for longer than the daemon waits for a request asks again.
    crate::common::until("an answer", || {
        said.clear();
        let mut stream = TcpStream::connect(address).unwrap();
        let asked = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        asked.and_then(|()| stream.read_to_string(&mut said)).is_ok() && !said.is_empty()
    });
    let (head, body) = said.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    Scrape::parse(body)
}

/// Samples by name and labels, checked against the rules of the format and the conventions of names.
#[derive(Debug)]
struct Scrape {
    samples: BTreeMap<String, f64>,
    names: BTreeSet<String>,
}

impl Scrape {
    fn parse(text: &str) -> Scrape {
        let (mut samples, mut names) = (BTreeMap::new(), BTreeSet::new());
        let (mut help, mut kind) = (String::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, about) = rest.split_once(' ').unwrap();
                assert!(about.ends_with('.') && names.insert(name.to_owned()), "{line}");
                help = name.into();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, what) = rest.split_once(' ').unwrap();
                assert_eq!(name, help, "{line}");
                assert_eq!(what == "counter", name.ends_with("_total"), "{line}");
                kind = name.into();
            } else {
                let (key, value) = line.rsplit_once(' ').unwrap();
                let name = key.split('{').next().unwrap();
                assert_eq!(name, kind, "samples of a name stand together behind its type");
                let value: f64 = value.parse().unwrap();
                assert!(samples.insert(key.to_owned(), value).is_none(), "{key} comes twice");
            }
        }
        assert!(text.ends_with('\n'));
        Scrape { samples, names }
    }

    fn get(&self, key: &str) -> f64 {
        *self.samples.get(key).unwrap_or_else(|| panic!("{key} is not in {self:#?}"))
    }
}

/// A member of job `job` in this process.
fn member(host: &Host, job: &str) -> (Connection, Job, OwnedFd) {
    let connection = host.connect();
    let attach = Request::Attach { job: job.into(), rank: None };
    let (Reply::Attached { .. }, Some(memory)) = connection.ask(&attach).unwrap() else { panic!() };
    let same = memory.try_clone().unwrap();
    (connection, Job::from_descriptor(memory).unwrap(), same)
}

/// Publishes `turns` versions of an area of 4000 bytes by one worker.
fn publish(job: &Job, turns: u32) {
    let mut worker = job.worker().unwrap();
    let mut area = worker.create::<u32>("model/\"w\"", 1000).unwrap();
    for turn in 1..=turns {
        area.write(&worker).unwrap().fill(turn);
        worker.sync().unwrap();
    }
}

#[test]
fn a_scrape_says_what_happened() {
    let host = Host::new();
    let daemon = host.daemon(LISTEN);
    let empty = scrape(&daemon);
    assert_eq!(empty.get("hectare_daemon_jobs"), 0.0);
    assert_eq!(empty.get("hectare_daemon_refusals_total{cause=\"no_such_job\"}"), 0.0);

    let (connection, job, _memory) = member(&host, "j");
    publish(&job, 5);
    assert!(host.connect().ask(&Request::Open { job: "nowhere".into() }).is_err());
    let said = scrape(&daemon);
    assert_eq!(said.get("hectare_daemon_refusals_total{cause=\"no_such_job\"}"), 1.0);
    assert_eq!(said.get("hectare_daemon_jobs_made_total"), 1.0);
    assert_eq!(said.get("hectare_job_members{job=\"j\"}"), 1.0);
    assert_eq!(said.get("hectare_job_rounds_total{job=\"j\"}"), 5.0);
    assert_eq!(said.get("hectare_job_published_versions_total{job=\"j\"}"), 5.0);
    assert!(said.get("hectare_job_copied_bytes_total{job=\"j\"}") >= 20_000.0);
    let area = "{job=\"j\",area=\"model/\\\"w\\\"\"}";
    assert_eq!(said.get(&format!("hectare_area_bytes{area}")), 4000.0);
    assert_eq!(said.get(&format!("hectare_area_version{area}")), 5.0);
    assert_eq!(said.get(&format!("hectare_area_owned{area}")), 0.0, "its worker has left");
    assert!(said.get(&format!("hectare_area_age_seconds{area}")) >= 0.0);
    assert_eq!(said.get("hectare_scrape_errors_total"), 0.0);

    drop((connection, job));
    crate::common::until("the job to go", || scrape(&daemon).get("hectare_daemon_jobs") == 0.0);
    let after = scrape(&daemon);
    assert_eq!(after.get("hectare_daemon_jobs_removed_total{cause=\"last_member\"}"), 1.0);
    assert!(!after.samples.keys().any(|key| key.contains("job=\"j\"")));
    assert!(daemon.terminate().success());
}

#[test]
fn a_client_that_scribbles_spoils_its_own_numbers_only() {
    let host = Host::new();
    let daemon = host.daemon(LISTEN);
    let (_one, good, _memory) = member(&host, "good");
    publish(&good, 3);
    let (_two, bad, memory) = member(&host, "bad");
    publish(&bad, 3);
    let length = rustix::fs::fstat(&memory).unwrap().st_size as u64;
    for turn in 0..6u8 {
        // Everything before the heap, the header included, and holes where there was memory.
        let rubbish = vec![[0xff, 0x00, 0x7f, 0x80, 0xaa, 0x55][turn as usize]; 2 << 20];
        let mut file = std::fs::File::from(memory.try_clone().unwrap());
        std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(0)).unwrap();
        file.write_all(&rubbish[..rubbish.len().min(length as usize)]).unwrap();
        let said = scrape(&daemon);
        assert_eq!(said.get("hectare_job_published_versions_total{job=\"good\"}"), 3.0);
        assert_eq!(said.get("hectare_job_members{job=\"bad\"}"), 1.0, "the daemon's own numbers are right");
    }
    assert!(rustix::fs::ftruncate(&memory, 0).is_err(), "its size is sealed");
    host.connect().ask(&Request::Ping).unwrap();
    assert!(!daemon.log().contains("panicked"));
    // The handle would touch what was scribbled over when it is dropped.
    std::mem::forget(bad);
}

#[test]
fn slow_and_rude_scrapers_do_not_stop_the_daemon() {
    let host = Host::new();
    let daemon = host.daemon(LISTEN);
    let idle: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address(&daemon)).unwrap()).collect();
    host.connect().ask(&Request::Ping).unwrap();
    drop(idle);
    let mut rude = TcpStream::connect(address(&daemon)).unwrap();
    rude.write_all(&[0; 100_000]).ok();
    drop(rude);
    scrape(&daemon);
}

/// As many connections as there may be, none of which asks: a scrape does not wait for them.
#[test]
fn idle_connections_hide_nothing() {
    let host = Host::new();
    let daemon = host.daemon(LISTEN);
    let address = address(&daemon);
    let mut idle: Vec<TcpStream> = (0..120).map(|_| TcpStream::connect(address).unwrap()).collect();
    // One that is slow, from the beginning to the end, has one limit for all of it.
    let mut slow = TcpStream::connect(address).unwrap();
    slow.write_all(b"GET /met").unwrap();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(address).unwrap();
        // One after the other, the idle ones would take more.
        stream.set_read_timeout(Some(crate::common::WATCHDOG)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("HTTP/1.1 200 OK"), "{said}");
    }
    crate::common::until("the slow one to be given up", || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        slow.write_all(b"x").is_err()
    });
    idle.clear();
    assert!(daemon.terminate().success());
}

#[test]
fn an_address_that_is_taken_is_a_warning_and_tried_again() {
    let host = Host::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let daemon = host.daemon(&format!("[metrics]\nlisten = \"{address}\"\n"));
    daemon.wait_for("metrics.listen: ");
    host.connect().ask(&Request::Ping).unwrap();
    assert_eq!(daemon.log().matches("metrics.listen: ").count(), 1);
    drop(taken);
    scrape(&daemon);
    assert!(daemon.terminate().success());
}

/// Names of metrics in an expression.
fn metrics_in(text: &str) -> impl Iterator<Item = &str> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    text.split(word).filter(|word| word.starts_with("hectare_"))
}

#[test]
fn every_metric_of_the_dashboard_is_in_a_scrape() {
    let host = Host::new();
    let daemon = host.daemon(LISTEN);
    let (_connection, job, _memory) = member(&host, "j");
    let mut worker = job.worker().unwrap();
    let mut area = worker.create::<u8>("a", 10).unwrap();
    area.write(&worker).unwrap().fill(1);
    worker.sync().unwrap();
    let said = scrape(&daemon);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../dist/grafana-dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut used = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            for metric in metrics_in(target["expr"].as_str().unwrap()) {
                // Those of other hosts are there with an agent only: `peers.rs` looks for them.
                let is_of_hosts = metric.starts_with("hectare_peer_");
                assert!(is_of_hosts || said.names.contains(metric), "{metric} of panel {}", panel["title"]);
                used += 1;
            }
        }
    }
    assert!(used > 15, "{used}");
    let query = dashboard["templating"]["list"][1]["query"]["query"].as_str().unwrap();
    assert!(metrics_in(query).all(|metric| said.names.contains(metric)));
}
