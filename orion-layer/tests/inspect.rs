//! Loops whose subscripts come from data: inspected once, and run by several workers at a time.
use hectare_orion::execute::Inspected;
use hectare_orion::loop_nest::Order;
use hectare_orion::{Context, Error, Explanation, parallel_for, run};

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % below as u64) as usize
    }
}

/// Ratings as three columns.
struct Table {
    users: Vec<u32>,
    items: Vec<u32>,
    ratings: Vec<f32>,
}

const USERS: usize = 900;
const ITEMS: usize = 700;
const RANK: usize = 4;

fn table(count: usize, seed: u64) -> Table {
    let mut random = Random(seed);
    let mut column = |below: usize| (0..count).map(|_| random.below(below) as u32).collect();
    let (users, items) = (column(USERS), column(ITEMS));
    let mut random = Random(seed + 1);
    Table { users, items, ratings: (0..count).map(|_| random.below(5) as f32 + 1.0).collect() }
}

fn start(row: usize, k: usize) -> f32 {
    ((row * 7 + k * 3) % 11) as f32 / 11.0
}

fn step(user: &mut [f32], item: &mut [f32], rating: f32) -> f32 {
    let error = rating - user.iter().zip(item.iter()).map(|(a, b)| a * b).sum::<f32>();
    for (a, b) in user.iter_mut().zip(item) {
        (*a, *b) = (*a + 0.01 * error * *b, *b + 0.01 * error * *a);
    }
    error * error
}

/// The serial program, over the ratings in this order.
fn serial(table: &Table, order: impl Iterator<Item = usize>, passes: usize) -> (Vec<f32>, Vec<f32>) {
    let mut users: Vec<f32> = (0..USERS * RANK).map(|at| start(at / RANK, at % RANK)).collect();
    let mut items: Vec<f32> = (0..ITEMS * RANK).map(|at| start(at / RANK, at % RANK)).collect();
    let order: Vec<usize> = order.collect();
    for _ in 0..passes {
        for &e in &order {
            let (u, i) = (table.users[e] as usize * RANK, table.items[e] as usize * RANK);
            step(&mut users[u..u + RANK], &mut items[i..i + RANK], table.ratings[e]);
        }
    }
    (users, items)
}

/// The only explanation of a loop that was inspected.
fn inspected(w: &Context<'_>) -> (Explanation, Inspected) {
    let one = w.explain().0.into_iter().find(|one| one.inspected.is_some()).expect("a loop that was inspected");
    let found = one.inspected.clone().expect("what was found");
    (one, found)
}

/// Factorizes with the order that the loop says; the models, what was found, and the sums of squared errors.
fn factorize(
    workers: usize,
    order: Order,
    table: &Table,
    passes: usize,
) -> (Vec<f32>, Vec<f32>, Inspected, Vec<f64>) {
    let all = run(workers, |w| {
        let mut users = w.from_fn([USERS, RANK], |[row, k]| start(row, k))?;
        let mut items = w.from_fn([ITEMS, RANK], |[row, k]| start(row, k))?;
        let count = table.users.len();
        let user_of = w.from_fn([count], |[e]| table.users[e])?;
        let item_of = w.from_fn([count], |[e]| table.items[e])?;
        let rating = w.from_fn([count], |[e]| table.ratings[e])?;
        let mut sums = Vec::new();
        for _ in 0..passes {
            sums.push(match order {
                Order::Ordered => parallel_for!(w, ordered, read [user_of, item_of, rating], write [users, items], sum loss: f64;
                    for e in 0..count {
                        let user = users.row_mut(user_of[e] as usize);
                        let item = items.row_mut(item_of[e] as usize);
                        loss += f64::from(step(user, item, rating[e]));
                    })?,
                Order::Unordered => parallel_for!(w, unordered, read [user_of, item_of, rating], write [users, items], sum loss: f64;
                    for e in 0..count {
                        let user = users.row_mut(user_of[e] as usize);
                        let item = items.row_mut(item_of[e] as usize);
                        loss += f64::from(step(user, item, rating[e]));
                    })?,
            });
        }
        Ok((users.to_vec(w)?, items.to_vec(w)?, inspected(w).1, sums))
    });
    all.expect("a run").swap_remove(0)
}

#[test]
fn an_ordered_loop_has_the_bits_of_the_serial_one() {
    let table = table(20_000, 3);
    let expected = serial(&table, 0..20_000, 3);
    let mut sums = Vec::new();
    for workers in 1..=4 {
        let (users, items, found, loss) = factorize(workers, Order::Ordered, &table, 3);
        assert!((users, items) == expected, "{workers} workers");
        assert!(found.kind.is_some(), "{found}");
        assert!(found.batches > 10, "{found}");
        assert_eq!((found.made, found.reused), (1, 2));
        sums.push(loss);
    }
    assert!(sums.iter().all(|one| *one == sums[0]), "{sums:?}");
}
