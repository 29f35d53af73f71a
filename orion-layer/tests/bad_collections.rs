//! Collections and pipelines that go wrong, or nearly: errors that all workers have, and nothing left behind.
use crate::common;

use common::collected::{areas, same};
use hectare_orion::collections::{DistMap, Last, Merge, Sum};
use hectare_orion::relax::Consistency;
use hectare_orion::{Context, Error, Result, parallel_for, run, run_on};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::hash::{Hash, Hasher};

const WORKERS: [usize; 4] = [1, 2, 3, 5];

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
            assert!(matches!(failed, Error::OutOfMemory { .. } | Error::PeerFailed { .. }), "{failed}");
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
