//! Workers in rounds of their own, while the agent publishes what one of them has lent.
use crate::agent::Published;
use crate::{AreaSpec, Job, Worker};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);
/// For a worker to come to where it waits.
const A_WHILE: Duration = Duration::from_millis(50);

/// The step that all threads of a test are at.
#[derive(Default)]
struct Step(AtomicU32);

impl Step {
    fn go_to(&self, step: u32) {
        // Release: pairs with `now`, whose thread then sees what this one did before.
        self.0.store(step, Ordering::Release);
    }

    fn now(&self) -> u32 {
        // Acquire: pairs with `go_to`.
        self.0.load(Ordering::Acquire)
    }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < LONG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Two workers of the first of two hosts: the second begins while the first computes, and the first goes on when the agent has published
/// what it has lent. Each gets the step that all are at.
fn beside_the_agent(first: impl Fn(&mut Worker, &Step) + Sync, second: impl Fn(&mut Worker, &Step) + Sync) {
    let job = Job::builder().hosts(&[2, 1], 0).round_timeout(LONG).embedded().unwrap();
    let step = Step::default();
    let at = |wanted| until("a step", || step.now() >= wanted);
    std::thread::scope(|scope| {
        let workers = scope.spawn(|| {
            job.run(2, |worker| {
                if worker.rank() == 0 {
                    let mut held = worker.create::<u64>("held", 1).unwrap();
                    held.write(worker).unwrap().set(0, 7);
                    let lent = AreaSpec::new("lent").copies(3).on_demand();
                    let mut lent = worker.create::<u64>(lent, 8).unwrap();
                    lent.write(worker).unwrap().set(0, 7);
                    let _lent = lent.lend(worker).unwrap();
                    step.go_to(1);
                    at(2);
                    first(worker, &step);
                } else {
                    at(1);
                    second(worker, &step);
                }
            })
            .unwrap();
        });
        let agent = job.agent().unwrap();
        at(1);
        std::thread::sleep(A_WHILE);
        let area = agent.find("lent").unwrap();
        until("the publication", || agent.publish_lent(area) != Some(Published::PutOff));
        step.go_to(2);
        workers.join().unwrap();
    });
}

/// Who takes back what it has lent, beside others who do, counts on all of them having come to the round.
#[test]
fn a_sync_waits_for_others_beside_a_round_that_waits_for_nobody() {
    beside_the_agent(
        |worker, step| {
            std::thread::sleep(A_WHILE);
            step.go_to(3);
            worker.sync().unwrap();
        },
        |worker, step| {
            let synced = worker.sync().unwrap();
            assert_eq!((step.now(), synced.abandoned), (3, 0), "it did not wait");
        },
    );
}

/// A round that was asked for, and that the agent has begun without the owner, is asked for again.
#[test]
fn what_was_asked_for_is_published_after_a_round_that_waits_for_nobody() {
    let serve = |worker: &mut Worker| {
        let held = worker.attach::<u64>("held").unwrap();
        until("a round", || {
            worker.service().unwrap();
            held.newest_version().unwrap().counter > 0
        });
    };
    beside_the_agent(
        |worker, _| serve(worker),
        |worker, _| {
            worker.attach::<u64>("held").unwrap().request_sync();
            serve(worker);
        },
    );
}
