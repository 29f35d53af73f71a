//! `hectare top`: ticks as JSON and text, and what it does to a terminal.
//!
//! A test starts this very binary again, in a role named in the environment.
use crate::common::{Host, WATCHDOG, role_here};
use hectare_daemon::cli::top::screen::Screen;
use hectare_dsm::Job;
use hectare_wire::{Connection, Reply, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

const ROLE: &str = "TOP_TEST_ROLE";
/// The alternate screen, entered and left.
const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";
/// Written by the test itself when the program has ended; no program writes it.
const END: &str = "\x1b[END OF TEST";

fn member(host: &Host, job: &str) -> (Connection, Job) {
    let connection = host.connect();
    let attach = Request::Attach { job: job.into(), rank: None };
    let (Reply::Attached { .. }, Some(memory)) = connection.ask(&attach).unwrap() else { panic!() };
    (connection, Job::from_descriptor(memory).unwrap())
}

/// A program on a terminal of its own.
struct OnTerminal {
    child: Child,
    ours: Option<File>,
    /// The program's end, to look at its settings.
    theirs: OwnedFd,
    before: Termios,
    shown: Arc<Mutex<String>>,
    closing: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
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
        let closing = Arc::new(AtomicBool::new(false));
        let (mut from, to, ends) = (ours.try_clone().unwrap(), shown.clone(), closing.clone());
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // Relaxed: it hands over nothing but itself.
            while !ends.load(Relaxed) {
                let mut polled = [PollFd::new(&from, PollFlags::IN)];
                let within = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
                if poll(&mut polled, Some(&within)).unwrap() == 0 {
                    continue;
                }
                let Ok(got @ 1..) = from.read(&mut piece) else { return };
                to.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..got]));
            }
        });
        OnTerminal { child, ours: Some(ours), theirs, before, shown, closing, reader: Some(reader) }
    }

    fn shows(&self, part: &str) {
        crate::common::until(&format!("{part:?}"), || self.shown.lock().unwrap().contains(part));
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn type_in(&self, keys: &[u8]) {
        self.ours.as_ref().unwrap().write_all(keys).unwrap();
    }

    /// Closes the window in which it runs, without a signal: the terminal is not the one that controls it.
    fn vanish(&mut self) {
        self.closing.store(true, Relaxed);
        self.reader.take().unwrap().join().unwrap();
        self.ours = None;
    }

    fn wait(&mut self) -> ExitStatus {
        let since = std::time::Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(since.elapsed() < WATCHDOG, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Waits for the end; the terminal must be as it was.
    fn end(mut self) -> (ExitStatus, String) {
        let status = self.wait();
        let after = tcgetattr(&self.theirs).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes, "raw mode is left");
        assert_eq!(after.input_modes, self.before.input_modes);
        // Its last output may not have been read yet; this comes behind it.
        rustix::io::write(&self.theirs, END.as_bytes()).unwrap();
        self.shows(END);
        let shown = self.shown.lock().unwrap().clone();
        assert!(shown.contains(LEAVE), "it stays on the alternate screen: {shown:?}");
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

    let quits = top(&host, &["--interval", "0.1"]);
    quits.shows(ENTER);
    quits.shows("weights");
    quits.type_in(b"p");
    quits.shows("PAUSED");
    quits.type_in(b"q");
    let (status, shown) = quits.end();
    assert!(status.success() && shown.contains("WAITED FOR"), "{status} {shown}");

    for (signal, number) in [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1)] {
        let told = top(&host, &["mf"]);
        told.shows("weights");
        told.signal(signal);
        assert_eq!(told.end().0.code(), Some(128 + number));
    }

    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, "panic").env("TERM", "xterm").args(["--exact", &role_here(), "--nocapture"]);
    let panics = OnTerminal::start(command);
    let (status, shown) = panics.end();
    assert!(!status.success());
    assert!(shown.find(LEAVE) < shown.find("in the middle of a picture"), "{shown:?}");

    let orphan = top(&host, &["--interval", "0.1", "--daemon-timeout", "0"]);
    orphan.shows("weights");
    daemon.kill();
    let (status, shown) = orphan.end();
    assert_eq!(status.code(), Some(3), "{shown}");
    let said = shown.rsplit_once(LEAVE).unwrap().1;
    assert!(said.contains("hectare: the daemon closed the connection"), "{said}");

    // With patience, it says that there is none, and goes on with the next.
    let daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    let patient = top(&host, &["--interval", "0.1", "--daemon-timeout", "10000"]);
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
fn a_terminal_that_vanishes_ends_it() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    let (_connection, job) = member(&host, "mf");
    let mut worker = job.worker().unwrap();
    worker.create::<u8>("weights", 10).unwrap();
    // Between pictures, and as often as it draws them.
    for interval in ["60", "0.05"] {
        let mut lost = top(&host, &["--interval", interval]);
        lost.shows("weights");
        lost.vanish();
        assert_eq!(lost.wait().code(), Some(128 + 1), "every {interval} s");
    }
    // With keys that nobody has read, and the beginning of a sequence.
    let mut lost = top(&host, &[]);
    lost.shows("weights");
    lost.signal(Signal::STOP);
    lost.type_in(b"\x1b[");
    lost.vanish();
    lost.signal(Signal::CONT);
    assert_eq!(lost.wait().code(), Some(128 + 1));
    // A signal that comes with it counts.
    let mut told = top(&host, &[]);
    told.shows("weights");
    told.signal(Signal::STOP);
    told.vanish();
    told.signal(Signal::TERM);
    told.signal(Signal::CONT);
    assert_eq!(told.wait().code(), Some(128 + 15));

    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(ROLE, "panic-late").env("TERM", "xterm").args(["--exact", &role_here(), "--nocapture"]);
    let mut panics = OnTerminal::start(command);
    panics.shows(ENTER);
    panics.vanish();
    // Not aborted: the code of a test that failed.
    assert_eq!(panics.wait().code(), Some(101));
}

#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut screen = Screen::enter().unwrap();
    screen.terminal.hide_cursor().unwrap();
    while role == "panic-late" && !screen.is_gone() {
        let _ = screen.wait(WATCHDOG).unwrap();
    }
    panic!("in the middle of a picture");
}

#[test]
fn a_new_size_and_sequences_of_keys_are_seen() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    let top = top(&host, &["--interval", "3600"]);
    top.shows("WAITED FOR");
    top.shown.lock().unwrap().clear();
    tcsetwinsize(&top.theirs, Winsize { ws_row: 30, ws_col: 90, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    // It is not the terminal that controls the process, whose kernel would send this.
    top.signal(Signal::WINCH);
    top.shows("WAITED FOR");
    // None of it is a key of its own, though a q is in it.
    top.type_in(b"\x1b[6~\x1bqp");
    top.shows("PAUSED");
    top.type_in(b"\x03");
    assert_eq!(top.end().0.code(), Some(0));
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
    one_line(&["top"], 1, "not a terminal: use --once or --json");
    assert_eq!(host.hectare(&["top", "--interval", "0"]).code, 2);

    let said = host.hectare(&["top", "--once", "--interval", "0.05"]);
    assert!(said.code == 0 && said.out.starts_with("no jobs: start a program"), "{said:?}");
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
    let of_all = start(&["top", "--daemon-timeout", "0"]);
    assert!(daemon.terminate().success());
    let (code, said) = end(of_all);
    assert!(code == Some(3) && said.lines().count() == 1, "{code:?} {said}");
}
