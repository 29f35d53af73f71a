//! `hectare run`: a program in several processes of one job.
use super::tether::tether;
use anyhow::{Context, Result};
use clap::Args;
use hectare_dsm::Job;
use hectare_wire::{Member, RunDir, check_job_name};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// What to start. The processes have `HECTARE_JOB`, `HECTARE_RANK` and `HECTARE_SIZE` in their environment,
/// nothing on their standard input, and a process group of their own each. They are killed when `hectare run` is.
#[derive(Debug, Args)]
pub struct Run {
    /// How many processes.
    #[arg(short = 'n', long = "processes", value_parser = clap::value_parser!(u32).range(1..=4096))]
    processes: u32,
    /// The job. Default: one of their own.
    #[arg(long)]
    job: Option<String>,
    /// Print what they print as it is, without their ranks.
    #[arg(long)]
    plain: bool,
    /// When one fails, let the others go on. Those who wait for it to join its job learn that it does not come.
    #[arg(long)]
    keep_going: bool,
    /// How long those that are told to end (SIGTERM) have until they are killed, in seconds.
    #[arg(long, default_value_t = 10)]
    grace_s: u64,
    /// The program and its arguments.
    #[arg(last = true, required = true, num_args = 1..)]
    program: Vec<String>,
}

/// A process of the program.
#[derive(Debug)]
struct Running {
    rank: u32,
    child: Child,
    /// Readable when it has ended.
    ended: OwnedFd,
}

/// Signals that are passed on, and the end that becomes readable when one comes.
struct Signals(Vec<(Signal, UnixStream)>);

impl Signals {
    fn catch() -> Result<Signals> {
        let pairs = [
            (SIGINT, Signal::INT),
            (SIGTERM, Signal::TERM),
            (SIGHUP, Signal::HUP),
            (SIGUSR1, Signal::USR1),
            (SIGUSR2, Signal::USR2),
        ];
        let mut ends = Vec::new();
        for (number, signal) in pairs {
            let (ours, handler) = UnixStream::pair().context("socketpair")?;
            ours.set_nonblocking(true).context("fcntl")?;
            signal_hook::low_level::pipe::register(number, handler).context("installing a signal handler")?;
            ends.push((signal, ours));
        }
        Ok(Signals(ends))
    }
}

/// Starts the processes and waits for all; the exit code.
///
/// # Errors
/// No daemon, a job that is refused, a program that cannot be started. What was started is ended.
pub fn run(dir: &RunDir, what: &Run) -> Result<u8> {
    let own = || format!("run-{}", std::process::id());
    let job = what.job.clone().unwrap_or_else(own);
    check_job_name(&job).map_err(hectare_wire::Error::Refused)?;
    // The job is there before the first process and until after the last, whoever comes and goes.
    let member = Member::hold(dir, &job)?;
    // What the processes share: here those who wait are told whom they wait for in vain.
    let memory = member.memory().try_clone_to_owned().context("dup")?;
    let shared = Job::from_descriptor(memory)?;
    // An earlier program of this job may have lost some. Ranks that the job has no room for are refused to their
    // processes, which say so.
    (0..what.processes).for_each(|rank| drop(shared.expect(rank)));
    let signals = Signals::catch()?;
    let mut processes = Vec::new();
    let (done, readers) = channel::<()>();
    for rank in 0..what.processes {
        match start(dir, what, &job, rank, &done) {
            Ok(process) => processes.push(process),
            Err(error) => {
                end_all(&mut processes, Duration::from_secs(what.grace_s));
                return Err(error);
            }
        }
    }
    drop(done);
    let code = wait(what, &shared, processes, &signals);
    finish_output(&readers);
    drop(member);
    code
}

fn start(
    dir: &RunDir,
    what: &Run,
    job: &str,
    rank: u32,
    done: &std::sync::mpsc::Sender<()>,
) -> Result<Running> {
    let mut command = Command::new(&what.program[0]);
    command.args(&what.program[1..]).stdin(Stdio::null()).process_group(0);
    command.env("HECTARE_JOB", job).env("HECTARE_RANK", rank.to_string());
    command.env("HECTARE_SIZE", what.processes.to_string()).env("HECTARE_RUN_DIR", dir.path());
    if !what.plain {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    }
    tether(&mut command);
    let mut child = command.spawn().with_context(|| format!("{} cannot be started", what.program[0]))?;
    let prefix = format!("[{rank}] ");
    if let Some(stdout) = child.stdout.take() {
        copy_lines(stdout, std::io::stdout, prefix.clone(), done.clone());
    }
    if let Some(stderr) = child.stderr.take() {
        copy_lines(stderr, std::io::stderr, prefix, done.clone());
    }
    // The child is not waited for yet, so that its id means it.
    match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
        Ok(ended) => Ok(Running { rank, child, ended }),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(std::io::Error::from(error)).context("pidfd_open")
        }
    }
}

/// Copies lines, each with a prefix, in a thread; drops `done` at the end.
fn copy_lines<W: Write + 'static>(
    from: impl Read + Send + 'static,
    to: fn() -> W,
    prefix: String,
    done: std::sync::mpsc::Sender<()>,
) {
    std::thread::spawn(move || {
        let _done = done;
        let mut from = BufReader::new(from);
        let mut line = prefix.clone().into_bytes();
        // A line that is very long comes in pieces, so that no program fills the memory of this one.
        while let Ok(1..) = from.by_ref().take(64 << 10).read_until(b'\n', &mut line) {
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            // One write, so that lines of several processes do not mix.
            let mut to = to();
            if to.write_all(&line).and_then(|()| to.flush()).is_err() {
                break;
            }
            line.truncate(prefix.len());
        }
    });
}

/// Waits for what ended processes printed last. Descendants that they left behind may hold their output open:
/// those are not waited for long.
fn finish_output(readers: &Receiver<()>) {
    let _ = readers.recv_timeout(Duration::from_secs(2));
}

fn code_of(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

fn send(processes: &[Running], signal: Signal) {
    for process in processes {
        // Not waited for yet, so that the id means the process; one that has ended takes no signal.
        let _ = kill_process(Pid::from_child(&process.child), signal);
    }
}

/// Waits until all have ended, passes signals on, and ends the others when one has failed.
fn wait(what: &Run, shared: &Job, mut processes: Vec<Running>, signals: &Signals) -> Result<u8> {
    let mut first_failure = None;
    let mut kill_at: Option<Instant> = None;
    while !processes.is_empty() {
        let mut fds: Vec<PollFd<'_>> =
            signals.0.iter().map(|(_, end)| PollFd::new(end, PollFlags::IN)).collect();
        fds.extend(processes.iter().map(|process| PollFd::new(&process.ended, PollFlags::IN)));
        let left = kill_at.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout =
            left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error)).context("poll"),
        }
        for (signal, mut end) in signals.0.iter().map(|(signal, end)| (*signal, end)) {
            if end.read(&mut [0; 64]).is_ok_and(|got| got > 0) {
                send(&processes, signal);
            }
        }
        let mut failures = Vec::new();
        let mut still = Vec::new();
        for mut process in processes {
            match process.child.try_wait().context("wait")? {
                None => still.push(process),
                Some(status) if status.success() => {}
                Some(status) => failures.push((process.rank, status)),
            }
        }
        processes = still;
        // Of those that ended between two looks, one that a signal ended is rather the cause than a consequence.
        failures.sort_by_key(|(_, status)| status.signal().is_none());
        let failed = !failures.is_empty();
        for (rank, status) in failures {
            // The others go on: those who wait for this one to join need not wait any longer.
            if what.keep_going {
                let _ = shared.note_absence(rank);
            }
            if first_failure.is_none() {
                let others = if what.keep_going { "go on" } else { "are ended" };
                eprintln!("hectare: rank {rank} failed first: {status}; the others {others}");
                first_failure = Some(code_of(status));
            } else if what.keep_going {
                eprintln!("hectare: rank {rank} failed: {status}");
            }
        }
        if failed && !what.keep_going && kill_at.is_none() {
            send(&processes, Signal::TERM);
            kill_at = Some(Instant::now() + Duration::from_secs(what.grace_s));
        }
        if kill_at.is_some_and(|at| Instant::now() >= at) {
            send(&processes, Signal::KILL);
            kill_at = Some(Instant::now() + Duration::from_secs(1));
        }
    }
    Ok(first_failure.unwrap_or(0))
}

/// Ends those that were started before one could not be.
fn end_all(processes: &mut [Running], grace: Duration) {
    send(processes, Signal::TERM);
    let since = Instant::now();
    for process in processes {
        while since.elapsed() < grace && matches!(process.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = process.child.kill();
        let _ = process.child.wait();
    }
}
