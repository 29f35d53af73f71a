//! Two processes of a daemon's job against two threads of one of the same settings: rounds and bytes per second; and
//! what it takes to join: attach to first read, `service()` with nothing due.
//!
//! `cargo bench --bench processes [-- --quick] [-- --json FILE] [-- PART_OF_A_CASE]`
mod support;

use hectare::{AreaSpec, Job, Worker};
use hectare_daemon::{config::Config, server::Server};
use hectare_wire::{Connection, JobSettings, Request, RunDir};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use support::{Case, Report, Times, nanos};

const ROLE: &str = "HECTARE_BENCH_ROLE";
const RESERVE: u64 = 1 << 30;
const TIME_LIMIT: Duration = Duration::from_secs(1);
const WAIT: Duration = Duration::from_secs(20);
/// Calls of `service()` that are timed together.
const CALLS: usize = 1_000_000;

fn main() {
    if let Ok(role) = std::env::var(ROLE) {
        return play(&role);
    }
    let mut report = Report::from_args("processes; 2 workers on 2 cores");
    let host = Host::start();
    let sizes = [("rounds", 64, 20_000), ("bytes/1MiB", 1 << 20, 600), ("bytes/32MiB", 32 << 20, 20)];
    for (case, bytes, turns) in sizes {
        side_by_side(&mut report, &host, case, bytes, turns);
    }
    attach(&mut report, &host);
    service(&mut report, &host);
    report.finish();
}

/// A daemon in a directory of its own: this program in another role.
struct Host {
    top: PathBuf,
    daemon: Child,
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        let _ = std::fs::remove_dir_all(&self.top);
    }
}

impl Host {
    fn start() -> Host {
        let top = std::env::temp_dir().join(format!("hectare-bench-{}", std::process::id()));
        std::fs::create_dir_all(&top).expect("a directory");
        let daemon = role(&top, "daemon").spawn().expect("the daemon");
        let host = Host { top, daemon };
        let since = Instant::now();
        while Connection::open(&host.dir()).is_err() {
            assert!(since.elapsed() < WAIT, "the daemon does not answer");
            std::thread::sleep(Duration::from_millis(1));
        }
        host
    }

    fn dir(&self) -> RunDir {
        RunDir::at(self.top.join("run"))
    }

    /// Makes a job that goes with its last member.
    fn make(&self, job: &str) {
        let settings = JobSettings {
            bytes: Some(RESERVE),
            round_timeout_ms: Some(TIME_LIMIT.as_millis() as u64),
            ..JobSettings::default()
        };
        let create = Request::Create { job: job.into(), settings, keep: false };
        Connection::open(&self.dir()).expect("the daemon").order(&create).expect("a job");
    }

    /// Starts this program in a role and returns it with what it says.
    fn start_role(&self, what: &str) -> (Child, BufReader<std::process::ChildStdout>) {
        let mut child = role(&self.top, what).stdout(Stdio::piped()).spawn().expect("a process");
        let stdout = BufReader::new(child.stdout.take().expect("its output"));
        (child, stdout)
    }
}

fn role(top: &std::path::Path, what: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env(ROLE, what).env("HECTARE_RUN_DIR", top.join("run")).env("HOME", top);
    command.stdin(Stdio::null());
    for name in ["HECTARE_CONFIG", "HECTARE_JOB", "HECTARE_RANK", "XDG_CONFIG_HOME"] {
        command.env_remove(name);
    }
    command
}

/// The next number that a role says.
fn number(lines: &mut impl BufRead) -> f64 {
    let mut line = String::new();
    lines.read_line(&mut line).expect("its output");
    line.trim().parse().unwrap_or_else(|_| panic!("{line:?} is no number"))
}

fn play(role: &str) {
    let parts: Vec<&str> = role.split(' ').collect();
    match parts[..] {
        ["daemon"] => {
            let (_stop, signalled) = UnixStream::pair().expect("a pair of sockets");
            let server = Server::start(&Config::load(None).expect("a configuration")).expect("a daemon");
            server.serve(signalled).expect("a daemon");
        }
        ["turns", job, bytes, turns] => {
            let mut worker = Job::connect(job).expect("the job").worker().expect("a rank");
            let took = measure(&mut worker, bytes.parse().expect("bytes"), turns.parse().expect("turns"));
            println!("{took}");
        }
        ["attach", job, reader] => {
            let since = Instant::now();
            let job = Job::connect(job).expect("the job");
            if reader == "worker" {
                let mut worker = job.worker().expect("a rank");
                let area = worker.attach::<u64>("held").expect("the area");
                assert_eq!(area.read(&worker).expect("a view")[0], 7);
            } else {
                let observer = job.observer().expect("an observer");
                let area = job.attach::<u64>("held").expect("the area");
                assert_eq!(observer.read(&area).expect("a version")[0], 7);
            }
            println!("{}", since.elapsed().as_nanos());
        }
        ["service", job] => {
            let mut worker = Job::connect(job).expect("the job").worker().expect("a rank");
            pin(0);
            println!("{}", idle_service(&mut worker));
        }
        _ => panic!("no such role: {role:?}"),
    }
}

/// Binds the calling thread to a core; without the right to, it stays where it is.
fn pin(core: usize) {
    // SAFETY: an empty set is valid, and the call reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// One of two workers: writes its area whole, meets the other, reads the other's first line; over and over.
/// Nanoseconds of a turn.
fn measure(worker: &mut Worker, bytes: usize, turns: usize) -> f64 {
    let me = worker.rank();
    pin(me as usize);
    worker.wait_for_workers(2, WAIT).expect("the other one");
    let mut mine = worker.create::<u64>(AreaSpec::new(format!("part/{me}")), bytes / 8).expect("memory");
    worker.barrier().expect("the other one");
    let other = worker.attach::<u64>(&format!("part/{}", 1 - me)).expect("its area");
    let mut since = Instant::now();
    for turn in 0..turns + turns / 4 {
        if turn == turns / 4 {
            since = Instant::now();
        }
        mine.write(worker).expect("owned").fill(turn as u64);
        worker.barrier().expect("the other one");
        assert_eq!(other.read(worker).expect("a view")[0], turn as u64);
    }
    let took = since.elapsed().as_nanos() as f64 / turns as f64;
    worker.barrier().expect("the other one");
    took
}

fn as_threads(bytes: usize, turns: usize) -> f64 {
    let job = Job::builder().reserve(RESERVE).round_timeout(TIME_LIMIT).embedded().expect("a job");
    job.run(2, |worker| measure(worker, bytes, turns)).expect("no panics")[0]
}

fn as_processes(host: &Host, bytes: usize, turns: usize) -> f64 {
    host.make("turns");
    let role = format!("turns turns {bytes} {turns}");
    let mut both = [host.start_role(&role), host.start_role(&role)];
    let took = both.each_mut().map(|(_, lines)| number(lines));
    for (child, _) in &mut both {
        assert!(child.wait().expect("its end").success());
    }
    gone(host, "turns");
    took[0]
}

/// Waits until a job went with its last member.
fn gone(host: &Host, job: &str) {
    let wait = Request::Wait { job: job.into() };
    Connection::open(&host.dir()).expect("the daemon").order(&wait).expect("its end");
}

fn side_by_side(report: &mut Report, host: &Host, case: &str, bytes: usize, turns: usize) {
    if !report.wants(case) {
        return;
    }
    let (blocks, turns) = if report.quick { (5, turns) } else { (15, 4 * turns) };
    let (mut threads, mut processes) = (Times::default(), Times::default());
    for block in 0..blocks {
        // Each side goes first as often as the other.
        if block % 2 == 0 {
            threads.push(as_threads(bytes, turns));
        }
        processes.push(as_processes(host, bytes, turns));
        if block % 2 == 1 {
            threads.push(as_threads(bytes, turns));
        }
    }
    let both = 2.0 * bytes as f64;
    let rate = |nanos: f64| if case == "rounds" { 1e9 / nanos } else { both / nanos };
    let unit = if case == "rounds" { "rounds/s" } else { "GB/s" };
    report.add(Case {
        case: case.into(),
        value: rate(processes.median()),
        best: rate(processes.best()),
        unit,
        ratio: Some(threads.median() / processes.median()),
        against: Some(format!(
            "2 threads ({:.2} {unit}), best {:.3}",
            rate(threads.median()),
            threads.best() / processes.best()
        )),
        target: Some(0.95),
    });
}

/// A new process joins a job that is at work: from `Job::connect` to its first look at an area.
fn attach(report: &mut Report, host: &Host) {
    for reader in ["worker", "observer"] {
        let case = format!("attach to first read/{reader}");
        if !report.wants(&case) {
            continue;
        }
        host.make("held");
        // The job's only worker is this process, by the descriptor: the run directory is the children's.
        let connection = Connection::open(&host.dir()).expect("the daemon");
        let attach = Request::Attach { job: "held".into(), rank: None };
        let (_, memory) = connection.ask(&attach).expect("the job");
        let job = Job::from_descriptor(memory.expect("its memory")).expect("a job");
        let enough = AtomicBool::new(false);
        let (mut times, ready) = (Times::default(), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut worker = job.worker().expect("a rank");
                let mut held =
                    worker.create::<u64>(AreaSpec::new("held").copies(2), 100_000).expect("memory");
                held.write(&worker).expect("owned").fill(7);
                worker.sync().expect("a round");
                ready.wait();
                while !enough.load(Ordering::Relaxed) {
                    worker.service().expect("rounds go on");
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
            ready.wait();
            for _ in 0..if report.quick { 20 } else { 100 } {
                let (mut child, mut lines) = host.start_role(&format!("attach held {reader}"));
                times.push(number(&mut lines));
                assert!(child.wait().expect("its end").success());
            }
            enough.store(true, Ordering::Relaxed);
        });
        report.add(Case {
            case,
            value: times.median() / 1e6,
            best: times.best() / 1e6,
            unit: "ms",
            ratio: None,
            against: None,
            target: None,
        });
    }
}

fn idle_service(worker: &mut Worker) -> f64 {
    let mut times = Times::default();
    for _ in 0..15 {
        let time = nanos(|| (0..CALLS).for_each(|_| worker.service().expect("rounds go on")));
        times.push(time / CALLS as f64);
    }
    times.median()
}

/// `service()` with nothing due, in a job of the daemon's and in one inside the program.
fn service(report: &mut Report, host: &Host) {
    if !report.wants("service") {
        return;
    }
    let (mut daemons, mut embedded) = (Times::default(), Times::default());
    for _ in 0..if report.quick { 3 } else { 10 } {
        host.make("idle");
        let (mut child, mut lines) = host.start_role("service idle");
        daemons.push(number(&mut lines));
        assert!(child.wait().expect("its end").success());
        gone(host, "idle");
        let job = Job::builder().reserve(RESERVE).round_timeout(TIME_LIMIT).embedded().expect("a job");
        std::thread::scope(|scope| {
            let measured = scope.spawn(|| {
                let mut worker = job.worker().expect("a rank");
                pin(0);
                idle_service(&mut worker)
            });
            embedded.push(measured.join().expect("no panics"));
        });
    }
    report.add(Case {
        case: "service, nothing due".into(),
        value: daemons.median(),
        best: daemons.best(),
        unit: "ns",
        ratio: Some(embedded.median() / daemons.median()),
        against: Some(format!("a job inside the program ({:.2} ns)", embedded.median())),
        target: Some(0.95),
    });
}
