//! Namespaces whose maker is gone, and the name that says who that was.
use crate::tool::ip;
use rustix::process::{Pid, Signal, kill_process};
use std::io::Result;

const PREFIX: &str = "hectare-";

/// When a process was started, in ticks since the machine was: with its id, it names the process for good.
fn started(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(19)?.parse().ok()
}

/// The start of the names of a network's namespaces: the maker's process and a number.
pub(crate) fn name(number: u32) -> String {
    let pid = std::process::id();
    format!("{PREFIX}{pid}-{}-{number}", started(pid).unwrap_or_default())
}

/// Whether a namespace is one of ours and its maker is gone.
fn is_left_over(namespace: &str) -> bool {
    let Some(rest) = namespace.strip_prefix(PREFIX) else { return false };
    let mut parts = rest.split('-').map(str::parse::<u64>);
    let (Some(Ok(pid)), Some(Ok(start))) = (parts.next(), parts.next()) else { return false };
    u32::try_from(pid).is_ok_and(|pid| started(pid) != Some(start))
}

/// Kills the processes in a namespace, and removes it and its devices.
pub(crate) fn remove(namespace: &str) -> Result<()> {
    // A process may be starting another one: until nobody is left.
    loop {
        let pids = ip(&["netns", "pids", namespace])?;
        let pids: Vec<Pid> =
            pids.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect();
        if pids.is_empty() {
            break;
        }
        for pid in pids {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    ip(&["netns", "delete", namespace]).map(drop)
}

/// The names of all namespaces of the machine.
pub(crate) fn all() -> Result<Vec<String>> {
    let list = ip(&["netns", "list"])?;
    Ok(list.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

/// Removes what makers that are gone left behind.
pub(crate) fn sweep() -> Result<()> {
    for namespace in all()?.iter().filter(|name| is_left_over(name)) {
        if let Err(error) = remove(namespace)
            && all()?.contains(namespace)
        {
            // Else another process swept it at the same time.
            return Err(error);
        }
    }
    Ok(())
}
