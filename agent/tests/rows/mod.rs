//! Rows that change owners in batches, by workers of several hosts: threads over segments in one process, whose agents send
//! datagrams to each other that may be lost.
mod errors;
mod in_turn;
mod runs;

use crate::network::{World, on_all};
use hectare_dsm::tasks::{RowList, RowPlan, RowRun, Touched};
use hectare_dsm::{AreaSpec, Job, Opened, Worker};
use std::sync::Arc;
use std::time::Duration;

const TIME_LIMIT: Duration = Duration::from_secs(120);
const NAMES: [&str; 2] = ["model/users", "model/items"];

/// Who writes each row of both arrays in each batch, if anybody does, and who reads it.
#[derive(Clone, Debug)]
struct Case {
    /// Ranks of each host.
    ranks: Vec<u32>,
    rows: [usize; 2],
    width: [usize; 2],
    passes: usize,
    /// Which worker makes each array.
    owners: [u32; 2],
    /// By batch and row: a writer, or a set of readers as bits.
    batches: Vec<Vec<Result<u32, u32>>>,
}

impl Case {
    fn random(world: &mut World, ranks: &[u32], rows: [usize; 2], width: [usize; 2]) -> Case {
        let workers = u64::from(ranks.iter().sum::<u32>());
        let row = |world: &mut World| match world.random(4) {
            0 | 1 => Ok(world.random(workers) as u32),
            2 => Err(world.random(1 << workers) as u32),
            _ => Err(0),
        };
        let batches =
            (0..1 + world.random(5)).map(|_| (0..rows[0] + rows[1]).map(|_| row(world)).collect()).collect();
        let passes = 1 + world.random(4) as usize;
        let owners = [0, 1].map(|_| world.random(workers) as u32);
        Case { ranks: ranks.to_vec(), rows, width, passes, owners, batches }
    }

    fn workers(&self) -> u32 {
        self.ranks.iter().sum()
    }

    fn lists(&self, worker: u32, array: usize, written: bool) -> RowList {
        let first = if array == 0 { 0 } else { self.rows[0] };
        let of = |batch: &Vec<Result<u32, u32>>| {
            let has = |row: &usize| match batch[first + row] {
                Ok(writer) => written && writer == worker,
                Err(readers) => !written && readers >> worker & 1 == 1,
            };
            (0..self.rows[array]).filter(has).map(|row| row as u32).collect::<Vec<_>>()
        };
        self.batches.iter().map(of).collect()
    }

    fn plan(&self) -> RowPlan {
        let touched = |worker, array| Touched {
            writes: self.lists(worker, array, true),
            reads: self.lists(worker, array, false),
        };
        let all = (0..self.workers()).map(|worker| vec![touched(worker, 0), touched(worker, 1)]).collect();
        RowPlan::new(self.rows.to_vec(), self.batches.len(), all).unwrap()
    }

    /// The value of an element before the run.
    fn initial(&self, array: usize, at: usize) -> u64 {
        (array * 1_000_000 + at + 1) as u64
    }
}

/// The body of a batch: each row that it writes gets a number made of all rows that it touches.
fn act(rows: [(&[u32], &[u32]); 2], mut get: impl FnMut(usize, bool, usize, Option<u64>) -> u64) {
    let mut sum = 1u64;
    for (array, (writes, reads)) in rows.into_iter().enumerate() {
        for place in 0..reads.len() {
            sum = sum.wrapping_mul(31).wrapping_add(get(array, false, place, None));
        }
        for place in 0..writes.len() {
            let old = get(array, true, place, None);
            sum = sum.wrapping_mul(1_000_003).wrapping_add(old);
            get(array, true, place, Some(sum));
        }
    }
}

fn serial(case: &Case, plan: &RowPlan) -> [Vec<u64>; 2] {
    let mut arrays = [0, 1].map(|array| {
        (0..case.rows[array] * case.width[array]).map(|at| case.initial(array, at)).collect::<Vec<_>>()
    });
    for _ in 0..case.passes {
        for batch in 0..plan.batches() {
            for worker in 0..case.workers() {
                let lists =
                    [0, 1].map(|array| (plan.writes(worker, array, batch), plan.reads(worker, array, batch)));
                act(lists, |array, written, place, new| {
                    let row = if written { lists[array].0[place] } else { lists[array].1[place] } as usize;
                    let elements = &mut arrays[array][row * case.width[array]..][..case.width[array]];
                    new.inspect(|new| elements.fill(*new)).unwrap_or(elements[case.width[array] - 1])
                });
            }
        }
    }
    arrays
}

/// Opens the arrays that the worker makes.
fn open(worker: &mut Worker, case: &Case, run: usize) -> Vec<(usize, Opened<u64>)> {
    let mut opened = Vec::new();
    let rank = worker.rank();
    for array in (0..2).filter(|array| case.owners[*array] == rank) {
        let spec = AreaSpec::new(format!("{}/{run}", NAMES[array])).on_demand();
        let mut owned = worker.create::<u64>(spec, case.rows[array] * case.width[array]).unwrap();
        for (at, element) in owned.write_whole(worker).unwrap().iter_mut().enumerate() {
            *element = case.initial(array, at);
        }
        worker.sync().unwrap();
        opened.push((array, owned.open_to_tasks(worker).unwrap()));
    }
    opened
}

/// A worker's part: the arrays that it has made, as they are in the end.
fn work(worker: &mut Worker, case: &Case, plan: &Arc<RowPlan>, run: usize) -> Vec<(usize, Vec<u64>)> {
    let opened = open(worker, case, run);
    worker.barrier().unwrap();
    let areas = NAMES.map(|name| worker.attach::<u64>(&format!("{name}/{run}")).unwrap());
    let in_place = areas.each_ref().map(|area| area.in_place());
    let mut rows = RowRun::begin(worker, plan.clone(), case.passes, &in_place).unwrap();
    if run == 1 {
        worker.barrier().unwrap();
        rows.check_begun(worker).unwrap();
    }
    while let Some(batch) = rows.next(worker).unwrap() {
        let mut of = [batch.rows(&areas[0], 0).unwrap(), batch.rows(&areas[1], 1).unwrap()];
        let (rank, number) = (batch.rank(), batch.number());
        let lists = [0, 1].map(|array| (plan.writes(rank, array, number), plan.reads(rank, array, number)));
        act(lists, |array, written, place, new| {
            let rows = &mut of[array];
            if let Some(new) = new {
                rows.get_mut(place).unwrap().fill(new);
                return new;
            }
            let row = if written { rows.get(place) } else { rows.read(place) };
            row.unwrap()[case.width[array] - 1]
        });
    }
    let ended = rows.end(worker).unwrap();
    worker.barrier().unwrap();
    ended.check_done().unwrap();
    let closed: Vec<_> = opened
        .into_iter()
        .map(|(array, opened)| (array, opened.close(worker).unwrap().finish(worker).unwrap()))
        .collect();
    let found = closed.iter().map(|(array, owned)| (*array, owned.read(worker).unwrap().to_vec())).collect();
    // What the tasks wrote is published, to readers of all hosts.
    worker.sync().unwrap();
    worker.barrier().unwrap();
    for (array, area) in areas.iter().enumerate() {
        let asked = area.ask(worker).unwrap();
        let read = area.read_asked(worker, asked, TIME_LIMIT).unwrap().to_vec();
        assert_eq!(read, serial(case, plan)[array], "array {array} as worker {} reads it", worker.rank());
    }
    worker.barrier().unwrap();
    found
}

fn check(seed: u64, ranks: &[u32], loss: u64, rows: [usize; 2], width: [usize; 2]) {
    let mut world = World::with_ranks_of(ranks, seed);
    world.loss = loss;
    let cases: Vec<Case> = (0..3).map(|_| Case::random(&mut world, ranks, rows, width)).collect();
    let plans: Vec<_> = cases.iter().map(|case| Arc::new(case.plan())).collect();
    let found = on_all(&mut world, ranks, |worker| {
        let runs = cases.iter().zip(&plans).enumerate();
        runs.map(|(run, (case, plan))| work(worker, case, plan, run)).collect::<Vec<_>>()
    });
    for (run, (case, plan)) in cases.iter().zip(&plans).enumerate() {
        let serial = serial(case, plan);
        for (array, values) in found.iter().flat_map(|runs| &runs[run]) {
            assert_eq!(values, &serial[*array], "seed {seed}, run {run}, array {array}: {case:?}");
        }
    }
    // Each worker has taken with it what it made. Hosts that all workers have left are told nothing any more.
    for (host, it) in world.hosts.iter().enumerate() {
        let mine = it.job.areas().unwrap().into_iter().filter(|area| !area.remote);
        let left: Vec<String> =
            mine.map(|area| area.name).filter(|name| name.starts_with("hectare/")).collect();
        assert!(left.is_empty(), "host {host} has {left:?}");
    }
}

#[test]
fn rows_have_the_bits_of_one_batch_after_the_other_on_several_hosts() {
    for seed in 1..=8 {
        for (ranks, loss) in [(&[1, 1][..], 0), (&[2, 1], 0), (&[1, 1, 1], 20), (&[2, 2], 0)] {
            check(seed, ranks, loss, [12, 5], [3, 1]);
        }
    }
}

#[test]
fn rows_that_are_longer_than_a_ring_come_whole() {
    // Rows of 1.6 MB, in rings of 1 MiB, of which each batch sends several.
    check(3, &[1, 1], 0, [6, 2], [200_001, 7]);
    check(4, &[2, 1], 0, [6, 2], [200_001, 7]);
}

/// Two arrays of one row, which workers 0 and 1 write by turns.
fn by_turns(passes: usize) -> (Case, Arc<RowPlan>) {
    let batches = vec![vec![Ok(0), Err(0)], vec![Ok(1), Err(0)]];
    let case = Case { ranks: vec![1, 1], rows: [1, 1], width: [4, 4], passes, owners: [0, 0], batches };
    let plan = Arc::new(case.plan());
    (case, plan)
}

fn areas(worker: &mut Worker, run: usize) -> Vec<hectare_dsm::tasks::InPlace> {
    NAMES.iter().map(|name| worker.attach::<u64>(&format!("{name}/{run}")).unwrap().in_place()).collect()
}

/// A run that nothing happens in.
fn run_all(worker: &mut Worker, plan: &Arc<RowPlan>, passes: usize, areas: &[hectare_dsm::tasks::InPlace]) {
    let mut rows = RowRun::begin(worker, plan.clone(), passes, areas).unwrap();
    while rows.next(worker).unwrap().is_some() {}
    let ended = rows.end(worker).unwrap();
    worker.barrier().unwrap();
    ended.check_done().unwrap();
}

#[test]
fn a_worker_of_another_host_that_leaves_a_run_is_named() {
    let mut world = World::with_ranks_of(&[1, 1], 5);
    let (case, plan) = by_turns(3);
    let told = on_all(&mut world, &[1, 1], |worker| {
        let opened = open(worker, &case, 0);
        worker.barrier().unwrap();
        let in_place = areas(worker, 0);
        let mut rows = RowRun::begin(worker, plan.clone(), 3, &in_place).unwrap();
        let error = loop {
            match rows.next(worker) {
                Ok(Some(batch)) if batch.rank() == 1 && batch.pass() == 1 => {
                    drop(rows);
                    break None;
                }
                Ok(Some(_)) => {}
                Ok(None) => panic!("the other has left"),
                Err(error) => break Some(error),
            }
        };
        worker.barrier().unwrap();
        drop(opened);
        worker.barrier().unwrap();
        // Then the next run begins as if nothing had been.
        let opened = open(worker, &case, 1);
        worker.barrier().unwrap();
        let in_place = areas(worker, 1);
        run_all(worker, &plan, 3, &in_place);
        drop(opened);
        worker.barrier().unwrap();
        error
    });
    assert!(matches!(told[0], Some(hectare_dsm::Error::TaskLeft { rank: 1 })), "{told:?}");
    assert!(told[1].is_none());
}

#[test]
fn who_describes_another_run_or_none_is_named_to_all() {
    let mut world = World::with_ranks_of(&[1, 1, 1], 6);
    let batches = vec![vec![Ok(0), Ok(2)]];
    let case = Case { ranks: vec![1; 3], rows: [1, 1], width: [4, 4], passes: 1, owners: [0, 2], batches };
    let plan = Arc::new(case.plan());
    let told = on_all(&mut world, &[1, 1, 1], |worker| {
        let opened = open(worker, &case, 0);
        worker.barrier().unwrap();
        let in_place = areas(worker, 0);
        let rank = worker.rank();
        let mut told = Vec::new();
        // More passes, fewer areas, and no attempt at all.
        let passes = if rank == 1 { 2 } else { 1 };
        told.push(RowRun::begin(worker, plan.clone(), passes, &in_place).unwrap_err().to_string());
        worker.barrier().unwrap();
        let some = if rank == 2 { &in_place[..1] } else { &in_place };
        told.push(RowRun::begin(worker, plan.clone(), 1, some).unwrap_err().to_string());
        worker.barrier().unwrap();
        if rank == 0 {
            RowRun::decline(worker).unwrap();
        } else {
            told.push(RowRun::begin(worker, plan.clone(), 1, &in_place).unwrap_err().to_string());
        }
        worker.barrier().unwrap();
        // All agree.
        run_all(worker, &plan, 1, &in_place);
        drop(opened);
        worker.barrier().unwrap();
        told
    });
    for (rank, told) in told.iter().enumerate() {
        assert!(told[0].contains("has described other tasks"), "{told:?}");
        let expected = if rank == 2 { "2 arrays, and were given 1" } else { "worker 2 has left" };
        assert!(told[1].contains(expected), "{told:?}");
        assert!(rank == 0 || told[2].contains("worker 0 has left"), "{told:?}");
    }
}

/// One array of some rows that rank 0 has; what each worker writes in each batch.
fn one_array(
    ranks: &[u32],
    rows: usize,
    width: usize,
    passes: usize,
    writers: &[u32],
) -> (Case, Arc<RowPlan>) {
    let batch = |writer: &u32| (0..=rows).map(|row| if row < rows { Ok(*writer) } else { Err(0) }).collect();
    let batches = writers.iter().map(batch).collect();
    let case =
        Case { ranks: ranks.to_vec(), rows: [rows, 1], width: [width, 1], passes, owners: [0, 0], batches };
    let plan = Arc::new(case.plan());
    (case, plan)
}

#[test]
fn workers_may_meet_before_they_end_a_run() {
    let mut world = World::with_ranks_of(&[1, 1], 8);
    // More than a ring holds goes home.
    let (case, plan) = one_array(&[1, 1], 40, 20_000, 1, &[1]);
    on_all(&mut world, &[1, 1], |worker| {
        let opened = open(worker, &case, 0);
        worker.barrier().unwrap();
        let in_place = areas(worker, 0);
        let mut rows = RowRun::begin(worker, plan.clone(), 1, &in_place).unwrap();
        while rows.next(worker).unwrap().is_some() {}
        worker.barrier().unwrap();
        rows.end(worker).unwrap();
        worker.barrier().unwrap();
        drop(opened);
        worker.barrier().unwrap();
    });
}

/// The owner, which touches no row, takes its area back while others go on: nothing is put in place there any more.
#[test]
fn nothing_is_put_into_an_area_that_was_taken_back() {
    let ranks = [2, 1];
    let mut world = World::with_ranks_of(&ranks, 9);
    let (case, plan) = one_array(&ranks, 4, 1000, 600, &[2, 1]);
    let told = on_all(&mut world, &ranks, |worker| {
        let mut opened = open(worker, &case, 0);
        worker.barrier().unwrap();
        let in_place = areas(worker, 0);
        let mut rows = RowRun::begin(worker, plan.clone(), 600, &in_place).unwrap();
        let mut error = None;
        if worker.rank() == 0 {
            for _ in 0..20 {
                assert!(rows.next(worker).unwrap().is_some());
            }
            drop(rows);
            let (_, first) = opened.swap_remove(0);
            let mut owned = first.close(worker).unwrap().finish(worker).unwrap();
            let mut written = owned.write(worker).unwrap();
            written.as_mut_slice().fill(7);
            std::thread::sleep(Duration::from_millis(100));
            assert!(written.iter().all(|element| *element == 7));
            worker.barrier().unwrap();
            assert!(owned.read(worker).unwrap().iter().all(|element| *element == 7));
        } else {
            loop {
                match rows.next(worker) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(found) => {
                        error = Some(found);
                        break;
                    }
                }
            }
            drop(rows);
            worker.barrier().unwrap();
        }
        worker.barrier().unwrap();
        error
    });
    assert!(told.iter().any(|error| matches!(error, Some(hectare_dsm::Error::NotOpen { .. }))), "{told:?}");
}

/// A worker leaves the job and another takes its rank: what was said of the first one's stream is not taken for the second one's.
#[test]
fn who_takes_the_rank_of_another_begins_anew() {
    let ranks = [2, 1];
    let mut world = World::with_ranks_of(&ranks, 7);
    let case =
        |world: &mut World| Case { owners: [1, 2], ..Case::random(world, &ranks, [40, 5], [3_001, 1]) };
    let cases: Vec<Case> = (0..4).map(|_| case(&mut world)).collect();
    let plans: Vec<_> = cases.iter().map(|case| Arc::new(case.plan())).collect();
    let jobs: Vec<Job> = world.hosts.iter().map(|host| host.job.clone()).collect();
    let met = std::sync::Barrier::new(3);
    let act = |job: &Job, rank: u32| {
        let join = || job.worker_at(rank).unwrap();
        let mut worker = Some(join());
        for (run, (case, plan)) in cases.iter().zip(&plans).enumerate() {
            let worker_here = worker.get_or_insert_with(join);
            met.wait();
            worker_here.wait_for_workers(3, TIME_LIMIT).unwrap();
            work(worker_here, case, plan, run);
            if rank == 0 {
                worker = None;
            }
        }
    };
    std::thread::scope(|scope| {
        let (jobs, act) = (&jobs, &act);
        let of = |(host, rank): (usize, u32)| scope.spawn(move || act(&jobs[host], rank));
        let threads = [(0, 0), (0, 1), (1, 2)].map(of);
        while threads.iter().any(|thread| !thread.is_finished()) {
            world.turn();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}
