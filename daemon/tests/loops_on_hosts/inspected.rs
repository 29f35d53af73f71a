//! Loops whose subscripts come from data: in batches on several hosts as on one, with the same bits.
use hectare_orion::{Context, Result, parallel_for};

const USERS: usize = 900;
const ITEMS: usize = 700;
const RANK: usize = 128;
const RATINGS: usize = 20_000;

fn mixed(number: usize) -> usize {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33) as usize
}

pub(super) fn hash(values: &[f32]) -> u64 {
    super::hash(values.iter().map(|value| u64::from(value.to_bits())))
}

fn step(user: &mut [f32], item: &mut [f32], rating: f32) -> f32 {
    let error = rating - user.iter().zip(item.iter()).map(|(a, b)| a * b).sum::<f32>();
    for (a, b) in user.iter_mut().zip(item) {
        (*a, *b) = (*a + 0.01 * error * *b, *b + 0.01 * error * *a);
    }
    error * error
}

/// The findings about the last loop that was inspected.
fn kind(w: &Context<'_>) -> String {
    let found = w.explain().0.into_iter().filter_map(|one| one.inspected).next_back();
    found.map_or("none".into(), |found| match found.kind {
        Some(_) => "batches".into(),
        None => format!("serial: {:?}", found.why_serial),
    })
}

/// Factorization by tables; between the passes, loops of another kind over the same arrays, and other tables.
fn factorize(w: &mut Context<'_>) -> Result<Vec<String>> {
    let start = |[row, k]: [usize; 2]| ((row * 7 + k * 3) % 11) as f32 / 100.0;
    let mut users = w.from_fn([USERS, RANK], start)?.named("users");
    let mut items = w.from_fn([ITEMS, RANK], start)?.named("items");
    let user_of = w.from_fn([RATINGS], |[e]| (mixed(e) % USERS) as u32)?.named("user of");
    let mut item_of = w.from_fn([RATINGS], |[e]| (mixed(e + RATINGS) % ITEMS) as u32)?.named("item of");
    let rating = w.from_fn([RATINGS], |[e]| (mixed(e) % 5) as f32 + 1.0)?.named("rating");
    let mut lines = Vec::new();
    for pass in 0..5 {
        let loss = parallel_for!(w, unordered, read [user_of, item_of, rating], write [users, items], sum loss: f64;
        for e in 0..RATINGS {
            let user = users.row_mut(user_of[e] as usize);
            let item = items.row_mut(item_of[e] as usize);
            loss += f64::from(step(user, item, rating[e]));
        })?;
        lines.push(format!("pass-{pass} {:x} {:x}", loss.to_bits(), hash(&users.to_vec(w)?)));
        match pass {
            // Rows in parts, by workers of all hosts.
            1 => {
                parallel_for!(w, unordered, write users; for i in 0..USERS { for k in 0..RANK { users[[i, k]] *= 0.99; } })?
            }
            2 => items.for_each_mut(w, |[row, k], x| *x += (row + k) as f32 * 1e-4)?,
            3 => item_of.for_each_mut(w, |[e], item| *item = (*item + e as u32) % ITEMS as u32)?,
            _ => {}
        }
    }
    lines.push(format!("unordered {} {:x}", kind(w), hash(&items.to_vec(w)?)));
    Ok(lines)
}

/// In the order of the loop: it has the bits of the serial one, however it runs.
fn ordered(w: &mut Context<'_>) -> Result<Vec<String>> {
    let mut rows = w.from_fn([USERS, RANK], |[row, k]| ((row + k) % 13) as f32 / 10.0)?.named("rows");
    let mut counts = w.zeros::<u32, 1>([ITEMS])?.named("counts");
    let from = w.from_fn([RATINGS], |[e]| (mixed(e + 1) % USERS) as u32)?.named("from");
    let to = w.from_fn([RATINGS], |[e]| (mixed(e + 2 * RATINGS) % USERS) as u32)?.named("to");
    let mut sums = Vec::new();
    for _ in 0..3 {
        sums.push(parallel_for!(w, ordered, read [from, to], write [rows, counts], sum all: f64;
        for e in 0..RATINGS {
            let (a, b) = (from[e] as usize, to[e] as usize);
            counts[(a + b) % ITEMS] += 1;
            let first = rows[[b, 0]];
            let row = rows.row_mut(a);
            row.iter_mut().for_each(|x| *x = 0.5 * (*x + first));
            all += f64::from(row[RANK - 1]);
        })?);
    }
    let counted =
        counts.to_vec(w)?.iter().enumerate().map(|(at, count)| at as u64 * u64::from(*count)).sum::<u64>();
    Ok(vec![format!("ordered {sums:x?} {:x} {counted}", hash(&rows.to_vec(w)?))])
}

pub(super) fn all(w: &mut Context<'_>) -> Result<Vec<String>> {
    let mut lines = factorize(w)?;
    lines.extend(ordered(w)?);
    Ok(lines)
}
