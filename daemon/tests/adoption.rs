//! Which memory the daemon accepts as that of a job when a member brings it.
use crate::common::{Host, until};
use hectare_dsm::Job;
use hectare_wire::{Connection, Error, Member, Membership, Refusal, Reply, Request, Result};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

fn bring(
    connection: &Connection,
    job: &str,
    memory: Option<BorrowedFd<'_>>,
    ranks: &[u32],
) -> Result<Vec<u32>> {
    let request = Request::Adopt { job: job.into(), keep: false, ranks: ranks.to_vec() };
    match connection.ask_with(&request, memory)?.0 {
        Reply::Adopted { missing } => Ok(missing),
        other => panic!("{other:?}"),
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T>) -> Refusal {
    match result {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// The memory of a job.
fn small() -> OwnedFd {
    Job::builder().reserve(1 << 20).max_workers(4).max_areas(4).memory().unwrap()
}

/// A copy of a job's memory that is writable, sealed as asked, and changed in one byte.
fn copy_of(source: &OwnedFd, seals: SealFlags, change: Option<usize>) -> OwnedFd {
    let size = rustix::fs::fstat(source).unwrap().st_size as u64;
    let copy = rustix::fs::memfd_create("copy", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    rustix::fs::ftruncate(&copy, size).unwrap();
    let mut head = vec![0; 4096];
    rustix::io::pread(source, &mut head, 0).unwrap();
    if let Some(at) = change {
        head[at] ^= 0x40;
    }
    rustix::io::pwrite(&copy, &head, 0).unwrap();
    rustix::fs::fcntl_add_seals(&copy, seals).unwrap();
    copy
}

#[test]
fn what_is_no_memory_of_a_job_is_refused_and_named() {
    let host = Host::new();
    let daemon = host.daemon("");
    let connection = host.connect();
    let no = |memory: Option<BorrowedFd<'_>>, part: &str| {
        let refusal = refused(bring(&connection, "j", memory, &[0]));
        assert!(matches!(&refusal, Refusal::NotAdopted { what, .. } if what.contains(part)), "{refusal}");
    };
    no(None, "no descriptor");
    no(Some(std::fs::File::open("/dev/null").unwrap().as_fd()), "not a memfd");
    no(Some(tempfile::tempfile().unwrap().as_fd()), "not a memfd");
    let job = small();
    let all = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    no(Some(copy_of(&job, SealFlags::GROW | SealFlags::SHRINK, None).as_fd()), "not a memfd that is sealed");
    no(Some(copy_of(&job, all | SealFlags::FUTURE_WRITE, None).as_fd()), "not a memfd that is sealed");
    let read_only = format!("/proc/self/fd/{}", job.as_fd().as_raw_fd());
    let read_only = rustix::fs::open(read_only, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    no(Some(read_only.as_fd()), "reading and writing");
    // A flipped bit anywhere in the header: most are found (not those of settings that have no size, such as
    // time-outs), none does harm.
    let header = 256;
    let mut mattered = 0;
    for at in 0..header {
        let changed = copy_of(&job, all, Some(at));
        let connection = host.connect();
        mattered +=
            usize::from(bring(&connection, &format!("changed-{at}"), Some(changed.as_fd()), &[]).is_err());
    }
    assert!(mattered > 80, "{mattered}");
    no(Some(rustix::fs::memfd_create("empty", MemfdFlags::CLOEXEC).unwrap().as_fd()), "not a memfd");
    let refusal = refused(bring(&connection, "j", Some(job.as_fd()), &[3, 4]));
    assert!(
        refusal.to_string().contains("rank 4 is not below 4, the number of its worker slots"),
        "{refusal}"
    );
    let refusal = refused(bring(&connection, "../j", Some(job.as_fd()), &[]));
    assert!(matches!(refusal, Refusal::InvalidName { .. }));
    // The connection is as good as before.
    assert!(bring(&connection, "j", Some(job.as_fd()), &[3, 1, 3]).unwrap().is_empty());
    assert!(!daemon.log().contains("panicked"));
}

#[test]
fn one_name_is_one_memory_and_a_rank_has_one_holder() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let (job, other) = (small(), small());
    let [first, second, third] = [host.connect(), host.connect(), host.connect()];
    assert!(bring(&first, "j", Some(job.as_fd()), &[0, 2]).unwrap().is_empty());
    let refusal = refused(bring(&second, "j", Some(other.as_fd()), &[1]));
    assert!(matches!(refusal, Refusal::OtherJob { .. }));
    // Another descriptor of the same memory is the same job.
    let again = job.try_clone().unwrap();
    assert_eq!(bring(&second, "j", Some(again.as_fd()), &[1, 2]).unwrap(), [2]);
    assert_eq!((host.jobs()[0].members, host.jobs()[0].ranks), (2, 3));
    assert!(matches!(
        refused(bring(&second, "k", Some(job.as_fd()), &[])),
        Refusal::UnexpectedRequest { .. }
    ));
    // Whoever attaches gets this memory and the lowest rank that nobody holds.
    let (reply, memory) = third.ask(&Request::Attach { job: "j".into(), rank: None }).unwrap();
    assert_eq!(reply, Reply::Attached { rank: 3, created: false });
    let (ours, theirs) = (rustix::fs::fstat(&again).unwrap(), rustix::fs::fstat(memory.unwrap()).unwrap());
    assert_eq!(ours.st_ino, theirs.st_ino);
    // Ranks on demand, and back.
    assert!(matches!(
        refused(second.order(&Request::RankAt { rank: 0 })),
        Refusal::RankTaken { rank: 0, .. }
    ));
    second.order(&Request::RankAt { rank: 1 }).unwrap();
    second.order(&Request::ReleaseRank { rank: 0 }).unwrap();
    first.order(&Request::ReleaseRank { rank: 0 }).unwrap();
    second.order(&Request::RankAt { rank: 0 }).unwrap();
    assert_eq!(host.jobs()[0].ranks, 4);
}

#[test]
fn quotas_hold_for_what_is_brought() {
    let host = Host::new();
    let _daemon = host.daemon("max_jobs = 1\n[limits]\nbytes = 1048576\nareas = 4\nworkers = 4\n");
    let connection = host.connect();
    let by = |job: OwnedFd| match refused(bring(&connection, "j", Some(job.as_fd()), &[])) {
        Refusal::Quota { by, .. } => by,
        other => panic!("{other}"),
    };
    let build = || Job::builder().reserve(1 << 20).max_workers(4).max_areas(4);
    assert!(by(build().reserve(2 << 20).memory().unwrap()).contains("limits.bytes"));
    assert!(by(build().max_workers(5).memory().unwrap()).contains("limits.workers"));
    assert!(by(build().max_areas(5).memory().unwrap()).contains("limits.areas"));
    let holder = host.connect();
    bring(&holder, "other", Some(small().as_fd()), &[]).unwrap();
    assert!(by(build().memory().unwrap()).contains("max_jobs"));
    drop(holder);
    until("room for a job", || bring(&connection, "j", Some(small().as_fd()), &[]).is_ok());
}

/// A member that the next daemon refuses says why when it is asked for more.
#[test]
fn who_is_not_taken_back_is_told_why() {
    let host = Host::new();
    let daemon = host.daemon("");
    let member = Member::hold(&host.dir, "j").unwrap();
    daemon.kill();
    let _daemon = host.daemon("[limits]\nbytes = 1048576\n");
    until("a refusal", || matches!(member.state(), Membership::Refused { .. }));
    let refused = [member.rank().unwrap_err(), member.rank_at(2).unwrap_err()];
    for error in refused {
        let text = error.to_string();
        assert!(text.contains("not take this process back as a member of job \"j\": "), "{text}");
        assert!(text.contains("limits.bytes") && !text.contains("another job"), "{text}");
    }
}
