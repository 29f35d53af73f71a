//! Limits of the process (`ulimit`): errors that name what was asked for and the limit, and no signals.
use crate::common::*;
use hectare::{Error, Job};

fn limit(resource: libc::__rlimit_resource_t, bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: a plain system call; the limit is readable.
    assert_eq!(unsafe { libc::setrlimit(resource, &limit) }, 0);
}

#[track_caller]
fn check(made: Result<Job, Error>, asked_for: u64, bound: u64, shell: &str) {
    let error = made.map(|_| ()).unwrap_err();
    let Error::ProcessLimit { asked, limit, name, .. } = &error else { panic!("{error}") };
    assert!(*asked >= asked_for && *limit == bound && *name == shell, "{error}");
    let text = error.to_string();
    assert!(text.contains(&asked.to_string()) && text.contains(&limit.to_string()), "{text}");
}

#[test]
fn the_size_of_files() {
    const LIMIT: u64 = 1 << 20;
    if let Some((_, job)) = role() {
        limit(libc::RLIMIT_FSIZE, LIMIT);
        check(Job::builder().reserve(1 << 28).embedded(), 1 << 28, LIMIT, "ulimit -f");
        check(Job::embedded(), 1 << 28, LIMIT, "ulimit -f");
        // A job that is there already grows by pages, not in length.
        let mut worker = job.worker().unwrap();
        let mut area = worker.create::<u64>("large", 1 << 20).unwrap();
        fill(&mut area, &worker, 3);
        worker.sync().unwrap();
        return;
    }
    let job = patient_job();
    let _watch = watch(&job);
    spawn("the_size_of_files", "child", &job).finish();
}

#[test]
fn the_size_of_the_address_space() {
    const LIMIT: u64 = 8 << 30;
    if let Some((_, job)) = role() {
        limit(libc::RLIMIT_AS, LIMIT);
        check(Job::builder().reserve(1 << 36).embedded(), 1 << 36, LIMIT, "ulimit -v");
        // SAFETY: only the library writes through it.
        let again = unsafe { job.descriptor() }.try_clone_to_owned().unwrap();
        check(Job::from_descriptor(again), 6 << 30, LIMIT, "ulimit -v");
        let small = Job::builder().reserve(1 << 24).embedded().unwrap();
        small.worker().unwrap().create::<u64>("small", 100).unwrap();
        return;
    }
    let job = Job::builder().reserve(6 << 30).embedded().unwrap();
    let _watch = watch(&job);
    spawn("the_size_of_the_address_space", "child", &job).finish();
}
