//! Bounds between workers that move by load: shares become equal, results stay, runs are repeated; what is refused.
use crate::common::Scratch;
use hectare_orion::execute::Moves;
use hectare_orion::schedule::Blocks;
use hectare_orion::{Context, Error, Rebalance, Result, parallel_for, run};
use std::cell::Cell;
use std::ops::Range;

/// The cost of an iteration, which counts of iterations do not see: little at first, much in the end.
fn units(i: usize) -> u64 {
    (1 + i * i / 1000) as u64
}

fn load(_: &str, values: &[Range<i64>]) -> u64 {
    values[0].clone().map(|i| units(i as usize)).sum()
}

/// The cost of each pass on this worker, and the loop's results.
fn sums(w: &mut Context<'_>, passes: usize) -> Result<(Vec<u64>, Vec<u64>)> {
    let mut a = w.from_fn([960], |[i]| i as f64)?;
    let (mut shares, mut values) = (Vec::new(), Vec::new());
    for _ in 0..passes {
        let spent = Cell::new(0);
        let sum = parallel_for!(w, unordered, write a, sum sum: f64; for i in 0..960 {
            a[i] = 0.9 * a[i] + 0.1;
            sum += a[i].sqrt();
            spent.set(spent.get() + units(i));
        })?;
        shares.push(spent.get());
        values.push(sum.to_bits());
    }
    values.extend(a.to_vec(w)?.iter().map(|x| x.to_bits()));
    Ok((shares, values))
}

/// The greatest share of the pass as a multiple of the mean one.
fn imbalance(all: &[(Vec<u64>, Vec<u64>)], pass: usize) -> f64 {
    let shares: Vec<u64> = all.iter().map(|(shares, _)| shares[pass]).collect();
    *shares.iter().max().unwrap() as f64 * shares.len() as f64 / shares.iter().sum::<u64>() as f64
}

#[test]
fn a_skew_that_counts_do_not_see_is_balanced() {
    for workers in [2, 3, 4] {
        let with = |how: fn() -> Rebalance| {
            run(workers, |w| {
                w.rebalance(how())?;
                let found = sums(w, 4)?;
                Ok((found, w.moves()))
            })
            .unwrap()
        };
        let never: Vec<_> = with(Rebalance::never).into_iter().map(|(found, _)| found).collect();
        assert!(imbalance(&never, 0) > 1.6 && imbalance(&never, 3) > 1.6);
        let (found, moves): (Vec<_>, Vec<_>) = with(|| Rebalance::by_load(load)).into_iter().unzip();
        assert!(imbalance(&found, 0) > 1.6);
        assert!(imbalance(&found, 3) < 1.1, "{}", imbalance(&found, 3));
        // The same results, and the same moves on all.
        assert!(found.iter().all(|(_, values)| *values == never[0].1));
        assert!(moves.iter().all(|one| *one == moves[0]));
        let [one] = moves[0].list() else { panic!("{:?}", moves[0]) };
        assert!(one.after == 1 && one.loop_name.contains(file!()), "{one:?}");
        assert!(one.imbalance[0] > 1.6 && one.imbalance[1] < 1.1, "{one:?}");
        let (before, after) = (imbalance(&found, 0), imbalance(&found, 1));
        assert!((one.imbalance[0] - before).abs() < 1e-3 && (one.imbalance[1] - after).abs() < 1e-3);
    }
}

/// Factors of a matrix whose lower rows cost more: all bits after some passes.
fn factors(w: &mut Context<'_>) -> Result<Vec<u32>> {
    let r = w.entries([300, 200], 12_000, |k| ([k / 40, k % 40 * 5 + k / 40 % 5], 1.0 + (k % 5) as f32))?;
    let mut u = w.from_fn([300, 16], |[i, k]| ((i + k) % 3) as f32 / 4.0)?;
    let mut v = w.from_fn([200, 16], |[j, k]| ((j * k) % 5) as f32 / 4.0)?;
    for _ in 0..6 {
        parallel_for!(w, unordered, write [u, v]; for ((i, j), x) in r {
            let (a, b) = (u.row_mut(i), v.row_mut(j));
            // Work of which the result needs nothing.
            let more = (0..40 * (i / 150)).fold(0.0f32, |sum, k| sum + (k as f32).sqrt());
            let e = x - hectare_orion::dot(a, b) + more.min(0.0);
            hectare_orion::axpy(0.01 * e, b, a);
            hectare_orion::axpy(0.01 * e, a, b);
        })?;
    }
    Ok(u.to_vec(w)?.iter().chain(&v.to_vec(w)?).map(|x| x.to_bits()).collect())
}

fn by_row(_: &str, values: &[Range<i64>]) -> u64 {
    values[0].clone().map(|i| 1 + 20 * (i as u64 / 150)).sum()
}

#[test]
fn a_run_is_repeated_from_its_moves() {
    let scratch = Scratch::new("moves");
    let file = scratch.0.join("moves.json");
    let with = |how: &(dyn Fn() -> Rebalance + Sync)| {
        let mut all = run(3, |w| {
            w.rebalance(how())?;
            Ok((factors(w)?, w.moves()))
        })
        .unwrap();
        let first = all.swap_remove(0);
        assert!(all.iter().all(|other| *other == first));
        first
    };
    let never = with(&Rebalance::never);
    let given = with(&|| Rebalance::by_load(by_row));
    assert!(!given.1.list().is_empty());
    assert_ne!(given.0, never.0, "another order of updates, and the same bits");
    // By time, where moves depend on the machine, too.
    let timed = with(&|| Rebalance::by_time().above(1.0));
    for (bits, moves) in [given, timed] {
        moves.save(&file).unwrap();
        assert_eq!(Moves::read(&file).unwrap(), moves);
        let again = with(&|| Rebalance::replay(Moves::read(&file).unwrap()));
        assert_eq!(again, (bits, moves));
    }
}

/// The errors of all workers.
fn errors(workers: usize, act: impl Fn(&mut Context<'_>) -> Result<()> + Sync) -> Vec<String> {
    run(workers, |w| Ok(act(w).unwrap_err().to_string())).unwrap()
}

fn refused(workers: usize, what: &str, act: impl Fn(&mut Context<'_>) -> Result<()> + Sync) {
    for error in errors(workers, act) {
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for limit in [0.5, f64::NAN] {
        refused(2, "1 is the least", |w| w.rebalance(Rebalance::by_time().above(limit)));
    }
    refused(2, "rebalancing by time, above 1.", |w| {
        w.rebalance(Rebalance::by_time().above(1.2 + f64::from(w.rank())))
    });
    let by = |load: fn(&str, &[Range<i64>]) -> u64| {
        move |w: &mut Context<'_>| {
            w.rebalance(Rebalance::by_load(load))?;
            sums(w, 2).map(drop)
        }
    };
    refused(
        2,
        "the function of loads panicked on worker 1: no load",
        by(|_, values| if values[0].start > 700 { panic!("no load") } else { 1 }),
    );
    refused(2, "more than a number of 64 bits: scale them", by(|_, _| u64::MAX / 2));
}

#[test]
fn damaged_and_foreign_moves_are_refused() {
    let scratch = Scratch::new("bad-moves");
    let file = scratch.0.join("moves.json");
    let moves = run(2, |w| {
        w.rebalance(Rebalance::by_load(load))?;
        sums(w, 2)?;
        Ok(w.moves())
    })
    .unwrap()
    .swap_remove(0);
    moves.save(&file).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    let bounds = format!("{:?}", moves.list()[0].bounds).replace(' ', "");
    assert!(text.contains(&bounds), "{text}");
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        Moves::read(&file)
    };
    for (text, what) in [
        (text[..text.len() / 2].to_owned(), "not a saved move"),
        (String::new(), "not a saved move"),
        (text.replace("version 1", "version 2"), "the format is \"hectare moved bounds, version 2\""),
        (text.replace("\"after\":1", "\"after\":0"), "has no pass or no bounds"),
        (text.replace(&bounds, "[[]]"), "has no pass or no bounds"),
        (text.replace("\"after\"", "\"before\""), "not a saved move"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(matches!(error, Error::Format { .. }) && error.to_string().contains(what), "{error}");
        assert!(error.to_string().contains("moves.json"), "{error}");
    }
    assert!(matches!(Moves::read(scratch.0.join("absent")), Err(Error::Io { .. })));
    for (changed, what) in [
        (text.replace(&bounds, "[[0,50,20]]"), "bounds [0, 50, 20] do not cut 48 cells into 2 blocks"),
        (text.replace(&bounds, "[[0,20,47]]"), "bounds [0, 20, 47] do not cut 48 cells into 2 blocks"),
        (text.replace(&bounds, "[[0,48]]"), "do not cut 48 cells into 2 blocks"),
        (text.replace(&bounds, "[[0,20,48],[0,48]]"), "bounds of 2 dimensions, and 1 are cut"),
        (text.replace("rebalance.rs", "other.rs"), "other.rs"),
    ] {
        assert_ne!(changed, text);
        let foreign = read(&changed).unwrap();
        for error in errors(2, |w| {
            w.rebalance(Rebalance::replay(foreign.clone()))?;
            sums(w, 2).map(drop)
        }) {
            assert!(error.starts_with("loop ") && error.contains(what), "{error}");
        }
    }
    refused(3, "moves of 2 workers, and there are 3", |w| w.rebalance(Rebalance::replay(moves.clone())));
}

#[test]
fn loops_that_cannot_move_stay_as_they_are() {
    let moves = run(2, |w| {
        w.rebalance(Rebalance::by_load(load).above(1.0))?;
        // A schedule of the program's own.
        let mut a = w.zeros::<u64, 1>([960])?;
        let own = Blocks { dim: 0 };
        for _ in 0..2 {
            parallel_for!(w, unordered, write a, schedule = own; for i in 0..960 { a[i] += 1; })?;
        }
        // One worker runs all.
        for _ in 0..2 {
            parallel_for!(w, ordered, write a; for i in 1..960 { a[i] += a[i - 1]; })?;
        }
        // In place: every second element.
        for _ in 0..2 {
            parallel_for!(w, unordered, write a; for i in 0..479 { a[2 * i + 1] = a[2 * i] + a[2 * i + 2]; })?;
        }
        Ok(w.moves())
    });
    assert!(moves.unwrap().iter().all(|moves| moves.list().is_empty()));
}
