//! Matrix factorization whose users and items are looked up in a table, so that subscripts come from data: two workers in the
//! batches that an inspection found, against the serial loop over plain vectors, in turns. And what inspections take.
//!
//! `RATINGS=FILE cargo bench --bench inspect [-- --quick] [-- --json FILE] [-- PART_OF_A_CASE]`, with a file of lines `user item
//! rating`, indices from 0, in the order in which they are visited; ratings of MovieLens-1M's shape in a random order
//! without one. `EXPLAIN=1` prints what was found.
#[allow(dead_code, reason = "the program's `main` and what only it uses")]
#[path = "../apps/matrix_completion/src/main.rs"]
mod matrix_completion;
mod support;

use hectare::orion::loop_nest::Order;
use hectare::orion::{Context, Result, parallel_for};
use hectare::{DistArray, Element};
use matrix_completion::data::DataSet;
use matrix_completion::generate::{Size, generate};
use matrix_completion::random::Random;
use std::sync::Barrier;
use support::{Case, Report, Times, nanos};

/// The ratings, in three columns.
struct Table {
    users: Vec<u32>,
    items: Vec<u32>,
    ratings: Vec<f32>,
    rows: [usize; 2],
}

impl Table {
    fn read() -> Table {
        let lines: Vec<(u32, u32, f32)> = match std::env::var_os("RATINGS") {
            Some(file) => {
                let text = std::fs::read_to_string(&file).expect("a file of ratings");
                let field =
                    |field: Option<&str>| field.expect("three fields").parse::<f64>().expect("a number");
                let line = |line: &str| {
                    let mut fields = line.split_whitespace();
                    let mut next = || field(fields.next());
                    (next() as u32, next() as u32, next() as f32)
                };
                text.lines().map(line).collect()
            }
            None => {
                let mut data = DataSet::new(&generate(Size::MOVIELENS_1M, 1), &[]).expect("a few ratings");
                Random::new(1, "order").shuffle(&mut data.train);
                data.train.iter().map(|one| (one.user, one.item, one.value)).collect()
            }
        };
        let most =
            |of: fn(&(u32, u32, f32)) -> u32| lines.iter().map(of).max().map_or(0, |most| most as usize + 1);
        Table {
            rows: [most(|line| line.0), most(|line| line.1)],
            users: lines.iter().map(|line| line.0).collect(),
            items: lines.iter().map(|line| line.1).collect(),
            ratings: lines.iter().map(|line| line.2).collect(),
        }
    }
}

#[inline(always)]
fn step<const RANK: usize>(user: &mut [f32], item: &mut [f32], rating: f32) {
    // So that the compiler knows how long they are, on both sides.
    let (user, item) = (&mut user[..RANK], &mut item[..RANK]);
    let error = rating - hectare::orion::dot(user, item);
    for (a, b) in user.iter_mut().zip(item) {
        (*a, *b) = (*a + 0.01 * (error * *b - 0.05 * *a), *b + 0.01 * (error * *a - 0.05 * *b));
    }
}

/// The step in a function of its own: in the loop's body the compiler does not know that two rows do not overlap, as it does of two
/// parameters.
#[inline(never)]
fn step_apart<const RANK: usize>(user: &mut [f32], item: &mut [f32], rating: f32) {
    step::<RANK>(user, item, rating);
}

fn start(row: usize, k: usize) -> f32 {
    ((row * 31 + k * 17) % 101) as f32 / 1000.0
}

/// The tight loop of one worker.
fn serial<const RANK: usize>(table: &Table, users: &mut [f32], items: &mut [f32]) {
    for ((u, i), rating) in table.users.iter().zip(&table.items).zip(&table.ratings) {
        let (u, i) = (*u as usize * RANK, *i as usize * RANK);
        step::<RANK>(&mut users[u..u + RANK], &mut items[i..i + RANK], *rating);
    }
}

/// The loop's arrays.
struct Arrays {
    users: DistArray<f32, 2>,
    items: DistArray<f32, 2>,
    user_of: DistArray<u32, 1>,
    item_of: DistArray<u32, 1>,
    ratings: DistArray<f32, 1>,
}

fn column<T: Element>(w: &mut Context<'_>, values: &[T]) -> Result<DistArray<T, 1>> {
    w.from_fn([values.len()], |[e]| values[e])
}

fn pass<const RANK: usize>(
    w: &mut Context<'_>,
    order: Order,
    arrays: &mut Arrays,
    count: usize,
) -> Result<()> {
    let Arrays { users, items, user_of, item_of, ratings } = arrays;
    match order {
        Order::Ordered => parallel_for!(w, ordered, read [user_of, item_of, ratings], write [users, items];
        for e in 0..count {
            let user = users.row_mut(user_of[e] as usize);
            let item = items.row_mut(item_of[e] as usize);
            step_apart::<RANK>(user, item, ratings[e]);
        }),
        Order::Unordered => {
            parallel_for!(w, unordered, read [user_of, item_of, ratings], write [users, items];
            for e in 0..count {
                let user = users.row_mut(user_of[e] as usize);
                let item = items.row_mut(item_of[e] as usize);
                step_apart::<RANK>(user, item, ratings[e]);
            })
        }
    }
}

/// Times of one worker.
struct Sides {
    ours: Times,
    theirs: Times,
    /// Of the inspections, in nanoseconds: each made anew, and the look whether one still holds.
    made: Times,
    looked: f64,
    kind: String,
}

fn run<const RANK: usize>(table: &Table, order: Order, repeats: usize) -> Sides {
    let (gate, count) = (Barrier::new(2), table.users.len());
    let all = hectare::run(2, |w| {
        let mut arrays = Arrays {
            users: w.from_fn([table.rows[0], RANK], |[row, k]| start(row, k))?,
            items: w.from_fn([table.rows[1], RANK], |[row, k]| start(row, k))?,
            user_of: column(w, &table.users)?,
            item_of: column(w, &table.items)?,
            ratings: column(w, &table.ratings)?,
        };
        let (mut users, mut items) = (arrays.users.to_vec(w)?, arrays.items.to_vec(w)?);
        let (mut ours, mut theirs, mut made) = (Times::default(), Times::default(), Times::default());
        let found = |w: &Context<'_>| w.explain()[0].inspected.clone().expect("an inspection");
        for repeat in 0..=repeats {
            gate.wait();
            if w.rank() == 0 {
                theirs.push(nanos(|| serial::<RANK>(table, &mut users, &mut items)));
            }
            gate.wait();
            let mut ended = Ok(());
            ours.push(nanos(|| ended = pass::<RANK>(w, order, &mut arrays, count)));
            ended?;
            if repeat == 0 && w.rank() == 0 && std::env::var_os("EXPLAIN").is_some() {
                println!("{}", w.explain());
            }
        }
        // The first plans the loop.
        ours.0.remove(0);
        if w.rank() == 0 {
            theirs.0.remove(0);
            let same = arrays.users.to_vec(w)? == users && arrays.items.to_vec(w)? == items;
            assert!(same || order == Order::Unordered, "other bits than the serial loop has made");
        } else {
            arrays.users.to_vec(w)?;
            arrays.items.to_vec(w)?;
        }
        let first = found(w);
        let looked = first.looked.as_nanos() as f64 / first.reused as f64;
        made.push(first.took.as_nanos() as f64);
        for _ in 0..repeats / 2 {
            // The same values, but who knows.
            arrays.user_of.for_each_mut(w, |_, _| {})?;
            pass::<RANK>(w, order, &mut arrays, count)?;
            pass::<RANK>(w, order, &mut arrays, count)?;
            made.push(found(w).took.as_nanos() as f64);
        }
        let kind = first.kind.map_or("serial".into(), |kind| kind.to_string());
        Ok(Sides { ours, theirs, made, looked, kind })
    });
    all.expect("a run").swap_remove(0)
}

fn measure<const RANK: usize>(report: &mut Report, table: &Table, order: Order, target: f64) {
    let name = if order == Order::Ordered { "ordered" } else { "unordered" };
    let case = format!("{name}/rank {RANK}");
    if !report.wants(&case) {
        return;
    }
    let repeats = if report.quick { 4 } else { 20 };
    let Sides { ours, theirs, made, looked, kind } = run::<RANK>(table, order, repeats);
    report.add(Case {
        case: case.clone(),
        value: ours.median() / 1e6,
        unit: "ms",
        best: ours.best() / 1e6,
        ratio: Some(theirs.median() / ours.median()),
        against: Some(format!("the serial loop, {:.3} ms ({kind})", theirs.median() / 1e6)),
        target: Some(target),
    });
    report.add(Case {
        case: format!("{case}: inspection"),
        value: made.median() / 1e6,
        unit: "ms",
        best: made.best() / 1e6,
        ratio: Some(made.median() / ours.median()),
        against: Some("the pass of two workers; less is better".into()),
        target: Some(2.0),
    });
    report.add(Case {
        case: format!("{case}: used again"),
        value: looked / 1e6,
        unit: "ms",
        best: looked / 1e6,
        ratio: Some(looked / ours.median()),
        against: Some("the pass of two workers; less is better".into()),
        target: Some(0.02),
    });
}

fn main() {
    let mut report = Report::from_args("inspect: two workers against the serial loop");
    let table = Table::read();
    // Rows so short that what is chosen may gain little, but must not lose.
    measure::<4>(&mut report, &table, Order::Unordered, 1.0);
    measure::<16>(&mut report, &table, Order::Unordered, 1.3);
    measure::<32>(&mut report, &table, Order::Unordered, 1.3);
    measure::<100>(&mut report, &table, Order::Unordered, 1.3);
    measure::<16>(&mut report, &table, Order::Ordered, 1.3);
    measure::<32>(&mut report, &table, Order::Ordered, 1.3);
    measure::<100>(&mut report, &table, Order::Ordered, 1.3);
    report.finish();
}
