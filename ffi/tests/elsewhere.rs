//! C programs in jobs of the test's: on two hosts, where the test is the agent that stands in for the other one, and on one.
mod common;

use common::{build, compiler, program};
use hectare_dsm::agent::{Agent, Conflict, Event, Over, Refusal, RemoteWorker};
use hectare_dsm::{AreaSpec, ElementType, Job, Unshared};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Makes a descriptor one that children inherit.
fn inherited(descriptor: BorrowedFd<'_>) -> i32 {
    // SAFETY: `dup` takes any number, and touches no memory.
    let copy = unsafe { libc::dup(descriptor.as_raw_fd()) };
    assert!(copy >= 0, "{}", std::io::Error::last_os_error());
    copy
}

/// Says why the names that are asked for cannot be had.
fn answer(agent: &mut Agent) {
    let mut events = Vec::new();
    agent.wait(Duration::from_millis(1));
    agent.look(&mut events);
    for event in events {
        if let Event::Wanted { name } = event {
            agent.refuse(
                &name,
                &match &name[..] {
                    "kept" => Refusal::Unshared { host: 1, why: Unshared::Local },
                    "large" => {
                        Refusal::OutOfMemory { asked: 4711, free: 1, limit: 2, payer: "this host".into() }
                    }
                    _ => Refusal::Unknown,
                },
            );
        }
    }
}

#[test]
fn what_cannot_cross_hosts_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let job = Job::builder().reserve(64 << 20).hosts(&[1, 1], 0).embedded().unwrap();
    let mut agent = job.agent().unwrap();
    agent.name_host(1, "b (10.0.0.2:7400)").unwrap();
    agent.set_worker(1, RemoteWorker::There).unwrap();
    let spec = AreaSpec::new("theirs");
    let area = agent.create_hidden(&spec, ElementType::of::<f64>(), 10, 1, [0; 3]).unwrap();
    agent.show(area);
    let built = build(compiler("cc", "gnu99"), "elsewhere.c", directory.path());
    // SAFETY: the memory is changed by this library alone, here and in the C program.
    let descriptor = inherited(unsafe { job.descriptor() });
    let mut child = program(built, directory.path()).arg(descriptor.to_string()).spawn().unwrap();
    let mine = loop {
        if let Some(area) = agent.find("mine") {
            break area;
        }
        assert_eq!(child.try_wait().unwrap(), None);
        std::thread::yield_now();
    };
    agent.tell_conflict(mine, Conflict { over: Over::Name, host: 1, is_known: false });
    let asked = ElementType::of::<f32>().to_parts();
    agent.tell_conflict(mine, Conflict { over: Over::Type(asked), host: 1, is_known: true });
    let ended = loop {
        answer(&mut agent);
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
    };
    assert!(ended.success());
    assert_eq!(job.stats().unwrap().refused_handovers, 3);
}

/// The launcher asks the job which failures follow from another's, to name the other one.
#[test]
fn who_hears_of_a_failure_says_that_its_own_follows() {
    let directory = tempfile::tempdir().unwrap();
    let built = build(compiler("cc", "gnu99"), "follows.c", directory.path());
    for (then, follows) in [("end", true), ("again", false)] {
        let job = Job::builder().reserve(64 << 20).max_workers(2).embedded().unwrap();
        let start = |rank: u32| {
            // SAFETY: the memory is changed by this library alone, here and in the C program.
            let descriptor = inherited(unsafe { job.descriptor() });
            let arguments = [descriptor.to_string(), rank.to_string(), then.into()];
            program(built.clone(), directory.path()).args(arguments).spawn().unwrap()
        };
        for mut child in [0, 1].map(start) {
            assert!(child.wait().unwrap().success());
        }
        assert_eq!([0, 1].map(|rank| job.is_consequence(rank)), [follows, false], "{then}");
    }
}
