//! The cost of loops through the loop layer beside their bodies: matrix factorization against tight serial loops
//! with the same kernel, and the dispatch of an empty loop.
//!
//! `cargo bench --bench loops [-- --quick] [-- --json FILE] [-- PART_OF_A_CASE]`
mod support;

use hectare::orion::{Context, dot, parallel_for};
use hectare_testing::Random;
use std::cell::Cell;
use std::sync::Barrier;
use support::{Case, Report, Times, nanos};

const USERS: usize = 6040;
const ITEMS: usize = 3706;
const RATINGS: usize = 1_000_209;
const RATE: f32 = 0.01;
const REG: f32 = 0.02;

#[derive(Clone, Copy)]
struct Rating {
    user: u32,
    item: u32,
    value: f32,
}

/// Ratings of MovieLens-1M's shape, a few users and items much more often than others.
fn ratings(sorted: bool) -> Vec<Rating> {
    let mut random = Random(7);
    let mut skewed = |extent: usize| {
        let unit = random.below(1 << 20) as f64 / (1u64 << 20) as f64;
        ((unit * unit * extent as f64) as usize).min(extent - 1) as u32
    };
    let mut list: Vec<Rating> = (0..RATINGS)
        .map(|k| Rating { user: skewed(USERS), item: skewed(ITEMS), value: 1.0 + (k % 9) as f32 / 2.0 })
        .collect();
    if sorted {
        list.sort_by_key(|rating| rating.user);
    }
    list
}

/// One step of SGD: the kernel of both sides.
#[inline(always)]
fn step(a: &mut [f32], b: &mut [f32], value: f32) {
    let along = RATE * (value - dot(a, b));
    let keep = 1.0 - RATE * REG;
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (keep * *a + along * *b, keep * *b + along * *a);
    }
}

fn initial(len: usize) -> Vec<f32> {
    let mut random = Random(3);
    (0..len).map(|_| (random.below(1000) as f32 - 500.0) / 2500.0).collect()
}

/// The loop that one would write by hand.
#[inline(never)]
fn tight(users: &mut [f32], items: &mut [f32], ratings: &[Rating], rank: usize) {
    for rating in ratings {
        let a = &mut users[rating.user as usize * rank..][..rank];
        let b = &mut items[rating.item as usize * rank..][..rank];
        step(a, b, rating.value);
    }
}

/// Times of both sides, in alternation in one run: the loop layer on `workers` workers, and as many tight loops
/// beside each other, each over its share of the ratings and arrays of its own.
fn compare(ratings: &[Rating], rank: usize, workers: usize, repeats: usize) -> (Times, Times) {
    let gate = Barrier::new(workers);
    let results = hectare::run(workers, |w| {
        let mut u = w.from_slice([USERS, rank], &initial(USERS * rank))?;
        let mut v = w.from_slice([ITEMS, rank], &initial(ITEMS * rank))?;
        let r = w.entries([USERS, ITEMS], ratings.len(), |k| {
            ([ratings[k].user as usize, ratings[k].item as usize], ratings[k].value)
        })?;
        let (mut users, mut items) = (initial(USERS * rank), initial(ITEMS * rank));
        let me = w.rank() as usize;
        let share = &ratings[ratings.len() * me / workers..ratings.len() * (me + 1) / workers];
        let (mut ours, mut theirs) = (Times::default(), Times::default());
        for _ in 0..=repeats {
            gate.wait();
            theirs.push(nanos(|| {
                tight(&mut users, &mut items, share, rank);
                gate.wait();
            }));
            ours.push(nanos(|| {
                factorize(w, &r, &mut u, &mut v).expect("a pass");
                gate.wait();
            }));
        }
        // The first passes plan and warm up.
        ours.0.remove(0);
        theirs.0.remove(0);
        Ok((ours, theirs))
    });
    results.expect("a run").swap_remove(0)
}

fn factorize(
    w: &mut Context<'_>,
    r: &hectare::SparseArray<f32, 2>,
    u: &mut hectare::DistArray<f32, 2>,
    v: &mut hectare::DistArray<f32, 2>,
) -> hectare::orion::Result<()> {
    parallel_for!(w, unordered, read r, write [u, v];
    for ((i, j), x) in r {
        step(u.row_mut(i), v.row_mut(j), *x);
    })
}

fn factorization(report: &mut Report) {
    let repeats = if report.quick { 12 } else { 60 };
    for sorted in [false, true] {
        let order = if sorted { "sorted" } else { "shuffled" };
        let list = ratings(sorted);
        for workers in [1, 2] {
            for rank in [16, 32, 100] {
                let case = format!("mf/{order}/rank {rank}/{workers}w");
                if !report.wants(&case) {
                    continue;
                }
                let (ours, theirs) = compare(&list, rank, workers, repeats);
                let speed = |time: f64| RATINGS as f64 / time * 1e3;
                report.add(Case {
                    case,
                    value: speed(ours.median()),
                    best: speed(ours.best()),
                    unit: "M updates/s",
                    ratio: Some(theirs.median() / ours.median()),
                    against: Some(format!("{workers} tight loops ({:.1})", speed(theirs.median()))),
                    target: Some(0.9),
                });
            }
        }
    }
}

/// From the last entry to the last exit of an empty loop with one sum.
fn dispatch(report: &mut Report) {
    let case = "dispatch/2w";
    if !report.wants(case) {
        return;
    }
    let repeats = if report.quick { 5_000 } else { 50_000 };
    let gate = Barrier::new(2);
    let times = hectare::run(2, |w| {
        let mut times = Times::default();
        let sum = Cell::new(0.0);
        for turn in 0..repeats {
            if turn % 64 == 0 {
                gate.wait();
            }
            times.push(nanos(|| {
                let value = parallel_for!(w, unordered, sum ones: f64;
                for _ in 0..48 {
                    ones += 1.0;
                })
                .expect("a pass");
                sum.set(value);
            }));
        }
        assert_eq!(sum.get(), 48.0);
        Ok(times)
    });
    let times = times.expect("a run").swap_remove(0);
    let mut sorted = times.0.clone();
    sorted.sort_by(f64::total_cmp);
    report.add(Case {
        case: case.into(),
        value: times.median() / 1e3,
        best: times.best() / 1e3,
        unit: "us",
        ratio: None,
        against: Some(format!("p99 {:.1} us", sorted[sorted.len() * 99 / 100] / 1e3)),
        target: None,
    });
}

fn main() {
    let mut report = Report::from_args("loops: the loop layer against tight loops");
    factorization(&mut report);
    dispatch(&mut report);
    report.finish();
}
