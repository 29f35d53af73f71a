//! The faults of one host, by their numbers in the fault list.
use crate::stage::{Stage, Verdict};
use crate::{areas, daemon, hostile, limits, process, stops};
use anyhow::Result;

/// A fault that can be injected.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) number: u8,
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Stage) -> Result<Verdict>,
}

const fn fault(number: u8, name: &'static str, run: fn(&mut Stage) -> Result<Verdict>) -> Fault {
    Fault { number, name, run }
}

/// All of them.
pub(crate) const FAULTS: &[Fault] = &[
    fault(1, "kill -9 a worker in mid-write", process::in_write),
    fault(2, "kill -9 a worker in mid-log", process::in_log),
    fault(3, "kill -9 a worker at a step of a round", process::in_round),
    fault(4, "kill -9 a worker while attaching", process::attaching),
    fault(5, "SIGSTOP for 10 time-outs, then SIGCONT", stops::long),
    fault(6, "SIGSTOP below the time-out", stops::brief),
    fault(7, "a worker that never calls service", stops::deaf),
    fault(8, "a panic with a live write guard", process::panic_in_write),
    fault(9, "fork without exec", process::forked),
    fault(10, "a reused pid", process::reused_pid),
    fault(11, "a zombie", process::zombie),
    fault(12, "one of 64 workers killed, 1000 times", process::one_of_many),
    fault(13, "kill -9 the daemon", daemon::killed),
    fault(14, "a restart of the daemon", daemon::restart),
    fault(15, "a daemon in a crash loop, 100 times", daemon::crash_loop),
    fault(16, "two daemons on one host", daemon::second),
    fault(17, "leftovers of a daemon's kill -9", daemon::leftovers),
    fault(18, "out-of-memory kill of a worker, of the daemon", limits::killed),
    fault(42, "delete while subscribed", areas::deleted),
    fault(43, "a storm of subscribe and unsubscribe", areas::storm),
    fault(46, "full tmpfs, no memory behind the segment", limits::full),
    fault(47, "areas larger than memory, of size 0, overflowing", areas::sizes),
    fault(48, "every table exhausted, then freed", areas::tables),
    fault(49, "descriptor and locked-memory limits", limits::limits),
    fault(50, "permission denied, another user", limits::rights),
    fault(51, "a log range outside the area", areas::log_ranges),
    fault(52, "wrong configurations", daemon::configurations),
    fault(53, "another segment layout version", hostile::layout),
    fault(54, "a client writes random bytes over everything it maps", hostile::scribbler),
    fault(55, "words changed between check and use", hostile::changing_words),
    fault(56, "a client truncates the memory", hostile::truncation),
    fault(57, "garbage and half-open connections", hostile::garbage),
    fault(64, "a forgotten log in check mode", areas::forgotten_log),
];
