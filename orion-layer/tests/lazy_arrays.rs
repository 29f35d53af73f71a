//! Pipeline pipelines against serial models, on 1, 2, 3 and 5 workers.
use crate::common;

use common::Scratch;
use common::difficult::Difficult;
use hectare_orion::array::{Entry, SparseArray};
use hectare_orion::collections::Sum;
use hectare_orion::{Context, Error, Result, parallel_for, run, run_on};
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

const WORKERS: [usize; 4] = [1, 2, 3, 5];

fn list<T: Clone, const N: usize>(entries: &[Entry<T, N>]) -> Vec<([u32; N], T)> {
    entries.iter().map(|entry| (entry.key, entry.value.clone())).collect()
}

/// Key and value of entry `k` of the source.
type Made = ([usize; 2], u64);

/// Turns an entry into `fan` entries with keys in a square of `extent`.
fn become_many([i, j]: [usize; 2], value: u64, fan: u64, extent: usize) -> Vec<([usize; 2], (u64, u64))> {
    let key = |n: u64| [(i * 7 + n as usize) % extent, (j * 3 + (value % 5) as usize) % extent];
    (0..(value + fan) % (fan + 1)).map(|n| (key(n), (value, n))).collect()
}

/// Source entries in the order in which they are run through: by key, entries of one key as they were made.
fn in_order(made: &[Made]) -> Vec<Made> {
    let mut sorted = made.to_vec();
    sorted.sort_by_key(|(key, _)| *key);
    sorted
}

fn source(w: &mut Context<'_>, made: &[Made], moved: bool) -> Result<SparseArray<u64, 2>> {
    let array = w.entries([40, 30], made.len(), |k| made[k])?;
    if moved {
        // A loop that takes the entries elsewhere.
        let mut rows = w.zeros::<u64, 1>([40])?;
        let mut columns = w.zeros::<u64, 1>([30])?;
        parallel_for!(w, unordered, write [rows, columns];
        for ((i, j), value) in array {
            rows[i] += *value;
            columns[j] += *value;
        })?;
    }
    Ok(array)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pipelines_do_what_a_serial_program_does(
        made in prop::collection::vec(((0usize..40, 0usize..30), 0u64..1 << 40), 0..200),
        fan in 0u64..5,
        extent in 1usize..20,
        moved: bool,
    ) {
        let made: Vec<Made> = made.into_iter().map(|((i, j), value)| ([i, j], value)).collect();
        let mut groups: BTreeMap<[u32; 2], Vec<(u64, u64)>> = BTreeMap::new();
        for (key, value) in in_order(&made).into_iter().filter(|(_, value)| value % 3 != 0) {
            for ([i, j], value) in become_many(key, value / 2, fan, extent) {
                groups.entry([i as u32, j as u32]).or_default().push(value);
            }
        }
        // Neither associative nor commutative.
        let hash = |a: u64, b: u64| a.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b;
        for workers in WORKERS {
            run(workers, |w| {
                let array = source(w, &made, moved)?;
                let local = array.local();
                let pipeline = || {
                    local.lazy()
                        .filter(|_, value| **value % 3 != 0)
                        .map(|_, value| value / 2)
                        .flat_map(|key, value| become_many(key, value, fan, extent))
                };
                let grouped = pipeline().group_by(|key, _| *key).materialize_in(w, [extent, extent])?;
                assert_eq!(list(&grouped.to_vec(w)?), Vec::from_iter(groups.clone()), "{workers} workers");
                assert_eq!(grouped.shape(), [extent, extent]);
                // Over all workers they are in the order of their keys.
                let mine: Vec<[u32; 2]> = grouped.local().iter().map(|entry| entry.key).collect();
                assert!(mine.is_sorted());

                let all: Vec<_> = groups.iter().flat_map(|(key, list)| list.iter().map(|v| (*key, *v))).collect();
                let kept = pipeline().keep_all().materialize(w)?;
                assert_eq!(list(&kept.to_vec(w)?), all);
                let extents = [0, 1].map(|dim| all.iter().map(|(key, _)| key[dim] as usize + 1).max().unwrap_or(0));
                assert_eq!(kept.shape(), extents);

                let combined = pipeline().map(|_, (value, n)| value ^ n).combine(hash).materialize(w)?;
                let model = groups.iter().map(|(key, list)| {
                    (*key, list.iter().map(|(value, n)| value ^ n).reduce(hash).unwrap())
                });
                assert_eq!(list(&combined.to_vec(w)?), Vec::from_iter(model));

                let reduced = pipeline().map(|_, (value, _)| value).reduce(u64::wrapping_add).materialize(w)?;
                let model = groups.iter().map(|(key, list)| {
                    (*key, list.iter().map(|(value, _)| *value).reduce(u64::wrapping_add).unwrap())
                });
                assert_eq!(list(&reduced.to_vec(w)?), Vec::from_iter(model));

                // Keys that are not changed stay where they are, in the shape of the source.
                let same = local.lazy().filter_map(|[i, _], value| (i % 2 == 0).then(|| value + 1)).materialize(w)?;
                let model = in_order(&made).into_iter().filter(|([i, _], _)| i % 2 == 0);
                let model = model.map(|([i, j], value)| ([i as u32, j as u32], value.wrapping_add(1)));
                assert_eq!(list(&same.to_vec(w)?), Vec::from_iter(model));
                assert_eq!(same.shape(), [40, 30]);
                Ok(())
            })
            .unwrap();
        }
    }
}

/// Counts how many of its kind there are.
#[derive(Debug)]
struct Counted(u64);

static ALIVE: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);

impl Counted {
    fn new(value: u64) -> Counted {
        let alive = ALIVE.fetch_add(1, Ordering::Relaxed) + 1;
        MOST.fetch_max(alive, Ordering::Relaxed);
        Counted(value)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn a_pipeline_is_one_pass_and_keeps_nothing_between_its_stages() {
    const COUNT: usize = 1000;
    let workers = 3;
    let calls = [const { AtomicUsize::new(0) }; 3];
    run(workers, |w| {
        let array = w.entries([COUNT], COUNT, |k| ([k], k as u64))?;
        let local = array.local();
        let order = RefCell::new(Vec::new());
        let note = |stage: usize, key: usize| {
            calls[stage].fetch_add(1, Ordering::Relaxed);
            order.borrow_mut().push((key, stage));
        };
        let pipeline = local
            .lazy()
            .map(|[key], value| {
                note(0, *key);
                Counted::new(*value)
            })
            .map(|[key], value| {
                note(1, *key);
                Counted::new(value.0 + 1)
            })
            .flat_map(|[key], value| {
                note(2, key);
                [([key / 10], value.0), ([key / 5], value.0)]
            });
        // Nothing is done before it is asked for.
        assert!(order.borrow().is_empty());
        let sums = pipeline.combine(|a, b| a + b).materialize(w)?;
        assert_eq!(sums.len(), 200);
        // Every entry goes through all stages before the next one, and once.
        let expected = local.iter().flat_map(|entry| (0..3).map(|stage| (entry.key[0] as usize, stage)));
        assert!(order.borrow().iter().copied().eq(expected));
        Ok(())
    })
    .unwrap();
    assert!(calls.iter().all(|calls| calls.load(Ordering::Relaxed) == COUNT));
    // Two of one entry at a time, on each worker.
    assert_eq!(ALIVE.load(Ordering::Relaxed), 0);
    assert!(MOST.load(Ordering::Relaxed) <= 2 * workers as isize, "{MOST:?}");
}

#[test]
fn a_text_file_is_read_in_the_pipeline() {
    let scratch = Scratch::new("lazy");
    let path = scratch.0.join("words.txt");
    let text: String = (0..300).map(|k| format!("{} x{} {}\n", k % 7, k % 3, "y".repeat(k % 11))).collect();
    std::fs::write(&path, &text).unwrap();
    let mut model: BTreeMap<[u32; 1], Vec<String>> = BTreeMap::new();
    for word in text.lines().flat_map(|line| line.split(' ').filter(|word| !word.is_empty())) {
        model.entry([word.len() as u32]).or_default().push(word.to_owned());
    }
    for workers in WORKERS {
        run(workers, |w| {
            let words = w
                .lazy_text(&path, |line, _, emit| {
                    line.split(' ').for_each(|word| emit(word.len(), word.to_owned()));
                    Ok(())
                })
                .filter(|length, _| *length > 0)
                .group_by(|length, _| [*length])
                .materialize(w)?;
            assert_eq!(list(&words.to_vec(w)?), Vec::from_iter(model.clone()));

            let failed = w
                .lazy_text(&path, |line, _, emit| {
                    emit([0], line.len());
                    if line.starts_with("6 x1") { Err("a six".into()) } else { Ok(()) }
                })
                .keep_all()
                .materialize(w)
                .unwrap_err();
            assert!(matches!(&failed, Error::Parse { line: 14, what, .. } if what == "a six"), "{failed}");
            let path = scratch.0.join("nothing.txt");
            let none = w.lazy_text(&path, |_, _, emit| {
                emit([0], 0);
                Ok(())
            });
            let failed = none.materialize(w).unwrap_err();
            assert!(matches!(failed, Error::Io { .. }), "{failed}");
            // The workers are still together.
            w.barrier()
        })
        .unwrap();
    }
}

#[test]
fn what_is_wrong_with_an_entry_names_its_key_on_every_worker() {
    for workers in WORKERS {
        run(workers, |w| {
            let array = w.entries([100, 2], 200, |k| ([k / 2, k % 2], k as u64))?.named("pairs");
            let local = array.local();
            let told = |error: Error| {
                assert!(matches!(&error, Error::Entry { array, .. } if array == "pairs"), "{error:?}");
                error.to_string()
            };
            let twice = local.lazy().cloned().rekey(|[i, _], _| [i / 4 + 3]).materialize(w).map(drop);
            let text = told(twice.unwrap_err());
            assert!(text.contains("several entries have this key"), "{text}");
            // Of all keys that are there twice, the least is named by the worker that has it.
            assert!(text.contains("at [3]"), "{text}");
            let outside = local.lazy().cloned().rekey(|[i, j], _| [i + 1, *j]).materialize_in(w, [100, 2]);
            let text = told(outside.map(drop).unwrap_err());
            assert!(text.contains("at [99, 0]") && text.contains("[100, 0] lies outside"), "{text}");
            let large = local.lazy().cloned().rekey(|[i, j], _| [i << 32, *j]).materialize(w).map(drop);
            let text = told(large.unwrap_err());
            assert!(text.contains("at [1, 0]") && text.contains("below 2^32"), "{text}");
            let panicked = local.lazy().map(|[i, j], value| {
                assert!([*i, *j] != [31, 1], "not this one");
                *value
            });
            let text = told(panicked.materialize(w).map(drop).unwrap_err());
            assert!(text.contains("at [31, 1]") && text.contains("not this one"), "{text}");
            let panicked = local.lazy().cloned().rekey(|[i, _], _| [i / 4]).combine(|a, b| {
                assert!(a != 128, "not this sum");
                a.max(b)
            });
            let text = told(panicked.materialize(w).map(drop).unwrap_err());
            assert!(text.contains("at [16]") && text.contains("not this sum"), "{text}");
            w.barrier()
        })
        .unwrap();
    }
}

#[test]
fn values_that_serde_refuses_are_an_error_on_every_worker() {
    for (kind, what) in [(1, "encoded"), (2, "decoded")] {
        run(3, |w| {
            let array = w.entries([60], 60, |k| ([k], k))?.named("sixty");
            // The keys are turned around, so that all but some move.
            let local = array.local();
            let moved = local.lazy().map(|[k], _| Difficult(if *k == 39 { kind } else { 0 }));
            let failed = moved.rekey(|[k], _| [59 - k]).materialize(w).map(drop);
            let text = failed.unwrap_err().to_string();
            assert!(text.contains("sixty") && text.contains("at [20]") && text.contains(what), "{text}");
            w.barrier()
        })
        .unwrap();
    }
}

#[test]
fn memory_that_runs_out_is_an_error() {
    let job = hectare_dsm::Job::builder().reserve(16 << 20).max_workers(2).embedded().unwrap();
    run_on(&job, 2, |w| {
        let array = w.entries([2], 2, |k| ([k], k))?;
        let local = array.local();
        let heavy = |len: usize| local.lazy().map(move |_, _| vec![7u8; len]).rekey(|[k], _| [1 - k]);
        let failed = heavy(12 << 20).materialize(w).map(drop);
        assert!(matches!(failed, Err(Error::Core(_) | Error::PeerFailed { .. })), "{failed:?}");
        // The attempt has given its memory back.
        for _ in 0..5 {
            assert_eq!(heavy(3 << 20).materialize(w)?.len(), 2);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_map_takes_one_value_for_a_key() {
    for workers in [1, 3] {
        let result = run(workers, |w| {
            let numbers = w.entries([9], 9, |k| ([k], k as u64))?;
            let local = numbers.local();
            let words = local.lazy().flat_map(|[k], value| [(format!("word {}", k % 2), *value)]);
            words.keep_all().to_map(w, Sum).map(drop)
        });
        let error = result.unwrap_err().to_string();
        assert!(error.contains("word 0") || error.contains("word 1"), "{error}");
        assert!(error.contains("a map has one value for a key"), "{error}");
    }
}
