//! Hierarchies as they are found on hosts and in containers, rebuilt in a directory.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Charge, groups_below};

/// A directory that stands for `/`, removed when dropped.
pub(in crate::memory) struct Fixture(PathBuf);

impl Fixture {
    /// An empty directory. `name` tells fixtures of one test process apart.
    pub(in crate::memory) fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("hectare-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    /// Writes a file, and the directories above it.
    pub(in crate::memory) fn file(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// A version 1 group with a limit, use and page cache.
    pub(in crate::memory) fn v1(&self, dir: &str, limit: u64, used: u64, cache: u64) -> &Self {
        self.file(&format!("{dir}/memory.limit_in_bytes"), format!("{limit}\n"))
            .file(&format!("{dir}/memory.usage_in_bytes"), format!("{used}\n"))
            .file(&format!("{dir}/memory.use_hierarchy"), "1\n")
            .file(&format!("{dir}/memory.stat"), format!("inactive_file 7\ntotal_inactive_file {cache}\n"))
    }

    /// A version 2 group with a limit in its own notation, use and page cache.
    pub(in crate::memory) fn v2(&self, dir: &str, max: &str, used: u64, cache: u64) -> &Self {
        self.file(&format!("{dir}/memory.max"), format!("{max}\n"))
            .file(&format!("{dir}/memory.current"), format!("{used}\n"))
            .file(&format!("{dir}/memory.stat"), format!("anon 5\ninactive_file {cache}\nfile_dirty 3\n"))
    }

    pub(in crate::memory) fn path(&self) -> &Path {
        &self.0
    }

    fn charges(&self) -> Vec<(String, Option<Charge>)> {
        let groups = groups_below(&self.0).unwrap();
        groups.into_iter().map(|group| (group.name.clone(), group.charge().unwrap())).collect()
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const V1_MOUNT: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
    34 31 0:31 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
    35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n";
const V2_MOUNT: &str = "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

fn named(name: &str, limit: u64, used: u64) -> (String, Option<Charge>) {
    (name.to_owned(), Some(Charge { limit, used }))
}

#[test]
fn walks_version_1_from_the_outermost_group() {
    let host = Fixture::new("v1");
    host.file("proc/self/cgroup", "9:name=systemd:/other\n4:cpuacct,memory:/a/b\n0::/\n")
        .file("proc/self/mountinfo", V1_MOUNT)
        .v1("sys/fs/cgroup/memory", i64::MAX as u64, 900, 0)
        .v1("sys/fs/cgroup/memory/a", 500, 400, 100)
        .v1("sys/fs/cgroup/memory/a/b", 600, 50, 10)
        .v1("sys/fs/cgroup/memory/c", 1, 1, 0);
    let expected = [named("/", i64::MAX as u64, 900), named("/a", 500, 300), named("/a/b", 600, 40)];
    assert_eq!(host.charges(), expected);
}

#[test]
fn a_version_1_parent_without_hierarchy_limits_only_itself() {
    let host = Fixture::new("v1-flat");
    host.file("proc/self/cgroup", "4:memory:/a/b\n")
        .file("proc/self/mountinfo", V1_MOUNT)
        .v1("sys/fs/cgroup/memory/a", 500, 400, 100)
        .file("sys/fs/cgroup/memory/a/memory.use_hierarchy", "0\n")
        .v1("sys/fs/cgroup/memory/a/b", 600, 50, 10)
        .file("sys/fs/cgroup/memory/a/b/memory.use_hierarchy", "0\n");
    assert_eq!(host.charges(), [("/".into(), None), ("/a".into(), None), named("/a/b", 600, 40)]);
}

#[test]
fn a_version_1_limit_above_the_mount_is_inherited() {
    let container = Fixture::new("v1-inherited");
    container
        .file("proc/self/cgroup", "4:memory:/docker/abc\n")
        .file("proc/self/mountinfo", "35 31 0:32 /docker/abc /cg\\040mem rw - cgroup cgroup rw,memory\n")
        .v1("cg mem", i64::MAX as u64, 50, 0)
        .file(
            "cg mem/memory.stat",
            "hierarchical_memory_limit 300\ntotal_inactive_file 20\ntotal_active_file 20\n\
             total_dirty 4\ntotal_writeback 6\n",
        );
    assert_eq!(container.charges(), [named("/docker/abc", 300, 20)]);
}

#[test]
fn walks_version_2_and_knows_max_and_high() {
    let host = Fixture::new("v2");
    host.file("proc/self/cgroup", "0::/user.slice/job:1\n")
        .file("proc/self/mountinfo", V2_MOUNT)
        .v2("sys/fs/cgroup/user.slice", "1000", 700, 203)
        .v2("sys/fs/cgroup/user.slice/job:1", "max", 300, 3)
        .file("sys/fs/cgroup/memory.stat", "inactive_file 3\n");
    let root = ("/".to_owned(), None);
    let job = |limit| named("/user.slice/job:1", limit, 300);
    assert_eq!(host.charges(), [root.clone(), named("/user.slice", 1000, 500), job(u64::MAX)]);
    host.file("sys/fs/cgroup/user.slice/job:1/memory.high", "800\n");
    assert_eq!(host.charges(), [root, named("/user.slice", 1000, 500), job(800)]);
}

#[test]
fn a_path_that_is_not_below_the_mount_leaves_what_exists() {
    let container = Fixture::new("namespace");
    container
        .file("proc/self/mountinfo", V2_MOUNT)
        .v2("sys/fs/cgroup", "64", 8, 3)
        .v2("sys/fs/cgroup/a", "32", 8, 3)
        .v2("sys/fs/secret", "1", 1, 3);
    let mount = ("/".to_owned(), Some(Charge { limit: 64, used: 8 }));
    for (path, expected) in [
        ("/kubepods/pod7", vec![mount.clone()]),
        ("/../../secret", vec![mount.clone()]),
        ("/", vec![mount.clone()]),
        ("/a/gone", vec![mount.clone(), named("/a", 32, 8)]),
    ] {
        container.file("proc/self/cgroup", format!("0::{path}\n"));
        assert_eq!(container.charges(), expected, "{path}");
    }
}

#[test]
fn of_several_mounts_the_most_telling_is_used() {
    let host = Fixture::new("mounts");
    let other = "40 31 0:28 /x /elsewhere rw - cgroup2 cgroup2 rw\n";
    host.file("proc/self/cgroup", "0::/a/b\n")
        .file("proc/self/mountinfo", format!("{other}{V2_MOUNT}"))
        .v2("elsewhere", "5", 1, 3)
        .v2("sys/fs/cgroup/a/b", "64", 8, 3);
    assert_eq!(host.charges().last(), Some(&named("/a/b", 64, 8)));
}

#[test]
fn a_host_without_cgroups_has_no_groups() {
    let host = Fixture::new("none");
    assert_eq!(host.charges(), []);
    host.file("proc/self/cgroup", "1:cpu:/x\nnot a line\n").file("proc/self/mountinfo", "what\n - \n- x\n");
    assert_eq!(host.charges(), []);
}

#[test]
fn a_damaged_number_is_an_error_that_names_the_file() {
    let host = Fixture::new("damaged");
    host.file("proc/self/cgroup", "0::/a\n").file("proc/self/mountinfo", V2_MOUNT).v2(
        "sys/fs/cgroup/a",
        "12 apples",
        1,
        3,
    );
    let error = groups_below(host.path()).unwrap()[1].charge().unwrap_err().to_string();
    assert!(error.ends_with("/sys/fs/cgroup/a/memory.max: expected bytes or \"max\", found \"12 apples\""));
}
