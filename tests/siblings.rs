//! A process whose threads do not end together, as those of a killed one do not: its worker is dead when none of them can
//! write any more.
use crate::common::*;
use hectare::{Error, Job};
use std::path::PathBuf;

/// A worker's thread ends, in a way in which only the kernel ends threads, while another writes what was lent to it.
fn writer(job: Job) -> ! {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let worker = Box::leak(Box::new(job.worker().unwrap()));
        let owned = Box::leak(Box::new(worker.create::<u64>("w", 1000).unwrap()));
        send.send(owned.write_whole(worker).unwrap()).unwrap();
        // SAFETY: ends this thread at once. Nothing on its stack is borrowed by others.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    });
    let slice = receive.recv().unwrap();
    loop {
        slice.iter_mut().for_each(|value| *value += 1);
        std::hint::black_box(&mut *slice);
    }
}

#[test]
fn an_owner_is_dead_when_nobody_can_write_for_it() {
    const NAME: &str = "an_owner_is_dead_when_nobody_can_write_for_it";
    if let Some((_, job)) = role() {
        writer(job);
    }
    let job = patient_job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut child = spawn(NAME, "writer", &job);
    let mut thread = PathBuf::new();
    until("the end of the owner's thread", || {
        let snapshot = job.monitor().unwrap().snapshot(1).unwrap();
        let Some(other) = snapshot.workers.iter().find(|other| other.rank == 1) else { return false };
        thread = format!("/proc/{}/task/{}", child.pid(), other.tid).into();
        snapshot.areas.len() == 1 && !thread.exists()
    });
    // The first look: later ones may come after the limit of a second.
    let alive = worker.claim::<u64>("w");
    assert!(matches!(alive, Err(Error::OwnerAlive { owner: 1, .. })), "{alive:?}");
    child.kill();
    let claimed = worker.claim::<u64>("w").unwrap();
    assert_eq!(uniform(claimed.owned.read(&worker).unwrap()), 0);
    assert_eq!(job.stats().unwrap().deaths, 1);
}
