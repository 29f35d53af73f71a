//! The launcher while its processes run: signals, failures, and the end.
use super::processes::{Process, any_alive};
use super::signals::Signals;
use super::terminal::{Terminal, Wanted};
use crate::cli::failure::HostFailed;
use crate::logging::Sink;
use anyhow::{Context, Result};
use hectare_dsm::Job;
use rustix::event::{Timespec, poll};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How often those that an ended process left behind are looked for, once all are to end.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// After this, what was killed is killed again: it may have started others meanwhile.
const AGAIN: Duration = Duration::from_secs(1);
/// How often it is tried to kill what an ended process left behind.
const TRIES: u32 = 3;

/// How long it is waited for other news, when a rank has failed by itself: another one may have been killed, or have panicked,
/// which is rather the cause than a consequence.
const CAUSE_WITHIN: Duration = Duration::from_millis(200);
/// The same when a rank has said itself that another one failed before: that one may take its time to end.
const CULPRIT_WITHIN: Duration = Duration::from_secs(1);

/// The exit code of a Rust program whose main thread panicked.
const PANICKED: i32 = 101;

/// How a process failed; of several that failed at nearly the same time, the first in this order is rather the cause: an error may be
/// that another has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    Signal,
    Panic,
    Error,
    /// The worker said so, whatever the process ended with.
    Consequence,
}

impl Cause {
    /// Of a process, whose worker has said, or not, that it fails because another one has.
    pub(super) fn of(status: ExitStatus, follows: bool) -> Cause {
        match (status.signal(), status.code()) {
            _ if follows => Cause::Consequence,
            (Some(_), _) => Cause::Signal,
            (None, Some(PANICKED)) => Cause::Panic,
            _ => Cause::Error,
        }
    }

    /// How long it is waited for another one that comes before it in this order.
    pub(super) fn worse_within(self) -> Duration {
        match self {
            Cause::Signal => Duration::ZERO,
            Cause::Panic | Cause::Error => CAUSE_WITHIN,
            Cause::Consequence => CULPRIT_WITHIN,
        }
    }
}

/// A process that has failed.
struct Failure {
    rank: u32,
    status: ExitStatus,
    cause: Cause,
}

/// The processes and how they are to end.
pub(super) struct Supervisor<'a> {
    pub(super) processes: Vec<Process>,
    pub(super) signals: &'a Signals,
    pub(super) shared: &'a Job,
    pub(super) voice: &'a Sink,
    pub(super) keep_going: bool,
    /// Other processes of the program are another launcher's, who decides what becomes of them.
    pub(super) is_launched: bool,
    pub(super) grace: Duration,
    pub(super) terminal: Terminal,
    /// Groups that are stopped until the terminal is free.
    pub(super) wait_for_terminal: Vec<Pid>,
    /// When those that were told to end are killed.
    pub(super) kill_at: Option<Instant>,
    pub(super) kills: u32,
    /// Whether it has been said that only what the processes started still runs.
    pub(super) has_said_what_is_left: bool,
    pub(super) first_failure: Option<u8>,
    /// Of a part on one of several hosts: tells the caller, who decides what becomes of the others, that a rank has failed.
    pub(super) on_failure: Option<&'a dyn Fn(u32, ExitStatus)>,
}

impl Supervisor<'_> {
    /// Waits until all have ended; the exit code.
    pub(super) fn supervise(&mut self) -> Result<u8> {
        loop {
            self.wait()?;
            for (signal, count) in self.signals.came() {
                self.on_signal(signal, count);
            }
            self.note_ends()?;
            if self.kill_at.is_some_and(|at| Instant::now() >= at) {
                self.kill();
            }
            if self.is_over() {
                break;
            }
            self.say_what_is_left();
        }
        self.terminal.take_back();
        self.processes.drain(..).for_each(Process::reap);
        Ok(self.first_failure.unwrap_or(0))
    }

    /// Whether all have ended, and, if they had to, also what they started.
    fn is_over(&self) -> bool {
        if self.processes.iter().any(Process::runs) {
            return false;
        }
        self.kill_at.is_none() || self.kills >= TRIES || !any_alive(&self.groups())
    }

    /// Says, once, that the processes have ended, and that what they started is still waited for: after a while, as it may be about to
    /// end.
    fn say_what_is_left(&mut self) {
        let Some(kill_at) = self.kill_at else { return };
        if self.has_said_what_is_left || self.processes.iter().any(Process::runs) {
            return;
        }
        let left = kill_at.saturating_duration_since(Instant::now());
        if left.is_zero() || left + AGAIN > self.grace {
            return;
        }
        self.has_said_what_is_left = true;
        self.voice.say(&format!(
            "hectare: the processes have ended, but not what they started: it is killed in {} s (--grace-s)",
            left.as_secs() + 1
        ));
    }

    fn groups(&self) -> Vec<Pid> {
        self.processes.iter().map(Process::group).collect()
    }

    /// Sleeps until something happens.
    fn wait(&self) -> Result<()> {
        let mut fds: Vec<_> = self.signals.fds().collect();
        fds.extend(self.processes.iter().filter(|process| process.runs()).map(Process::end_fd));
        let mut left = self.kill_at.map(|at| at.saturating_duration_since(Instant::now()));
        if !self.processes.iter().any(Process::runs) {
            left = left.map(|left| left.min(LOOK_EVERY));
        }
        let timeout =
            left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(std::io::Error::from(error)).context("poll"),
        }
    }

    fn send(&self, signal: Signal) {
        self.processes.iter().for_each(|process| process.signal(signal));
    }

    fn on_signal(&mut self, signal: Signal, count: usize) {
        match signal {
            Signal::CHILD => self.look_who_stopped(),
            // A part goes on, to hear when the others do.
            Signal::TSTP if self.on_failure.is_some() => self.send(signal),
            Signal::TSTP => self.stop_all(),
            Signal::KILL => self.kill(),
            // Who asks twice means it. (A terminal that goes away may send SIGHUP twice.)
            Signal::INT | Signal::QUIT if self.kill_at.is_some() || count > 1 => {
                self.voice.say("hectare: the processes are killed");
                self.kill();
            }
            Signal::INT | Signal::QUIT | Signal::TERM | Signal::HUP => self.end(signal),
            other => self.send(other),
        }
    }

    /// Tells all to end, and kills them after the grace.
    pub(super) fn end(&mut self, signal: Signal) {
        self.send(signal);
        // Who is stopped hears nothing.
        self.send(Signal::CONT);
        if self.kill_at.is_none() {
            self.kill_at = Some(Instant::now() + self.grace);
        }
    }

    fn kill(&mut self) {
        self.send(Signal::KILL);
        self.kills += u32::from(!self.processes.iter().any(Process::runs));
        self.kill_at = Some(Instant::now() + AGAIN);
    }

    /// Stops all and then this process, for a shell to have its terminal back; and goes on when it is told to.
    fn stop_all(&mut self) {
        self.terminal.take_back();
        self.send(Signal::TSTP);
        let since = Instant::now();
        // It stops here. Only the signal that cannot be caught stops a process surely.
        let _ = kill_process(getpid(), Signal::STOP);
        self.kill_at = self.kill_at.map(|at| at + since.elapsed());
        self.send(Signal::CONT);
    }

    /// Hands the terminal to who was stopped because it reads it; a rank that has it and was stopped by it stops all.
    fn look_who_stopped(&mut self) {
        let mut stop = false;
        for process in self.processes.iter().filter(|process| process.runs()) {
            let (group, rank) = (process.group(), process.rank);
            match process.has_stopped() {
                Some(Signal::TTIN | Signal::TTOU) => match self.terminal.want(group) {
                    Wanted::Given => process.signal(Signal::CONT),
                    Wanted::Background => stop = true,
                    Wanted::Held => {
                        self.wait_for_terminal.push(group);
                        self.voice.say(&format!(
                            "hectare: rank {rank} waits for the terminal, which another rank has"
                        ));
                    }
                    Wanted::Nothing => {
                        self.voice.say(&format!(
                            "hectare: rank {rank} is stopped: it wants a terminal that there is not"
                        ));
                    }
                },
                Some(Signal::TSTP) if self.terminal.is_held_by(group) => stop = true,
                _ => {}
            }
        }
        if stop {
            self.stop_all();
        }
    }

    /// Notes who has ended; the first failure ends the others, or is told to those who wait for it.
    fn note_ends(&mut self) -> Result<()> {
        let mut failures = self.failures()?;
        let is_first = self.first_failure.is_none() && !failures.is_empty();
        let least = |failures: &[Failure]| failures.iter().map(|failure| failure.cause).min();
        if is_first && least(&failures) > Some(Cause::Signal) {
            // They may have failed because they saw the death of one that is about to end.
            self.await_ending();
            failures.extend(self.failures()?);
        }
        if is_first && least(&failures) >= Some(Cause::Error) && self.kill_at.is_none() {
            self.await_cause(&mut failures)?;
        }
        failures.sort_by_key(|failure| failure.cause);
        for Failure { rank, status, .. } in failures {
            self.note_failure(rank, status);
        }
        Ok(())
    }

    /// Waits for the processes that are on their way to their end, for a while.
    fn await_ending(&self) {
        let until = Instant::now() + AGAIN;
        for process in self.processes.iter().filter(|process| process.is_ending()) {
            let left = until.saturating_duration_since(Instant::now());
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            // Whether it has ended is asked of it next; a signal that cuts the wait short costs a name in a message.
            let _ = poll(&mut [process.end_fd()], Some(&timeout));
        }
    }

    /// Waits for those that fail within a while after the first, until one of them is rather the cause.
    fn await_cause(&mut self, failed: &mut Vec<Failure>) -> Result<()> {
        let since = Instant::now();
        while let Some(least) = failed.iter().map(|failure| failure.cause).min()
            && least >= Cause::Error
        {
            let left = (since + least.worse_within()).saturating_duration_since(Instant::now());
            let mut ends: Vec<_> =
                self.processes.iter().filter(|process| process.runs()).map(Process::end_fd).collect();
            if ends.is_empty() || left.is_zero() {
                break;
            }
            let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            // A signal that cuts the wait short costs a name in a message.
            if !poll(&mut ends, Some(&timeout)).is_ok_and(|ended| ended > 0) {
                break;
            }
            drop(ends);
            failed.extend(self.failures()?);
        }
        Ok(())
    }

    /// Who failed since the last call; the terminal of one that has ended is free.
    fn failures(&mut self) -> Result<Vec<Failure>> {
        let mut failures = Vec::new();
        let mut terminal_is_free = false;
        for process in &mut self.processes {
            let Some(status) = process.has_ended()? else { continue };
            if self.terminal.is_held_by(process.group()) {
                self.terminal.take_back();
                terminal_is_free = true;
            }
            if status.success() {
                // Those who wait for it to join need not wait any longer.
                let _ = self.shared.note_end(process.rank);
            } else {
                let (rank, cause) =
                    (process.rank, Cause::of(status, self.shared.is_consequence(process.rank)));
                failures.push(Failure { rank, status, cause });
            }
        }
        if terminal_is_free {
            // They ask again.
            let next = std::mem::take(&mut self.wait_for_terminal);
            let waits = |process: &&Process| next.contains(&process.group());
            self.processes.iter().filter(waits).for_each(|process| process.signal(Signal::CONT));
        }
        Ok(failures)
    }

    fn note_failure(&mut self, rank: u32, status: ExitStatus) {
        let is_first = self.first_failure.is_none();
        let told_to_end = self.kill_at.is_some();
        let lost = self.shared.check_hosts().err();
        let code = if lost.is_some() { HostFailed::CODE } else { code_of(status) };
        self.first_failure = self.first_failure.or(Some(code));
        if self.keep_going || self.is_launched {
            // The others go on, or may: those who wait for this one to join, here or on other hosts, need not wait any longer. A worker
            // that lives on in another process than the one that was started has not failed.
            let _ = self.shared.note_failure(rank);
        }
        if let Some(on_failure) = self.on_failure {
            return on_failure(rank, status);
        }
        match (told_to_end, self.keep_going, is_first) {
            (true, ..) => {}
            _ if let Some(lost) = lost => {
                self.voice.say(&format!("hectare: {lost}; the others are terminated"));
                self.end(Signal::TERM);
            }
            _ if self.is_launched => {
                self.voice.say(&format!("hectare: rank {rank} failed: {status}"));
                if !self.keep_going {
                    // Processes that it started may be left.
                    self.end(Signal::TERM);
                }
            }
            (_, true, true) => {
                self.voice.say(&format!("hectare: rank {rank} failed first: {status}; the others go on"))
            }
            (_, true, false) => self.voice.say(&format!("hectare: rank {rank} failed: {status}")),
            (_, false, _) => {
                self.voice
                    .say(&format!("hectare: rank {rank} failed first: {status}; the others are terminated"));
                self.end(Signal::TERM);
            }
        }
    }
}

/// The exit code that says how a process failed.
pub(super) fn code_of(status: ExitStatus) -> u8 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
