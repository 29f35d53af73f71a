//! Loops written with `parallel_for!`, against the same loops over vectors, by one to four workers.
use crate::common::same;
use hectare_orion::loop_nest::Mode;
use hectare_orion::schedule::{Blocks, Rotation, Serial};
use hectare_orion::{Context, DistArray, Result, parallel_for};

fn hash(a: u64, b: u64) -> u64 {
    (a ^ b.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

#[test]
fn a_matrix_product_is_a_nest_of_three() {
    const N: usize = 20;
    let value = |[i, j]: [usize; 2]| (i * 3 + j) as u64 % 11;
    let mut wanted = vec![0; N * N];
    for i in 0..N {
        for j in 0..N {
            for k in 0..N {
                wanted[i * N + j] += value([i, k]) * value([k, j]);
            }
        }
    }
    same(wanted, |w| {
        let (a, b) = (w.from_fn([N, N], value)?, w.from_fn([N, N], value)?);
        let mut c = w.zeros::<u64, 2>([N, N])?;
        parallel_for!(w, unordered, read [a, b], write c, schedule = Blocks { dim: 0 };
        for i in 0..N {
            for j in 0..N {
                for k in 0..N {
                    c[[i, j]] += a[[i, k]] * b[[k, j]];
                }
            }
        })?;
        let nests = w.__nests();
        assert_eq!((nests[0].dims.len(), nests[0].accesses[2].mode), (3, Mode::Update));
        c.to_vec(w)
    });
}

#[test]
fn an_ordered_stencil_keeps_its_order() {
    const N: usize = 90;
    let mut wanted: Vec<u64> = (0..N as u64).collect();
    for _ in 0..3 {
        for i in 1..N - 1 {
            wanted[i] = hash(wanted[i - 1], hash(wanted[i], wanted[i + 1]));
        }
    }
    same(wanted, |w| {
        let mut a = w.from_fn([N], |[i]| i as u64)?;
        for _ in 0..3 {
            parallel_for!(w, ordered, write a;
                for i in 1..N - 1 { a[i] = hash(a[i - 1], hash(a[i], a[i + 1])); })?;
        }
        a.to_vec(w)
    });
}

#[test]
fn an_ordered_loop_over_entries_gives_what_the_serial_one_gives() {
    let at = |k: usize| [k * 7 % 13, k * 5 % 11];
    let (mut u, mut v) = (vec![[1u64; 3]; 13], vec![[2u64; 3]; 11]);
    let mut entries: Vec<_> = (0..140).map(|k| (at(k), k as u64)).collect();
    entries.sort_by_key(|(at, _)| *at);
    for ([i, j], x) in entries {
        for c in 0..3 {
            u[i][c] = hash(u[i][c], v[j][c] ^ x);
            v[j][c] = hash(v[j][c], u[i][2 - c]);
        }
    }
    let wanted: Vec<u64> = u.into_iter().flatten().chain(v.into_iter().flatten()).collect();
    same(wanted, |w| {
        let r = w.entries([13, 11], 140, |k| (at(k), k as u64))?;
        let (mut u, mut v) = (w.fill([13, 3], 1u64)?, w.fill([11, 3], 2u64)?);
        parallel_for!(w, ordered, write [u, v];
        for ((i, j), x) in r {
            let (a, b) = (u.row_mut(i), v.row_mut(j));
            for c in 0..3 {
                a[c] = hash(a[c], b[c] ^ x);
                b[c] = hash(b[c], a[2 - c]);
            }
        })?;
        let mut all = u.to_vec(w)?;
        all.extend(v.to_vec(w)?);
        Ok(all)
    });
}

#[test]
fn a_rotated_loop_updates_every_row_once_per_entry() {
    // The contribution of each entry does not depend on the order.
    let (mut u, mut v) = (vec![0u64; 17], vec![0u64; 19]);
    for k in 0..400usize {
        u[k % 17] = u[k % 17].wrapping_add(hash(k as u64, 1));
        v[k * 3 % 19] ^= hash(k as u64, 2);
    }
    let wanted = (u, v, (0..400u64).sum::<u64>(), 0u64, 399u64);
    same(wanted, |w| {
        let r = w.entries([17, 19], 400, |k| ([k % 17, k * 3 % 19], k as u64))?;
        let (mut u, mut v) = (w.zeros::<u64, 1>([17])?, w.zeros::<u64, 1>([19])?);
        let rotation = Rotation::over(vec![0, 1]);
        let (total, low, high) = parallel_for!(
        w, unordered, write [u, v], sum total: u64, min low: u64, max high: u64, schedule = rotation;
        for ((i, j), &x) in r {
            u[i] = u[i].wrapping_add(hash(x, 1));
            v[j] ^= hash(x, 2);
            total += x;
            low = low.min(x);
            high = high.max(x);
        })?;
        Ok((u.to_vec(w)?, v.to_vec(w)?, total, low, high))
    });
}

#[test]
fn entries_of_three_and_of_one_dimension() {
    let mut wanted = vec![0u64; 5 * 6];
    (0..90usize).for_each(|k| wanted[(k % 5) * 6 + k % 6] += (k % 7) as u64);
    same((wanted, vec![18u64; 5]), |w| {
        let r = w.entries([5, 6, 7], 90, |k| ([k % 5, k % 6, k % 7], k as u64))?;
        let mut u = w.zeros::<u64, 2>([5, 6])?;
        parallel_for!(w, unordered, write u; for ((i, j, k), _) in r { u[[i, j]] += k as u64; })?;
        let line = w.entries([5], 90, |k| ([k % 5], ()))?;
        let mut counts = w.zeros::<u64, 1>([5])?;
        parallel_for!(w, ordered, write counts; for (i, _) in line { counts[i] += 1; })?;
        Ok((u.to_vec(w)?, counts.to_vec(w)?))
    });
}

#[test]
fn accumulators_alone_and_none() {
    same((1225u64, 7u64, 50u64, 0b11u64), |w| {
        let sum = parallel_for!(w, unordered, sum n: u64; for i in 0..50 { n += i as u64; })?;
        let nested = parallel_for!(w, unordered, sum n: u64;
        for _ in 0..1 {
            n += { n += 4; 3 };
        })?;
        let count = parallel_for!(w, unordered, sum n: u64; for _ in 0..10 { for _ in 0..5 { n += 1; } })?;
        let bits = parallel_for!(w, ordered, fold bits: u64 = 0 with |a, b| a | b;
        for i in 0..9 {
            if i == 4 { continue; }
            bits = fold(bits, 1 << (i % 2));
        })?;
        parallel_for!(w, ordered; for _ in 0..3 {})?;
        Ok((sum, nested, count, bits))
    });
}

/// A model with arrays among other things.
struct Model {
    users: DistArray<u64, 2>,
    rank: usize,
    shift: usize,
}

fn step(w: &mut Context<'_>, model: &mut Model, items: &mut DistArray<u64, 1>) -> Result<()> {
    let mine = &*model;
    let (rank, shift) = (mine.rank, &mine.shift);
    parallel_for!(w, unordered, read u = model.users, write items;
    for i in 0..8 {
        for c in 0..rank { items[i + shift] += u[[i, c]] + rank as u64; }
    })?;
    parallel_for!(w, ordered, write u = model.users, read v = items;
    for i in 0..8 {
        let to = i * model.rank / model.rank;
        u.row_mut(i)[model.shift] = v[i + model.shift] + u[[to, 0]];
    })
}

#[test]
fn arrays_in_fields_and_behind_references() {
    let (mut users, mut items) = (vec![[1u64, 2, 3]; 8], vec![0u64; 10]);
    for _ in 0..2 {
        for i in 0..8 {
            items[i + 2] += users[i].iter().sum::<u64>() + 9;
        }
        for i in 0..8 {
            users[i][2] = items[i + 2] + users[i][0];
        }
    }
    let wanted: Vec<u64> = users.into_iter().flatten().chain(items).collect();
    same(wanted, |w| {
        let users = w.from_fn([8, 3], |[_, c]| c as u64 + 1)?;
        let (mut model, mut items) = (Model { users, rank: 3, shift: 2 }, w.zeros::<u64, 1>([10])?);
        for _ in 0..2 {
            step(w, &mut model, &mut items)?;
        }
        let mut all = model.users.to_vec(w)?;
        all.extend(items.to_vec(w)?);
        Ok(all)
    });
}

/// Two loops at one place of the source: plans are kept for each.
macro_rules! there_and_back {
    ($w:ident, $a:ident, $n:ident) => {
        parallel_for!($w, ordered, write $a; for i in 1..$n { $a[i] = hash($a[i], $a[i - 1]); })?;
        parallel_for!($w, ordered, write $a; for i in 1..$n { $a[$n - i - 1] = hash($a[$n - i - 1], $a[$n - i]); })?;
        parallel_for!($w, unordered, write $a; for i in 1..$n { $a[i] = hash($a[i], 3); })?;
    };
}

#[test]
fn loops_of_one_macro_are_told_apart() {
    let n = 40usize;
    let mut wanted: Vec<u64> = (0..n as u64).collect();
    for _ in 0..2 {
        (1..n).for_each(|i| wanted[i] = hash(wanted[i], wanted[i - 1]));
        (1..n).for_each(|i| wanted[n - i - 1] = hash(wanted[n - i - 1], wanted[n - i]));
        (1..n).for_each(|i| wanted[i] = hash(wanted[i], 3));
    }
    same(wanted, |w| {
        let mut a = w.from_fn([n], |[i]| i as u64)?;
        for _ in 0..2 {
            there_and_back!(w, a, n);
        }
        assert_eq!(w.__nests().len(), 3);
        a.to_vec(w)
    });
}

#[test]
fn conditional_writes_keep_what_was_there() {
    let wanted: Vec<u64> = (0..50u64).map(|i| if i % 3 == 0 { 100 + i } else { i }).collect();
    same(wanted, |w| {
        let mut a = w.from_fn([50], |[i]| i as u64)?;
        let (start, end) = (7usize, 3usize);
        parallel_for!(w, unordered, write a, schedule = Blocks { dim: 0 };
            for i in 0..50 { if i % 3 == 0 { a[i] = 100 + i as u64; } })?;
        parallel_for!(w, unordered, write a; for i in start..end { a[i] = 0; })?;
        parallel_for!(w, ordered, write a, schedule = Serial; for i in 5..5 { a[i] = 0; })?;
        a.to_vec(w)
    });
}

#[test]
fn another_schedule_is_another_plan() {
    same(vec![3u64; 20], |w| {
        let mut a = w.zeros::<u64, 2>([4, 5])?;
        for dim in [0, 1, 0] {
            let along = Blocks { dim };
            parallel_for!(w, unordered, write a, schedule = along; for i in 0..4 { for j in 0..5 { a[[i, j]] += 1; } })?;
        }
        let plans: Vec<String> = w.explain().iter().map(|plan| plan.to_string()).collect();
        assert_eq!(w.explain().to_string(), plans.join("\n"), "one below the other");
        assert_eq!(plans.len(), 2, "{plans:?}");
        a.to_vec(w)
    });
}

/// Rows without elements are written as they are read, however the loop runs.
#[test]
fn rows_without_elements() {
    same(vec![5, 0], |w| {
        let (mut a, mut lens) = (w.zeros::<u64, 2>([5, 0])?, w.zeros::<usize, 1>([5])?);
        parallel_for!(w, unordered, write a, write lens;
        for i in 0..5 {
            lens[i] += a.row_mut(i).len() + a.row(i).len() + 1;
        })?;
        parallel_for!(w, ordered, write a, write lens;
        for i in 1..5 {
            let (before, row) = a.row_and_row_mut(i - 1, i);
            lens[i] += before.len() + row.len();
        })?;
        parallel_for!(w, unordered, write a, write lens;
        for i in 0..2 {
            lens[i * 2] += a.row_mut(i * 2).len();
        })?;
        Ok(vec![lens.to_vec(w)?.iter().sum::<usize>() as u64, a.to_vec(w)?.len() as u64])
    });
}
