//! Runs by workers of several hosts in which something is wrong: what harms nothing, and who is told of what does.
use super::{Case, TIME_LIMIT, areas, by_turns, in_turn, open};
use crate::network::{World, on_all};
use hectare_dsm::tasks::{RowPlan, RowRun};
use hectare_dsm::{Error, Job};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// A plan for the first two of three workers: 1 writes the row that 0 writes next.
fn one_each() -> (Case, Arc<RowPlan>) {
    let batches = vec![vec![Ok(1), Err(0)], vec![Ok(0), Err(0)]];
    let case = Case { ranks: vec![1, 1], rows: [1, 1], width: [4, 4], passes: 1, owners: [0, 0], batches };
    let plan = Arc::new(case.plan());
    (case, plan)
}

/// The process of worker 1, which ends in its first batch; nothing when the tests themselves run.
#[test]
fn role() {
    let Some(job) = Job::inherited().unwrap() else { return };
    let (_, plan) = one_each();
    let mut worker = job.worker_at(1).unwrap();
    worker.wait_for_workers(3, TIME_LIMIT).unwrap();
    worker.barrier().unwrap();
    let in_place = areas(&mut worker, 0);
    let mut rows = RowRun::begin(&mut worker, plan, 1, &in_place).unwrap();
    rows.next(&mut worker).unwrap().unwrap();
    std::process::abort();
}

/// The only worker of its host that is in the run dies. The other one there lives, and knows nothing of the run.
#[test]
fn who_dies_as_the_only_one_of_its_host_is_missed() {
    let mut world = World::with_ranks_of(&[1, 2], 16);
    let (case, plan) = one_each();
    let mut dying = Command::new(std::env::current_exe().unwrap());
    world.hosts[1].job.pass_to(&mut dying);
    let mut dying = dying.args(["rows::errors::role", "--exact", "--nocapture"]).spawn().unwrap();
    let jobs: Vec<Job> = world.hosts.iter().map(|host| host.job.clone()).collect();
    let is_over = AtomicBool::new(false);
    let waits = || {
        let mut worker = jobs[0].worker_at(0).unwrap();
        let worker = &mut worker;
        worker.wait_for_workers(3, TIME_LIMIT).unwrap();
        let opened = open(worker, &case, 0);
        worker.barrier().unwrap();
        let in_place = areas(worker, 0);
        let mut rows = RowRun::begin(worker, plan.clone(), 1, &in_place).unwrap();
        let told = loop {
            match rows.next(worker) {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        is_over.store(true, SeqCst);
        drop(opened);
        told
    };
    let is_elsewhere = || {
        let mut worker = jobs[1].worker_at(2).unwrap();
        worker.wait_for_workers(3, TIME_LIMIT).unwrap();
        worker.barrier().unwrap();
        RowRun::decline(&mut worker).unwrap();
        while !is_over.load(SeqCst) {
            worker.service().unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let told = std::thread::scope(|scope| {
        let (waits, other) = (scope.spawn(waits), scope.spawn(is_elsewhere));
        while !waits.is_finished() || !other.is_finished() {
            world.turn();
        }
        waits.join().unwrap()
    });
    assert!(!dying.wait().unwrap().success());
    assert!(matches!(told, Some(Error::TaskLeft { rank: 1 })), "{told:?}");
}

/// A wait that the program gives up, and a call with another worker, change nothing of the run.
#[test]
fn who_gives_up_a_wait_can_wait_again() {
    let mut world = World::with_ranks_of(&[1, 1], 17);
    let graph = in_turn::graph();
    let has_given_up = AtomicBool::new(false);
    on_all(&mut world, &[1, 1], |worker| {
        let (opened, area, mut run) = in_turn::begin(worker, &graph);
        if worker.rank() == 1 {
            let late = run.wait::<Error>(worker, |_| Err(Error::NoSuchWorker { rank: 7 }));
            assert!(matches!(late, Err(Error::NoSuchWorker { rank: 7 })), "{late:?}");
            has_given_up.store(true, SeqCst);
        }
        while !has_given_up.load(SeqCst) {
            worker.service().unwrap();
        }
        run.wait_for_living(worker).unwrap();
        let task = run.next(worker).unwrap();
        in_turn::add(task, &area);
        let mut of_another_job = Job::embedded().unwrap().worker().unwrap();
        let refused = run.wait_for_living(&mut of_another_job);
        assert!(matches!(refused, Err(Error::Tasks { .. })), "{refused:?}");
        in_turn::end(worker, run, opened);
    });
}

/// A program has an area with the name that a worker's ring would have, and which is none.
#[test]
fn an_area_that_is_no_ring_is_refused() {
    let mut world = World::with_ranks_of(&[1, 1], 18);
    let (case, plan) = by_turns(1);
    let name = "hectare/tasks/0/1";
    on_all(&mut world, &[1, 1], |worker| {
        let opened = open(worker, &case, 0);
        let taken = (worker.rank() == 0).then(|| worker.create::<u8>(name, 8).unwrap());
        worker.barrier().unwrap();
        let in_place = areas(worker, 0);
        let begun = RowRun::begin(worker, plan.clone(), 1, &in_place);
        match begun.unwrap_err() {
            Error::NameTaken { name: taken, .. } if worker.rank() == 0 => assert_eq!(taken, name),
            Error::InvalidArea { name: taken, .. } if worker.rank() == 1 => assert_eq!(taken, name),
            other => panic!("{other}"),
        }
        worker.barrier().unwrap();
        drop((opened, taken));
        worker.barrier().unwrap();
    });
}
