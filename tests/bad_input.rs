//! Descriptors and settings that cannot make a job, or a worker of one.
use crate::common::this_program;
use hectare::{Error, Job, JobBuilder, StallPolicy};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

#[test]
fn settings_that_make_no_sense() {
    let zero = Duration::ZERO;
    let bad: [(&str, JobBuilder); 14] = [
        ("reserve", Job::builder().reserve(0)),
        ("reserve", Job::builder().reserve(u64::MAX)),
        ("round_timeout", Job::builder().round_timeout(zero)),
        ("stall_policy", Job::builder().stall_policy(StallPolicy::Kill { after: zero })),
        ("stall_policy", Job::builder().stall_policy(StallPolicy::Pin { after: zero })),
        ("max_workers", Job::builder().max_workers(0)),
        ("max_workers", Job::builder().max_workers(u32::MAX)),
        ("max_areas", Job::builder().max_areas(0)),
        ("max_areas", Job::builder().max_areas(u32::MAX)),
        ("max_name_bytes", Job::builder().max_name_bytes(0)),
        ("generations", Job::builder().generations(2, 1)),
        ("seal_every", Job::builder().generations(3, 0)),
        ("pins_per_observer", Job::builder().pins_per_observer(0)),
        ("max_observers", Job::builder().max_observers(u32::MAX)),
    ];
    for (name, builder) in bad {
        let error = builder.embedded().unwrap_err();
        assert!(matches!(&error, Error::InvalidConfig { what } if what.contains(name)), "{name}: {error}");
    }
}

#[test]
fn more_workers_than_slots() {
    let job = Job::builder().reserve(1 << 20).max_workers(2).embedded().unwrap();
    let error = job.run(3, |_| ()).unwrap_err();
    assert!(matches!(error, Error::TooManyWorkers { asked: 3, free: 2, max: 2 }), "{error}");
    let first = job.worker_at(1).unwrap();
    let error = job.worker_at(1).unwrap_err();
    assert!(matches!(error, Error::RankTaken { rank: 1, pid } if pid == std::process::id()), "{error}");
    let error = job.worker_at(2).unwrap_err();
    assert!(error.to_string().contains("worker 2 asked for, but the job has workers 0 to 1"), "{error}");
    let mut second = job.worker().unwrap();
    assert_eq!(second.rank(), 0);
    let error = second.wait_for_workers(3, std::time::Duration::MAX).unwrap_err();
    assert!(matches!(error, Error::NoSuchRank { rank: 2, max: 2 }), "{error}");
    assert!(matches!(job.worker(), Err(Error::TooManyWorkers { asked: 1, free: 0, max: 2 })));
    assert!(matches!(job.run(1, |_| ()), Err(Error::TooManyWorkers { .. })));
    drop(first);
    assert_eq!(job.worker().unwrap().rank(), 1);
    assert!(job.run(0, |_| ()).unwrap().is_empty());
}

fn memfd(bytes: &[u8], seals: i32) -> OwnedFd {
    // SAFETY: plain system calls; `bytes` is readable; the descriptor is fresh.
    unsafe {
        let fd = libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        assert!(fd >= 0);
        let mut done = 0;
        while done < bytes.len() {
            let rest = &bytes[done..];
            let count = libc::pwrite(fd, rest.as_ptr().cast(), rest.len(), done as i64);
            assert!(count > 0);
            done += count as usize;
        }
        assert_eq!(libc::fcntl(fd, libc::F_ADD_SEALS, seals), 0);
        OwnedFd::from_raw_fd(fd)
    }
}

fn memory(job: &Job) -> BorrowedFd<'_> {
    // SAFETY: it is read, and truncated, which the seals refuse.
    unsafe { job.descriptor() }
}

fn contents(job: &Job) -> Vec<u8> {
    let fd = memory(job).as_raw_fd();
    let mut bytes = vec![0u8; file_size(fd)];
    // SAFETY: `bytes` is writable for its length.
    let count = unsafe { libc::pread(fd, bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    assert_eq!(count as usize, bytes.len());
    bytes
}

fn file_size(fd: i32) -> usize {
    // SAFETY: zero is a valid stat, which the call fills.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        assert_eq!(libc::fstat(fd, &mut stat), 0);
        stat.st_size as usize
    }
}

#[test]
fn descriptors_that_are_no_job() {
    let seals = libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    let small = || Job::builder().max_areas(4).max_workers(2).reserve(1 << 20);
    let job = small().embedded().unwrap();
    let good = contents(&job);
    assert!(Job::from_descriptor(memfd(&good, seals)).is_ok(), "a true copy is a job");
    assert!(Job::from_descriptor(memory(&job).try_clone_to_owned().unwrap()).is_ok());

    let not_a_segment = |name: &str, fd: OwnedFd| {
        let error = Job::from_descriptor(fd).unwrap_err();
        assert!(matches!(error, Error::NotASegment { .. }), "{name}: {error}");
    };
    let (pipe, _write_end) = std::io::pipe().unwrap();
    not_a_segment("pipe", pipe.into());
    not_a_segment("file", std::fs::File::open("Cargo.toml").unwrap().into());
    not_a_segment("directory", std::fs::File::open(".").unwrap().into());
    not_a_segment("unsealed", memfd(&good, 0));
    not_a_segment("empty", memfd(&[], seals));
    not_a_segment("a few bytes", memfd(&good[..100], seals));
    not_a_segment("truncated", memfd(&good[..good.len() - 4096], seals));
    not_a_segment("zeros", memfd(&vec![0; good.len()], seals));
    let mut longer = good.clone();
    longer.extend([0; 4096]);
    not_a_segment("longer", memfd(&longer, seals));

    // The version is the word behind the magic.
    let mut other = good.clone();
    let expected = u32::from_le_bytes(good[8..12].try_into().unwrap());
    other[8..12].copy_from_slice(&(expected + 7).to_le_bytes());
    let error = Job::from_descriptor(memfd(&other, seals)).unwrap_err();
    assert!(
        matches!(error, Error::LayoutVersion { found, expected: own } if found == expected + 7 && own == expected)
    );

    // Any word of the configuration or the map that is changed, in turn: refused, or a job like before.
    for at in (16..256).step_by(4) {
        let mut broken = good.clone();
        for byte in &mut broken[at..at + 4] {
            *byte ^= 0xa5;
        }
        let _ = Job::from_descriptor(memfd(&broken, seals));
    }
    let sealed = memory(&job).as_raw_fd();
    // SAFETY: a plain system call on an open descriptor.
    let shrunk = unsafe { libc::ftruncate(sealed, 0) };
    assert_eq!(shrunk, -1, "nobody can take the memory away");
}

/// The value of `HECTARE_DESCRIPTOR` is checked before it is used.
#[test]
fn what_a_process_does_not_inherit() {
    const NAME: &str = "what_a_process_does_not_inherit";
    const EXPECTED: &str = "HECTARE_TEST_EXPECTED";
    if let Ok(expected) = std::env::var(EXPECTED) {
        let error = Job::inherited().unwrap_err().to_string();
        return assert!(error.contains(&expected), "{error}");
    }
    assert!(Job::inherited().unwrap().is_none());
    for (number, expected) in
        [("x", "HECTARE_DESCRIPTOR"), ("-1", "F_DUPFD"), ("777", "F_DUPFD"), ("0", "memfd")]
    {
        let mut command = this_program(NAME);
        command.env("HECTARE_DESCRIPTOR", number).env(EXPECTED, expected);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{number}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
