//! Rules that panic and keys that are missing: errors that say which.
use crate::common;

use common::collected::{areas, same};
use common::hand::on_each;
use hectare_orion::collections::{Last, Sum};
use hectare_orion::relax::{Apply, Consistency};
use hectare_orion::{Context, Error, Result, parallel_for, run};
use serde::{Deserialize, Serialize};

const WORKERS: [usize; 4] = [1, 2, 3, 5];

#[test]
fn keys_that_are_missing_are_named() {
    for workers in WORKERS {
        let errors = on_each(workers, |w| {
            let mut map = w.dist_map::<String, u32, _>(Last)?.named("numbers");
            let mut list = w.dist_vec::<u32>()?.named("list");
            map.extend(w, [("one".to_owned(), 1)])?;
            list.extend(w, (w.rank() == 0).then_some(7))?;
            assert_eq!((map.at(w, "one")?, list.at(w, 0)?), (1, 7));
            // Here and in loops, in the same words.
            let outside = map.at(w, "zwei").unwrap_err();
            let words = ["one", "one", "zwei", "one"];
            let failed = parallel_for!(w, unordered, read map, sum all: u64;
                for i in 0..4 { all += u64::from(map.at(words[i])); });
            told_alike(w, &outside, &failed.unwrap_err(), "at i = 2: ", "\"numbers\" has no key \"zwei\"")?;
            let outside = list.at(w, 1).unwrap_err();
            let failed = parallel_for!(w, unordered, buffer list;
                for i in 0..4 { let next = list.at(i % 2) + 1; list.push(next); });
            told_alike(w, &outside, &failed.unwrap_err(), "at i = ", "\"list\" has no element 1")?;
            assert_eq!(list.len(), 1);
            Ok(())
        });
        errors.into_iter().for_each(|result| result.unwrap());
    }
}

/// Both errors tell of `what`; that of the loop also says in which iteration.
fn told_alike(
    w: &mut Context<'_>,
    outside: &Error,
    in_loop: &Error,
    iteration: &str,
    what: &str,
) -> Result<()> {
    let me = w.rank();
    assert!(
        matches!(outside, Error::MissingKey { worker, iteration, .. } if *worker == me && iteration.is_empty())
    );
    let text = outside.to_string();
    assert!(text.starts_with(file!()) && text.ends_with(&format!(", worker {me}: {what}")), "{text}");
    let text = in_loop.to_string();
    assert!(text.contains(file!()) && text.contains(iteration) && text.ends_with(what), "{text}");
    // One worker looked, the others hear of it.
    let found = u32::from(matches!(in_loop, Error::MissingKey { .. }));
    assert!(w.all_reduce(found, |a, b| a + b)? >= 1, "{in_loop}");
    Ok(())
}

/// A key that cannot be shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Unshown(u32);

impl std::fmt::Debug for Unshown {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("a key that cannot be shown")
    }
}

/// In the body, where contributions of a cell are merged, when the pass ends, and outside of loops.
#[test]
fn a_rule_that_panics_is_named_with_map_and_key() {
    for workers in WORKERS {
        run(workers, |w| {
            let mut lists = w.dist_map::<String, u64, _>(picky)?.named("lists");
            let failed = parallel_for!(w, unordered, buffer lists;
            for i in 0..100 {
                lists.add("a key", 1);
                if i == 57 {
                    lists.add("a key", 13);
                }
            });
            let error = failed.unwrap_err().to_string();
            assert!(error.contains("the rule picky of \"lists\" panicked on worker"), "{error}");
            assert!(error.contains("at \"a key\": not thirteen; what was contributed to lists"), "{error}");
            // Merged by nobody: nothing has changed.
            assert_eq!(lists.get(w, "a key")?, None);
            lists.extend(w, w.root(|| ("a key".to_owned(), 1)))?;
            let error = lists.extend(w, w.root(|| ("a key".to_owned(), 13))).unwrap_err();
            same(&error, w, &["the rule picky of \"lists\" panicked", "at \"a key\": not thirteen"])?;
            assert!(matches!(error, Error::RulePanicked { .. }));
            assert!(matches!(lists.get(w, "a key"), Err(Error::Poisoned { .. })));

            // A value whose `Debug` panics is left out of the message, and is no second panic.
            let mut unshown = w.dist_map::<Unshown, u64, _>(picky)?.named("unshown");
            let twice = w.root(|| [(Unshown(1), 1), (Unshown(1), 13)]).into_iter().flatten();
            let error = unshown.extend(w, twice).unwrap_err();
            same(&error, w, &["the rule picky of \"unshown\" panicked on worker 0: not thirteen"])?;
            lists.delete(w)?;
            unshown.delete(w)
        })
        .unwrap();
    }
}

/// Refuses to merge 13.
fn picky(a: &mut u64, b: u64) {
    assert!(b != 13, "not thirteen");
    *a += b;
}

#[test]
fn a_loop_that_fails_while_it_merges_leaves_no_half_to_be_taken_for_a_result() {
    for workers in WORKERS {
        run(workers, |w| {
            let before = areas(w)?;
            let mut sums = w.dist_map::<u32, u64, _>(Sum)?.named("sums");
            let mut list = w.dist_vec::<u32>()?.named("list");
            let mut map = w.dist_map::<u32, u64, _>(picky)?.named("picky");
            map.extend(w, (w.rank() == 0).then_some((3, 1)))?;
            let failed = parallel_for!(w, unordered, buffer [sums, list, map];
            for i in 0..100 {
                sums.add(&1, 1);
                list.push(i as u32);
                if i == 57 {
                    map.add(&3, 13);
                }
            });
            let error = failed.unwrap_err();
            let place = format!("{}:", file!());
            same(
                &error,
                w,
                &[&place, "the rule picky of \"picky\" panicked on worker", "at 3: not thirteen"],
            )?;
            assert!(matches!(&error, Error::RulePanicked { array, rule, key, message, .. }
                if array == "picky" && rule == "picky" && &**key == "3" && message == "not thirteen"));
            // Contributions merged before the failure are of no pass that counts.
            assert!(matches!(sums.get(w, &1), Err(Error::Poisoned { .. })));
            assert!(matches!(list.get(w, 0), Err(Error::Poisoned { .. })));
            assert!(matches!(map.get(w, &3), Err(Error::Poisoned { .. })));
            let refused = parallel_for!(w, unordered, read sums, sum n: u64;
                for i in 0..10 { n += sums.get(&(i as u32)).unwrap_or(0); });
            assert!(refused.unwrap_err().to_string().contains("\"sums\" was left half written"));
            sums.delete(w)?;
            list.delete(w)?;
            map.delete(w)?;
            assert_eq!(areas(w)?, before);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn iterators_and_rules_that_panic_are_errors_on_all_workers() {
    for workers in WORKERS {
        run(workers, |w| {
            let last = w.size() as u32 - 1;
            let (rank, mut map) = (w.rank(), w.dist_map::<u32, u64, _>(picky)?.named("picky"));
            let broken = (0..9).map(|k| {
                assert!(rank != last || k != 5, "a broken iterator");
                (k, 1u64)
            });
            let error = map.extend(w, broken).unwrap_err();
            same(&error, w, &["picky", "a broken iterator"])?;
            // Nothing was merged, and the map is as it was.
            assert!(map.is_empty());
            map.extend(w, (0..9).map(|k| (k, 1)))?;
            let error = map.retain(w, |key, _| *key != 4 || panic!("keep it?")).unwrap_err();
            same(&error, w, &["picky", "at 4", "keep it?"])?;
            assert!(matches!(map.to_vec(w), Err(Error::Poisoned { .. })));
            map.delete(w)
        })
        .unwrap();
    }
}

/// A rule that cannot look at a state.
#[derive(Debug)]
struct Blind;

impl Apply<f64> for Blind {
    type State = u64;
    type Snapshot = u64;

    fn initial(&self) -> u64 {
        0
    }

    fn snapshot(&self, _state: &u64) -> u64 {
        panic!("cannot see")
    }

    fn apply(&self, target: &mut f64, _state: &mut u64, update: f64, _seen: u64) {
        *target += update;
    }
}

#[test]
fn rules_that_panic_when_they_look_at_states_are_named_and_the_job_goes_on() {
    for workers in [1, 2, 3] {
        for consistency in [Consistency::Bsp, Consistency::Async] {
            let all = run(workers, |w| {
                let zeros = w.zeros::<f64, 1>([9])?.named("sums");
                let mut sums = w.buffered(zeros, Blind)?;
                let failed = parallel_for!(w, unordered, buffer sums, consistency = consistency; for i in 0..90 {
                    sums.add(i % 9, 1.0);
                });
                w.barrier()?;
                Ok(failed.unwrap_err().to_string())
            });
            for error in all.unwrap() {
                assert!(
                    error.contains("Blind") && error.contains("\"sums\"") && error.contains("cannot see"),
                    "{error}"
                );
            }
        }
    }
}
