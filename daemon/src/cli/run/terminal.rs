//! The terminal, and which group of processes has it.
//!
//! Each rank is a process group of its own, so that a signal reaches a wrapper together with what it started, and
//! nothing else. The launcher's group has the terminal; Ctrl-C and Ctrl-Z come to it, and it passes them on. A rank
//! that reads the terminal is stopped by the kernel (SIGTTIN). It is handed the terminal then, and keeps it until it
//! ends or is stopped by Ctrl-Z; a second rank waits for it.
//!
//! The alternative, all ranks in the launcher's own group, would need none of this. But that group is also the
//! shell's pipeline or script: what is sent to it reaches `tee` and the script, and nobody could be killed by
//! group without the launcher.
use crate::cli::parent_death;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use std::os::fd::OwnedFd;

/// The launcher's terminal, if it has one.
#[derive(Debug)]
pub(super) struct Terminal {
    tty: Option<OwnedFd>,
    own: Pid,
    holder: Option<Pid>,
}

/// The state of a group that wants the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// It has it now.
    Given,
    /// Another rank has it.
    Held,
    /// Not even the launcher has it: it is in the background.
    Background,
    /// There is none, or the system refuses.
    Nothing,
}

impl Terminal {
    /// Of a part on one of several hosts, whose processes have no terminal.
    pub(super) fn none() -> Terminal {
        Terminal { tty: None, own: getpgrp(), holder: None }
    }

    pub(super) fn find() -> Terminal {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
        Terminal {
            tty: rustix::fs::open("/dev/tty", flags, Mode::empty()).ok(),
            own: getpgrp(),
            holder: None,
        }
    }

    /// Whether this group has the terminal from the launcher.
    pub(super) fn is_held_by(&self, group: Pid) -> bool {
        self.holder == Some(group)
    }

    /// A group wants it.
    pub(super) fn want(&mut self, group: Pid) -> Wanted {
        let Some(tty) = &self.tty else { return Wanted::Nothing };
        if self.holder.is_some_and(|holder| holder != group) {
            return Wanted::Held;
        }
        match tcgetpgrp(tty) {
            Ok(now) if now == group => Wanted::Given,
            Ok(now) if now == self.own => {
                parent_death::ignore_background_output();
                match tcsetpgrp(tty, group) {
                    Ok(()) => {
                        self.holder = Some(group);
                        Wanted::Given
                    }
                    Err(_) => Wanted::Nothing,
                }
            }
            Ok(_) => Wanted::Background,
            Err(_) => Wanted::Nothing,
        }
    }

    /// Takes the terminal back from whoever holds it; nothing if a shell has given it to others meanwhile.
    pub(super) fn take_back(&mut self) {
        if let (Some(tty), Some(holder)) = (&self.tty, self.holder.take())
            && tcgetpgrp(tty) == Ok(holder)
        {
            // A terminal that has hung up is nobody's.
            let _ = tcsetpgrp(tty, self.own);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}
