//! Shared by the tests: a watchdog, child processes on the parent's job, and small helpers.
#![allow(dead_code, unused_imports)]
mod crates;
mod crew;
pub(crate) mod program;
pub(crate) use self::crates::sources_of_crates;
pub(crate) use self::crew::{Crew, run};

use hectare::orion::Context;
use hectare::{Element, Job, Owned, Worker};
pub(crate) use hectare_testing::Random;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::Location;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Long enough for anything to happen on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(120);
pub(crate) const ROLE: &str = "HECTARE_TEST_ROLE";

/// Aborts a test that hangs, after it said who is where; dropping it ends the watch.
pub(crate) struct Watchdog(Sender<()>);

pub(crate) fn watch(job: &Job) -> Watchdog {
    let (ended, end) = channel::<()>();
    let job = job.clone();
    std::thread::spawn(move || {
        if end.recv_timeout(3 * LONG) == Err(RecvTimeoutError::Timeout) {
            eprintln!("HUNG: {:#?}\n{:#?}", job.workers(), job.stats());
            std::process::abort();
        }
    });
    Watchdog(ended)
}

/// Waits for a condition that somebody else brings about.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < LONG, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Serves rounds until a condition holds.
#[track_caller]
pub(crate) fn serve_until(worker: &mut Worker, what: &str, mut holds: impl FnMut(&Worker) -> bool) {
    let since = Instant::now();
    while !holds(worker) {
        assert!(since.elapsed() < LONG, "served in vain for: {what}");
        worker.service().unwrap();
        std::thread::yield_now();
    }
}

/// A child process of a test; killed when the test ends without having waited for it.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn pid(&self) -> libc::pid_t {
        self.0.id() as libc::pid_t
    }

    pub(crate) fn signal(&self, signal: libc::c_int) {
        // SAFETY: a plain system call on a child that was not yet waited for.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// Kills it and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    /// Whether it stands still (or has ended and was not waited for).
    pub(crate) fn has_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 'Z']))
    }

    /// Waits for its end; whether that was a success.
    pub(crate) fn wait(&mut self) -> bool {
        self.0.wait().unwrap().success()
    }

    /// Waits for its end, which must be a success.
    #[track_caller]
    pub(crate) fn finish(&mut self) {
        let status = self.0.wait().unwrap();
        assert!(status.success(), "child ended with {status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The test `name` of the caller's file, as the only one of this program that a process of its own is to run.
#[track_caller]
pub(crate) fn this_program(name: &str) -> Command {
    let module = Path::new(Location::caller().file()).file_stem().unwrap().to_str().unwrap();
    let path = format!("{module}::{name}");
    // A name that no test has would run nothing, with success. Threads of tests have the names of these.
    let thread = std::thread::current();
    assert!(thread.name().is_none_or(|own| !own.contains("::") || own == path), "{path} starts itself");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &path]);
    command
}

/// Starts the test `name` of the caller's file in a process of its own, in `role`, on `job`.
#[track_caller]
pub(crate) fn spawn(name: &str, role: &str, job: &Job) -> Process {
    let mut command = this_program(name);
    job.pass_to(&mut command);
    command.args(["--nocapture", "--test-threads=1"]).env(ROLE, role).stdout(Stdio::null());
    // SAFETY: a plain system call. A child does not outlive its parent.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    Process(command.spawn().unwrap())
}

/// The role of a process that one of its own children may kill.
pub(crate) const HOST: &str = "host";

/// Runs the test `name` in role [`HOST`], in jobs where workers kill who stalls inside a round: a busy machine may hold
/// the host up for as long, and then it begins again.
#[track_caller]
pub(crate) fn as_host(name: &str) {
    for _ in 0..20 {
        let mut host = spawn(name, HOST, &patient_job());
        let status = host.0.wait().unwrap();
        if status.signal() != Some(libc::SIGKILL) {
            return assert!(status.success(), "the host ended with {status}");
        }
    }
    panic!("the host was taken for stalled twenty times over");
}

/// In a child: its role and its parent's job.
pub(crate) fn role() -> Option<(String, Job)> {
    let role = std::env::var(ROLE).ok()?;
    Some((role, Job::inherited().unwrap().expect("the parent's job")))
}

/// Runs `program` on three processes, of which worker `killed`, if any, does not come to its end.
#[track_caller]
pub(crate) fn as_processes(name: &str, killed: Option<usize>, program: impl Fn(&mut Context<'_>)) {
    let child = role();
    let job = child.as_ref().map_or_else(patient_job, |(_, job)| job.clone());
    let rank = child.as_ref().map_or(0, |(role, _)| role.parse().unwrap());
    let mut worker = job.worker_at(rank).unwrap();
    let mut children =
        if rank == 0 { vec![spawn(name, "1", &job), spawn(name, "2", &job)] } else { Vec::new() };
    let _watch = watch(&job);
    let mut context = Context::join(&mut worker, 3).unwrap();
    program(&mut context);
    for (number, child) in children.iter_mut().enumerate().filter(|(number, _)| killed != Some(number + 1)) {
        eprintln!("waiting for process {}", number + 1);
        child.finish();
    }
}

/// Fills an area with one value.
#[track_caller]
pub(crate) fn fill<T: Element>(owned: &mut Owned<T>, worker: &Worker, value: T) {
    owned.write(worker).unwrap().fill(value);
}

/// The value that every element of a view has.
#[track_caller]
pub(crate) fn uniform(view: &[u64]) -> u64 {
    let first = view[0];
    if let Some(at) = view.iter().position(|value| *value != first) {
        panic!("mixed: {first} at 0, {} at {at} of {}", view[at], view.len());
    }
    first
}

/// A job with patience for busy machines.
pub(crate) fn patient_job() -> Job {
    Job::builder().reserve(1 << 30).round_timeout(LONG).embedded().unwrap()
}
