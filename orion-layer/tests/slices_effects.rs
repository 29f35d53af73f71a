//! Slices of bodies whose conditions and values change what subscripts depend on: each change is made once, and slices end.
use crate::common;

use common::watchdog::watched;
use hectare_orion::relax::{Consistency, Every, Sum};
use hectare_orion::serve::Served;
use hectare_orion::{Context, Result, parallel_for, run};

const KEYS: usize = 97;
const ROWS: usize = 120;

type Counts = Served<u64, 1, Sum>;

/// Between one and seven keys.
fn row(k: usize) -> Vec<u32> {
    (0..1 + k % 7).map(|at| ((k * 31 + at * 17) % KEYS) as u32).collect()
}

/// Runs a loop serially and on two workers, twice: the counts are the same, and all keys are foreseen.
fn foreseen(
    what: &'static str,
    count: impl Fn(&mut Context<'_>, &mut Counts, Consistency) -> Result<()> + Sync,
) {
    watched(what, || {
        let counts = |workers: usize, consistency: Consistency| {
            let found = run(workers, |w| {
                let zeros = w.zeros::<u64, 1>([KEYS])?;
                let mut counts = w.served(zeros, Sum)?;
                for _pass in 0..2 {
                    count(w, &mut counts, consistency)?;
                }
                for report in w.reports()?.iter().filter(|_| consistency != Consistency::Serializable) {
                    let serving = &report.serving;
                    assert_eq!((serving.read_misses, serving.write_misses), (0, 0), "{what}: {report}");
                }
                counts.array().to_vec(w)
            });
            found.unwrap().swap_remove(0)
        };
        let serial = counts(1, Consistency::Serializable);
        assert!(serial.iter().sum::<u64>() > 0);
        assert_eq!(counts(2, Consistency::Bounded(1)), serial, "{what}");
    });
}

#[test]
#[allow(clippy::blocks_in_conditions)]
fn a_change_in_a_block_is_made_once() {
    foreseen("blocks", |w, counts, consistency| {
        parallel_for!(w, unordered, serve counts, consistency = consistency;
        for k in 0..ROWS {
            let mut left = 11 + k % 3 * 2;
            while left != 1 {
                let key = { left -= 2; left };
                counts.add(key, 1);
            }
            let mut at = k;
            match { at += 1; at % 2 } {
                0 => counts.add(at % KEYS, 1),
                _ => counts.add((at + 1) % KEYS, 1),
            }
            for step in { at += 3; 0..2 } {
                counts.add((at + step) % KEYS, 1);
            }
            counts.add({ at += 5; at % KEYS }, 1);
            counts.add(at % KEYS, 1);
            if { at += 1; at % 3 == 0 } || { at += 7; counts.get(at % KEYS) == u64::MAX } {
                counts.add(at % KEYS, 1);
            }
        })
    });
}

#[test]
fn what_is_taken_out_for_a_sum_is_taken_out() {
    foreseen("sums", |w, counts, consistency| {
        let rows = w.entries([ROWS], ROWS, |k| ([k], row(k)))?;
        parallel_for!(w, unordered, serve counts, consistency = consistency, sum total: u64;
        for ((_k), keys) in rows {
            let mut left = keys.iter();
            while left.len() > 1 {
                total += u64::from(*left.next().unwrap());
                counts.add(*left.next().unwrap() as usize, 1);
            }
            let mut stack: Vec<usize> = keys.iter().map(|key| *key as usize).collect();
            while !stack.is_empty() {
                counts.add(stack[0], 1);
                for _ in 0..2 {
                    total += stack.pop().unwrap_or(0) as u64;
                }
            }
            let mut others = keys.iter();
            while others.len() > 0 {
                for key in others.by_ref().take(2) {
                    total += u64::from(*key);
                }
                counts.add(others.len(), 1);
            }
            let mut drained: Vec<usize> = keys.iter().map(|key| *key as usize / 2).collect();
            let value: u64 = drained.drain(1..).map(|key| counts.get(key).min(1)).sum();
            counts.add(drained[0], 1 + value / u64::MAX);
        })
        .map(drop)
    });
}

#[test]
fn known_conditions_beside_unknown_ones_have_their_effects() {
    foreseen("guards", |w, counts, consistency| {
        parallel_for!(w, unordered, serve counts, consistency = consistency, sum seen: u64;
        for k in 0..ROWS {
            let high = counts.get(k % KEYS) == u64::MAX;
            let mut at = 0;
            while at < 5 {
                if { at += 1; true } && high {
                    seen += 1;
                }
                counts.add(at, 1);
            }
        })
        .map(drop)
    });
}

#[test]
fn jumps_under_conditions_that_are_not_known() {
    foreseen("jumps", |w, counts, consistency| {
        let rows = w.entries([ROWS], ROWS, |k| ([k], row(k)))?;
        parallel_for!(w, unordered, serve counts, consistency = consistency;
        for ((k), keys) in rows {
            if counts.get(k % KEYS) < u64::MAX {
                // Loops that begin and end there are known.
                let mut at = k % 10;
                loop {
                    counts.add(at, 1);
                    at += 7;
                    if at > 50 { break; }
                }
                let [_, second, ..] = keys[..] else { continue; };
                counts.add(second as usize, 1);
                for key in keys {
                    if *key > 90 { break; }
                    if *key == 5 { continue; }
                    counts.add(*key as usize, 1);
                }
                let third = match keys.get(2) { Some(third) => *third as usize, None => continue };
                counts.add(third, 1);
            }
            counts.add(1, 1);
        })
    });
}

#[test]
fn closures_that_change_and_texts_that_capture() {
    foreseen("closures", |w, counts, consistency| {
        let rows = w.entries([ROWS], ROWS, |k| ([k], row(k)))?;
        parallel_for!(w, unordered, serve counts, consistency = consistency;
        for ((k), keys) in rows {
            let mut at = 3;
            let mut step = |by: usize| at += by;
            step(k % 5);
            step(2);
            counts.add(at, 1);
            let first = keys[0];
            let width = 5;
            let text = format!("{first:>width$}");
            counts.add(text.trim().len() + text.len(), 1);
        })
    });
}

/// How far a probe goes depends on what is served: the slice cannot know, and must end all the same.
#[test]
fn slices_that_would_not_end_are_given_up() {
    watched("a slice without an end", || {
        let found = run(2, |w| {
            let zeros = w.zeros::<u64, 1>([KEYS])?;
            let mut counts = w.served(zeros, Sum)?;
            let cycle: Vec<usize> = (0..KEYS).map(|key| (key + 1) % KEYS).collect();
            let cycle = &cycle;
            parallel_for!(w, unordered, serve counts, every = Every::PerPass(1);
            for k in 0..ROWS {
                let turning = cycle.iter().cycle();
                for key in turning {
                    if counts.get(*key) < 1000 {
                        counts.add(*key, 1 + k as u64 / 1000);
                        break;
                    }
                }
            })?;
            Ok((counts.array().to_vec(w)?, w.reports()?.swap_remove(0).serving))
        });
        let (counts, serving) = found.unwrap().swap_remove(0);
        assert_eq!(counts.iter().sum::<u64>(), ROWS as u64);
        // The slice was given up: every key was looked up.
        assert_eq!((serving.planned_keys, serving.write_misses), (0, ROWS as u64), "{serving:?}");
    });
}
