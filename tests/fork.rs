//! A forked child is refused by every call, and does its parent no harm.
use crate::common::*;
use hectare::{Area, AreaSpec, Error, Job, Observer, Owned, Tracking, Version, Worker};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Runs `body` in a forked child, which must end well.
fn in_child(body: impl FnOnce()) {
    // SAFETY: the child calls no more than `body` and `_exit`; glibc's allocator works after a fork.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0);
        if pid == 0 {
            libc::alarm(LONG.as_secs() as libc::c_uint);
            let end = catch_unwind(AssertUnwindSafe(body));
            libc::_exit(if end.is_ok() { 0 } else { 1 });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        assert!(
            libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
            "the child ended with {status:#x}"
        );
    }
}

macro_rules! refused {
    ($($call:expr),+ $(,)?) => {
        $(match $call {
            Err(Error::ForkedChild) => {}
            Err(other) => panic!("{}: {other}", stringify!($call)),
            Ok(_) => panic!("{} went through", stringify!($call)),
        })+
    };
}

fn try_everything(
    job: &Job,
    worker: &mut Worker,
    owned: &mut Owned<u64>,
    area: &Area<u64>,
    observer: &Observer,
) {
    let time = Duration::from_millis(1);
    refused!(
        job.worker(),
        job.worker_at(3),
        job.observer(),
        job.run(1, |_| ()),
        job.attach::<u64>("w"),
        job.attach_within::<u64>("w", time),
        job.areas(),
        job.delete("w"),
        job.workers(),
        job.stats(),
        job.free_bytes(),
        worker.service(),
        worker.sync(),
        worker.sync_area(area),
        worker.create::<u64>("x", 1),
        worker.attach::<u64>("w"),
        worker.attach_within::<u64>("w", time),
        worker.wait_for(area, Version::default(), time),
        worker.wait_fresher_than(area, time, time),
        worker.wait_for_workers(1, time),
        worker.claim::<u64>("w"),
        worker.tick(),
        worker.wait_clocks(0),
        worker.wait_clocks_within(0, time),
        worker.barrier(),
        worker.barrier_within(time),
        worker.wait_clock_of(area, 0, time),
        area.read(worker),
        area.row(worker, 0),
        area.version(worker),
        area.timestamp_ns(worker),
        area.age(worker),
        area.clock(worker),
        area.changed_since(worker, Version::default()),
        area.take(worker),
        area.take_within(worker, time),
        area.try_take(worker),
        area.notify(),
        owned.read(worker),
        owned.write(worker),
        owned.as_mut_ptr(worker),
        owned.log(worker, 0..1),
        observer.read(area),
    );
    assert_eq!((area.newest_version(), area.postponed(), worker.clock()), (None, 0, 0));
    area.seal();
    area.request_sync();
    worker.leave_clocks();
    assert!(matches!(worker.rejoin_clocks(), Err(Error::ForkedChild)));
    assert!(worker.unlogged_writes().is_empty());
    assert_eq!((worker.rank(), owned.len(), area.len(), owned.epoch()), (0, 100, 100, 1));
}

#[test]
fn every_call_is_refused_and_the_parent_goes_on() {
    let job = patient_job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(2), 100).unwrap();
    let area = owned.area();
    let observer = job.observer().unwrap();
    for turn in 1..4 {
        fill(&mut owned, &worker, turn);
        in_child(|| try_everything(&job, &mut worker, &mut owned, &area, &observer));
        worker.barrier().unwrap();
        assert_eq!(uniform(area.read(&worker).unwrap()), turn);
        assert_eq!(uniform(&observer.read(&area).unwrap()), turn);
    }
    assert_eq!(job.workers().unwrap().len(), 1);
}

#[test]
fn what_a_child_drops_stays_with_the_parent() {
    let job = patient_job();
    let _watch = watch(&job);
    let mut worker = Some(job.worker().unwrap());
    let spec = AreaSpec::new("w").copies(2).tracking(Tracking::Automatic);
    let mut owned = Some(worker.as_mut().unwrap().create::<u64>(spec, 100).unwrap());
    let area = owned.as_ref().unwrap().area();
    let mut observer = Some(job.observer().unwrap());
    let mut pinned = Some(observer.as_ref().unwrap().read(&area).unwrap());
    let mut gift = Some(worker.as_mut().unwrap().create::<u64>("gift", 10).unwrap());
    let notification = area.notify().unwrap();
    let mut held = Some((job.clone(), notification));
    let (me, mine) = (&mut worker, &mut owned);
    in_child(|| {
        let refused = gift.take().unwrap().give(me.as_ref().unwrap(), 0).unwrap_err();
        assert!(matches!(refused.error, Error::ForkedChild));
        let refused = refused.owned.give_published(me.as_mut().unwrap(), 0).unwrap_err();
        assert!(matches!(refused.error, Error::ForkedChild));
        assert!(matches!(refused.owned.delete(me.as_mut().unwrap()), Err(Error::ForkedChild)));
        pinned.take();
        mine.take();
        me.take();
        held.take();
    });
    drop(pinned);
    in_child(|| drop(observer.take()));
    let (mut worker, mut owned) = (worker.unwrap(), owned.unwrap());
    assert_eq!(job.areas().unwrap().iter().filter(|info| info.owner == Some(0)).count(), 2);
    let pointer = owned.as_mut_ptr(&worker).unwrap();
    for turn in 1..5 {
        // SAFETY: inside the area, which this worker owns; no view or guard of it lives.
        unsafe { pointer.add(50).write(turn) };
        worker.sync().unwrap();
        assert_eq!(area.read(&worker).unwrap()[50], turn, "its tracking goes on");
    }
    assert_eq!(observer.unwrap().read(&area).unwrap()[50], 4);
}

/// A forked child that opens the job by its descriptor is a process like any other.
#[test]
fn a_child_may_open_the_job_itself() {
    let job = patient_job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>("w", 100).unwrap();
    fill(&mut owned, &worker, 6);
    worker.sync().unwrap();
    in_child(|| {
        // SAFETY: only the library writes through it.
        let again = unsafe { job.descriptor() }.try_clone_to_owned().unwrap();
        let again = Job::from_descriptor(again).unwrap();
        let mut second = again.worker().unwrap();
        let area = second.attach::<u64>("w").unwrap();
        assert_eq!((second.rank(), uniform(area.read(&second).unwrap())), (1, 6));
        second.create::<u64>("x", 10).unwrap().delete(&mut second).unwrap();
        assert!(matches!(job.workers(), Err(Error::ForkedChild)), "the inherited one is not the child's");
    });
    worker.sync().unwrap();
}

/// The thread that forks is another process's when it ends in the child: what it was there, it is not here.
#[test]
fn a_thread_that_forked_may_end_in_the_child() {
    let job = patient_job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let status = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let guest = job.worker().unwrap();
            let observer = job.observer().unwrap();
            // SAFETY: the child forgets what it has, and its one thread ends, and with it the child.
            unsafe {
                let pid = libc::fork();
                assert!(pid >= 0);
                if pid == 0 {
                    libc::alarm(LONG.as_secs() as libc::c_uint);
                    std::mem::forget((guest, observer));
                    return 0;
                }
                let mut status = 0;
                assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
                status
            }
        });
        thread.join().unwrap()
    });
    assert_eq!(status, 0, "the child ended with {status:#x}");
    worker.barrier().unwrap();
    assert_eq!((job.workers().unwrap().len(), job.stats().unwrap().deaths), (1, 0));
}
