//! Processes that end with the one that started them, however that ends; and what has to be unsafe about a terminal.
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Has the kernel kill the process that this command starts when the calling thread ends: SIGKILL to `hectare run`
/// cannot be passed on, and nobody would be left to end the others when one fails.
///
/// The process's own children are not bound by this, nor is a program that gains rights when it is executed.
pub(super) fn die_with_parent(command: &mut Command) {
    let parent = getpid();
    // SAFETY: the closure makes three system calls, which is allowed between fork and exec, and allocates nothing.
    unsafe { command.pre_exec(move || bind_to(parent)) };
}

fn bind_to(parent: Pid) -> std::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have ended before: then nobody sends the signal.
    if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH.into()) }
}

/// Lets this process hand its terminal on, and take it back, while another group has it: otherwise the kernel would
/// stop it for that (SIGTTOU). To be called when all children are started, since they would inherit it.
pub(super) fn ignore_background_output() {
    // SAFETY: ignoring a signal runs no code, and nothing here handles this one.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
}
