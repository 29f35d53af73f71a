//! Runs that begin, are left, and end in unusual ways, by workers of several hosts: what others hear of them.
use super::{Case, NAMES, TIME_LIMIT, areas, by_turns, in_turn, open};
use crate::network::{World, on_all};
use hectare_dsm::tasks::{RowPlan, RowRun};
use hectare_dsm::{Error, Job, Worker};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// Runs what there is of a run, of which each batch adds one to the rows that it writes.
fn add(worker: &mut Worker, rows: &mut RowRun, areas: &[hectare_dsm::Area<u64>; 2]) {
    while let Some(batch) = rows.next(worker).unwrap() {
        for (array, area) in areas.iter().enumerate() {
            let mut rows = batch.rows(area, array).unwrap();
            (0..rows.writes().len())
                .for_each(|at| rows.get_mut(at).unwrap().iter_mut().for_each(|x| *x += 1));
        }
    }
}

/// A worker is in one run at a time, and may have others that it has begun before: what becomes of these is not said of the one that it
/// is in, to other hosts neither.
#[test]
fn a_run_from_before_says_nothing_of_the_next() {
    let mut world = World::with_ranks_of(&[1, 1], 10);
    let (case, plan) = by_turns(3);
    // Nobody waits for anybody.
    let apart = vec![vec![Ok(0), Ok(1)]];
    let apart =
        Case { ranks: vec![1, 1], rows: [1, 1], width: [4, 4], passes: 1, owners: [0, 1], batches: apart };
    let apart_plan = Arc::new(apart.plan());
    let told = on_all(&mut world, &[1, 1], |worker| {
        let mut opened = open(worker, &case, 0);
        for run in 1..3 {
            opened.extend(open(worker, if run == 1 { &apart } else { &case }, run));
        }
        worker.barrier().unwrap();
        let [before, done, last] =
            [0, 1, 2].map(|run| NAMES.map(|name| worker.attach::<u64>(&format!("{name}/{run}")).unwrap()));
        let in_place = |areas: &[hectare_dsm::Area<u64>; 2]| areas.each_ref().map(|area| area.in_place());
        let not_done = RowRun::begin(worker, plan.clone(), 3, &in_place(&before)).unwrap();
        // All have begun that one.
        worker.barrier().unwrap();
        let mut all_done = RowRun::begin(worker, apart_plan.clone(), 1, &in_place(&done)).unwrap();
        add(worker, &mut all_done, &done);
        worker.barrier().unwrap();
        let mut rows = RowRun::begin(worker, plan.clone(), 3, &in_place(&last)).unwrap();
        drop(not_done);
        let ended_late = all_done.end(worker).map(drop);
        add(worker, &mut rows, &last);
        let ended = rows.end(worker).unwrap();
        worker.barrier().unwrap();
        ended.check_done().unwrap();
        let last_opened = opened.into_iter().rev().take(if worker.rank() == 0 { 2 } else { 0 });
        let found: Vec<Vec<u64>> = last_opened
            .map(|(_, opened)| {
                let owned = opened.close(worker).unwrap().finish(worker).unwrap();
                owned.read(worker).unwrap().to_vec()
            })
            .collect();
        worker.barrier().unwrap();
        (ended_late, found)
    });
    assert!(told.iter().all(|(ended, _)| ended.is_err()), "{told:?}");
    // Six batches, each of which has added one to the first array.
    let first: Vec<u64> = (0..4).map(|at| case.initial(0, at) + 6).collect();
    assert_eq!(told[0].1[1], first, "{told:?}");
}

/// Who could not begin is named, and not those who do not begin because of it, whichever of them is heard of first.
#[test]
fn who_could_not_begin_is_named_to_all() {
    let ranks = [1, 1, 2];
    let mut world = World::with_ranks_of(&ranks, 11);
    let case = Case { owners: [3, 3], ..Case::random(&mut world, &ranks, [8, 3], [4, 4]) };
    let plan = Arc::new(case.plan());
    let told = on_all(&mut world, &ranks, |worker| {
        let mut opened = open(worker, &case, 0);
        // It is of the host of the last two, of which both find that it is not open.
        opened.truncate(1);
        worker.barrier().unwrap();
        let in_place = areas(worker, 0);
        let mut told = Vec::new();
        for _ in 0..30 {
            let begun = RowRun::begin(worker, plan.clone(), case.passes, &in_place);
            worker.barrier().unwrap();
            let error = match begun {
                Ok(run) => run.check_begun(worker).unwrap_err(),
                Err(error) => error,
            };
            told.push(error);
            worker.barrier().unwrap();
        }
        told
    });
    let is_named = |error: &Error| match error {
        Error::TaskLeft { rank } => *rank > 1,
        Error::NotOpen { .. } => true,
        _ => false,
    };
    assert!(told.iter().flatten().all(is_named), "{told:?}");
}

/// Who cannot make its rings, as the program has an area of the name, meets the others all the same.
#[test]
fn who_has_no_rings_can_decline() {
    let mut world = World::with_ranks_of(&[1, 1], 12);
    let (case, plan) = by_turns(1);
    on_all(&mut world, &[1, 1], |worker| {
        let opened = open(worker, &case, 0);
        let taken = (worker.rank() == 0).then(|| worker.create::<u8>("hectare/tasks/0/1", 8).unwrap());
        worker.barrier().unwrap();
        let in_place = areas(worker, 0);
        if taken.is_some() {
            RowRun::decline(worker).unwrap();
        } else {
            RowRun::begin(worker, plan.clone(), 1, &in_place).unwrap_err();
        }
        worker.barrier().unwrap();
        drop((opened, taken));
        worker.barrier().unwrap();
    });
}

/// A plan for four workers, three of them on the first host: 2 writes what 3 writes next, and 1 another row. 0 has nothing to do.
fn two_and_one() -> (Case, Arc<RowPlan>) {
    let batches = vec![vec![Ok(2), Ok(1), Err(0)], vec![Ok(3), Err(0), Err(0)]];
    let case = Case { ranks: vec![3, 1], rows: [2, 1], width: [4, 4], passes: 1, owners: [0, 0], batches };
    let plan = Arc::new(case.plan());
    (case, plan)
}

/// The process of workers 1 and 2, which ends in their first batch; nothing when the tests themselves run.
#[test]
fn role() {
    let Some(job) = Job::inherited().unwrap() else { return };
    let (_, plan) = two_and_one();
    let act = |rank| {
        let mut worker = job.worker_at(rank).unwrap();
        worker.wait_for_workers(4, TIME_LIMIT).unwrap();
        worker.barrier().unwrap();
        let in_place = areas(&mut worker, 0);
        let mut rows = RowRun::begin(&mut worker, plan.clone(), 1, &in_place).unwrap();
        rows.next(&mut worker).unwrap().unwrap();
        std::thread::sleep(Duration::from_secs(1));
        std::process::abort();
    };
    std::thread::scope(|scope| {
        let act = &act;
        for rank in [1, 2] {
            scope.spawn(move || act(rank));
        }
    });
}

/// Two workers of a host are killed at once, when the third has done all its tasks: whoever waits for one of them elsewhere hears of it.
#[test]
fn who_has_done_all_tells_of_all_who_die() {
    let mut world = World::with_ranks_of(&[3, 1], 14);
    let (case, plan) = two_and_one();
    let mut dying = Command::new(std::env::current_exe().unwrap());
    world.hosts[0].job.pass_to(&mut dying);
    let mut dying = dying.args(["rows::runs::role", "--exact", "--nocapture"]).spawn().unwrap();
    let jobs: Vec<Job> = world.hosts.iter().map(|host| host.job.clone()).collect();
    let act = |rank: u32| {
        let mut worker = jobs[usize::from(rank == 3)].worker_at(rank).unwrap();
        let worker = &mut worker;
        worker.wait_for_workers(4, TIME_LIMIT).unwrap();
        let opened = open(worker, &case, 0);
        worker.barrier().unwrap();
        let in_place = areas(worker, 0);
        let mut rows = RowRun::begin(worker, plan.clone(), 1, &in_place).unwrap();
        let ended = loop {
            match rows.next(worker) {
                Ok(Some(_)) => {}
                Ok(None) => break rows.end(worker).map(drop),
                Err(error) => break Err(error),
            }
        };
        drop(opened);
        ended
    };
    let told = std::thread::scope(|scope| {
        let act = &act;
        let threads = [0, 3].map(|rank| scope.spawn(move || act(rank)));
        while threads.iter().any(|thread| !thread.is_finished()) {
            world.turn();
        }
        threads.map(|thread| thread.join().unwrap())
    });
    assert!(!dying.wait().unwrap().success());
    assert!(told[0].is_ok(), "{told:?}");
    assert!(matches!(told[1], Err(Error::TaskLeft { rank: 1 | 2 })), "{told:?}");
}

/// Waits for all workers of a run take in what comes from other hosts.
#[test]
fn all_workers_of_a_run_of_tasks_are_waited_for() {
    let mut world = World::with_ranks_of(&[1, 1], 15);
    let graph = in_turn::graph();
    on_all(&mut world, &[1, 1], |worker| {
        let (opened, area, mut run) = in_turn::begin(worker, &graph);
        let since = std::time::Instant::now();
        let looked = run.wait_for_all(worker, |_| match since.elapsed() < TIME_LIMIT / 4 {
            true => Ok(()),
            false => Err(Error::TaskLeft { rank: 7 }),
        });
        looked.unwrap();
        assert!(run.has_begun(0) && run.has_begun(1));
        while run.done() < run.len() {
            run.wait_for_living(worker).unwrap();
            let Ok(task) = run.next(worker) else { break };
            in_turn::add(task, &area);
        }
        in_turn::end(worker, run, opened);
    });
}

/// A worker that has left the clocks, and so meets nobody, still has rows of a run that the others have left: nobody gets them in the
/// next run before it is at a synchronization point.
#[test]
fn nobody_gets_rows_that_another_still_has() {
    let ranks = [1, 2];
    let mut world = World::with_ranks_of(&ranks, 13);
    let case = |ranks: &[u32], writer: u32| Case {
        ranks: ranks.to_vec(),
        rows: [2, 1],
        width: [4, 4],
        passes: 1,
        owners: [0, 0],
        batches: vec![vec![Ok(writer), Ok(writer), Err(0)]],
    };
    let cases = [case(&ranks, 2), case(&[1, 1], 1)];
    let plans = cases.each_ref().map(|case| Arc::new(case.plan()));
    let (has, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    on_all(&mut world, &ranks, |worker| {
        let opened = [0, 1].map(|run| open(worker, &cases[run], run));
        worker.barrier().unwrap();
        let in_place = [0, 1].map(|run| areas(worker, run));
        let area = worker.attach::<u64>(&format!("{}/0", NAMES[0])).unwrap();
        let mut first = RowRun::begin(worker, plans[0].clone(), 1, &in_place[0]).unwrap();
        if worker.rank() == 2 {
            worker.leave_clocks();
            let batch = first.next(worker).unwrap().unwrap();
            let rows = batch.rows(&area, 0).unwrap();
            has.store(true, SeqCst);
            std::thread::sleep(Duration::from_secs(1));
            assert_eq!(rows.get(0).unwrap(), [1, 2, 3, 4]);
            has.store(false, SeqCst);
            while !is_over.load(SeqCst) {
                worker.service().unwrap();
            }
            return;
        }
        if worker.rank() == 0 {
            first.next(worker).unwrap();
        }
        while !has.load(SeqCst) {
            worker.service().unwrap();
        }
        drop(first);
        let mut second = RowRun::begin(worker, plans[1].clone(), 1, &in_place[1]).unwrap();
        while let Some(batch) = second.next(worker).unwrap() {
            assert!(batch.rank() == 0 || !has.load(SeqCst));
        }
        second.end(worker).unwrap();
        worker.barrier().unwrap();
        is_over.store(true, SeqCst);
        drop(opened);
    });
}
