//! The processes of a program, each in a group of its own.
use super::output::Output;
use crate::cli::failure::NotStarted;
use crate::cli::parent_death::die_with_parent;
use anyhow::{Context, Result};
use hectare_wire::RunDir;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The flag of a task that is ending, in `/proc/PID/stat` (the kernel's `sched.h`).
const PF_EXITING: u64 = 4;
/// SIGKILL in a mask of pending signals. A signal that ends a process makes it pending in each of its threads.
const SIGKILL: u64 = 1 << (9 - 1);

/// The program of all processes.
#[derive(Debug)]
pub(super) struct Program {
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    /// Variables added to its environment.
    pub(super) variables: Vec<(String, String)>,
    /// How many processes there are, on all hosts.
    pub(super) size: u32,
    /// Whether the processes write themselves, or what they print is copied.
    pub(super) writes: bool,
    /// Whether it is copied behind their ranks.
    pub(super) prefixed: bool,
}

/// A process of the program. It is not waited for before the launcher ends: until then its id means its group, also
/// when the process has ended and what it started has not.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) rank: u32,
    child: Child,
    /// Readable when it has ended.
    ended: OwnedFd,
    status: Option<ExitStatus>,
}

impl Process {
    pub(super) fn start(
        dir: &RunDir,
        what: &Program,
        job: &str,
        rank: u32,
        output: &Output,
    ) -> Result<Process> {
        let mut command = Command::new(&what.words[0]);
        command.args(&what.words[1..]).stdin(Stdio::null()).process_group(0);
        command.envs(what.variables.iter().map(|(name, value)| (name, value)));
        command.env("HECTARE_JOB", job).env("HECTARE_RANK", rank.to_string());
        command.env("HECTARE_SIZE", what.size.to_string()).env("HECTARE_RUN_DIR", dir.path());
        if !what.writes {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        die_with_parent(&mut command);
        let program = &what.words[0];
        let failed = |source| NotStarted { program: program.clone(), source };
        let mut child = command.spawn().map_err(failed)?;
        let prefix = what.prefixed.then(|| format!("[{rank}] "));
        output.copy(child.stdout.take(), child.stderr.take(), prefix.as_deref());
        // The child is not waited for yet, so that its id means it.
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(ended) => Ok(Process { rank, child, ended, status: None }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(std::io::Error::from(error)).context("pidfd_open")
            }
        }
    }

    pub(super) fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn runs(&self) -> bool {
        self.status.is_none()
    }

    /// The descriptor to poll for its end.
    pub(super) fn end_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.ended, PollFlags::IN)
    }

    /// Sends a signal to its group.
    pub(super) fn signal(&self, signal: Signal) {
        // A group in which nobody is left takes no signal.
        let _ = kill_process_group(self.group(), signal);
    }

    /// How it ended, if it has since the last call.
    pub(super) fn has_ended(&mut self) -> Result<Option<ExitStatus>> {
        if self.status.is_some() {
            return Ok(None);
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = waitid(WaitId::PidFd(self.ended.as_fd()), options);
        let ended = ended.map_err(std::io::Error::from).context("waitid")?;
        self.status = ended.map(|ended| {
            // As wait(2) would say it.
            let code = ended.exit_status().map(|code| (code & 0xff) << 8);
            ExitStatus::from_raw(code.or(ended.terminating_signal()).unwrap_or(1 << 8))
        });
        Ok(self.status)
    }

    /// Whether it is on its way to its end: killed, or leaving. The kernel releases its locks and its memory before it
    /// has ended for its parent, which takes a while if it is large, so others may see its death first.
    pub(super) fn is_ending(&self) -> bool {
        if self.status.is_some() {
            return false;
        }
        let of = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id()));
        let (Ok(stat), Ok(status)) = (of("stat"), of("status")) else { return false };
        // The flags are the seventh field after the name, which stands in parentheses and may hold anything.
        let flags = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(6));
        let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
        flags.and_then(|flags| flags.parse().ok()).is_some_and(|flags: u64| flags & PF_EXITING != 0)
            || pending
                .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
                .is_some_and(|mask| mask & SIGKILL != 0)
    }

    /// The signal that stopped it, if one has since the last call.
    pub(super) fn has_stopped(&self) -> Option<Signal> {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let stopped = waitid(WaitId::PidFd(self.ended.as_fd()), options).ok().flatten()?;
        stopped.stopping_signal().and_then(Signal::from_named_raw)
    }

    /// Waits for a process that has ended, after which its id may mean another one.
    pub(super) fn reap(mut self) {
        let _ = self.child.wait();
    }
}

/// Whether anybody in one of the groups is alive.
pub(super) fn any_alive(groups: &[Pid]) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else { return false };
    entries.flatten().any(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name of the program, in parentheses, may hold anything; state, parent and group follow it.
        let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
        let mut fields = rest.split(' ');
        let (state, group) = (fields.next().unwrap_or("X"), fields.nth(1));
        // Of a process that is just ending it is -1, which is none.
        let group =
            group.and_then(|group| group.parse().ok()).filter(|group| *group > 0).and_then(Pid::from_raw);
        !matches!(state, "Z" | "X") && group.is_some_and(|group| groups.contains(&group))
    })
}
