//! Processes by id and start time, so that a reused id is told apart.
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// The start time of a process in clock ticks since boot; 0 if it cannot be read.
pub(crate) fn start_time(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The second field is the command in parentheses and may hold anything; the start time is the 22nd.
    let after = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    after.split_whitespace().nth(19).and_then(|field| field.parse().ok()).unwrap_or(0)
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

/// Ends a process by SIGKILL if it is still the one that started at `started`; true if a signal was sent.
pub(crate) fn kill(pid: u32, started: u64) -> bool {
    let Ok(id) = libc::pid_t::try_from(pid) else { return false };
    // SAFETY: plain system calls; the descriptor is owned here and closed. Between opening it and reading
    // the start time the id cannot come to mean another process for the descriptor.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, id, 0) as libc::c_int;
        if descriptor < 0 {
            return false;
        }
        let same = start_time(pid) == started;
        let none = std::ptr::null_mut::<libc::siginfo_t>();
        let sent =
            same && libc::syscall(libc::SYS_pidfd_send_signal, descriptor, libc::SIGKILL, none, 0) == 0;
        libc::close(descriptor);
        sent
    }
}

/// The cores that this process may run on.
pub(crate) fn allowed_cores() -> Vec<usize> {
    // SAFETY: zero is an empty set, which the call fills.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as usize).filter(|&core| libc::CPU_ISSET(core, &set)).collect()
    }
}

/// Binds the calling thread to one core; false if the system refuses.
pub(crate) fn pin_thread(core: usize) -> bool {
    // SAFETY: zero is an empty set; `core` came from `allowed_cores` and fits it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

pub(crate) fn thread_id() -> u32 {
    // SAFETY: a plain system call.
    unsafe { libc::gettid() as u32 }
}
