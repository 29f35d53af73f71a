//! Runs of plans of rows by threads: the same bits as one after the other, and who is told when somebody ends.
use crate::tasks::{RowList, RowPlan, RowRun, Touched};
use crate::{AreaSpec, Error, Job, Opened, Worker};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

const ROWS: [usize; 2] = [12, 5];
const WIDTH: [usize; 2] = [3, 1];
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Who writes each row of both arrays in each batch, if anybody does, and who reads it.
#[derive(Clone, Debug)]
struct Case {
    workers: usize,
    passes: usize,
    /// By batch and row: a writer, or a set of readers as bits.
    batches: Vec<Vec<Result<usize, u8>>>,
}

fn cases() -> impl Strategy<Value = Case> {
    (2usize..5, 1usize..5).prop_flat_map(|(workers, passes)| {
        let row = prop_oneof![(0..workers).prop_map(Ok), (0u8..1 << workers).prop_map(Err), Just(Err(0)),];
        let batch = prop::collection::vec(row, ROWS.iter().sum::<usize>());
        prop::collection::vec(batch, 1..6).prop_map(move |batches| Case { workers, passes, batches })
    })
}

impl Case {
    fn rows(&self, worker: usize, array: usize, written: bool) -> RowList {
        let first = if array == 0 { 0 } else { ROWS[0] };
        let of = |batch: &Vec<Result<usize, u8>>| {
            let has = |row: &usize| match batch[first + row] {
                Ok(writer) => written && writer == worker,
                Err(readers) => !written && readers >> worker & 1 == 1,
            };
            (0..ROWS[array]).filter(has).map(|row| row as u32).collect::<Vec<_>>()
        };
        self.batches.iter().map(of).collect()
    }

    fn plan(&self) -> RowPlan {
        let touched = |worker: usize, array: usize| Touched {
            writes: self.rows(worker, array, true),
            reads: self.rows(worker, array, false),
        };
        let all = (0..self.workers).map(|worker| vec![touched(worker, 0), touched(worker, 1)]).collect();
        RowPlan::new(ROWS.to_vec(), self.batches.len(), all).unwrap()
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

/// All batches one after the other.
fn serial(case: &Case, plan: &RowPlan) -> [Vec<u64>; 2] {
    let mut arrays = [0, 1].map(|array| vec![0u64; ROWS[array] * WIDTH[array]]);
    for _ in 0..case.passes {
        for batch in 0..plan.batches() {
            for worker in 0..case.workers as u32 {
                let lists =
                    [0, 1].map(|array| (plan.writes(worker, array, batch), plan.reads(worker, array, batch)));
                act(lists, |array, written, place, new| {
                    let row = if written { lists[array].0[place] } else { lists[array].1[place] } as usize;
                    let elements = &mut arrays[array][row * WIDTH[array]..][..WIDTH[array]];
                    new.inspect(|new| elements.fill(*new)).unwrap_or(elements[WIDTH[array] - 1])
                });
            }
        }
    }
    arrays
}

fn in_parallel(case: &Case, plan: &Arc<RowPlan>) -> [Vec<u64>; 2] {
    let job = Job::embedded().unwrap();
    let names = ["rows0", "rows1"];
    let work = |worker: &mut Worker| {
        let first = worker.rank() == 0;
        let opened = first.then(|| {
            [0, 1].map(|array| {
                let spec = AreaSpec::new(names[array]).copies(0);
                let owned = worker.create::<u64>(spec, ROWS[array] * WIDTH[array]).unwrap();
                owned.open_to_tasks(worker).unwrap()
            })
        });
        worker.barrier().unwrap();
        let areas = names.map(|name| worker.attach::<u64>(name).unwrap());
        let in_place = areas.each_ref().map(|area| area.in_place());
        let mut run = RowRun::begin(&mut *worker, plan.clone(), case.passes, &in_place).unwrap();
        let mut begun = 0;
        while let Some(batch) = run.next(worker).unwrap() {
            assert_eq!((batch.pass(), batch.number()), (begun / plan.batches(), begun % plan.batches()));
            begun += 1;
            let mut rows = [batch.rows(&areas[0], 0).unwrap(), batch.rows(&areas[1], 1).unwrap()];
            assert!(matches!(batch.rows(&areas[0], 0), Err(Error::Tasks { .. })));
            let (writes, reads) = (rows[0].writes().len(), rows[0].reads().len());
            assert!(rows[0].get_mut(writes).is_none() && rows[0].get(writes).is_none());
            assert!(rows[0].read(reads).is_none() && rows[0].read_and_write(reads, 0).is_none());
            assert!(rows[0].two_mut(0, 0).is_none());
            let (rank, number) = (batch.rank(), batch.number());
            let lists =
                [0, 1].map(|array| (plan.writes(rank, array, number), plan.reads(rank, array, number)));
            act(lists, |array, written, place, new| {
                let rows = &mut rows[array];
                if let Some(new) = new {
                    rows.get_mut(place).unwrap().fill(new);
                    return new;
                }
                let row = if written { rows.get(place) } else { rows.read(place) };
                row.unwrap()[WIDTH[array] - 1]
            });
        }
        assert_eq!(begun, case.passes * plan.batches());
        drop(run);
        worker.barrier().unwrap();
        let arrays = opened.map(|opened| {
            opened.map(|opened| {
                let owned = opened.close(worker).unwrap().finish(worker).unwrap();
                owned.read(worker).unwrap().to_vec()
            })
        });
        worker.barrier().unwrap();
        arrays
    };
    let join = || {
        let mut worker = job.worker().unwrap();
        worker.wait_for_workers(case.workers, TIME_LIMIT).unwrap();
        work(&mut worker)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..case.workers).map(|_| scope.spawn(join)).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).next().unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn rows_that_change_owners_have_the_bits_of_one_batch_after_the_other(case in cases()) {
        let plan = Arc::new(case.plan());
        prop_assert_eq!(in_parallel(&case, &plan), serial(&case, &plan));
    }
}

/// Two workers write the only row by turns.
fn by_turns() -> Arc<RowPlan> {
    let lists = |rows: [&[u32]; 2]| Touched { writes: rows.into_iter().collect(), reads: RowList::default() };
    Arc::new(RowPlan::new(vec![1], 2, vec![vec![lists([&[0], &[]])], vec![lists([&[], &[0]])]]).unwrap())
}

/// Worker 0 runs both batches again and again, and worker 1 does `act` in its first batch that has the row. What worker 0 is told.
fn with_another(act: impl FnOnce(&mut Worker, RowRun) + Send) -> Error {
    let job = Job::embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let owned = worker.create::<u64>(AreaSpec::new("row").copies(0), 4).unwrap();
    let opened = owned.open_to_tasks(&worker).unwrap();
    std::thread::scope(|scope| {
        let job = &job;
        let other = scope.spawn(move || {
            let mut worker = job.worker().unwrap();
            let area = worker.attach::<u64>("row").unwrap();
            let mut run = RowRun::begin(&mut worker, by_turns(), 100, &[area.in_place()]).unwrap();
            for _ in 0..2 {
                run.next(&mut worker).unwrap().unwrap();
            }
            act(&mut worker, run);
        });
        worker.wait_for_workers(2, TIME_LIMIT).unwrap();
        let mut run = RowRun::begin(&mut worker, by_turns(), 100, &[opened.area().in_place()]).unwrap();
        let told = loop {
            match run.next(&mut worker) {
                Ok(batch) => assert!(batch.unwrap().pass() < 1),
                Err(error) => break error,
            }
        };
        while !other.is_finished() {
            worker.service().unwrap();
        }
        told
    })
}

#[test]
fn who_waits_for_a_worker_that_leaves_is_told() {
    let leave = with_another(|_, run| drop(run));
    assert!(matches!(leave, Error::TaskLeft { rank: 1 }), "{leave}");
    // Nor does it help to keep the run: another worker would get the rank.
    let lost = with_another(|worker, run| {
        std::mem::forget(run);
        let _ = worker;
    });
    assert!(matches!(lost, Error::TaskLeft { rank: 1 }), "{lost}");
}

#[test]
fn what_does_not_fit_the_plan_is_refused() {
    let job = Job::embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let open = |worker: &mut Worker, name: &str, len: usize| {
        worker.create::<u8>(AreaSpec::new(name).copies(0), len).unwrap().open_to_tasks(worker).unwrap()
    };
    let three = Touched { writes: [[2u32]].into_iter().collect(), reads: RowList::default() };
    let plan = Arc::new(RowPlan::new(vec![3], 1, vec![vec![three.clone()]]).unwrap());
    let (seven, six) = (open(&mut worker, "seven", 7), open(&mut worker, "six", 6));
    let mut refused = |areas: &[&Opened<u8>], passes| {
        let areas: Vec<_> = areas.iter().map(|opened| opened.area().in_place()).collect();
        RowRun::begin(&mut worker, plan.clone(), passes, &areas).unwrap_err().to_string()
    };
    assert!(refused(&[&seven], 1).contains("\"seven\" has 7 elements, which are not 3 rows"));
    assert!(refused(&[], 1).contains("0 areas"));
    assert!(refused(&[&six], 1 << 24).contains("too many"));
    // A plan of two workers, of whom one is there.
    let two = Arc::new(RowPlan::new(vec![3], 1, vec![vec![three], vec![Touched::default()]]).unwrap());
    let six_too = open(&mut worker, "six too", 6);
    let alone = RowRun::begin(&mut worker, two, 1, &[six_too.area().in_place()]);
    assert!(matches!(alone, Err(Error::NoSuchWorker { rank: 1 })));
    let area = six.area();
    let mut run = RowRun::begin(&mut worker, plan.clone(), 2, &[area.in_place()]).unwrap();
    let other = seven.area();
    let batch = run.next(&mut worker).unwrap().unwrap();
    assert!(matches!(batch.rows(&other, 0), Err(Error::Tasks { .. })));
    assert!(matches!(batch.rows(&area, 1), Err(Error::Tasks { .. })));
    assert_eq!(batch.rows(&area, 0).unwrap().get(0), Some(&[0, 0][..]));
    assert!(run.next(&mut worker).unwrap().is_some());
    assert!(run.next(&mut worker).unwrap().is_none());
    assert!(run.next(&mut worker).unwrap().is_none());
    // One run for each time that the areas are opened.
    drop(run);
    let again = RowRun::begin(&mut worker, plan, 2, &[area.in_place()]).unwrap_err().to_string();
    assert!(again.contains("opened again"), "{again}");
}
