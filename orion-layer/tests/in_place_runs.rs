//! Loops over arrays in place one after the other: the arrays stay open to them, and workers do not meet before each. What comes
//! between two of them, and who does not come.
use crate::common;

use common::Scratch;
use common::diverging::assert_diverged;
use common::hand::on_each;
use common::watchdog::watched;
use hectare_orion::{Context, DistArray, Error, Result, parallel_for, run};
use std::time::Duration;

const N: usize = 1200;

fn hash(a: u64, b: u64) -> u64 {
    (a.rotate_left(23) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Elements of one colour of those of the other.
fn sweep(w: &mut Context<'_>, a: &mut DistArray<u64, 1>) -> Result<()> {
    parallel_for!(w, unordered, write a; for i in 0..N { a[2 * i + 1] = hash(a[2 * i], a[2 * i + 2]); })
}

fn sweep_back(w: &mut Context<'_>, a: &mut DistArray<u64, 1>) -> Result<()> {
    parallel_for!(w, unordered, write a; for i in 0..N { a[2 * i + 2] = hash(a[2 * i + 1], a[2 * i + 3]); })
}

fn array(w: &mut Context<'_>) -> Result<DistArray<u64, 1>> {
    w.from_fn([2 * N + 3], |[i]| i as u64)
}

/// The same in one thread.
fn serial(wanted: &mut [u64]) {
    (0..N).for_each(|i| wanted[2 * i + 1] = hash(wanted[2 * i], wanted[2 * i + 2]));
    (0..N).for_each(|i| wanted[2 * i + 2] = hash(wanted[2 * i + 1], wanted[2 * i + 3]));
}

/// Everything else that a program does with an array, between two loops that leave it open.
#[test]
fn an_array_that_was_left_open_is_used_in_every_other_way() {
    let folder = Scratch::new("left-open");
    let path = folder.0.join("a.checkpoint");
    let mut wanted: Vec<u64> = (0..2 * N as u64 + 3).collect();
    let mut sums = Vec::new();
    for step in 0..12 {
        serial(&mut wanted);
        sums.push(wanted.iter().fold(step, |sum, x| hash(sum, *x)));
        match step % 6 {
            0 => wanted.iter_mut().for_each(|x| *x = x.wrapping_add(1)),
            1 => (0..wanted.len()).for_each(|i| wanted[i] = hash(wanted[i], wanted[i])),
            2 => wanted[7] = wanted[9],
            _ => {}
        }
    }
    for workers in 1..=4 {
        let made = run(workers, |w| {
            let mut a = array(w)?;
            let mut sums = Vec::new();
            for step in 0..12 {
                sweep(w, &mut a)?;
                // Read by this worker alone, while others may be at the next loop.
                let before = a.get(w, [1])?;
                sweep_back(w, &mut a)?;
                assert_eq!(a.get(w, [1])?, before);
                sums.push(a.to_vec(w)?.iter().fold(step, |sum, x| hash(sum, *x)));
                match step % 6 {
                    // By parts.
                    0 => {
                        parallel_for!(w, unordered, write a; for i in 0..2 * N + 3 { a[i] = a[i].wrapping_add(1); })?
                    }
                    // Read by a loop that writes another array; then written.
                    1 => {
                        let mut b = w.zeros::<u64, 1>([2 * N + 3])?;
                        parallel_for!(w, unordered, read a, write b; for i in 0..2 * N + 3 { b[i] = a[i]; })?;
                        parallel_for!(w, ordered, read b, write a; for i in 0..2 * N + 3 { a[i] = hash(a[i], b[i]); })?;
                    }
                    // One after the other.
                    2 => parallel_for!(w, ordered, write a; for i in 0..1 { a[7 + i] = a[9]; })?,
                    // Relaxed, and nothing is added.
                    3 => parallel_for!(w, unordered, relax a; for i in 0..2 * N + 3 { a.add(i, 0); })?,
                    4 => {
                        w.save_checkpoint(&path, |saved| saved.array("a", &a))?;
                        a = w.open_checkpoint(&path)?.expect("it was saved").array(w, "a")?;
                    }
                    _ => w.barrier()?,
                }
            }
            Ok((a.to_vec(w)?, sums))
        });
        for (made, made_sums) in made.unwrap_or_else(|error| panic!("{workers} workers: {error}")) {
            assert!(made == wanted && made_sums == sums, "{workers} workers: other values");
        }
    }
}

/// Calls that change an array, or make another one of it, between two loops that leave it open.
#[test]
fn an_array_that_was_left_open_is_changed_by_calls() {
    const LEN: usize = 2 * N + 3;
    let mut wanted: Vec<u64> = (0..LEN as u64).collect();
    let mut copies = Vec::new();
    for step in 0..14u64 {
        serial(&mut wanted);
        match step % 7 {
            0 => wanted[1 + step as usize] = step,
            1 => wanted.fill(step),
            2 => wanted[1000..1003].copy_from_slice(&[step, 5, 6]),
            3 => (0..).zip(&mut wanted).for_each(|(i, x)| *x = hash(*x, i)),
            4 => copies.push(wanted.iter().map(|x| hash(*x, step)).collect::<Vec<_>>()),
            // Another array takes its place.
            5 => wanted.iter_mut().for_each(|x| *x = x.rotate_left(3)),
            _ => {}
        }
    }
    for workers in 1..=4 {
        let made = run(workers, |w| {
            let mut a = array(w)?;
            let mut copies = Vec::new();
            for step in 0..14u64 {
                sweep(w, &mut a)?;
                sweep_back(w, &mut a)?;
                match step % 7 {
                    0 => a.set(w, [1 + step as usize], step)?,
                    1 => a.fill(w, step)?,
                    2 => a.write(w, 1000..1003, &[step, 5, 6])?,
                    3 => a.for_each_mut(w, |[i], x| *x = hash(*x, i as u64))?,
                    4 => copies.push(a.map(w, |_, x| hash(x, step))?.to_vec(w)?),
                    5 => a = a.map(w, |_, x| x.rotate_left(3))?,
                    _ => {
                        let permuted = a.permute(w, 0, step)?;
                        let place = w.permutation(LEN, step);
                        let (permuted, mine) = (permuted.to_vec(w)?, a.to_vec(w)?);
                        assert!((0..LEN).all(|i| permuted[place.apply(i as u32) as usize] == mine[i]));
                    }
                }
            }
            Ok((a.to_vec(w)?, copies))
        });
        for (made, made_copies) in made.unwrap_or_else(|error| panic!("{workers} workers: {error}")) {
            assert!(made == wanted && made_copies == copies, "{workers} workers: other values");
        }
    }
}

#[test]
fn one_of_two_arrays_was_left_open() {
    for workers in 1..=3 {
        let made = run(workers, |w| {
            let (mut a, mut b) = (array(w)?, array(w)?);
            sweep(w, &mut a)?;
            parallel_for!(w, unordered, write [a, b];
            for i in 0..N {
                a[2 * i + 2] = hash(a[2 * i + 1], b[2 * i]);
                b[2 * i + 1] = hash(b[2 * i], b[2 * i + 2]);
            })?;
            sweep_back(w, &mut b)?;
            Ok((a.to_vec(w)?, b.to_vec(w)?))
        });
        let mut a: Vec<u64> = (0..2 * N as u64 + 3).collect();
        let mut b = a.clone();
        (0..N).for_each(|i| a[2 * i + 1] = hash(a[2 * i], a[2 * i + 2]));
        (0..N).for_each(|i| a[2 * i + 2] = hash(a[2 * i + 1], b[2 * i]));
        serial(&mut b);
        for made in made.unwrap() {
            assert!(made == (a.clone(), b.clone()), "{workers} workers: other values");
        }
    }
}

/// However long it takes: the limit of relaxed loops does not hold for these.
#[test]
fn who_comes_late_is_waited_for() {
    let made = watched("a worker that waits for one that is late", || {
        run(3, |w| {
            w.set_timeout(Duration::from_millis(20));
            let mut a = array(w)?;
            sweep(w, &mut a)?;
            if w.rank() == 1 {
                std::thread::sleep(Duration::from_millis(300));
            }
            sweep_back(w, &mut a)?;
            a.to_vec(w)
        })
    });
    let mut wanted: Vec<u64> = (0..2 * N as u64 + 3).collect();
    serial(&mut wanted);
    assert!(made.unwrap().iter().all(|made| *made == wanted));
}

/// A loop of fewer iterations than workers: some have no tiles, and are neither waited for nor out of step, whoever is late.
#[test]
fn who_has_nothing_to_do_may_be_late_too() {
    let few = |w: &mut Context<'_>, a: &mut DistArray<u64, 1>, n: usize| parallel_for!(w, unordered, write a; for i in 0..n { a[2 * i + 1] = hash(a[2 * i], a[2 * i + 2]); });
    let mut wanted: Vec<u64> = (0..2 * N as u64 + 3).collect();
    let one_by_one = |wanted: &mut [u64], n: usize| {
        (0..n).for_each(|i| wanted[2 * i + 1] = hash(wanted[2 * i], wanted[2 * i + 2]));
    };
    for n in [2, 0, 1, N, 2] {
        one_by_one(&mut wanted, n);
        (0..N).for_each(|i| wanted[2 * i + 2] = hash(wanted[2 * i + 1], wanted[2 * i + 3]));
    }
    for late in 0..4 {
        let made = watched("workers of whom some have no tiles", || {
            run(4, |w| {
                let mut a = array(w)?;
                for n in [2, 0, 1, N, 2] {
                    if w.rank() == late {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    few(w, &mut a, n)?;
                    sweep_back(w, &mut a)?;
                }
                a.to_vec(w)
            })
        });
        assert!(made.unwrap().iter().all(|made| *made == wanted), "{late} is late");
    }
}

/// Worker 1 does something else in place of the second loop.
#[test]
fn who_goes_elsewhere_has_diverged() {
    type Way = fn(&mut Context<'_>, &mut DistArray<u64, 1>) -> Result<()>;
    let ways: [Way; 4] = [
        |w, _| w.barrier(),
        |w, _| w.zeros::<u64, 1>([5]).map(drop),
        // Another loop over the same array, which lies open to it too.
        sweep_back,
        // One that takes it back.
        |w, a| parallel_for!(w, unordered, write a; for i in 0..2 * N + 3 { a[i] = a[i].wrapping_add(1); }),
    ];
    for way in ways {
        for late in 0..3 {
            let results = on_each(3, |w| {
                let mut a = array(w)?;
                let mut b = array(w)?;
                sweep(w, &mut a)?;
                sweep(w, &mut b)?;
                if w.rank() == late {
                    std::thread::sleep(Duration::from_millis(30));
                }
                let result = if w.rank() == 1 { way(w, &mut a) } else { sweep(w, &mut a) };
                // Nobody is out of step.
                w.barrier()?;
                sweep(w, &mut b)?;
                sweep_back(w, &mut b)?;
                let mut wanted: Vec<u64> = (0..2 * N as u64 + 3).collect();
                serial(&mut wanted);
                assert_eq!(b.to_vec(w)?, wanted);
                // Who was in a loop over it has left it half written.
                assert!(sweep(w, &mut a).is_err());
                w.barrier()?;
                result
            });
            assert_diverged("in_place_runs.rs", ["in_place_runs.rs", "in_place_runs.rs"], results);
        }
    }
}

/// Both arrays lie open, and both loops were planned before: nobody comes to an exchange by himself.
#[test]
fn who_is_in_the_same_loop_over_another_array_has_diverged() {
    for other in 0..3 {
        let results = on_each(3, |w| {
            let (mut a, mut b) = (array(w)?, array(w)?);
            sweep(w, &mut a)?;
            sweep(w, &mut b)?;
            let result = if w.rank() == other { sweep(w, &mut b) } else { sweep(w, &mut a) };
            w.barrier()?;
            result
        });
        for result in results {
            let error = result.unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, Error::Diverged { .. }), "{text}");
            assert!(text.contains("write a (array 1)") && text.contains("write a (array 2)"), "{text}");
        }
    }
}

#[test]
fn who_is_in_another_known_loop_has_diverged() {
    // At another place.
    let results = on_each(3, |w| {
        let mut a = array(w)?;
        sweep(w, &mut a)?;
        sweep_back(w, &mut a)?;
        if w.rank() == 1 { sweep_back(w, &mut a) } else { sweep(w, &mut a) }
    });
    assert!(results.iter().all(|result| matches!(result, Err(Error::Diverged { .. }))), "{results:?}");
    // At the same place, with other bounds.
    let some = |w: &mut Context<'_>, a: &mut DistArray<u64, 1>, n: usize| parallel_for!(w, unordered, write a; for i in 0..n { a[2 * i + 1] = hash(a[2 * i], a[2 * i + 2]); });
    let results = on_each(3, |w| {
        let mut a = array(w)?;
        some(w, &mut a, N)?;
        some(w, &mut a, N - 4)?;
        let n = if w.rank() == 1 { N - 4 } else { N };
        some(w, &mut a, n)
    });
    assert!(results.iter().all(|result| matches!(result, Err(Error::Diverged { .. }))), "{results:?}");
}

#[test]
fn who_returns_early_has_diverged() {
    let errors = watched("a worker that waits for one that has ended", || {
        run(3, |w| {
            let mut a = array(w)?;
            sweep(w, &mut a)?;
            Ok(if w.rank() == 1 { None } else { Some(sweep(w, &mut a).unwrap_err()) })
        })
    });
    for error in errors.unwrap().into_iter().flatten() {
        assert!(matches!(error, Error::Diverged { there_rank: 1, .. }), "{error}");
    }
}

/// In a loop before which nobody has met.
#[test]
fn a_body_that_fails_in_a_later_loop_is_told_on_all_workers() {
    for workers in 1..=3 {
        let results = run(workers, |w| {
            let (mut a, mut other) = (array(w)?, array(w)?);
            sweep(w, &mut a)?;
            sweep(w, &mut other)?;
            let mut ended = Vec::new();
            for pass in 0..2 {
                ended.push(parallel_for!(w, unordered, write a; for i in 0..N {
                    assert!((pass, i) != (1, N / 2), "the middle");
                    a[2 * i + 2] = hash(a[2 * i + 1], a[2 * i + 3]);
                }));
            }
            let poisoned = a.get(w, [0]).map(drop);
            // The other one rests open.
            sweep_back(w, &mut other)?;
            sweep(w, &mut other)?;
            sweep_back(w, &mut other)?;
            Ok((ended, poisoned, other.to_vec(w)?))
        });
        let mut wanted: Vec<u64> = (0..2 * N as u64 + 3).collect();
        serial(&mut wanted);
        serial(&mut wanted);
        for (rank, (mut ended, poisoned, other)) in results.unwrap().into_iter().enumerate() {
            let told = ended.pop().unwrap().unwrap_err().to_string();
            assert!(ended.pop().unwrap().is_ok());
            assert!(told.contains("the middle"), "{workers}, {rank}: {told}");
            assert!(matches!(poisoned, Err(Error::Poisoned { .. })), "{poisoned:?}");
            assert!(other == wanted, "{workers} workers: other values");
        }
    }
}
