//! Three processes on one job, joined through an inherited descriptor: what is promised between threads
//! holds between processes.
use crate::common::*;
use hectare::{Area, AreaSpec, Error, Job, Owned, Version, Worker, WorkerState};
use std::collections::HashSet;
use std::time::Duration;

fn three(name: &str, job: &Job) -> [Process; 2] {
    [spawn(name, "1", job), spawn(name, "2", job)]
}

/// The same program in each of three processes.
fn everywhere(name: &str, job: impl FnOnce() -> Job, program: impl Fn(&mut Worker, u32)) {
    if let Some((role, job)) = role() {
        let rank = role.parse().unwrap();
        let mut worker = job.worker_at(rank).unwrap();
        worker.wait_for_workers(3, LONG).unwrap();
        worker.barrier().unwrap();
        return program(&mut worker, rank);
    }
    let job = job();
    let _watch = watch(&job);
    let mut worker = job.worker_at(0).unwrap();
    let mut children = three(name, &job);
    worker.wait_for_workers(3, LONG).unwrap();
    let pids: HashSet<u32> = job.workers().unwrap().iter().map(|info| info.pid).collect();
    assert_eq!(pids.len(), 3);
    worker.barrier().unwrap();
    program(&mut worker, 0);
    children.iter_mut().for_each(Process::finish);
    drop(worker);
    assert!(job.workers().unwrap().is_empty());
    assert_eq!(job.stats().unwrap().deaths, 0);
}

fn attach_all(worker: &Worker, prefix: &str) -> Vec<Area<u64>> {
    (0..3).map(|rank| worker.attach_here::<u64>(&format!("{prefix}/{rank}")).unwrap()).collect()
}

#[test]
fn barriers_reads_and_versions() {
    everywhere("barriers_reads_and_versions", patient_job, |worker, me| {
        // Small, so that one worker copies it, and large, so that all do.
        for len in [10, 300_000] {
            let name = format!("part{len}");
            let mut mine =
                worker.create::<u64>(AreaSpec::new(format!("{name}/{me}")).copies(2), len).unwrap();
            worker.barrier().unwrap();
            let all = attach_all(worker, &name);
            for step in 1..=if len == 10 { 500 } else { 20 } {
                fill(&mut mine, worker, step * 10 + u64::from(me));
                worker.barrier().unwrap();
                for (rank, area) in all.iter().enumerate() {
                    assert_eq!(uniform(area.read(worker).unwrap()), step * 10 + rank as u64);
                    assert_eq!(area.version(worker).unwrap(), Version { term: 1, counter: step });
                    let since = Version { term: 1, counter: step - 1 };
                    assert_eq!(area.changed_since(worker, since).unwrap().len(), 1);
                }
            }
            worker.barrier().unwrap();
        }
    });
}

#[test]
fn areas_go_round_between_processes() {
    everywhere("areas_go_round_between_processes", patient_job, |worker, me| {
        let mut held = Some(worker.create::<u64>(format!("ring/{me}"), 1000).unwrap());
        worker.barrier().unwrap();
        let all = attach_all(worker, "ring");
        for turn in 0..900u64 {
            let index = (me as usize + 3 - turn as usize % 3) % 3;
            let mut owned = held.take().unwrap_or_else(|| all[index].take(worker).unwrap());
            assert_eq!((uniform(owned.read(worker).unwrap()), owned.epoch()), (turn, turn + 1));
            fill(&mut owned, worker, turn + 1);
            if turn % 50 == 0 {
                owned.give_published(worker, (me + 1) % 3).unwrap();
            } else {
                owned.give(worker, (me + 1) % 3).unwrap();
            }
        }
        let last: Owned<u64> = all[me as usize].take(worker).unwrap();
        worker.barrier().unwrap();
        assert_eq!(uniform(last.area().read(worker).unwrap()), 900);
        assert!(matches!(
            worker.claim::<u64>(all[(me as usize + 1) % 3].name()),
            Err(Error::OwnerAlive { .. })
        ));
        worker.barrier().unwrap();
    });
}

#[test]
fn clocks_and_observers_and_notification() {
    everywhere("clocks_and_observers_and_notification", patient_job, |worker, me| {
        let spec = AreaSpec::new(format!("part/{me}")).copies(3).group("all");
        let mut mine = worker.create::<u64>(spec, 2000).unwrap();
        worker.barrier().unwrap();
        let start = worker.clock();
        let all = attach_all(worker, "part");
        let job = worker.job();
        let notification = all[(me as usize + 1) % 3].notify().unwrap();
        let observer = job.observer().unwrap();
        for step in 1..=300 {
            fill(&mut mine, worker, step);
            assert_eq!(worker.tick().unwrap(), start + step);
            worker.wait_clocks(2).unwrap();
            for area in &all {
                let seen = uniform(area.read(worker).unwrap());
                assert!(seen + 2 >= step);
                let pinned = observer.read(area).unwrap();
                assert!(uniform(&pinned) >= seen && pinned.version() >= area.version(worker).unwrap());
            }
        }
        worker.barrier().unwrap();
        let versions: Vec<_> = all.iter().map(|area| uniform(area.read(worker).unwrap())).collect();
        assert_eq!(versions, [300; 3]);
        until("the notification", || notification.clear().unwrap() > 0);
        worker.barrier().unwrap();
    });
}

#[test]
fn deletion_between_processes() {
    everywhere("deletion_between_processes", patient_job, |worker, me| {
        for turn in 0..20 {
            let free = worker.job().free_bytes().unwrap();
            worker.barrier().unwrap();
            let name = format!("doomed/{turn}");
            let mut mine = (me == turn % 3).then(|| worker.create::<u64>(name.as_str(), 5000).unwrap());
            if let Some(owned) = &mut mine {
                fill(owned, worker, 3);
            }
            worker.barrier().unwrap();
            let area = worker.attach::<u64>(&name).unwrap();
            worker.barrier().unwrap();
            // It may be gone by now; if not, the view is good until the next synchronization point.
            let view = area.read(worker);
            if me == (turn + 1) % 3 {
                worker.job().delete(&name).unwrap();
            } else {
                until("deletion", || area.read(worker).is_err());
            }
            match view {
                Ok(view) => assert_eq!(uniform(view), 3),
                Err(error) => assert!(matches!(error, Error::Deleted { .. }), "{error}"),
            }
            for _ in 0..3 {
                worker.barrier().unwrap();
            }
            assert_eq!(worker.job().free_bytes().unwrap(), free);
            worker.barrier().unwrap();
        }
    });
}

/// Children killed at random times, over and over: no slot, area or byte is lost.
#[test]
fn killed_at_random_times() {
    const NAME: &str = "killed_at_random_times";
    if let Some((role, job)) = role() {
        let mut worker = job.worker_at(role.parse().unwrap()).unwrap();
        let name = format!("victim/{role}");
        let created = worker.create::<u64>(AreaSpec::new(name.as_str()).copies(2), 20_000);
        let mut mine = created.or_else(|_| worker.claim::<u64>(&name).map(|claimed| claimed.owned)).unwrap();
        loop {
            let next = mine.area().newest_version().unwrap().counter + 1;
            fill(&mut mine, &worker, next);
            worker.sync().unwrap();
        }
    }
    let job =
        Job::builder().reserve(1 << 28).round_timeout(Duration::from_millis(200)).max_workers(3).embedded();
    let job = job.unwrap();
    let _watch = watch(&job);
    let mut worker = job.worker_at(0).unwrap();
    let mut random = Random(5);
    let mut children: Vec<(u32, Process)> = Vec::new();
    let mut last = [Version::default(); 3];
    let mut kills = 0u64;
    while kills < 30 {
        while children.len() < 2 {
            let rank = if children.iter().any(|(rank, _)| *rank == 1) { 2 } else { 1 };
            children.push((rank, spawn(NAME, &rank.to_string(), &job)));
        }
        let busy = job.stats().unwrap().published + random.below(60) as u64 + 3;
        let mut turns = 0;
        while job.stats().unwrap().published < busy || turns < 20 {
            turns += 1;
            worker.service().unwrap();
            std::thread::yield_now();
            for (rank, last) in last.iter_mut().enumerate().skip(1) {
                let Ok(area) = worker.attach::<u64>(&format!("victim/{rank}")) else { continue };
                let version = area.version(&worker).unwrap();
                assert!(version >= *last, "{version} after {last}");
                assert_eq!(uniform(area.read(&worker).unwrap()), version.counter);
                *last = version;
            }
        }
        let index = random.below(children.len());
        children.remove(index).1.kill();
        kills += 1;
    }
    children.clear();
    worker.sync().unwrap();
    let live = job.workers().unwrap().into_iter().filter(|info| info.state == WorkerState::Live).count();
    assert_eq!(live, 1);
    for rank in [1, 2] {
        let claimed = worker.claim::<u64>(&format!("victim/{rank}")).unwrap();
        assert_eq!(uniform(claimed.owned.read(&worker).unwrap()), claimed.loss.last_version.unwrap().counter);
    }
}
