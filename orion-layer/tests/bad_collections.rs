//! Collections and pipelines that go wrong, or nearly: errors that all workers have, and nothing left behind.
mod common;

use common::hand::on_each;
use hectare_orion::collections::{DistMap, Last, Merge, Sum};
use hectare_orion::relax::Consistency;
use hectare_orion::{Context, Error, Result, parallel_for, run, run_on};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::hash::{Hash, Hasher};

const WORKERS: [usize; 4] = [1, 2, 3, 5];

/// How many areas the job has.
fn areas(w: &mut Context<'_>) -> Result<usize> {
    w.barrier()?;
    let count = w.worker().job().areas()?.len();
    w.barrier()?;
    Ok(count)
}

/// A byte that serde panics at: 1 when it is written, 2 when it is read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Panics(u8);

impl Serialize for Panics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(self.0 != 1, "it does not want to be written");
        serializer.serialize_u8(self.0)
    }
}

impl<'de> Deserialize<'de> for Panics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Panics, D::Error> {
        let byte = u8::deserialize(deserializer)?;
        assert!(byte != 2, "it does not want to be read");
        Ok(Panics(byte))
    }
}

/// All have the same error, and it contains `parts`.
fn same(error: &Error, w: &mut Context<'_>, parts: &[&str]) -> Result<()> {
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    w.agree(text).map(drop)
}

#[test]
fn serde_that_panics_is_an_error_on_all_and_leaves_nothing_behind() {
    for workers in WORKERS {
        run(workers, |w| {
            let before = areas(w)?;
            for kind in [1, 2] {
                let mut map: DistMap<u32, Panics, Last> = w.dist_map(Last)?.named("map");
                map.extend(w, (0..9).map(|k| (k, Panics(0))))?;
                // One of the keys, from one worker.
                let bad = (w.rank() == 0).then_some((5, Panics(kind)));
                match map.extend(w, bad) {
                    Err(error) => same(&error, w, &["map", "does not want to be"])?,
                    // It stayed where it came from; whoever reads it finds out.
                    Ok(()) => same(&map.to_vec(w).unwrap_err(), w, &["map", "does not want to be read"])?,
                }
                map.delete(w)?;
                let mut list = w.dist_vec::<Panics>()?.named("list");
                match list.extend(w, vec![Panics(0), Panics(kind)]) {
                    Err(error) => same(&error, w, &["list", "does not want to be"])?,
                    Ok(()) => same(&list.to_vec(w).unwrap_err(), w, &["list", "does not want to be read"])?,
                }
                list.delete(w)?;
                // As keys of a pipeline.
                let source = w.entries([50], 50, |k| ([k], k as u8))?;
                let local = source.local();
                let keys = local.lazy().rekey(|[k], _| Panics(if *k == 30 { kind } else { 10 + *k as u8 }));
                match keys.cloned().to_map(w, Last) {
                    Err(error) => same(&error, w, &["does not want to be"])?,
                    Ok(map) => {
                        assert!(map.to_vec(w).is_err());
                        map.delete(w)?;
                    }
                }
            }
            assert_eq!(areas(w)?, before);
            Ok(())
        })
        .unwrap();
    }
}

/// Makes one list of two.
fn join(a: &mut Vec<u8>, mut b: Vec<u8>) {
    a.append(&mut b);
}

#[test]
fn values_that_one_worker_has_no_memory_for_leave_nothing_behind() {
    let job = hectare_dsm::Job::builder().reserve(16 << 20).max_workers(3).embedded().unwrap();
    run_on(&job, 3, |w| {
        for _ in 0..2 {
            let mut map = w.dist_map::<u32, Vec<u8>, _>(join)?.named("large");
            // Every worker has some of the keys.
            map.extend(w, (0..30).map(|k| (k, vec![0])))?;
            let before = areas(w)?;
            // One value grows until it cannot be shown any more; all others could.
            let failed = loop {
                let more = (w.rank() == 0).then(|| (7, vec![1; 2 << 20]));
                if let Err(error) = map.extend(w, more) {
                    break error;
                }
                assert!(map.at(w, &7)?.len() < 16 << 20);
            };
            assert!(matches!(failed, Error::Core(_) | Error::PeerFailed { .. }), "{failed}");
            assert!(matches!(map.get(w, &7), Err(Error::Poisoned { .. })));
            assert_eq!(areas(w)?, before);
            map.delete(w)?;
            assert_eq!(areas(w)?, before - w.size());
        }
        Ok(())
    })
    .unwrap();
}

/// A key whose hash says nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Alike(u32);

impl Hash for Alike {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(7);
    }
}

#[test]
fn keys_with_one_hash_are_told_apart() {
    for workers in WORKERS {
        run(workers, |w| {
            let mut map = w.dist_map::<Alike, u64, _>(Sum)?;
            for _ in 0..2 {
                parallel_for!(w, unordered, buffer map;
                for i in 0..900 {
                    map.add(&Alike(i as u32 % 300), i as u64);
                })?;
            }
            assert_eq!(map.len(), 300);
            for key in 0..300u64 {
                assert_eq!(map.get(w, &Alike(key as u32))?, Some(2 * (3 * key + 900)));
            }
            assert_eq!(map.get(w, &Alike(300))?, None);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn keys_and_values_of_no_size() {
    for workers in WORKERS {
        run(workers, |w| {
            let mut one = w.dist_map::<(), (), _>(Last)?;
            assert_eq!((one.to_vec(w)?, one.get(w, &())?), (vec![], None));
            parallel_for!(w, unordered, buffer one; for _i in 0..50 { one.add(&(), ()); })?;
            assert_eq!((one.len(), one.get(w, &())?, one.to_vec(w)?), (1, Some(()), vec![((), ())]));
            let mut set = w.dist_map::<u32, (), _>(Last)?;
            set.extend(w, (0..2000).map(|k| (k, ())))?;
            assert_eq!((set.len(), set.to_vec(w)?.len(), set.get(w, &1999)?), (2000, 2000, Some(())));
            let mut total = w.dist_map::<(), u64, _>(Sum)?;
            total.extend(w, [((), 3)])?;
            assert_eq!(total.to_array(w)?.to_vec(w)?[0].value, ((), 3 * workers as u64));
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn keys_that_are_missing_are_named() {
    for workers in WORKERS {
        let errors = on_each(workers, |w| {
            let mut map = w.dist_map::<String, u32, _>(Last)?.named("numbers");
            let mut list = w.dist_vec::<u32>()?.named("list");
            map.extend(w, [("one".to_owned(), 1)])?;
            list.extend(w, (w.rank() == 0).then_some(7))?;
            assert_eq!((map.at(w, "one")?, list.at(w, 0)?), (1, 7));
            same(&wrong_worker(map.at(w, "two").unwrap_err()), w, &["numbers", "\"two\"", "no such key"])?;
            same(&wrong_worker(list.at(w, 1).unwrap_err()), w, &["list", "at 1", "1 element"])?;
            let words = ["one", "one", "zwei", "one"];
            let failed = parallel_for!(w, unordered, read map, sum all: u64;
                for i in 0..4 { all += u64::from(map.at(words[i])); });
            let error = failed.unwrap_err();
            assert!(error.to_string().contains("at i = 2: numbers has no key \"zwei\""), "{error}");
            let failed = parallel_for!(w, unordered, buffer list;
                for i in 0..4 { let next = list.at(i) + 1; list.push(next); });
            let error = failed.unwrap_err().to_string();
            assert!(error.contains("list has no element "), "{error}");
            assert_eq!(list.len(), 1);
            Ok(())
        });
        errors.into_iter().for_each(|result| result.unwrap());
    }
}

/// Who asked is the only difference.
fn wrong_worker(error: Error) -> Error {
    match error {
        Error::Entry { array, key, what, .. } => Error::Entry { array, worker: 0, key, what },
        other => other,
    }
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

            // What cannot be shown is not, and is no second panic.
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
            // What was merged before it failed is of no pass that counts.
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
fn contributions_of_a_pass_that_fails_do_not_come_with_the_next() {
    for consistency in [Consistency::Bsp, Consistency::Bounded(1), Consistency::Async] {
        for workers in WORKERS {
            run(workers, |w| {
                let mut map = w.dist_map::<u32, u64, _>(Sum)?;
                let mut bins = w.zeros::<u64, 1>([7])?;
                let failed = parallel_for!(w, unordered, relax bins, buffer map, consistency = consistency;
                for i in 0..700 {
                    bins.add(i % 7, 1);
                    map.add(&(i as u32 % 7), 1);
                    assert!(i != 650, "an accident");
                });
                assert!(failed.is_err() && map.is_empty());
                let mut bins = w.zeros::<u64, 1>([7])?;
                parallel_for!(w, unordered, relax bins, buffer map, consistency = consistency;
                for i in 0..700 {
                    bins.add(i % 7, 1);
                    map.add(&(i as u32 % 7), 1);
                })?;
                assert!(map.to_vec(w)?.into_iter().eq((0..7).map(|key| (key, 100))));
                Ok(())
            })
            .unwrap();
        }
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

#[test]
fn pipelines_that_fail_midway_are_errors_on_all_workers_and_leave_nothing_behind() {
    for workers in WORKERS {
        run(workers, |w| {
            let source = w.entries([60, 5], 240, |k| ([k % 60, k % 5], k as u64))?.named("source");
            let before = areas(w)?;
            let local = source.local();
            let bad = |key: &[usize; 2]| assert!(*key != [31, 1], "bad luck");
            let failed =
                local.lazy().map(|key, _| bad(key)).rekey(|[i, _], ()| [*i]).keep_all().materialize(w);
            same(&failed.unwrap_err(), w, &["source", "[31, 1]", "bad luck"])?;
            let failed = local.lazy().cloned().flat_map(|key, x| {
                bad(&key);
                [(key[1] as u8, x)]
            });
            same(&failed.reduce(|a, b| a + b).to_map(w, Sum).unwrap_err(), w, &["[31, 1]", "bad luck"])?;
            let combined = local.lazy().cloned().rekey(|[_, j], _| *j as u8);
            let failed = combined.combine(|a, b| {
                assert!(b != 123, "bad luck");
                a + b
            });
            same(&failed.to_map(w, Sum).unwrap_err(), w, &["source", "at 3", "bad luck"])?;
            // A map has one value for a key.
            let failed = local.lazy().cloned().rekey(|[_, j], _| *j).keep_all().to_map(w, Last);
            same(&failed.unwrap_err(), w, &["one value for a key"])?;
            assert_eq!(areas(w)?, before);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn nothing_at_all_and_one_key_for_everything() {
    for workers in WORKERS {
        run(workers, |w| {
            let source = w.entries([3000], 3000, |k| ([k], k as u32))?;
            let local = source.local();
            let none = || local.lazy().flat_map(|_, _| Vec::<([usize; 2], u32)>::new());
            let empty = none().materialize(w)?;
            assert_eq!((empty.len(), empty.shape()), (0, [0, 0]));
            let in_shape = none().materialize_in(w, [4, 5])?;
            assert_eq!((in_shape.len(), in_shape.shape()), (0, [4, 5]));
            let map = none().to_map(w, Sum)?;
            assert_eq!((map.len(), map.get(w, &[0, 0])?, map.to_array(w)?.len()), (0, None, 0));
            // A loop over nothing.
            let mut counts = w.dist_map::<usize, u32, _>(Sum)?;
            parallel_for!(w, unordered, buffer counts;
                for ((i, _j), x) in empty { counts.add(&i, *x); })?;
            assert!(counts.is_empty());
            let giant = local.lazy().cloned().group_by(|_, _| [0]).materialize(w)?;
            assert!(giant.to_vec(w)?[0].value.iter().copied().eq(0..3000));
            let giant = local.lazy().cloned().group_by(|_, _| "all".to_owned()).to_map(w, Last)?;
            assert!(giant.get(w, "all")?.is_some_and(|list| list.into_iter().eq(0..3000)));
            Ok(())
        })
        .unwrap();
    }
}

/// Counts what `extend`, loops and `to_array` do to a map that is made, used in several loops, and made again.
fn life<M: Merge<u64, Part = u64> + Copy>(w: &mut Context<'_>, rule: M) -> Result<Vec<(u32, u64)>> {
    let mut all = Vec::new();
    for round in 0..3u32 {
        let mut map = w.dist_map::<u32, u64, M>(rule)?;
        for _ in 0..3 {
            parallel_for!(w, unordered, buffer map; for i in 0..400 { map.add(&(i as u32 % 50 + round), 1); })?;
            let list = map.to_array(w)?;
            // Looked up in one map, counted in another.
            let mut twice = w.dist_map::<u32, u64, M>(rule)?;
            parallel_for!(w, unordered, read map, buffer twice;
            for ((_i), entry) in list {
                twice.add(&entry.0, map.at(&entry.0) + entry.1);
            })?;
            all.extend(twice.to_vec(w)?);
            twice.delete(w)?;
        }
        map.delete(w)?;
    }
    Ok(all)
}

#[test]
fn maps_are_used_in_loops_dropped_and_made_again() {
    let expected = run(1, |w| life(w, Sum)).unwrap().remove(0);
    assert_eq!(expected[0], (0, 16));
    for workers in WORKERS {
        run(workers, |w| {
            let before = areas(w)?;
            assert_eq!(life(w, Sum)?, expected);
            assert_eq!(areas(w)?, before);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn large_values_and_keys() {
    for workers in WORKERS {
        run(workers, |w| {
            let key = |k: usize| format!("{k}").repeat(30_000);
            let mut map = w.dist_map::<String, Vec<u32>, _>(Last)?;
            parallel_for!(w, unordered, buffer map;
                for i in 0..20 { map.add(&key(i), vec![i as u32; 100_000]); })?;
            assert_eq!(map.get(w, &key(17))?.map(|list| list[99_999]), Some(17));
            let list = map.to_array(w)?;
            assert_eq!(list.len(), 20);
            map.extend(w, [(key(17), vec![])])?;
            assert_eq!(map.get(w, &key(17))?, Some(vec![]));
            Ok(())
        })
        .unwrap();
    }
}
