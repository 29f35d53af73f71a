//! Signals to the launcher.
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Signals that are caught: those that end a program, those that stop it and have it go on, those of its own, and
/// news of children.
const CAUGHT: [Signal; 9] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::TSTP,
    Signal::CONT,
    Signal::USR1,
    Signal::USR2,
    Signal::CHILD,
];

/// Caught signals, each with the end that becomes readable when it comes, and the end that its handler writes.
#[derive(Debug)]
pub(super) struct Signals(Vec<(Signal, UnixStream, UnixStream)>);

impl Signals {
    /// Catches signals, but for those that whoever started this process had it ignore: `nohup` means that the
    /// processes are not to hear of it either.
    pub(super) fn catch() -> Result<Signals> {
        let ignored = ignored();
        let mut ends = Vec::new();
        for signal in CAUGHT {
            let (ours, handler) = UnixStream::pair().context("socketpair")?;
            ours.set_nonblocking(true).context("fcntl")?;
            handler.set_nonblocking(true).context("fcntl")?;
            if signal == Signal::CHILD || ignored >> (signal.as_raw() - 1) & 1 == 0 {
                let handler = handler.try_clone().context("dup")?;
                signal_hook::low_level::pipe::register(signal.as_raw(), handler)
                    .context("installing a signal handler")?;
            }
            ends.push((signal, ours, handler));
        }
        // Nobody can catch it; it comes by an order.
        let (ours, handler) = UnixStream::pair().context("socketpair")?;
        ours.set_nonblocking(true).context("fcntl")?;
        ends.push((Signal::KILL, ours, handler));
        Ok(Signals(ends))
    }

    /// The descriptors to poll for the next signal.
    pub(super) fn fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.0.iter().map(|(_, end, _)| PollFd::new(end, PollFlags::IN))
    }

    /// Has a signal come that was sent to the caller on another host. SIGKILL stands for the order to kill all.
    pub(super) fn raise(&self, signal: Signal) {
        if let Some((.., end)) = self.0.iter().find(|(other, ..)| *other == signal) {
            // A pipe that is full says enough.
            let _ = (&mut &*end).write(b"s");
        }
    }

    /// Signals that came since the last call, and how many of each.
    pub(super) fn came(&self) -> Vec<(Signal, usize)> {
        let count = |mut end: &UnixStream| end.read(&mut [0; 64]).unwrap_or(0);
        let all = self.0.iter().map(|(signal, end, _)| (*signal, count(end)));
        all.filter(|(_, count)| *count > 0).collect()
    }
}

/// Whether a signal ends a program that does not catch it. SIGKILL stands for the order to kill all.
pub(super) fn ends(signal: Signal) -> bool {
    matches!(signal, Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT | Signal::KILL)
}

/// The signals that this process ignores, one in each bit. Of a system that does not say: none.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
