//! A memory cgroup for processes of a test.
use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A memory cgroup below the one of this process, of version 1 or 2. It is removed when this is dropped; the processes in it
/// have ended then.
#[derive(Debug)]
pub struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Makes one, whose processes may have `limit` bytes together.
    ///
    /// # Errors
    /// There is no memory controller, or no right to make a group.
    pub fn new(limit: u64) -> Result<MemoryGroup> {
        let group = MemoryGroup(own()?.join(format!("hectare-test-{}", std::process::id())));
        fs::create_dir(&group.0)?;
        fs::write(group.limit_file(), limit.to_string())?;
        Ok(group)
    }

    /// The directory of the group.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The file that has the limit: whoever writes a number into it sets another one.
    pub fn limit_file(&self) -> PathBuf {
        let v1 = self.0.join("memory.limit_in_bytes");
        if v1.exists() { v1 } else { self.0.join("memory.max") }
    }

    /// Takes a process into the group; what it starts from now on is in it, too.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn add(&self, pid: u32) -> Result<()> {
        fs::write(self.0.join("cgroup.procs"), pid.to_string())
    }
}

/// The group that counts the memory of this process.
fn own() -> Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let dir = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let top = match controllers {
            "" => "/sys/fs/cgroup",
            _ if controllers.split(',').any(|controller| controller == "memory") => "/sys/fs/cgroup/memory",
            _ => return None,
        };
        let dir = Path::new(top).join(path.trim_start_matches('/'));
        let counts = |file: &str| dir.join(file).exists();
        (counts("memory.limit_in_bytes") || counts("memory.max")).then_some(dir)
    });
    dir.ok_or_else(|| Error::new(ErrorKind::NotFound, "no memory cgroup"))
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // The memory of an ended process is uncharged a moment after it ended.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        eprintln!("cannot remove {}", self.0.display());
    }
}
