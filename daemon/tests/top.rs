//! `hectare top`: ticks as JSON and text, and what it does to a terminal.
//!
//! A test starts this very binary again, in a role named in the environment.
mod common;
use common::{Host, WATCHDOG};
use hectare_daemon::cli::top::screen::Screen;
use hectare_dsm::Job;
use hectare_wire::{Connection, Reply, Request};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

const ROLE: &str = "TOP_TEST_ROLE";
/// The alternate screen, entered and left.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

fn member(host: &Host, job: &str) -> (Connection, Job) {
    let connection = host.connect();
    let attach = Request::Attach { job: job.into(), rank: None };
    let (Reply::Attached { .. }, Some(memory)) = connection.ask(&attach).unwrap() else { panic!() };
    (connection, Job::from_descriptor(memory).unwrap())
}

/// A program on a terminal of its own.
struct OnTerminal {
    child: Child,
    ours: File,
    /// The program's end, to look at its settings.
    theirs: OwnedFd,
    before: Termios,
    shown: Arc<Mutex<String>>,
}

impl OnTerminal {
    fn start(mut command: Command) -> OnTerminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let theirs: OwnedFd = open().into();
        tcsetwinsize(&theirs, Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let before = tcgetattr(&theirs).unwrap();
        command.stdin(open()).stdout(open()).stderr(open());
        let child = command.spawn().unwrap();
        drop(command);
        let ours = File::from(ours);
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut from, to) = (ours.try_clone().unwrap(), shown.clone());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(got @ 1..) = from.read(&mut piece) {
                to.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..got]));
            }
        });
        OnTerminal { child, ours, theirs, before, shown }
    }

    fn shows(&self, part: &str) {
        common::until(&format!("{part:?}"), || self.shown.lock().unwrap().contains(part));
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end; the terminal must be as it was.
    fn end(mut self) -> (ExitStatus, String) {
        let since = std::time::Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(since.elapsed() < WATCHDOG, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let after = tcgetattr(&self.theirs).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes, "raw mode is left");
        assert_eq!(after.input_modes, self.before.input_modes);
        self.shows(LEAVE);
        let shown = self.shown.lock().unwrap().clone();
        (status, shown)
    }
}

/// Nothing outlives a test that failed.
impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn top(host: &Host, args: &[&str]) -> OnTerminal {
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    command.arg("top").args(args).env("TERM", "xterm-256color");
    OnTerminal::start(command)
}

#[test]
fn a_terminal_is_given_back_however_it_ends() {
    let host = Host::new();
    let daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    let (_connection, job) = member(&host, "mf");
    let mut worker = job.worker().unwrap();
    worker.create::<u8>("weights", 10).unwrap();

    let mut quits = top(&host, &["--interval", "0.1"]);
    quits.shows(ENTER);
    quits.shows("weights");
    quits.ours.write_all(b"p").unwrap();
    quits.shows("PAUSED");
    quits.ours.write_all(b"q").unwrap();
    let (status, shown) = quits.end();
    assert!(status.success() && shown.contains("WAITED FOR"), "{status} {shown}");

    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1)] {
        let told = top(&host, &["mf"]);
        told.shows("weights");
        told.signal(signal);
        assert_eq!(told.end().0.code(), Some(128 + number));
    }

    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, "panic").env("TERM", "xterm").args(["--exact", "role", "--nocapture"]);
    let panics = OnTerminal::start(command);
    let (status, shown) = panics.end();
    assert!(!status.success());
    assert!(shown.find(LEAVE) < shown.find("in the middle of a picture"), "{shown:?}");

    let orphan = top(&host, &["--interval", "0.1", "--daemon-within", "0"]);
    orphan.shows("weights");
    daemon.kill();
    let (status, shown) = orphan.end();
    assert_eq!(status.code(), Some(3), "{shown}");
    let said = shown.rsplit_once(LEAVE).unwrap().1;
    assert!(said.contains("hectare: the daemon closed the connection"), "{said}");

    // With patience, it says that there is none, and goes on with the next.
    let daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    let patient = top(&host, &["--interval", "0.1", "--daemon-within", "10000"]);
    patient.shows("WAITED FOR");
    daemon.kill();
    // A picture changes by cell, and a blank does not.
    patient.shows("DAEMON");
    let _daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    let (_connection, _job) = member(&host, "of-the-next");
    patient.shows("of-the-next");
    patient.signal(Signal::TERM);
    assert_eq!(patient.end().0.code(), Some(128 + 15));
}

#[test]
fn role() {
    if std::env::var(ROLE).is_ok_and(|role| role == "panic") {
        let _screen = Screen::enter().unwrap();
        panic!("in the middle of a picture");
    }
}

#[test]
fn ticks_have_rates() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    let (_connection, job) = member(&host, "mf");
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    command.args(["top", "--json", "--interval", "0.1"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let first = next();
    assert_eq!(first["jobs"][0]["job"], "mf");
    assert_eq!((&first["jobs"][0]["rounds_per_s"], &first["interval_s"]), (&Value::Null, &Value::from(0.0)));
    let mut worker = job.worker().unwrap();
    let mut area = worker.create::<u32>("w", 1000).unwrap();
    let since = std::time::Instant::now();
    let seen = loop {
        area.write(&worker).unwrap().fill(since.elapsed().subsec_nanos());
        worker.sync().unwrap();
        let tick = next();
        let rates = &tick["jobs"][0]["workers"][0];
        if rates["rounds_per_s"].as_f64() > Some(0.0) && rates["bytes_per_s"].as_f64() > Some(0.0) {
            break tick;
        }
        assert!(since.elapsed() < WATCHDOG, "{tick}");
    };
    let job = &seen["jobs"][0];
    assert!(job["rounds_per_s"].as_f64() > Some(0.0) && job["bytes_per_s"].as_f64() > Some(0.0), "{seen}");
    assert_eq!(
        (&job["workers"][0]["state"], &job["workers"][0]["pid"]),
        (&"live".into(), &std::process::id().into())
    );
    assert_eq!((&job["areas"][0]["name"], &job["areas"][0]["owner"]), (&"w".into(), &0.into()));
    assert!(job["areas"][0]["age_s"].as_f64() >= Some(0.0));
    // A reader that has had enough is no error.
    drop(lines);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_cannot_be_shown_is_one_line_and_a_code() {
    let host = Host::new();
    let one_line = |args: &[&str], code: i32, part: &str| {
        let said = host.hectare(args);
        assert_eq!((said.code, said.err.lines().count()), (code, 1), "{args:?}: {said:?}");
        assert!(said.err.contains(part) && said.out.is_empty(), "{args:?}: {said:?}");
    };
    one_line(&["top", "--once"], 3, "no daemon runs");
    let daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    one_line(&["top", "--once", "nowhere"], 4, "there is no job \"nowhere\"");
    one_line(&["top"], 1, "no terminal: use --once or --json");
    assert_eq!(host.hectare(&["top", "--interval", "0"]).code, 2);

    let (connection, job) = member(&host, "mf");
    let said = host.hectare(&["top", "--once", "--interval", "0.05"]);
    assert!(said.code == 0 && said.out.contains("\nmf "), "{said:?}");
    let said = host.hectare(&["top", "--once", "--json", "--interval", "0.05"]);
    assert_eq!(said.out.lines().count(), 1, "{said:?}");

    let start = |args: &[&str]| {
        let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
        command
            .args(args)
            .args(["--json", "--interval", "0.05"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut first).unwrap();
        (child, out)
    };
    let end = |(child, _out): (Child, BufReader<std::process::ChildStdout>)| {
        // Its output stays open until it has ended.
        let reader = std::thread::spawn(move || std::io::copy(&mut { _out }, &mut std::io::sink()));
        let output = child.wait_with_output().unwrap();
        reader.join().unwrap().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    // Its job goes: that is no failure.
    let of_job = start(&["top", "mf"]);
    drop((connection, job));
    let (code, said) = end(of_job);
    assert!(code == Some(0) && said.contains("job \"mf\" is gone"), "{code:?} {said}");
    // The daemon goes: that is.
    let of_all = start(&["top", "--daemon-within", "0"]);
    assert!(daemon.terminate().success());
    let (code, said) = end(of_all);
    assert!(code == Some(3) && said.lines().count() == 1, "{code:?} {said}");
}
