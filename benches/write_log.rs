//! The cost of logging: the matrix-factorization kernel by rows, element setters, bulk ranges.
//!
//! `cargo bench --bench write_log [-- --quick] [-- --json FILE]`
mod support;

use hectare::{AreaSpec, Job, Owned, Worker};
use hectare_testing::Random;
use std::hint::black_box;
use support::{Case, Report, Times, alternate, nanos};

fn main() {
    let mut report = Report::from_args("write log: the same work without logging is 1.0");
    let job = Job::builder().embedded().expect("a job");
    let mut worker = job.worker().expect("a worker");
    kernel(&mut report, &mut worker, 16);
    kernel(&mut report, &mut worker, 100);
    // Rows that share lines with their neighbours.
    kernel(&mut report, &mut worker, 14);
    rows(&mut report, &mut worker, 14);
    rows(&mut report, &mut worker, 16);
    setters(&mut report, &mut worker);
    bulk(&mut report, &mut worker);
    report.finish();
}

/// Adds a rate: work per nanosecond.
fn add(
    report: &mut Report,
    case: &str,
    (work, unit): (f64, &'static str),
    (ours, plain): (Times, Times),
    against: &str,
    target: f64,
) {
    report.add(Case {
        case: case.into(),
        value: work / ours.median(),
        best: work / ours.best(),
        unit,
        ratio: Some(plain.median() / ours.median()),
        against: Some(format!(
            "{against} ({:.3}), best {:.3}",
            work / plain.median(),
            plain.best() / ours.best()
        )),
        target: Some(target),
    });
}

/// One SGD step of matrix factorization on two rows.
#[inline(always)]
fn step(user: &mut [f32], item: &mut [f32], rating: f32) {
    let mut lanes = [0f32; 8];
    let (pairs, rest) = (user.chunks_exact(8).zip(item.chunks_exact(8)), user.len() / 8 * 8);
    for (a, b) in pairs {
        for lane in 0..8 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    let tail: f32 = user[rest..].iter().zip(&item[rest..]).map(|(a, b)| a * b).sum();
    let error = rating - (lanes.iter().sum::<f32>() + tail);
    let (rate, shrink) = (0.01 * error, 1.0 - 0.01 * 0.05);
    for (a, b) in user.iter_mut().zip(item) {
        let old = *a;
        *a = old * shrink + rate * *b;
        *b = *b * shrink + rate * old;
    }
}

/// The matrix-factorization kernel, logging by rows, against the same kernel on plain slices of the same
/// memory.
fn kernel(report: &mut Report, worker: &mut Worker, rank: usize) {
    let case = format!("kernel/rank{rank}/rows");
    if !report.wants(&case) {
        return;
    }
    let (users, items, ratings) = (6040, 3706, 200_000);
    let mut make = |name: String, rows: usize| {
        let spec = AreaSpec::new(name).row(rank);
        let mut owned = worker.create::<f32>(spec, rows * rank).expect("memory");
        owned.write(worker).unwrap().fill(0.1);
        owned
    };
    let mut user_rows = make(format!("users/{rank}"), users);
    let mut item_rows = make(format!("items/{rank}"), items);
    let mut random = Random(42);
    let triples: Vec<(u32, u32, f32)> = (0..ratings)
        .map(|_| (random.below(users) as u32, random.below(items) as u32, random.below(5) as f32 + 1.0))
        .collect();
    let (blocks, repeats) = if report.quick { (8, 6) } else { (20, 15) };
    // The plain side works on the very same memory, through slices.
    let times = {
        let both = std::cell::RefCell::new((&mut user_rows, &mut item_rows, worker));
        let logged = || {
            let (users, items, worker) = &mut *both.borrow_mut();
            let time = {
                let mut user = users.write(worker).unwrap();
                let mut item = items.write(worker).unwrap();
                nanos(|| {
                    for (u, i, r) in &triples {
                        step(user.row_mut(*u as usize), item.row_mut(*i as usize), *r);
                    }
                })
            };
            worker.sync().unwrap();
            time
        };
        let plain = || {
            let (users, items, worker) = &mut *both.borrow_mut();
            let time = {
                let mut user = users.write(worker).unwrap();
                let mut item = items.write(worker).unwrap();
                let (user, item) = (user.as_mut_slice(), item.as_mut_slice());
                nanos(|| {
                    for (u, i, r) in &triples {
                        let (u, i) = (*u as usize * rank, *i as usize * rank);
                        step(&mut user[u..u + rank], &mut item[i..i + rank], *r);
                    }
                })
            };
            worker.sync().unwrap();
            time
        };
        alternate(blocks, repeats, logged, plain)
    };
    let work = ratings as f64 * 1e3;
    add(report, &case, (work, "M upd/s"), times, "the kernel on slices", 0.97);
}

/// Rows written one after the other, as an average over rows or a normalization does: the least work between two marks.
fn rows(report: &mut Report, worker: &mut Worker, len: usize) {
    let case = format!("rows/{}B", 4 * len);
    if !report.wants(&case) {
        return;
    }
    let rows = (1 << 16) / len;
    let mut area = worker.create::<f32>(AreaSpec::new(case.clone()).row(len), rows * len).expect("memory");
    let (blocks, repeats) = if report.quick { (10, 40) } else { (30, 200) };
    let both = std::cell::RefCell::new((&mut area, worker));
    let ours = || {
        let (area, worker) = &mut *both.borrow_mut();
        let time = nanos(|| {
            let mut guard = area.write(worker).unwrap();
            for row in 0..rows {
                scale(guard.row_mut(row));
            }
        });
        worker.sync().unwrap();
        time
    };
    let plain = || {
        let (area, worker) = &mut *both.borrow_mut();
        let time = nanos(|| {
            let mut guard = area.write(worker).unwrap();
            guard.as_mut_slice().chunks_exact_mut(len).for_each(scale);
        });
        worker.sync().unwrap();
        time
    };
    let times = alternate(blocks, repeats, ours, plain);
    let work = (rows * len) as f64 * 1e3;
    add(report, &case, (work, "M elements/s"), times, "the same over chunks of a slice", 0.5);
}

#[inline(always)]
fn scale(row: &mut [f32]) {
    row.iter_mut().for_each(|value| *value = *value * 0.5 + 1.0);
}

/// Element setters in sequence, against a loop that is not vectorized because each value passes through
/// `black_box`: the tightest one there is, two stores an element.
fn setters(report: &mut Report, worker: &mut Worker) {
    if !report.wants("setters") {
        return;
    }
    let len = 1 << 16;
    let mut area = worker.create::<f32>("setters", len).expect("memory");
    let (blocks, repeats) = if report.quick { (10, 40) } else { (30, 200) };
    let both = std::cell::RefCell::new((&mut area, worker));
    let ours = || {
        let (area, worker) = &mut *both.borrow_mut();
        let time = nanos(|| set_each(area, worker));
        worker.sync().unwrap();
        time
    };
    let plain = || {
        let (area, worker) = &mut *both.borrow_mut();
        let time = nanos(|| store_each(area.write(worker).unwrap().as_mut_slice()));
        worker.sync().unwrap();
        time
    };
    let times = alternate(blocks, repeats, ours, plain);
    add(
        report,
        "setters/sequential",
        (len as f64 * 1e3, "M/s"),
        times,
        "a loop that is not vectorized",
        0.85,
    );
}

#[inline(never)]
fn set_each(area: &mut Owned<f32>, worker: &Worker) {
    let mut guard = area.write(worker).unwrap();
    for index in 0..guard.len() {
        guard.set(index, black_box(index as i32 as f32));
    }
}

#[inline(never)]
fn store_each(data: &mut [f32]) {
    for (index, slot) in data.iter_mut().enumerate() {
        *slot = black_box(index as i32 as f32);
    }
}

/// Bulk writes through a range, against the vectorized loop.
fn bulk(report: &mut Report, worker: &mut Worker) {
    for (name, len) in [("256KiB", 1usize << 16), ("8MiB", 1 << 21)] {
        let case = format!("range/{name}");
        if !report.wants(&case) {
            continue;
        }
        let mut area = worker.create::<f32>(case.clone(), len).expect("memory");
        let (blocks, repeats) = if report.quick { (8, 20) } else { (20, 80) };
        let both = std::cell::RefCell::new((&mut area, &mut *worker));
        let ours = || {
            let (area, worker) = &mut *both.borrow_mut();
            let factor = black_box(1.5f32);
            let time = nanos(|| {
                let mut guard = area.write(worker).unwrap();
                for start in (0..len).step_by(4096) {
                    for slot in guard.range_mut(start..start + 4096) {
                        *slot = *slot * factor + 1.0;
                    }
                }
            });
            worker.sync().unwrap();
            time
        };
        let plain = || {
            let (area, worker) = &mut *both.borrow_mut();
            let factor = black_box(1.5f32);
            let time = {
                let mut guard = area.write(worker).unwrap();
                let data = guard.as_mut_slice();
                nanos(|| {
                    for slot in data.iter_mut() {
                        *slot = *slot * factor + 1.0;
                    }
                })
            };
            worker.sync().unwrap();
            time
        };
        let times = alternate(blocks, repeats, ours, plain);
        add(report, &case, (len as f64 * 4.0, "GB/s"), times, "the vectorized loop", 0.9);
    }
}
