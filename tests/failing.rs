//! A test of which one worker fails: the others, which may wait for it for ever, are ended, and its message is
//! shown.
use crate::common::*;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// Runs the test `name` of this binary in a process of its own: how it ended, and what it said.
fn fails(name: &str) -> (Option<i32>, String) {
    let output = this_program(name).env(ROLE, "fails").output().unwrap();
    (output.status.signal(), String::from_utf8(output.stderr).unwrap())
}

fn is_here() -> bool {
    std::env::var(ROLE).is_err()
}

#[test]
fn others_that_wait_on_a_flag_are_ended_with_the_message_of_the_first() {
    if is_here() {
        let (signal, said) = fails("others_that_wait_on_a_flag_are_ended_with_the_message_of_the_first");
        assert_eq!(signal, Some(libc::SIGABRT), "{said}");
        assert!(said.contains("failing.rs:") && said.contains("worker one has had enough"), "{said}");
        assert!(said.contains("the others wait for it, and are ended"), "{said}");
        return;
    }
    let (job, release) = (patient_job(), AtomicBool::new(false));
    let _watch = watch(&job);
    run(&job, 3, |worker| {
        worker.barrier().unwrap();
        assert!(worker.rank() != 1, "worker one has had enough");
        while !release.load(SeqCst) {
            worker.service().unwrap();
        }
    })
    .unwrap();
}

#[test]
fn others_that_end_by_themselves_are_left_alone() {
    if is_here() {
        let (signal, _) = fails("others_that_end_by_themselves_are_left_alone");
        assert_eq!(signal, None, "the test runner reports the failure");
        return;
    }
    let job = patient_job();
    let _watch = watch(&job);
    run(&job, 3, |worker| {
        assert!(worker.rank() != 1, "worker one has had enough");
        worker.barrier().unwrap();
    })
    .unwrap();
}
