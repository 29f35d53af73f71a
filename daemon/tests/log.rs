//! The log is no way to stop the daemon: it drops and counts what cannot be written, and it stays small.
use crate::common::{Daemon, Host, until};
use hectare_wire::{Error, Refusal, Request};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A daemon that logs every request to `stderr`, and where its metrics are.
fn daemon(host: &Host, stderr: Stdio) -> (Daemon, SocketAddr) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = host.command(env!("CARGO_BIN_EXE_hectared"));
    command.args(["--log-level", "debug", "--log-format", "json", "--metrics-listen", &free.to_string()]);
    let child = command.stderr(stderr).spawn().unwrap();
    let daemon = Daemon { child, log: Default::default() };
    until("the daemon", || hectare_wire::Connection::open(&host.dir).is_ok());
    (daemon, free)
}

/// The value of the metric of this name.
fn metric(address: SocketAddr, name: &str) -> f64 {
    let mut value = None;
    until(name, || {
        let Ok(mut stream) = TcpStream::connect(address) else { return false };
        let mut said = String::new();
        let asked = stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n");
        let _ = asked.and_then(|()| stream.read_to_string(&mut said));
        let mut lines = said.lines().filter_map(|line| line.rsplit_once(' '));
        value = lines.find(|(key, _)| *key == name).and_then(|(_, value)| value.parse().ok());
        value.is_some()
    });
    value.unwrap()
}

const DROPPED: &str = "hectare_daemon_log_lines_dropped_total";

/// It answers, its metrics name what was dropped, and it ends in good order when it is told to.
fn goes_on_and_stops(host: &Host, daemon: Daemon, metrics: SocketAddr) {
    let connection = host.connect();
    until("dropped lines", || {
        for _ in 0..500 {
            connection.ask(&Request::Ping).unwrap();
        }
        metric(metrics, DROPPED) > 0.0
    });
    assert!(daemon.terminate().success());
    assert!(!host.dir.socket().exists());
}

#[test]
fn a_log_that_is_full_or_closed_ends_no_daemon() {
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    let host = Host::new();
    let (child, metrics) = daemon(&host, full().into());
    goes_on_and_stops(&host, child, metrics);

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (child, metrics) = daemon(&host, writer.into());
    goes_on_and_stops(&host, child, metrics);

    // Nor does it change the code of one that cannot begin.
    let _first = host.daemon("");
    let mut second = host.command(env!("CARGO_BIN_EXE_hectared"));
    assert_eq!(second.stderr(full()).status().unwrap().code(), Some(4));
    let mut cli = host.command(env!("CARGO_BIN_EXE_hectare"));
    assert_eq!(cli.args(["areas", "nowhere"]).stderr(full()).status().unwrap().code(), Some(4));
}

#[test]
fn a_log_that_nobody_reads_stops_no_daemon() {
    let host = Host::new();
    let (reader, writer) = std::io::pipe().unwrap();
    let (child, metrics) = daemon(&host, writer.into());
    goes_on_and_stops(&host, child, metrics);
    drop(reader);

    // When it can be written again, it says what is missing.
    let (reader, writer) = std::io::pipe().unwrap();
    let (child, metrics) = daemon(&host, writer.into());
    let connection = host.connect();
    until("dropped lines", || {
        for _ in 0..500 {
            connection.ask(&Request::Ping).unwrap();
        }
        metric(metrics, DROPPED) > 0.0
    });
    let told = BufReader::new(reader).lines().map_while(Result::ok).find_map(|line| {
        let line: Value = serde_json::from_str(&line).expect("whole lines");
        line["dropped"].as_u64()
    });
    assert!(told > Some(0), "{told:?}");
    assert!(child.terminate().success());
}

#[test]
fn names_and_lists_are_cut() {
    let host = Host::new();
    let daemon = host.daemon("[defaults]\nbytes = 65536\n");
    let long = "\u{1}".repeat(60_000);
    let settings = hectare_wire::JobSettings::default();
    let requests = [
        Request::Open { job: long.clone() },
        Request::Wait { job: long.clone() },
        Request::Hold { job: long.clone() },
        Request::Attach { job: long.clone(), rank: None },
        Request::Remove { job: long.clone(), force: true },
        Request::Adopt { job: long.clone(), keep: false, ranks: vec![] },
        Request::Create { job: long.clone(), settings, keep: false },
        Request::Jobs { after: long },
    ];
    for request in &requests[..7] {
        match host.connect().ask(request) {
            Err(Error::Refused(Refusal::InvalidName { job, .. })) => {
                assert!(job.len() <= 128, "{}", job.len())
            }
            other => panic!("{other:?}"),
        }
    }
    host.connect().ask(&requests[7]).unwrap();
    // A member that says a rank 60,000 times.
    let member = host.connect();
    let (_, memory) = member.ask(&Request::Attach { job: "j".into(), rank: None }).unwrap();
    let adopt = Request::Adopt { job: "j".into(), keep: false, ranks: vec![1; 60_000] };
    let memory = memory.unwrap();
    host.connect().ask_with(&adopt, Some(std::os::fd::AsFd::as_fd(&memory))).unwrap();
    daemon.wait_for("member came back");
    let log = daemon.log();
    let longest = log.lines().map(str::len).max().unwrap();
    assert!(longest < 2048, "{longest}: {}", &log.lines().find(|line| line.len() == longest).unwrap()[..400]);
}

#[test]
fn refusals_have_few_lines_and_none_is_lost() {
    let host = Host::new();
    let file = host.top.path().join("log");
    let mut command = host.command(env!("CARGO_BIN_EXE_hectared"));
    // Not every request: a log that cannot keep up with those drops lines.
    command.args(["--log-format", "json"]).stderr(std::fs::File::create(&file).unwrap());
    let daemon = Daemon { child: command.spawn().unwrap(), log: Default::default() };
    until("the daemon", || hectare_wire::Connection::open(&host.dir).is_ok());
    let (since, times) = (Instant::now(), 3000);
    let connection = host.connect();
    for _ in 0..times {
        assert!(connection.ask(&Request::Open { job: "nowhere".into() }).is_err());
    }
    // Each refusal has a line, or is in the number of those that have none.
    let counted = || {
        let (mut lines, mut left_out) = (0, 0);
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            // The last one may be being written.
            let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
            lines += u64::from(line["message"] == "refused a request");
            left_out += line["left_out"].as_u64().unwrap_or(0);
        }
        (lines, left_out)
    };
    until("all to be told", || {
        let (lines, left_out) = counted();
        lines + left_out == times
    });
    let most = 10 * (since.elapsed() + Duration::from_secs(2)).as_secs();
    assert!(counted().0 <= most, "{} lines, {most} allowed", counted().0);
    assert!(daemon.terminate().success());
}
