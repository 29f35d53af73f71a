//! Loops whose subscripts come from data: inspected once, and run by several workers at a time.
use crate::common::random::Random;
use hectare_orion::execute::Inspected;
use hectare_orion::loop_nest::Order;
use hectare_orion::schedule::Serial;
use hectare_orion::{Context, Error, Explanation, parallel_for, run};

/// Ratings as three columns.
struct Table {
    users: Vec<u32>,
    items: Vec<u32>,
    ratings: Vec<f32>,
}

const USERS: usize = 900;
const ITEMS: usize = 700;
const RANK: usize = 128;

fn table(count: usize, seed: u64) -> Table {
    let mut random = Random(seed);
    let mut column = |below: usize| (0..count).map(|_| random.below(below) as u32).collect();
    let (users, items) = (column(USERS), column(ITEMS));
    let mut random = Random(seed + 1);
    Table { users, items, ratings: (0..count).map(|_| random.below(5) as f32 + 1.0).collect() }
}

fn start(row: usize, k: usize) -> f32 {
    ((row * 7 + k * 3) % 11) as f32 / 100.0
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
    let one =
        w.explain().0.into_iter().find(|one| one.inspected.is_some()).expect("a loop that was inspected");
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

/// Runs do not depend on timing, and learn.
#[test]
fn an_unordered_loop_has_the_same_bits_in_every_run() {
    let table = table(30_000, 5);
    for workers in 2..=4 {
        let (users, items, found, sums) = factorize(workers, Order::Unordered, &table, 2);
        assert!(found.kind.is_some(), "{found}");
        assert!(sums[1] < sums[0], "{sums:?}");
        let again = factorize(workers, Order::Unordered, &table, 2);
        assert!((users, items, sums) == (again.0, again.1, again.3), "{workers} workers");
    }
}

/// Each iteration takes a ticket from both of its rows and writes them down: the tickets of a serial order have no cycle.
#[test]
fn tickets_of_an_unordered_loop_are_those_of_a_serial_order() {
    let count = 60_000;
    let table = table(count, 9);
    for workers in [2, 3] {
        let all = run(workers, |w| {
            let mut users = w.zeros::<u32, 1>([USERS])?;
            // Rows so long that batches are held to pay.
            let mut items = w.zeros::<u32, 2>([ITEMS, 64])?;
            let mut tickets = w.zeros::<u32, 2>([count, 2])?;
            let user_of = w.from_fn([count], |[e]| table.users[e])?;
            let item_of = w.from_fn([count], |[e]| table.items[e])?;
            parallel_for!(w, unordered, read [user_of, item_of], write [users, items, tickets];
            for e in 0..count {
                let (u, i) = (user_of[e] as usize, item_of[e] as usize);
                tickets[[e, 0]] = users[u];
                tickets[[e, 1]] = items[[i, 1]];
                users[u] += 1;
                items[[i, 1]] += 1;
            })?;
            assert!(inspected(w).1.kind.is_some(), "{}", w.explain());
            tickets.to_vec(w)
        });
        let tickets = all.expect("a run").swap_remove(0);
        // Whoever has ticket t of a row comes after whoever has ticket t - 1.
        let mut chains = vec![Vec::new(); USERS + ITEMS];
        for e in 0..count {
            chains[table.users[e] as usize].push((tickets[2 * e], e));
            chains[USERS + table.items[e] as usize].push((tickets[2 * e + 1], e));
        }
        let (mut after, mut before) = (vec![Vec::new(); count], vec![0; count]);
        for chain in &mut chains {
            chain.sort_unstable();
            assert!(chain.iter().map(|(ticket, _)| *ticket).eq(0..chain.len() as u32), "a ticket is lost");
            for two in chain.windows(2) {
                after[two[0].1].push(two[1].1);
                before[two[1].1] += 1;
            }
        }
        let mut ready: Vec<usize> = (0..count).filter(|e| before[*e] == 0).collect();
        let mut done = 0;
        while let Some(e) = ready.pop() {
            done += 1;
            for next in &after[e] {
                before[*next] -= 1;
                if before[*next] == 0 {
                    ready.push(*next);
                }
            }
        }
        assert_eq!(done, count, "the order has a cycle");
    }
}

#[test]
fn entries_are_inspected_as_well() {
    let count = 20_000;
    let table = table(count, 17);
    let (expected, _) = serial(&table, 0..count, 2);
    for workers in 1..=3 {
        let all = run(workers, |w| {
            let mut users = w.from_fn([USERS, RANK], |[row, k]| start(row, k))?;
            let mut items = w.from_fn([ITEMS, RANK], |[row, k]| start(row, k))?;
            let user_of = w.from_fn([count], |[e]| table.users[e])?;
            let item_of = w.from_fn([count], |[e]| table.items[e])?;
            let ratings = w.entries([count], count, |e| ([e], table.ratings[e]))?;
            for _ in 0..2 {
                parallel_for!(w, ordered, read [user_of, item_of], write [users, items];
                for ([e], rating) in ratings {
                    let user = users.row_mut(user_of[e] as usize);
                    step(user, items.row_mut(item_of[e] as usize), *rating);
                })?;
            }
            if workers > 1 {
                let found = inspected(w).1;
                assert!(found.kind.is_some(), "{found}");
                assert_eq!((found.made, found.reused), (1, 1));
            }
            users.to_vec(w)
        });
        assert!(all.expect("a run").swap_remove(0) == expected, "{workers} workers");
    }
}

/// Another loop over the same entries cuts them otherwise between the passes.
#[test]
fn entries_that_another_loop_has_moved_are_found() {
    let count = 20_000;
    let table = table(count, 19);
    let (expected, _) = serial(&table, 0..count, 3);
    let all = run(3, |w| {
        let mut users = w.from_fn([USERS, RANK], |[row, k]| start(row, k))?;
        let mut items = w.from_fn([ITEMS, RANK], |[row, k]| start(row, k))?;
        let user_of = w.from_fn([count], |[e]| table.users[e])?;
        let item_of = w.from_fn([count], |[e]| table.items[e])?;
        let ratings = w.entries([count], count, |e| ([e], table.ratings[e]))?;
        let mut seen = w.zeros::<u64, 1>([count])?;
        for pass in 1..=3 {
            parallel_for!(w, ordered, read [user_of, item_of], write [users, items];
            for ([e], rating) in ratings {
                let user = users.row_mut(user_of[e] as usize);
                step(user, items.row_mut(item_of[e] as usize), *rating);
            })?;
            parallel_for!(w, unordered, write seen; for ([e], _rating) in ratings { seen[e] += 1; })?;
            assert!(seen.to_vec(w)?.iter().all(|times| *times == pass));
        }
        users.to_vec(w)
    });
    assert!(all.expect("a run").swap_remove(0) == expected);
}

#[test]
fn other_data_are_inspected_anew() {
    let count = 20_000;
    let (one, other) = (table(count, 21), table(count, 22));
    let all = run(2, |w| {
        let mut sums = w.zeros::<u64, 1>([USERS])?;
        let mut user_of = w.from_fn([count], |[e]| one.users[e])?;
        let mut expected = vec![0u64; USERS];
        let mut passes = Vec::new();
        for pass in 0..6 {
            if pass == 3 {
                user_of.for_each_mut(w, |[e], user| *user = other.users[e])?;
            }
            parallel_for!(w, ordered, read user_of, write sums;
            for e in 0..count {
                let sum = &mut sums[user_of[e] as usize];
                *sum = sum.wrapping_mul(31) + e as u64;
            })?;
            for e in 0..count {
                let sum = &mut expected[(if pass < 3 { &one } else { &other }).users[e] as usize];
                *sum = sum.wrapping_mul(31) + e as u64;
            }
            assert!(sums.to_vec(w)? == expected, "pass {pass}");
            let found = inspected(w).1;
            passes.push((found.made, found.reused));
        }
        Ok(passes)
    });
    assert_eq!(all.expect("a run")[0], [(1, 0), (1, 1), (1, 2), (2, 2), (2, 3), (2, 4)]);
}

/// Values from outside that the subscripts use are compared, too.
#[test]
fn captured_values_are_part_of_what_was_inspected() {
    let count = 20_000;
    let all = run(2, |w| {
        let mut sums = w.zeros::<u64, 1>([5000])?;
        let mut made = Vec::new();
        for pass in 0..6 {
            let keys: Vec<usize> = (0..count).map(|e| e * 7919 % 4999 + pass / 3).collect();
            parallel_for!(w, ordered, write sums;
            for e in 0..count {
                sums[keys[e]] += e as u64;
            })?;
            made.push(inspected(w).1.made);
        }
        let total: u64 = sums.to_vec(w)?.iter().sum();
        assert_eq!(total, 6 * (0..count as u64).sum::<u64>());
        Ok(made)
    });
    assert_eq!(all.expect("a run")[0], [1, 1, 1, 2, 2, 2]);
}

#[test]
fn data_that_never_stay_are_not_inspected_for_long() {
    let count = 20_000;
    let all = run(2, |w| {
        let mut sums = w.zeros::<u64, 1>([5000])?;
        for pass in 0..8 {
            let keys: Vec<usize> = (0..count).map(|e| (e * 7919 + pass) % 4999).collect();
            parallel_for!(w, ordered, write sums;
            for e in 0..count {
                sums[keys[e]] += 1;
            })?;
        }
        assert_eq!(sums.to_vec(w)?.iter().sum::<u64>(), 8 * count as u64);
        let found = inspected(w).1;
        let why = found.why_serial.expect("serial at last");
        assert!(why.contains("change from pass to pass"), "{why}");
        Ok(found.made)
    });
    assert_eq!(all.expect("a run")[0], 1);
}

#[test]
fn what_does_not_pay_stays_serial_with_the_figures() {
    let count = 20_000;
    run(2, |w| {
        let mut cells = w.zeros::<u64, 1>([count + 1])?;
        let next = w.from_fn([count], |[e]| e as u32 + 1)?;
        parallel_for!(w, ordered, read next, write cells;
        for e in 0..count {
            let before = cells[next[e] as usize - 1];
            cells[next[e] as usize] = before + 1;
        })?;
        assert_eq!(cells.to_vec(w)?, (0..=count as u64).collect::<Vec<_>>());
        let (one, found) = inspected(w);
        assert_eq!(found.kind, None);
        let text = one.to_string();
        assert!(text.contains("100 % of a batch of 128 iterations is one component"), "{text}");
        assert!(text.contains("It runs on one worker"), "{text}");
        Ok(())
    })
    .expect("a run");
}

#[test]
fn keys_out_of_range_are_named_with_loop_array_and_iteration() {
    let count = 20_000;
    for workers in [1, 2] {
        // In the table, beyond the rows.
        let error = run(workers, |w| {
            let mut rows = w.zeros::<f32, 2>([100, 4])?.named("rows of the model");
            let key_of = w.from_fn([count], |[e]| if e == 12_345 { 100u32 } else { e as u32 * 31 % 100 })?;
            parallel_for!(w, unordered, read key_of, write rows;
            for e in 0..count {
                rows.row_mut(key_of[e] as usize)[0] += 1.0;
            })
        })
        .expect_err("a row that is not there");
        let text = error.to_string();
        for part in ["inspect.rs", "rows of the model", "e = 12345", "100"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Beyond the table.
        let error = run(workers, |w| {
            let mut rows = w.zeros::<f32, 2>([100, 4])?;
            let key_of = w.from_fn([count - 1], |[e]| e as u32 * 31 % 100)?.named("keys");
            parallel_for!(w, unordered, read key_of, write rows;
            for e in 0..count {
                rows.row_mut(key_of[e] as usize)[0] += 1.0;
            })
        })
        .expect_err("a key that is not there");
        let text = error.to_string();
        for part in ["inspect.rs", "keys", "e = 19999"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

#[test]
fn a_panic_of_the_body_ends_the_loop_everywhere() {
    let count = 20_000;
    let error = run(3, |w| {
        let mut rows = w.zeros::<f32, 2>([100, 4])?;
        let key_of = w.from_fn([count], |[e]| e as u32 * 31 % 100)?;
        let result = parallel_for!(w, unordered, read key_of, write rows;
        for e in 0..count {
            assert!(e != 777, "not this one");
            rows.row_mut(key_of[e] as usize)[0] += 1.0;
        });
        assert!(matches!(rows.to_vec(w), Err(Error::Poisoned { .. })));
        result
    })
    .expect_err("a panic");
    assert!(error.to_string().contains("not this one"), "{error}");
}

/// Reads beside writes: rows that are only read do not keep iterations apart.
#[test]
fn conditions_that_are_not_known_are_taken_both_ways() {
    let count = 5000;
    let at = |e: usize, salt: usize| e * salt % 3000;
    let mut expected: Vec<i64> = (0..3000).map(|at| at % 7 - 3).collect();
    for e in 0..count {
        let (a, b) = (at(e, 7919), at(e, 104_729));
        if expected[a] > 0 {
            expected[b] += expected[a] - 4;
        } else {
            expected[a] += 2;
        }
    }
    for workers in 1..=3 {
        let all = run(workers, |w| {
            let mut x = w.from_fn([3000], |[at]| at as i64 % 7 - 3)?;
            let pairs = w.from_fn([count, 2], |[e, k]| at(e, [7919, 104_729][k]) as u32)?;
            parallel_for!(w, ordered, read pairs, write x;
            for e in 0..count {
                let (a, b) = (pairs[[e, 0]] as usize, pairs[[e, 1]] as usize);
                if x[a] > 0 {
                    x[b] += x[a] - 4;
                } else {
                    x[a] += 2;
                }
            })?;
            if workers > 1 {
                inspected(w);
            }
            x.to_vec(w)
        });
        assert!(all.expect("a run").swap_remove(0) == expected, "{workers} workers");
    }
}

/// A subscript that depends on what the loop changes, or that is computed by a function, is not computed beforehand.
#[test]
fn loops_that_cannot_be_inspected_say_why() {
    run(2, |w| {
        let mut x = w.zeros::<usize, 1>([100])?;
        parallel_for!(w, ordered, write x;
        for e in 0..100 {
            let at = x[e];
            x[at] += 1;
        })?;
        let text = w.explain().to_string();
        assert!(text.contains("a subscript of `x` depends on"), "{text}");
        let hash = |e: usize| e * 31 % 100;
        let mut y = w.zeros::<usize, 1>([100])?;
        parallel_for!(w, ordered, write y;
        for e in 0..100 {
            y[hash(e)] += 1;
        })?;
        assert_eq!(y.to_vec(w)?, [1; 100]);
        let text = w.explain().to_string();
        assert!(text.contains("hash(e)") && text.contains("once more"), "{text}");
        Ok(())
    })
    .expect("a run");
}

/// The text of the only loop that ran.
fn explained(w: &Context<'_>) -> String {
    let all = w.explain();
    assert_eq!(all.len(), 1);
    all.to_string()
}

#[test]
fn of_one_worker_and_of_a_schedule_nothing_else_is_blamed() {
    let count = 1_000;
    let text = |workers: usize, serial: bool| {
        let said = run(workers, |w| {
            let mut cells = w.zeros::<u64, 1>([count])?;
            let to = w.from_fn([count], |[e]| (e * 7 % count) as u32)?;
            match serial {
                true => parallel_for!(w, ordered, read to, write cells, schedule = Serial;
                    for e in 0..count { cells[to[e] as usize] += 1; })?,
                false => parallel_for!(w, ordered, read to, write cells;
                    for e in 0..count { cells[to[e] as usize] += 1; })?,
            }
            Ok(explained(w))
        });
        said.expect("a run").swap_remove(0)
    };
    for (text, why) in [
        (text(1, false), "not found out before they run: there is only one worker"),
        (text(2, true), "not found out before they run: the program gives its schedule"),
    ] {
        assert!(text.contains(why), "{text}");
        assert!(
            text.contains("the iterations may depend on each other through cells[to[e] as usize]"),
            "{text}"
        );
    }
    let alone = text(1, false);
    assert!(alone.contains("two workers would run conflicting iterations at once"), "{alone}");
    assert!(!alone.contains("workers 0 and 1"), "{alone}");
}

#[test]
fn a_subscript_that_is_no_datum_is_not_called_one() {
    run(2, |w| {
        let mut cells = w.zeros::<u64, 1>([1_000])?;
        parallel_for!(w, unordered, write cells; for i in 0..1_000 { cells[i / 5] += 1; })?;
        let text = explained(w);
        assert!(text.contains("Its subscripts are not linear in its variables"), "{text}");
        assert!(!text.contains("come from data"), "{text}");
        Ok(())
    })
    .expect("a run");
}

#[test]
fn a_permutation_that_runs_serially_is_said_to_have_no_conflicts_and_times_are_not_zero() {
    run(2, |w| {
        let mut cells = w.zeros::<u64, 1>([3])?;
        let to = w.from_fn([3], |[e]| (e + 1) as u32 % 3)?;
        parallel_for!(w, ordered, read to, write cells; for e in 0..3 { cells[to[e] as usize] += 1; })?;
        let ordered = explained(w);
        parallel_for!(w, unordered, read to, write cells; for e in 0..3 { cells[to[e] as usize] += 1; })?;
        let all = w.explain();
        let unordered = all[1].to_string();
        for (text, why) in [
            (&ordered, "no batches would take less than the 0.02 us of one worker"),
            (&unordered, "would take 1.52 us on 2 workers, and one worker takes 0.02 us"),
        ] {
            assert!(text.contains("it runs on one worker: no two of its iterations conflict; "), "{text}");
            assert!(text.contains(why), "{text}");
            assert!(!text.contains("0.000 ms") && !text.contains("depend on each other"), "{text}");
        }
        Ok(())
    })
    .expect("a run");
}
