//! The example `matrix_completion`: its parts, and the program with bad input.

#[allow(dead_code, reason = "the program's `main` and what only it uses")]
#[path = "../examples/matrix_completion/main.rs"]
mod matrix_completion;

use matrix_completion::barrier::Barrier;
use matrix_completion::blocks::Blocks;
use matrix_completion::data::{DataSet, Rating, RawRating, split};
use matrix_completion::element::Element;
use matrix_completion::evaluate::{squared_error, test_rmse};
use matrix_completion::exchange::Exchange;
use matrix_completion::generate::{Size, generate};
use matrix_completion::imports::Import;
use matrix_completion::kernel::Kernels;
use matrix_completion::model::{Layout, Model};
use matrix_completion::modes::areas::Transports;
use matrix_completion::modes::{areas, handover, serial, shared};
use matrix_completion::options::Step;
use matrix_completion::plan::{Plan, PlanOptions};
use matrix_completion::random::Random;
use matrix_completion::read;
use matrix_completion::train::{EpochEnd, Schedule, Training};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Small enough for a build without optimization.
const SMALL: Size = Size { users: 300, items: 200, ratings: 9000 };

fn small_data(seed: u64) -> DataSet {
    let (train, test) = split(&generate(SMALL, seed), 0.1, seed);
    let mut data = DataSet::new(&train, &test).unwrap();
    Random::new(seed, "order").shuffle(&mut data.train);
    data
}

/// How to train.
#[derive(Clone, Copy, Debug)]
enum Way<'a> {
    Serial,
    Shared(&'a Plan),
    Areas(&'a Plan, Transports),
    /// With so many workers.
    Handover(usize),
}

/// Training loss and test RMSE after each epoch.
fn losses<E: Element>(
    data: &DataSet,
    rank: usize,
    step: Step,
    epochs: usize,
    way: Way<'_>,
    threads: usize,
) -> Vec<[f64; 2]> {
    let layout = Layout::new::<E>(rank, step);
    let mut model = Model::<E>::new(data.users, data.items, layout, 1).unwrap();
    let kernels = Kernels::new(layout.lines, step);
    let schedule = Schedule { lr: 0.05, decay: 0.9, reg: 0.04 };
    let training = Training { kernels, ratings: &data.train, schedule, epochs, idle_turns: 0 };
    let mut losses = Vec::new();
    let mut on_epoch = |end: EpochEnd<'_, E>| {
        assert_eq!(end.epoch, losses.len());
        losses.push([
            squared_error(&kernels, end.model, &data.train, threads) / data.train.len() as f64,
            test_rmse(&kernels, end.model, &data.test, &data.test_unseen, threads),
        ]);
        ControlFlow::Continue(())
    };
    match way {
        Way::Serial => serial::train(&training, &mut model, &mut on_epoch),
        Way::Shared(plan) => shared::train(&training, plan, &mut model, &mut on_epoch).unwrap(),
        Way::Areas(plan, transport) => {
            areas::train(&training, plan, transport, &mut model, &mut on_epoch).unwrap();
        }
        Way::Handover(workers) => {
            handover::train(&training, workers, &mut model, &mut on_epoch).unwrap();
        }
    }
    losses
}

fn plan(data: &DataSet, batch: usize, workers: usize, affinity: bool) -> Plan {
    Plan::new(&data.train, data.users, data.items, PlanOptions { batch, workers, affinity })
}

fn bits(losses: &[[f64; 2]]) -> Vec<[u64; 2]> {
    losses.iter().map(|pair| pair.map(f64::to_bits)).collect()
}

const TRANSPORTS: [Transports; 3] = [Transports::Published, Transports::Handed, Transports::Logged];

#[test]
fn modes_with_batches_have_the_same_losses_for_every_worker_count() {
    let data = small_data(3);
    for (rank, step) in [(16, Step::Fixed), (20, Step::Adagrad), (130, Step::Fixed)] {
        let expected = bits(&losses::<f32>(&data, rank, step, 3, Way::Serial, 1));
        for workers in [1, 2, 3, 4, 8] {
            let plan = plan(&data, 60, workers, true);
            let found = bits(&losses::<f32>(&data, rank, step, 3, Way::Shared(&plan), workers));
            assert_eq!(found, expected, "shared, rank {rank}, {step:?}, {workers} workers");
            for transport in TRANSPORTS {
                let found = bits(&losses::<f32>(&data, rank, step, 3, Way::Areas(&plan, transport), workers));
                assert_eq!(found, expected, "{transport:?}, rank {rank}, {step:?}, {workers} workers");
            }
        }
    }
    let expected = bits(&losses::<f64>(&data, 100, Step::Fixed, 3, Way::Serial, 1));
    let without_affinity = plan(&data, 60, 2, false);
    let found = bits(&losses::<f64>(&data, 100, Step::Fixed, 3, Way::Shared(&without_affinity), 2));
    assert_eq!(found, expected, "shared, f64");
    for transport in TRANSPORTS {
        let way = Way::Areas(&without_affinity, transport);
        assert_eq!(bits(&losses::<f64>(&data, 100, Step::Fixed, 3, way, 2)), expected, "{transport:?}, f64");
    }
}

#[test]
fn areas_take_more_workers_than_batches_have_ratings() {
    let data = small_data(3);
    let expected = bits(&losses::<f32>(&data, 8, Step::Fixed, 1, Way::Serial, 1));
    let plan = plan(&data, 30, 40, true);
    let found = bits(&losses::<f32>(&data, 8, Step::Fixed, 1, Way::Areas(&plan, Transports::Published), 2));
    assert_eq!(found, expected);
}

#[test]
fn handover_repeats_itself_and_learns() {
    let data = small_data(5);
    for workers in [1, 2, 3, 8] {
        for step in [Step::Fixed, Step::Adagrad] {
            let first = losses::<f32>(&data, 16, step, 5, Way::Handover(workers), 2);
            let again = losses::<f32>(&data, 16, step, 5, Way::Handover(workers), 2);
            assert_eq!(bits(&first), bits(&again), "{workers} workers, {step:?}");
            for pair in first.windows(2) {
                assert!(
                    pair[1][0] < pair[0][0],
                    "{workers} workers, {step:?}: training loss rises in {first:?}"
                );
            }
            assert!(first[4][1] < 1.0, "{workers} workers, {step:?}: {first:?}");
        }
    }
}

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
fn what_is_sent_is_what_is_imported() {
    let data = small_data(11);
    for workers in [1, 2, 5] {
        let plan = plan(&data, 60, workers, true);
        let exchange = Exchange::new(&plan);
        assert_eq!(exchange.rows(), plan.imports().count(1));
        let parcels: Vec<HashSet<u32>> = (0..plan.batches() * workers * workers)
            .map(|parcel| {
                let (batch, pair) = (parcel / (workers * workers), parcel % (workers * workers));
                exchange.parcel(batch, pair / workers, pair % workers).iter().copied().collect()
            })
            .collect();
        for (batch, to) in (0..plan.batches()).flat_map(|batch| (0..workers).map(move |to| (batch, to))) {
            for import in plan.imports().of(1, to, batch) {
                let parcel = (import.written as usize * workers + import.from as usize) * workers + to;
                assert!(parcels[parcel].contains(&import.row), "{import:?} of worker {to} in batch {batch}");
            }
            // The plan's share in another order, in which components that need nothing from the batch before come
            // first, and each keeps its own order.
            let share = exchange.share(batch, to);
            let ratings = &share.ratings[..share.count];
            let (early, late) = ratings.split_at(share.early);
            let rows = |ratings: &[Rating]| -> HashSet<u32> {
                ratings.iter().flat_map(|rating| plan.rows_of(rating)).collect()
            };
            assert!(rows(early).is_disjoint(&rows(late)));
            let kept = |part: &[Rating]| -> Vec<Rating> {
                let rows = rows(part);
                let keep = |rating: &&Rating| rows.contains(&rating.user);
                plan.share(to, batch).iter().filter(keep).copied().collect()
            };
            assert_eq!([early, late].map(<[Rating]>::to_vec), [kept(early), kept(late)]);
            let before = (batch + plan.batches() - 1) % plan.batches();
            for import in plan.imports().of(1, to, batch) {
                assert!(import.written as usize != before || !rows(early).contains(&import.row));
            }
            // Sent after its last use, to a place of its own.
            for send in exchange.sends(batch, to) {
                assert_eq!(exchange.parcel(batch, to, send.to as usize)[send.slot as usize], send.row);
                let last = ratings.iter().rposition(|rating| plan.rows_of(rating).contains(&send.row));
                assert_eq!(last, Some(send.after as usize));
            }
        }
        let mut homes: Vec<u32> = (0..workers).flat_map(|worker| exchange.home(worker).to_vec()).collect();
        homes.sort_unstable();
        assert!(homes.iter().copied().eq(0..(data.users + data.items) as u32), "every row has one home");
    }
}

#[test]
fn the_test_error_falls() {
    for (step, bound) in [(Step::Fixed, 1.0), (Step::Adagrad, 1.0)] {
        let data = small_data(5);
        let losses = losses::<f32>(&data, 16, step, 5, Way::Serial, 2);
        let mean_only = (data.test.iter().map(|rating| f64::from(rating.value).powi(2)).sum::<f64>()
            / data.test.len() as f64)
            .sqrt();
        assert!(losses[0][1] < mean_only, "{step:?}: {losses:?} against {mean_only}");
        for pair in losses.windows(2) {
            assert!(pair[1][0] < pair[0][0], "{step:?}: training loss rises in {losses:?}");
            assert!(pair[1][1] < pair[0][1] + 0.005, "{step:?}: test RMSE rises in {losses:?}");
        }
        assert!(losses[4][1] < bound, "{step:?}: {losses:?}");
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
fn generated_data_has_its_size_and_a_seed_repeats_it() {
    let ratings = generate(SMALL, 1);
    assert_eq!(ratings.len(), SMALL.ratings);
    assert_eq!(ratings, generate(SMALL, 1));
    assert_ne!(ratings, generate(SMALL, 2));
    let pairs: HashSet<_> = ratings.iter().map(|rating| (rating.user, rating.item)).collect();
    assert_eq!(pairs.len(), ratings.len(), "no user rates an item twice");
    let users: HashSet<_> = ratings.iter().map(|rating| rating.user).collect();
    assert_eq!(users.len(), SMALL.users, "each user rates something");
    assert!(ratings.iter().all(|rating| (1.0..=5.0).contains(&rating.value) && rating.value.fract() == 0.0));

    let mut degrees = vec![0; SMALL.items];
    ratings.iter().for_each(|rating| degrees[rating.item as usize] += 1);
    degrees.sort();
    assert!(degrees[SMALL.items - 1] > 3 * degrees[SMALL.items / 2], "popular items: {degrees:?}");

    // All that there is to rate.
    let full = generate(Size { users: 5, items: 4, ratings: 20 }, 1);
    assert_eq!(full.iter().map(|rating| (rating.user, rating.item)).collect::<HashSet<_>>().len(), 20);
}

#[test]
fn formats_are_found_by_looking() {
    let raw = |user, item, value| RawRating { user, item, value };
    let expected = [raw(7, 1_000_000_000_000, 4.5), raw(8, 20, 3.0)];
    for text in [
        "7::1000000000000::4.5::978300760\n8::20::3::978302109\n",
        "7,1000000000000,4.5\n8,20,3\n",
        "userId,movieId,rating,timestamp\r\n7,1000000000000,4.5,11\r\n8,20,3.0,12\r\n",
        "\u{feff}\"user\",\"item\",\"rating\"\n\"7\",\"1000000000000\",\"4.5\"\n\"8\",\"20\",\"3\"\n",
        "7;1000000000000;4.5\n8;20;3\n",
        "7\t1000000000000\t4.5\t881250949\n8\t20\t3\t881250949",
        "user\titem\trating\n7\t1000000000000\t4.5\n8\t20\t3",
        "7 1000000000000 4.5\n\n  8  20   3  \n",
    ] {
        let text = text.trim_start_matches('\u{feff}');
        assert_eq!(read::parse(text).unwrap(), expected, "{text:?}");
    }
}

#[test]
fn unknown_users_and_items_are_predicted_by_the_mean() {
    let raw = |user, item, value| RawRating { user, item, value };
    let data =
        DataSet::new(&[raw(900, 5, 2.0), raw(3, 5, 4.0)], &[raw(3, 5, 5.0), raw(4, 5, 1.0), raw(3, 6, 3.5)]);
    let data = data.unwrap();
    assert_eq!((data.users, data.items, data.mean), (2, 1, 3.0));
    assert_eq!(data.test, [Rating { user: 1, item: 0, value: 2.0 }]);
    assert_eq!(data.test_unseen, [-2.0, 0.5]);
}

/// The program, built by cargo beside this test: `target/<profile>/examples`.
fn program() -> Command {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).unwrap();
    let program = profile.join("examples/matrix_completion");
    assert!(program.exists(), "{} is not built: run all tests, or cargo build --examples", program.display());
    Command::new(program)
}

/// A directory for one test, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hectare-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().into()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What a failed removal leaves behind harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refused(output: &Output) -> String {
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!output.status.success(), "accepted");
    assert!(output.status.code().is_some(), "killed: {message}");
    assert_eq!(message.lines().count(), 1, "not one line: {message}");
    assert!(message.starts_with("error: ") && !message.contains("panicked"), "{message}");
    message
}

#[test]
fn a_run_in_two_parts_has_the_bits_of_one() {
    let directory = Directory::new("checkpoints");
    let lines = (0..3000u32).map(|n| format!("{} {} {}\n", n * 7 % 211, n * 11 % 97, 1 + n * n % 5));
    let file = directory.file("ratings", lines.collect::<String>());
    let train = |mode: &str, epochs: &str, checkpoint: &Path| {
        let args = ["--quiet", "--workers", "2", "--rank", "5", "--ratings", &file, "--mode", mode];
        let mut command = program();
        command.args(args).args(["--epochs", epochs, "--checkpoint"]).arg(checkpoint).output().unwrap()
    };
    for mode in ["serial", "shared", "areas", "handover"] {
        let [whole, parts] = ["whole", "parts"].map(|name| directory.0.join(format!("{mode}-{name}")));
        assert!(train(mode, "5", &whole).status.success());
        for epochs in ["2", "2", "5"] {
            let output = train(mode, epochs, &parts);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(fs::read(&whole).unwrap(), fs::read(&parts).unwrap(), "{mode}");
    }

    let good = directory.0.join("serial-whole");
    let mut bytes = fs::read(&good).unwrap();
    let other =
        program().args(["--quiet", "--rank", "6", "--ratings", &file, "--checkpoint"]).arg(&good).output();
    assert!(refused(&other.unwrap()).contains("is of another run: matrix_completion: rank 5"));
    for at in [0, 30, bytes.len() / 2, bytes.len() - 1] {
        bytes[at] ^= 1;
        let damaged = directory.file("damaged", &bytes);
        assert!(refused(&train("shared", "6", Path::new(&damaged))).contains("no whole checkpoint"));
        bytes[at] ^= 1;
    }
    let short = directory.file("short", &bytes[..bytes.len() - 9]);
    assert!(refused(&train("shared", "6", Path::new(&short))).contains("no whole checkpoint"));
}

#[test]
fn bad_files_are_refused_with_file_and_line() {
    let directory = Directory::new("bad-files");
    let good = "1 1 3\n2 1 4\n";
    for (content, expected) in [
        ("", "no ratings"),
        ("\n \n", "no ratings"),
        ("user,item,rating\n", "no ratings"),
        ("1 1 3\n2 1\n", "line 2: expected user, item and rating between spaces, found 2"),
        ("1,1,3\n2,1,4\n3 1 4\n", "line 3: expected user, item and rating between ','"),
        ("1::1::3\n\n2::-5::4\n", "line 3: the item id -5 is negative"),
        ("-1 1 3\n", "line 1: the user id -1 is negative"),
        ("1 1 3\nx 1 4\n", "line 2: the user id \"x\" is not"),
        ("1 1.5 3\n", "line 1: the item id \"1.5\" is not"),
        ("1 99999999999999999999 3\n", "line 1: the item id"),
        ("1 1 NaN\n", "line 1: the rating NaN is not finite"),
        ("1 1 3\n1 2 inf\n", "line 2: the rating inf is not finite"),
        ("1 1 1e60\n", "line 1: the rating 1e60 is not finite"),
        ("1 1 good\n", "line 1: the rating \"good\" is not a number"),
        ("1\t1\t\n", "line 1"),
    ] {
        let file = directory.file("ratings", content);
        let message = refused(&program().args(["--ratings", &file]).output().unwrap());
        assert!(message.contains(&file) && message.contains(expected), "{content:?}: {message}");

        let train = directory.file("good", good);
        let message = refused(&program().args(["--ratings", &train, "--test", &file]).output().unwrap());
        assert!(message.contains(&file) && message.contains(expected), "{content:?} to test: {message}");
    }
    let file = directory.file("binary", b"1 1 3\n1 2 \xff\n");
    assert!(
        refused(&program().args(["--ratings", &file]).output().unwrap()).contains(":2: this is not text")
    );
    let missing = directory.0.join("missing");
    let message = refused(&program().arg("--ratings").arg(&missing).output().unwrap());
    assert!(message.contains(missing.to_str().unwrap()), "{message}");
    refused(&program().arg("--ratings").arg(&directory.0).output().unwrap());
}

#[test]
fn bad_options_are_refused() {
    let directory = Directory::new("bad-options");
    let ratings = directory.file("ratings", "1 1 3\n2 1 4\n1 2 5\n2 2 3\n");
    for (options, named) in [
        (&["--rank", "0"][..], "--rank"),
        (&["--rank", "9999999999999999"], "memory"),
        (&["--rank", "-3"], "-3"),
        (&["--rank", "many"], "--rank"),
        (&["--workers", "0"], "--workers"),
        (&["--workers", "257"], "--workers"),
        (&["--epochs", "0"], "--epochs"),
        (&["--batch", "0"], "--batch"),
        (&["--lr", "NaN"], "--lr"),
        (&["--lr", "inf"], "--lr"),
        (&["--lr", "0"], "--lr"),
        (&["--lr", "-0.1"], "--lr"),
        (&["--decay", "0"], "--decay"),
        (&["--reg", "-1"], "--reg"),
        (&["--reg", "NaN"], "--reg"),
        (&["--split", "0"], "--split"),
        (&["--split", "1"], "--split"),
        (&["--split", "NaN"], "--split"),
        (&["--split", "-0.5"], "--split"),
        (&["--mode", "magic"], "--mode"),
        (&["--transport", "pigeon"], "--transport"),
        (&["--step", "giant"], "--step"),
        (&["--split", "0.5", "--test", "x"], "--split"),
        (&["--out", "/proc/none"], "/proc/none"),
        (&["--lr", "1e30", "--split", "0.25"], "diverged"),
        (&["--nonsense"], "--nonsense"),
    ] {
        let message =
            refused(&program().args(["--quiet", "--ratings", &ratings]).args(options).output().unwrap());
        assert!(message.contains(named), "{options:?}: {message}");
    }
    assert!(program().arg("--help").output().unwrap().status.success());
}

#[test]
fn all_modes_write_the_same_curve() {
    let directory = Directory::new("curve");
    let text: String = generate(SMALL, 1)
        .iter()
        .map(|rating| format!("{}::{}::{}::0\n", rating.user * 1000, rating.item + 1, rating.value))
        .collect();
    let ratings = directory.file("ratings.dat", text);
    let curve = |options: &[&str]| {
        let out = directory.0.join("out");
        let output = program()
            .args(["--ratings", &ratings, "--rank", "8", "--epochs", "3", "--batch", "50", "--out"])
            .arg(&out)
            .args(options)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let svg = fs::read_to_string(out.join("loss.svg")).unwrap();
        assert!(svg.contains("</svg>") && svg.contains("epoch") && svg.contains("training"), "{svg}");
        let csv = fs::read_to_string(out.join("loss.csv")).unwrap();
        let mut lines = csv.lines();
        assert!(
            lines
                .next()
                .unwrap()
                .starts_with("epoch,train_loss,test_rmse,seconds,updates_per_s,mode,workers")
        );
        // Epoch and losses, with all digits.
        lines.map(|line| line.split(',').take(3).collect::<Vec<_>>().join(",")).collect::<Vec<_>>()
    };
    let expected = curve(&["--mode", "serial"]);
    assert_eq!(expected.len(), 3);
    for workers in ["1", "2", "3", "4", "8"] {
        for mode in ["shared", "areas"] {
            assert_eq!(curve(&["--mode", mode, "--workers", workers]), expected, "{mode}, {workers} workers");
        }
    }
    for transport in ["published", "handed", "logged"] {
        assert_eq!(curve(&["--mode", "areas", "--transport", transport]), expected, "{transport}");
    }
    let handover = curve(&["--mode", "handover", "--workers", "3"]);
    assert_eq!(handover.len(), 3);
    assert_ne!(handover, expected, "another order");
}

#[test]
fn movielens_reaches_the_quality_of_libmf() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let (train, test) = (data.join("ml1m.train.txt"), data.join("ml1m.test.txt"));
    if !train.exists() || !test.exists() {
        println!("skipped: {} is absent", train.display());
        return;
    }
    for mode in ["serial", "shared", "areas", "handover"] {
        // Without optimization a short run has to do.
        let (epochs, bound) = match mode {
            _ if cfg!(debug_assertions) => ("2", 0.90),
            "handover" => ("15", 0.85),
            _ => ("15", 0.8463),
        };
        let directory = Directory::new(&format!("movielens-{mode}"));
        let output = program()
            .args(["--quiet", "--mode", mode, "--epochs", epochs, "--ratings"])
            .arg(&train)
            .arg("--test")
            .arg(&test)
            .arg("--out")
            .arg(&directory.0)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let csv = fs::read_to_string(directory.0.join("loss.csv")).unwrap();
        let rmse: f64 = csv.lines().last().unwrap().split(',').nth(2).unwrap().parse().unwrap();
        assert!(rmse <= bound, "mode {mode}: test RMSE {rmse} after {epochs} epochs");
    }
}
