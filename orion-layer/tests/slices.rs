//! Bodies as people write them: their slices name all keys, and the loop has the result of the serial one.
use hectare_orion::collections::Last;
use hectare_orion::relax::{Consistency, Sum};
use hectare_orion::serve::Served;
use hectare_orion::{Context, Result, parallel_for, run};

const KEYS: usize = 97;
const ROWS: usize = 300;

type Counts = Served<u64, 1, Sum>;

/// A row's keys: between none and six.
fn row(k: usize) -> Vec<u32> {
    (0..k % 7).map(|at| ((k * 31 + at * 17) % KEYS) as u32).collect()
}

/// Runs a loop serially and on two workers, twice: all keys are foreseen, and what is counted is the same.
fn foreseen(count: impl Fn(&mut Context<'_>, &mut Counts, Consistency) -> Result<()> + Sync) {
    let counts = |workers: usize, consistency: Consistency| {
        let found = run(workers, |w| {
            let zeros = w.zeros::<u64, 1>([KEYS])?;
            let mut counts = w.served(zeros, Sum)?;
            for _pass in 0..2 {
                count(w, &mut counts, consistency)?;
            }
            let reports = w.reports()?;
            for report in reports.iter().filter(|_| consistency != Consistency::Serializable) {
                let serving = &report.serving;
                assert_eq!((serving.read_misses, serving.write_misses), (0, 0), "{report}");
                assert!(serving.planned_keys > 0, "{report}");
            }
            counts.array().to_vec(w)
        });
        found.unwrap().swap_remove(0)
    };
    let serial = counts(1, Consistency::Serializable);
    assert!(serial.iter().sum::<u64>() > 0);
    assert_eq!(counts(2, Consistency::Bounded(1)), serial);
}

#[test]
fn iterators_with_closures() {
    foreseen(|w, counts, consistency| {
        let rows = w.entries([ROWS], ROWS, |k| ([k], row(k)))?;
        parallel_for!(w, unordered, serve counts, consistency = consistency;
        for ((_k), keys) in rows {
            let known: u64 = keys.iter().map(|key| counts.get(*key as usize)).sum();
            let zero = keys.iter().filter(|key| **key % 2 == 0).fold(0, |sum, key| sum + counts.get((*key as usize + 1) % KEYS));
            let even = keys.iter().enumerate().filter(|(_, key)| counts.get(**key as usize) < u64::MAX).count();
            keys.iter().take(3).for_each(|key| counts.add(*key as usize, 1 + (known + zero) / u64::MAX));
            counts.add(11, even as u64);
        })
    });
}

#[test]
#[allow(clippy::while_let_on_iterator)]
fn loops_of_every_kind() {
    foreseen(|w, counts, consistency| {
        let rows = w.entries([ROWS], ROWS, |k| ([k], row(k)))?;
        parallel_for!(w, unordered, serve counts, consistency = consistency;
        for ((k), keys) in rows {
            if keys.is_empty() { continue; }
            let mut left = keys.as_slice();
            while let Some((key, others)) = left.split_first() {
                left = others;
                if *key == 5 { continue; }
                counts.add(*key as usize, 1);
            }
            let mut at = k % 10;
            loop {
                counts.add(at, 2);
                at += 7;
                if at > 50 { break; }
            }
            let mut list = Vec::new();
            for key in keys {
                list.push(*key as usize / 2);
            }
            list.sort_unstable();
            let (first, last) = (list[0], list[list.len() - 1]);
            'outer: for a in first..=last {
                for b in 0..3 {
                    if a + b == 40 { continue 'outer; }
                    if a * b > 60 { break 'outer; }
                    counts.add((a * b) % KEYS, 1);
                }
            }
        })
    });
}

#[test]
fn branches_that_are_known_and_those_that_are_not() {
    foreseen(|w, counts, consistency| {
        let rows = w.entries([ROWS], ROWS, |k| ([k], row(k)))?;
        let next: Vec<usize> = (0..KEYS).map(|k| (k * 3 + 1) % KEYS).collect();
        let next = &next;
        parallel_for!(w, unordered, serve counts, consistency = consistency, sum seen: u64;
        for ((k), keys) in rows {
            let [first, .., last] = keys[..] else { continue; };
            // Guards what comes after it.
            if k < next.len() && counts.get(next[k]) < u64::MAX {
                counts.add(next[next[k]], 1);
            } else {
                counts.add(first as usize, 1);
            }
            match last % 4 {
                0 if k % 2 == 0 => counts.add(last as usize, 3),
                0 | 1 => seen += counts.get(last as usize),
                other => {
                    let shifted = (last + other) as usize % KEYS;
                    counts.add(shifted, 1);
                }
            }
            let value = if first > 40 { counts.get(40) } else { counts.get(first as usize) };
            if value == u64::MAX { continue; }
            match value { 0 => counts.add(11, 1), _ => counts.add(11, 1) }
            let key = { let half = last / 2; half as usize };
            counts.add(key, u64::from(value < u64::MAX));
        })
        .map(|_| ())
    });
}

#[test]
fn references_buffers_and_macros() {
    foreseen(|w, counts, consistency| {
        fn fill(list: &mut [usize; 3], k: usize) {
            *list = [k % KEYS, (k + 1) % KEYS, (k * k) % KEYS];
        }
        let table = w.from_fn([ROWS], |[k]| (k * 5 % KEYS) as u32)?;
        let offset = 4;
        parallel_for!(w, unordered, serve counts, read table, consistency = consistency;
        for k in 0..ROWS {
            let mut list = [0; 3];
            fill(&mut list, k);
            let key = table[k] as usize;
            let more = vec![key, key];
            {
                let last = &mut list[2];
                *last = (*last + offset) % KEYS;
            }
            assert!(counts.get(list[1]) < u64::MAX, "{k}");
            for key in list.iter().chain(&more) {
                counts.add(*key, 1);
            }
        })
    });
}

#[test]
fn rows_of_two_arrays() {
    let found = run(2, |w| {
        let (a, b) = (w.fill([50, 4], 1u64)?, w.zeros::<u64, 3>([5, 10, 2])?);
        let (mut words, mut sums) = (w.served(a, Sum)?, w.served(b, Sum)?);
        for _pass in 0..2 {
            parallel_for!(w, unordered, serve [words, sums];
            for k in 0..500 {
                let word = k * 7 % 50;
                let row = words.row(word);
                let sum: u64 = row.iter().map(|x| x.min(&1)).sum();
                sums.add_row([k % 5, k % 10], &[sum, 1]);
                words.add([word, k % 4], 1);
            })?;
        }
        let serving = w.reports()?.swap_remove(0).serving;
        assert_eq!((serving.read_misses, serving.write_misses), (0, 0), "{serving:?}");
        Ok((words.array().to_vec(w)?, sums.array().to_vec(w)?))
    });
    let (words, sums) = &found.unwrap()[0];
    assert_eq!(words.iter().sum::<u64>(), 200 + 1000);
    assert_eq!(sums.iter().step_by(2).sum::<u64>(), 4 * 1000);
    assert_eq!(sums.iter().skip(1).step_by(2).sum::<u64>(), 1000);
}

/// Subscripts that a map gives: when the map changes, so do the keys.
#[test]
fn keys_by_way_of_a_map() {
    for workers in [1, 2, 3] {
        let result = run(workers, |w| {
            let words = w.entries([60], 60, |k| ([k], format!("word {}", k % 7)))?;
            let mut numbers = w.dist_map::<String, u32, _>(Last)?;
            let zeros = w.zeros::<i64, 1>([100])?;
            let mut counts = w.served(zeros, Sum)?;
            for pass in 0..3u32 {
                let own = w.rank() == 0;
                numbers.extend(w, (0..7).filter(|_| own).map(|k| (format!("word {k}"), k + 20 * pass)))?;
                parallel_for!(w, unordered, read numbers, serve counts, consistency = Consistency::Bsp;
                for ((_k), word) in words {
                    let number = numbers.get(word).unwrap_or(99);
                    counts.add(number as usize, 1);
                })?;
            }
            let counted: Vec<i64> = counts.array().to_vec(w)?;
            let expected = |key: usize| match key % 20 {
                word @ 0..7 if key < 60 => (60 + 6 - word as i64) / 7,
                _ => 0,
            };
            assert_eq!(counted, (0..100).map(expected).collect::<Vec<_>>());
            let serving = &w.reports()?[0].serving;
            assert_eq!((serving.plans_made, serving.read_misses), (3 * workers as u64, 0));
            Ok(())
        });
        result.unwrap();
    }
}
