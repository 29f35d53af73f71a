//! The example's parts by themselves: blocks, kernels, plans, barrier, imports.
use crate::matrix_completion::barrier::Barrier;
use crate::matrix_completion::blocks::Blocks;
use crate::matrix_completion::checkpoint::checksum;
use crate::matrix_completion::data::Rating;
use crate::matrix_completion::kernel::{Kernels, Step};
use crate::matrix_completion::model::{Layout, Model};
use crate::matrix_completion::modes::serial;
use crate::matrix_completion::options::Schedule;
use crate::matrix_completion::plan::imports::Import;
use crate::matrix_completion::random::Random;
use crate::matrix_completion::train::Training;
use crate::support::{plan, small_data};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[test]
fn cells_have_every_rating_once_and_blocks_are_balanced() {
    let data = small_data(9);
    for workers in [1, 3] {
        let blocks = Blocks::new(&data.train, [data.users, data.items], workers, 2 * workers, 64);
        let mut found: Vec<(u32, u32, u32)> = Vec::new();
        for (worker, users) in blocks.users.blocks.iter().enumerate() {
            let mut load = 0;
            for (block, items) in blocks.items.blocks.iter().enumerate() {
                let cell = blocks.cell(worker, block);
                load += cell.len();
                let rows = |rating: &Rating| (users[rating.user as usize], items[rating.item as usize]);
                found.extend(
                    cell.iter().map(|rating| (rows(rating).0, rows(rating).1, rating.value.to_bits())),
                );
            }
            assert!(load.abs_diff(data.train.len() / workers) < 50, "{load} of {}", data.train.len());
        }
        let mut expected: Vec<_> =
            data.train.iter().map(|rating| (rating.user, rating.item, rating.value.to_bits())).collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
    }
}

#[test]
fn the_update_is_the_gradient() {
    // One rating, one step, against the textbook in f64.
    let rating = Rating { user: 0, item: 0, value: 1.5 };
    for rank in [1, 7, 8, 9, 40] {
        let layout = Layout::new::<f64>(rank, Step::Fixed);
        let mut model = Model::<f64>::new(1, 1, layout, 9).unwrap();
        let (p, q) = (model.users.as_slice()[..rank].to_vec(), model.items.as_slice()[..rank].to_vec());
        let training = Training {
            kernels: Kernels::new(layout.lines, Step::Fixed),
            ratings: &[rating],
            schedule: Schedule { lr: 0.1, decay: 1.0, reg: 0.03 },
            epochs: 1,
            files: &[],
            idle_turns: 0,
        };
        serial::train(&training, &mut model, &mut |_| ControlFlow::Continue(()));
        let error = 1.5 - p.iter().zip(&q).map(|(p, q)| p * q).sum::<f64>();
        for k in 0..rank {
            let expected =
                [p[k] + 0.1 * (error * q[k] - 0.03 * p[k]), q[k] + 0.1 * (error * p[k] - 0.03 * q[k])];
            let found = [model.users.as_slice()[k], model.items.as_slice()[k]];
            assert!(
                (0..2).all(|side| (found[side] - expected[side]).abs() < 1e-14),
                "rank {rank}, factor {k}"
            );
        }
        let padding = model.users.as_slice()[rank..].iter().chain(&model.items.as_slice()[rank..]);
        assert!(padding.copied().all(|value| value == 0.0), "zeros stay zeros");
    }
}

#[test]
fn a_plan_keeps_the_batches_and_shares_no_row_within_one() {
    let data = small_data(7);
    for (workers, affinity) in [(1, true), (2, true), (3, false), (8, true)] {
        let plan = plan(&data, 60, workers, affinity);
        assert_eq!(plan.batches(), data.train.len().div_ceil(60));
        for (batch, ratings) in data.train.chunks(60).enumerate() {
            let mut owners = HashMap::new();
            let mut shares: Vec<_> = (0..workers).map(|worker| plan.share(worker, batch).iter()).collect();
            for worker in 0..workers {
                for row in plan.share(worker, batch).iter().flat_map(|rating| plan.rows_of(rating)) {
                    assert_eq!(*owners.entry(row).or_insert(worker), worker, "row {row} in batch {batch}");
                }
            }
            // Each rating in the order of the batch comes next in its worker's share.
            for rating in ratings {
                let worker = owners[&plan.rows_of(rating)[0]];
                assert_eq!(shares[worker].next(), Some(rating));
            }
            assert!(shares.iter_mut().all(|share| share.next().is_none()));
        }
    }
    let (with, without) = (plan(&data, 60, 2, true), plan(&data, 60, 2, false));
    assert!(with.imports().count(1) < without.imports().count(1), "affinity saves imports");
    assert!(with.balance().speed_up_limit > 1.5, "{:?}", with.balance());
}

#[test]
fn the_barrier_waits_for_all_and_lets_nobody_wait_for_a_dead_thread() {
    for threads in [1, 2, 7] {
        let barrier = Barrier::new(threads);
        let arrivals = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for round in 1..200 {
                        arrivals.fetch_add(1, Ordering::Relaxed);
                        barrier.wait();
                        assert_eq!(arrivals.load(Ordering::Relaxed), round * threads);
                        barrier.wait();
                    }
                });
            }
        });
    }
    let barrier = Barrier::new(3);
    let panics = thread::scope(|scope| {
        let waiting: Vec<_> = (0..2).map(|_| scope.spawn(|| barrier.wait())).collect();
        let dying = scope.spawn(|| {
            let _guard = barrier.abort_on_panic();
            panic!("as a worker would");
        });
        waiting.into_iter().chain([dying]).map(|thread| thread.join().is_err()).collect::<Vec<_>>()
    });
    assert_eq!(panics, [true; 3]);
}

#[test]
fn imports_are_those_of_a_naive_model() {
    let data = small_data(11);
    for workers in [1, 2, 5] {
        let plan = plan(&data, 60, workers, true);
        let mut last: HashMap<u32, (u32, u32)> = HashMap::new();
        for epoch in 0..3 {
            let mut count = 0;
            for batch in 0..plan.batches() {
                let before = last.clone();
                for worker in 0..workers {
                    let rows: HashSet<u32> =
                        plan.share(worker, batch).iter().flat_map(|rating| plan.rows_of(rating)).collect();
                    let mut expected: Vec<Import> = Vec::new();
                    for row in rows {
                        if let Some(&(from, written)) = before.get(&row)
                            && from as usize != worker
                        {
                            expected.push(Import { row, from, written });
                        }
                        last.insert(row, (worker as u32, batch as u32));
                    }
                    let mut found = plan.imports().of(epoch, worker, batch).to_vec();
                    expected.sort();
                    found.sort();
                    assert_eq!(found, expected, "epoch {epoch}, batch {batch}, worker {worker} of {workers}");
                    count += found.len();
                }
            }
            assert_eq!(plan.imports().count(epoch), count);
        }
    }
}

#[test]
fn checkpoints_and_seeds_of_earlier_versions_hold() {
    assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(checksum(b"foobar"), 0x8594_4171_f739_67e8);
    assert_eq!(Random::new(0, "").bits(), 0x5b21_f68f_fa77_f14c);
    assert_eq!(Random::new(7, "ratings").bits(), 0xbc99_e7cb_6660_01e0);
}
