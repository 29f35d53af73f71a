//! Who has descriptors in flight: sent over a Unix socket, and not yet received. The kernel counts them per user, and
//! lets nobody send more of them than he may have files open.
use std::path::Path;
use tracing::warn;

/// The largest number of processes that are named.
const MOST_NAMED: usize = 5;

/// Says in the log which processes have sockets in which descriptors lie unreceived, in a thread: looking at every
/// descriptor of every process takes a while.
pub(super) fn name_holders(limit: u64) {
    let name = move || {
        let mut holders = holders(Path::new("/proc"));
        holders.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        if holders.is_empty() {
            warn!(
                limit,
                "descriptors cannot be passed on: too many are in flight, of processes that cannot be seen"
            );
        }
        for (pid, descriptors) in holders.into_iter().take(MOST_NAMED) {
            warn!(
                pid,
                descriptors, limit, "descriptors cannot be passed on: this process leaves some untaken"
            );
        }
    };
    if let Err(error) = std::thread::Builder::new().name("in-flight".into()).spawn(name) {
        warn!(%error, "who has descriptors in flight cannot be looked for");
    }
}

/// Processes with descriptors that lie in their sockets, and how many. (`scm_fds`, since Linux 5.6.)
fn holders(proc: &Path) -> Vec<(u32, u64)> {
    let Ok(entries) = std::fs::read_dir(proc) else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let of = |pid: u32| {
        let files = std::fs::read_dir(proc.join(pid.to_string()).join("fdinfo")).ok()?;
        let about = files.flatten().filter_map(|file| std::fs::read_to_string(file.path()).ok());
        let count = about.filter_map(|text| {
            text.lines().find_map(|line| line.strip_prefix("scm_fds:")?.trim().parse::<u64>().ok())
        });
        Some((pid, count.sum())).filter(|(_, count)| *count > 0)
    };
    pids.filter_map(of).collect()
}
