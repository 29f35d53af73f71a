//! Processes by id and start time, so that a reused id is told apart.
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal, test_kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A number of `/proc/PID/stat` by its place in `proc_pid_stat(5)`, from the third on; 0 if it cannot be read.
fn stat(pid: u32, place: usize) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field is the command in parentheses and may hold anything.
    let after = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    after.split_whitespace().nth(place - 3).and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn id_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// The start time of a process in clock ticks since boot; 0 if it cannot be read.
pub(crate) fn start_time(pid: u32) -> u64 {
    stat(pid, 22)
}

/// Where the stack of a process begins, which is chosen at random for each program that is started: it tells apart
/// processes with one id that started in the same clock tick, and what a process ran before and after `exec`. 0 if it
/// cannot be read, as of processes of other users.
pub(crate) fn stack(pid: u32) -> u64 {
    stat(pid, 28)
}

/// The PID namespace of this process, as the number of its inode; 0 if it cannot be read. A process never changes it.
pub(crate) fn namespace() -> u64 {
    static OWN: OnceLock<u64> = OnceLock::new();
    *OWN.get_or_init(|| std::fs::metadata("/proc/self/ns/pid").map_or(0, |about| about.ino()))
}

/// Whether `/proc` has this thread of this process, which started at `started`, and it is no zombie.
pub(crate) fn is_there(pid: u32, tid: u32, started: u64) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")) else { return false };
    let state = text.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X') | None) && start_time(pid) == started
}

/// Whether `/proc` says that this thread of this process is stopped.
pub(crate) fn is_stopped(pid: u32, tid: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    text.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

/// The ids of this process and of the calling thread, asked for once per thread: not in forked children.
pub(crate) fn this_thread() -> (u32, u32) {
    thread_local! { static IDS: (u32, u32) = (std::process::id(), thread_id()) }
    IDS.with(|ids| *ids)
}

/// Whether a thread of the process that started at `started` with its stack at `stack_then` may run a program's code again;
/// `None` if the system does not say. No, if each of its threads is in the middle of its end, or past it: such a thread does not come back from the
/// kernel, and has nothing to write there any more.
pub(crate) fn may_run(pid: u32, started: u64, stack_then: u64) -> Option<bool> {
    /// PF_EXITING of the kernel's flags of a thread, which it sets before it gives up the thread's mutexes.
    const ENDS: u64 = 4;
    if started == 0 {
        return None;
    }
    if id_of(pid).is_none_or(|id| test_kill_process(id) == Err(Errno::SRCH)) {
        return Some(false);
    }
    let found = start_time(pid);
    if found != started {
        // Another process by now; or one that this user may not look at.
        return (found != 0).then_some(false);
    }
    let stack_now = stack(pid);
    if stack_then != 0 && stack_now != 0 && stack_then != stack_now {
        // Another process that started in the same tick; or the same with another program, whose memory is another.
        return Some(false);
    }
    // Threads that are on their way out start no others. One that ends meanwhile has no file any more.
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let runs = threads.filter_map(Result::ok).any(|thread| {
        let text = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let flags =
            text.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(6)?.parse::<u64>().ok());
        flags.is_some_and(|flags| flags & ENDS == 0)
    });
    Some(runs)
}

/// Ends a process by SIGKILL if it is still the one that started at `started`; true if a signal was sent.
pub(crate) fn kill(pid: u32, started: u64) -> bool {
    let Some(id) = id_of(pid) else { return false };
    // Between opening it and reading the start time the id cannot come to mean another process for the descriptor.
    let Ok(process) = pidfd_open(id, PidfdFlags::empty()) else { return false };
    start_time(pid) == started && pidfd_send_signal(process, Signal::KILL).is_ok()
}

/// Waits until a process has ended, with all threads, and has given up all files that it had: it is a zombie, or gone. False if it
/// has not after `limit`.
pub(crate) fn wait_for_end(pid: u32, started: u64, limit: Duration) -> bool {
    let Some(id) = id_of(pid) else { return true };
    // As in `kill`.
    let process = match pidfd_open(id, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH) => return true,
        Err(_) => return looks_for_end(pid, started, limit),
    };
    let limit = Timespec::try_from(limit).ok();
    start_time(pid) != started || poll(&mut [PollFd::new(&process, PollFlags::IN)], limit.as_ref()) == Ok(1)
}

/// The same where the kernel tells of no processes by descriptors: by `/proc`.
fn looks_for_end(pid: u32, started: u64, limit: Duration) -> bool {
    let since = Instant::now();
    while is_there(pid, pid, started) {
        if since.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// The cores that this process may run on.
pub(crate) fn allowed_cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Binds the calling thread to one core; false if the system refuses.
pub(crate) fn pin_thread(core: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).is_ok()
}

pub(crate) fn thread_id() -> u32 {
    rustix::thread::gettid().as_raw_pid() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn a_process_is_told_from_another_of_the_same_tick() {
        let pid = std::process::id();
        let (started, stack) = (start_time(pid), stack(pid));
        assert!(started != 0 && stack != 0);
        assert_eq!(may_run(pid, started, stack), Some(true));
        assert_eq!(may_run(pid, started, 0), Some(true), "the stack was not known");
        assert_eq!(may_run(pid, started, stack + 16), Some(false));
        assert_eq!(may_run(pid, started + 1, stack), Some(false));
    }

    #[test]
    fn the_end_of_a_process_is_waited_for() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (pid, started) = (child.id(), start_time(child.id()));
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(100));
        assert!(!wait_for_end(pid, started, short) && !looks_for_end(pid, started, short));
        assert!(
            wait_for_end(pid, started + 1, short) && looks_for_end(pid, started + 1, short),
            "another one"
        );
        child.kill().unwrap();
        // Also while it is a zombie.
        assert!(wait_for_end(pid, started, long) && looks_for_end(pid, started, long));
        child.wait().unwrap();
        assert!(wait_for_end(pid, started, long) && looks_for_end(pid, started, long));
    }

    #[test]
    fn a_process_that_replaced_itself_runs_no_more() {
        let piped = std::process::Stdio::piped;
        let mut child = std::process::Command::new("cat").stdin(piped()).stdout(piped()).spawn().unwrap();
        // The kernel moves the stack more than once while it starts a program: one that has answered has its own.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid = child.id();
        let (started, other) = (start_time(pid), stack(pid));
        let answers = (may_run(pid, started, stack(std::process::id())), may_run(pid, started, other));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(answers, (Some(false), Some(true)));
        assert_eq!(may_run(pid, started, other), Some(false), "it is gone");
    }
}
