//! Limits from fixtures, and real memory: of the host and of a cgroup made for the test.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

use super::super::cgroup::tests::Fixture;
use super::{Headroom, Limits, ReserveError, headroom, punch, reserve_within};
use hectare_testing::MemoryGroup;

const MIB: u64 = 1 << 20;

fn reserve(fd: std::os::fd::BorrowedFd<'_>, offset: u64, len: u64) -> Result<(), ReserveError> {
    super::reserve(fd, offset, len, &mut || {})
}

fn memfd(len: u64) -> File {
    // SAFETY: the name is a string with a terminating zero.
    let fd = unsafe { libc::memfd_create(c"limits-test".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(len).unwrap();
    file
}

/// How many bytes of a file are allocated.
fn allocated(file: &File) -> u64 {
    file.metadata().unwrap().blocks() * 512
}

fn host(name: &str, total_mib: u64, available_mib: u64) -> Fixture {
    let host = Fixture::new(name);
    let (total, available) = (total_mib * 1024, available_mib * 1024);
    let text = format!("MemTotal:       {total} kB\nMemFree: 5 kB\nMemAvailable:   {available} kB\n");
    host.file("proc/meminfo", text);
    host
}

fn headroom_of(root: &Fixture) -> Headroom {
    Limits::below(root.path()).unwrap().headroom().unwrap()
}

#[test]
fn without_cgroups_the_host_limits() {
    let host = host("host", 4096, 1000);
    let expected = Headroom { free: (1000 - 64) * MIB, limit: 4096 * MIB, payer: "host".into() };
    assert_eq!(headroom_of(&host), expected);
}

#[test]
fn the_tightest_ancestor_limits_and_is_named() {
    let host = host("ancestor", 4096, 4000);
    host.file("proc/self/cgroup", "0::/a/b/c\n")
        .file("proc/self/mountinfo", "31 23 0:28 / /cg rw - cgroup2 cgroup2 rw\n")
        .v2("cg/a", "max", 900 * MIB, 0)
        .v2("cg/a/b", &(160 * MIB).to_string(), 130 * MIB, 10 * MIB + 3)
        .v2("cg/a/b/c", &(256 * MIB).to_string(), 100 * MIB, 0);
    let expected = Headroom { free: 30 * MIB, limit: 160 * MIB, payer: "cgroup /a/b".into() };
    assert_eq!(headroom_of(&host), expected);
    host.v2("cg/a/b", "1048576", 130 * MIB, 0);
    assert_eq!(headroom_of(&host).free, 0);
}

#[test]
fn what_can_be_reclaimed_is_only_read_if_it_matters() {
    for version in [1, 2] {
        let host = host("reclaim", 4096, 4000);
        let (limit, used, cache) = (160 * MIB, 130 * MIB, 20 * MIB);
        let of_a = match version {
            1 => {
                host.file("proc/self/cgroup", "4:memory:/a/b\n")
                    .file("proc/self/mountinfo", "35 31 0:32 / /cg rw - cgroup cgroup rw,memory\n")
                    .v1("cg", i64::MAX as u64 - 4095, 0, 0)
                    .v1("cg/a/b", 1000 * MIB, used, 0)
                    .v1("cg/a", limit, used, cache);
                "cg/a/memory.stat"
            }
            _ => {
                host.file("proc/self/cgroup", "0::/a/b\n")
                    .file("proc/self/mountinfo", "31 23 0:28 / /cg rw - cgroup2 cgroup2 rw\n")
                    .v2("cg/a/b", "max", used, 0)
                    .v2("cg/a", &limit.to_string(), used, cache);
                "cg/a/memory.stat"
            }
        };
        let limits = Limits::below(host.path()).unwrap();
        let rough = limits.headroom_for(20 * MIB).unwrap();
        let expected = |free| Headroom { free, limit, payer: "cgroup /a".into() };
        assert_eq!(rough, expected(20 * MIB), "version {version}");
        let exact = limits.headroom_for(20 * MIB + 1).unwrap();
        let dirty = if version == 1 { 0 } else { 3 };
        assert_eq!(exact, expected(40 * MIB - dirty), "version {version}");
        assert_eq!(limits.headroom().unwrap(), exact, "version {version}");
        // A damaged one shows that it is not read where it does not matter.
        host.file(of_a, [0xff]);
        assert_eq!(limits.headroom_for(20 * MIB).unwrap(), rough, "version {version}");
        assert!(limits.headroom_for(20 * MIB + 1).is_err(), "version {version}");
    }
}

#[test]
fn a_version_1_limit_that_is_inherited_counts_also_in_a_rough_look() {
    let host = host("rough-inherited", 4096, 4000);
    host.file("proc/self/cgroup", "4:memory:/docker/abc\n")
        .file("proc/self/mountinfo", "35 31 0:32 /docker/abc /cg rw - cgroup cgroup rw,memory\n")
        .v1("cg", i64::MAX as u64, 50 * MIB, 0)
        .file("cg/memory.stat", format!("hierarchical_memory_limit {}\n", 160 * MIB));
    let limits = Limits::below(host.path()).unwrap();
    assert_eq!(limits.headroom_for(1).unwrap().free, 100 * MIB);
}

#[test]
fn version_1_limits_next_to_an_empty_version_2() {
    let host = host("hybrid", 4096, 4000);
    host.file("proc/self/cgroup", "4:memory:/a\n0::/\n")
        .file(
            "proc/self/mountinfo",
            "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n\
             41 31 0:38 / /cg/u rw - cgroup2 cgroup2 rw\n",
        )
        .file("cg/u/cgroup.procs", "")
        .v1("cg/memory", i64::MAX as u64, 0, 0)
        .v1("cg/memory/a", 64 * MIB, 20 * MIB, 4 * MIB);
    let expected = Headroom { free: 44 * MIB, limit: 64 * MIB, payer: "cgroup /a".into() };
    assert_eq!(headroom_of(&host), expected);
}

#[test]
fn damaged_meminfo_is_an_error_that_names_the_file() {
    let host = Fixture::new("meminfo");
    host.file("proc/meminfo", "MemTotal: many kB\nMemAvailable: 3 kB\n");
    let error = Limits::below(host.path()).unwrap().headroom().unwrap_err();
    assert!(error.to_string().ends_with("/proc/meminfo: no number of kB after MemTotal:"), "{error}");
}

#[test]
fn this_host_has_headroom() {
    let headroom = headroom().unwrap();
    assert!(headroom.free > 0 && headroom.free < headroom.limit, "{headroom:?}");
}

#[test]
fn reserves_and_punches_real_pages() {
    let file = memfd(64 * MIB);
    reserve(file.as_fd(), 4 * MIB, 40 * MIB).unwrap();
    assert_eq!(allocated(&file), 40 * MIB);
    file.write_all_at(&[7; 8], 4 * MIB).unwrap();
    punch(file.as_fd(), 4 * MIB, MIB).unwrap();
    assert_eq!(allocated(&file), 39 * MIB);
    let mut bytes = [1; 8];
    file.read_exact_at(&mut bytes, 4 * MIB).unwrap();
    assert_eq!(bytes, [0; 8]);
    punch(file.as_fd(), 0, 64 * MIB).unwrap();
    assert_eq!((allocated(&file), file.metadata().unwrap().len()), (0, 64 * MIB));
    reserve(file.as_fd(), 0, 0).unwrap();
    punch(file.as_fd(), 0, 0).unwrap();
    assert_eq!(allocated(&file), 0);
}

#[test]
fn more_than_the_host_has_is_refused_before_anything_is_reserved() {
    let len = 1 << 45;
    let file = memfd(len);
    let error = reserve(file.as_fd(), 0, len).unwrap_err();
    let ReserveError::OutOfMemory { asked, free, limit, .. } = &error else { panic!("{error:?}") };
    assert!(*asked == len && free < limit && *free < len, "{error}");
    assert_eq!(allocated(&file), 0);
}

#[test]
fn memory_that_runs_out_on_the_way_leaves_nothing_reserved() {
    let file = memfd(64 * MIB);
    let mut free = [64, 56, 48, 12].map(|mib| mib * MIB).into_iter();
    let next = |_enough| Ok(Headroom { free: free.next().unwrap(), limit: 64 * MIB, payer: "host".into() });
    let error = reserve_within(file.as_fd(), 0, 40 * MIB, next).unwrap_err();
    // Slices of an eighth of what was free: 8, 7 and 6 MiB.
    let message = "out of memory: asked for 41943040 bytes, 34603008 of 67108864 are free for host";
    assert_eq!(error.to_string(), message);
    assert_eq!(allocated(&file), 0);
}

#[test]
fn refusals_of_the_system_are_errors() {
    let file = memfd(MIB);
    let unaligned = reserve(file.as_fd(), 0, 100).unwrap_err();
    assert!(matches!(unaligned, ReserveError::Os { call: "fallocate", .. }), "{unaligned:?}");
    let (reader, _writer) = io::pipe().unwrap();
    let pipe = reserve(reader.as_fd(), 0, MIB).unwrap_err();
    assert!(matches!(pipe, ReserveError::Os { call: "fallocate", .. }), "{pipe:?}");
    assert!(punch(reader.as_fd(), 0, MIB).is_err());
    assert!(punch(file.as_fd(), u64::MAX, 1).is_err());
}

/// The memory limit of a test's child.
const LIMIT: u64 = 64 * MIB;

/// The variable that makes the test below the child that lives in the cgroup.
const CHILD: &str = "HECTARE_TEST_CGROUP";

#[test]
fn a_cgroup_limit_is_an_error_and_not_a_kill() {
    if let Some(dir) = std::env::var_os(CHILD) {
        return live_in_cgroup(Path::new(&dir));
    }
    let group = match MemoryGroup::new(LIMIT) {
        Ok(group) => group,
        Err(error) => return hectare_testing::skip("cgroup", error),
    };
    let name = "memory::limits::tests::a_cgroup_limit_is_an_error_and_not_a_kill";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, group.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{}: {said}{}", child.status, String::from_utf8_lossy(&child.stderr));
    assert!(said.contains("reserved 16 MiB, refused 256 MiB"), "{said}");
}

/// The child: it enters the cgroup, and asks for too much, for less, and again for too much.
fn live_in_cgroup(dir: &Path) {
    // What is known of the group that it was in before does not count.
    assert!(!headroom().unwrap().payer.contains("hectare-test-"));
    fs::write(dir.join("cgroup.procs"), std::process::id().to_string()).unwrap();
    let file = memfd(256 * MIB);
    let refused = |file: &File| {
        let error = reserve(file.as_fd(), 16 * MIB, 240 * MIB).unwrap_err();
        let ReserveError::OutOfMemory { free, limit, payer, .. } = &error else { panic!("{error:?}") };
        assert!(*limit == LIMIT && free < limit, "{error}");
        assert!(payer.starts_with("cgroup /") && payer.contains("hectare-test-"), "{error}");
    };
    let error = reserve(file.as_fd(), 0, 256 * MIB).unwrap_err();
    assert!(matches!(error, ReserveError::OutOfMemory { .. }), "{error:?}");
    assert_eq!(allocated(&file), 0);
    reserve(file.as_fd(), 0, 16 * MIB).unwrap();
    for page in 0..16 * MIB / 4096 {
        file.write_all_at(&[1; 4096], page * 4096).unwrap();
    }
    refused(&file);
    assert_eq!(allocated(&file), 16 * MIB, "what was reserved before stays");
    // As much as can be had, so that the limit is met from right below, and the same once more.
    let free = headroom().unwrap().free / 4096 * 4096;
    reserve(file.as_fd(), 16 * MIB, free - MIB).unwrap();
    refused(&file);
    punch(file.as_fd(), 0, 256 * MIB).unwrap();
    // Two at a time, together too much: at most one gets it, and nobody is killed.
    let race = |offset| {
        for _ in 0..20 {
            match reserve(file.as_fd(), offset, 40 * MIB) {
                Ok(()) => punch(file.as_fd(), offset, 40 * MIB).unwrap(),
                Err(error) => assert!(matches!(error, ReserveError::OutOfMemory { .. }), "{error:?}"),
            }
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| race(0));
        race(128 * MIB);
    });
    assert_eq!(allocated(&file), 0);
    println!("reserved 16 MiB, refused 256 MiB");
}
