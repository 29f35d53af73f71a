//! The number of workers, after deaths at every step of joining and leaving.
use crate::{Job, fault};

/// Joins and leaves in a forked child that opens the job by its descriptor and is killed after `points` fault
/// points; true if it was.
fn killed_child(job: &Job, points: u32) -> bool {
    // SAFETY: the child calls the library, which allocates (glibc's allocator works after a fork), and `_exit`. Only the
    // library writes through the descriptor.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0);
        if pid == 0 {
            libc::alarm(120);
            let joined = job.descriptor().try_clone_to_owned().ok().and_then(|descriptor| {
                let again = Job::from_descriptor(descriptor).ok()?;
                fault::die_after(points);
                again.worker().ok()
            });
            let code = if joined.is_some() { 0 } else { 1 };
            drop(joined);
            libc::_exit(code);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        assert!(libc::WIFSIGNALED(status) || libc::WEXITSTATUS(status) == 0, "{status:#x}");
        libc::WIFSIGNALED(status)
    }
}

#[test]
fn the_number_of_workers_is_right_again_after_any_death() {
    let job = Job::builder().reserve(1 << 24).max_workers(4).embedded().unwrap();
    let mut killed = 0;
    for points in 0..40 {
        killed += u32::from(killed_child(&job, points));
        // Whoever joins next frees the slot and counts again.
        let worker = job.worker().unwrap();
        assert_eq!((worker.rank(), job.shared.live_workers()), (0, 1), "point {points}");
        drop(worker);
        assert_eq!(job.shared.live_workers(), 0, "point {points}");
    }
    assert!(killed > 10, "{killed}");
}

#[test]
fn counts_that_overlap_end_right() {
    let job = Job::builder().reserve(1 << 24).max_workers(8).embedded().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..200).for_each(|_| drop(job.worker().unwrap())));
        }
    });
    assert_eq!(job.shared.live_workers(), 0);
}

#[test]
fn a_killed_process_counts_once_whoever_sees_it_stall() {
    let job = Job::builder().reserve(1 << 24).max_workers(4).embedded().unwrap();
    let shared = &job.shared;
    // Two workers of one process, each of which may be seen to stall by several others.
    let (joined, done) = (std::sync::Barrier::new(3), std::sync::Barrier::new(3));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let worker = job.worker().unwrap();
                joined.wait();
                done.wait();
                drop(worker);
            });
        }
        joined.wait();
        let (pid, started) = shared.process_of(1);
        assert_eq!((pid, started), shared.process_of(0));
        // The first who marked it comes too late to kill it.
        let late = shared.condemn(pid, started);
        let kill = move || shared.is_to_count(&shared.condemn(pid, started), pid, started);
        let counts: Vec<_> = (0..4).map(|_| scope.spawn(kill)).collect();
        let counts = counts.into_iter().map(|count| usize::from(count.join().unwrap())).sum::<usize>();
        assert_eq!(counts, 1);
        assert!(!shared.is_to_count(&late, pid, started), "it marked it, and another killed it");
        done.wait();
        // Another process of the same id, and one without a slot.
        let kill = || shared.is_to_count(&shared.condemn(pid, started + 1), pid, started + 1);
        assert!(kill() && !kill());
    });
}
