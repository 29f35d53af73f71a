//! Maps against a serial model, on 1, 2, 3 and 5 workers.
use crate::common;

use common::difficult::Difficult;
use common::random::Random;
use hectare_orion::collections::{Append, DistMap, DistMultiMap, First, Last, Max, Merge, Min, Sum};
use hectare_orion::relax::Consistency;
use hectare_orion::{Context, Error, Result, parallel_for, run, run_on};
use std::collections::BTreeMap;

const WORKERS: [usize; 4] = [1, 2, 3, 5];
const COUNT: usize = 600;

/// Neither associative nor commutative, so that any other order or grouping of the same contributions shows.
fn hash(a: &mut u64, b: u64) {
    *a = a.rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b;
}

fn words(random: &mut Random) -> Vec<Vec<String>> {
    let word =
        |random: &mut Random| "aeiou".repeat(2)[..random.below(7)].to_owned() + &random.below(9).to_string();
    (0..COUNT).map(|_| (0..random.below(6)).map(|_| word(random)).collect()).collect()
}

/// Random operations on one map and on a model of it; every worker checks all.
fn operations(w: &mut Context<'_>, seed: u64) -> Result<Vec<(String, u64)>> {
    let mut random = Random(seed);
    let mut counts = w.dist_map::<String, u64, _>(Sum)?.named("counts");
    let mut model: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..12 {
        match random.below(6) {
            0 | 1 => {
                let lines = words(&mut random);
                let text = w.entries([COUNT], COUNT, |k| ([k], lines[k].clone()))?;
                // A look-up finds the state before the pass.
                let known = parallel_for!(w, unordered, buffer counts, sum known: u64;
                for ((line), words) in text {
                    for word in words {
                        known += counts.get(word).unwrap_or(0);
                        counts.add(word, line as u64);
                    }
                })?;
                let before = lines.iter().flatten().map(|word| model.get(word).copied().unwrap_or(0));
                assert_eq!(known, before.sum::<u64>());
                for (line, word) in
                    lines.iter().enumerate().flat_map(|(n, line)| line.iter().map(move |w| (n, w)))
                {
                    *model.entry(word.clone()).or_default() += line as u64;
                }
            }
            2 => {
                let many: Vec<(String, u64)> = (0..random.below(50))
                    .map(|_| (random.below(40).to_string(), random.next() >> 40))
                    .collect();
                let me = w.rank() as usize;
                let mine = many.iter().enumerate().filter(|(number, _)| number % w.size() == me);
                let mine: Vec<_> = mine.map(|(_, entry)| entry.clone()).collect();
                counts.extend(w, mine)?;
                many.into_iter().for_each(|(key, value)| *model.entry(key).or_default() += value);
            }
            3 => {
                let (by, rest) = (3 + random.below(5) as u64, random.below(3) as u64);
                counts.retain(w, |_, count| {
                    *count += 1;
                    *count % by != rest
                })?;
                model.retain(|_, count| {
                    *count += 1;
                    *count % by != rest
                });
            }
            4 => {
                let list = counts.to_array(w)?;
                let found = list.to_vec(w)?;
                assert!(found.iter().enumerate().all(|(number, entry)| entry.key == [number as u32]));
                assert!(found.into_iter().map(|entry| entry.value).eq(model.clone()));
            }
            _ => {
                let key = random.below(40).to_string();
                assert_eq!(counts.get(w, &key)?, model.get(&key).copied());
                assert_eq!(counts.get(w, "never")?, None);
            }
        }
        assert_eq!((counts.len(), counts.is_empty()), (model.len(), model.is_empty()));
    }
    let all = counts.to_vec(w)?;
    assert!(all.iter().cloned().eq(model));
    // Each key is with one worker, which has them in order.
    let own = w.all_reduce(counts.local().len() as u64, |a, b| a + b)?;
    assert_eq!(own as usize, counts.len());
    counts.delete(w)?;
    Ok(all)
}

#[test]
fn random_operations_leave_what_a_serial_map_has() {
    for seed in 0..6 {
        for workers in WORKERS {
            run(workers, |w| operations(w, seed)).unwrap();
        }
    }
}

/// The contents of two maps.
type Found = (Vec<(u32, u64)>, Vec<(u32, Vec<u64>)>);

fn merged<M: Merge<u64, Part = u64>>(w: &mut Context<'_>, rule: M, order: bool) -> Result<Found> {
    let entries = w.entries([80, 50], 3000, |k| ([k * 7 % 80, k * k % 50], k as u64))?;
    let mut map = w.dist_map::<u32, u64, M>(rule)?;
    let mut lists: DistMultiMap<u32, u64> = w.dist_multi_map()?;
    for pass in 0..2 {
        if order {
            parallel_for!(w, ordered, buffer [map, lists];
            for ((i, j), value) in entries {
                let key = ((i * 50 + j + *value as usize) % 37) as u32;
                map.add(&key, value ^ pass);
                lists.add(&key, *value);
            })?;
        } else {
            let consistency = Consistency::Async;
            parallel_for!(w, unordered, buffer [map, lists], consistency = consistency;
            for ((i, j), value) in entries {
                let key = ((i * 50 + j + *value as usize) % 37) as u32;
                map.add(&key, value ^ pass);
                lists.add(&key, *value);
            })?;
        }
    }
    Ok((map.to_vec(w)?, lists.to_vec(w)?))
}

#[test]
fn merging_has_the_same_bits_on_any_number_of_workers() {
    for order in [false, true] {
        let expected = run(1, |w| merged(w, hash, order)).unwrap().remove(0);
        assert_eq!(expected.0.len(), 37);
        // Every contribution is there, and once.
        let mut all: Vec<u64> = expected.1.iter().flat_map(|(_, list)| list.iter().copied()).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq((0..3000).flat_map(|k| [k, k])));
        for workers in [2, 3, 5, 12] {
            for found in run(workers, |w| merged(w, hash, order)).unwrap() {
                assert!(found == expected, "{workers} workers");
            }
        }
    }
}

#[test]
fn rules_do_what_they_say() {
    for workers in WORKERS {
        run(workers, |w| {
            let of = |k: usize| ((k * 13) % 101) as u64;
            let with = |w: &mut Context<'_>, rule: fn(&mut u64, u64)| merged(w, rule, false);
            let min = merged(w, Min, false)?.0;
            assert_eq!(min, with(w, |a, b| *a = b.min(*a))?.0);
            assert_eq!(merged(w, Max, false)?.0, with(w, |a, b| *a = b.max(*a))?.0);
            let mut first = w.dist_map::<u8, u64, _>(First)?;
            let mut last = w.dist_map::<u8, u64, _>(Last)?;
            parallel_for!(w, unordered, buffer [first, last];
            for i in 0..1000 {
                first.add(&((i % 7) as u8), of(i));
                last.add(&((i % 7) as u8), of(i));
            })?;
            for key in 0..7usize {
                assert_eq!(first.get(w, &(key as u8))?, Some(of(key)));
                let end = (0..1000).rev().find(|i| i % 7 == key).unwrap();
                assert_eq!(last.get(w, &(key as u8))?, Some(of(end)));
            }
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn a_loop_looks_up_what_another_has_counted() {
    for workers in WORKERS {
        run(workers, |w| {
            let mut squares = w.dist_map::<(u32, bool), f64, _>(Last)?;
            parallel_for!(w, unordered, buffer squares;
            for i in 0..100 {
                squares.add(&(i as u32, i % 2 == 0), (i * i) as f64);
            })?;
            let mut roots = w.zeros::<f64, 1>([100])?;
            let missing = parallel_for!(w, unordered, read squares, write roots, sum missing: u64;
            for i in 0..100 {
                match squares.get(&(i as u32, i % 3 == 0)) {
                    Some(square) => roots[i] = square.sqrt(),
                    None => missing += 1,
                }
            })?;
            let found = |i: usize| i.is_multiple_of(2) == i.is_multiple_of(3);
            assert_eq!(missing as usize, (0..100).filter(|i| !found(*i)).count());
            let expected: Vec<f64> = (0..100).map(|i| if found(i) { i as f64 } else { 0.0 }).collect();
            assert_eq!(roots.to_vec(w)?, expected);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn vectors_grow_in_the_order_of_the_serial_loop() {
    for workers in WORKERS {
        run(workers, |w| {
            let mut found = w.dist_vec::<(usize, String)>()?;
            let mut model = Vec::new();
            for pass in 0..4 {
                let before = found.len();
                let seen = parallel_for!(w, unordered, buffer found, sum seen: u64;
                for i in 0..1500 {
                    if let Some((number, _)) = found.get(i) {
                        seen += number as u64;
                    }
                    for n in 0..(i * i + pass) % 3 {
                        found.push((i, n.to_string()));
                    }
                })?;
                // Reads find the state at the beginning of the pass.
                let read: usize = model.iter().take(1500).map(|(number, _): &(usize, String)| *number).sum();
                assert_eq!((seen as usize, model.len()), (read, before));
                let pushed = |i: usize| (0..(i * i + pass) % 3).map(move |n| (i, n.to_string()));
                model.extend((0..1500).flat_map(pushed));
                // Each worker appends two more.
                let me = w.rank() as usize;
                found.extend(w, [(me, "end".to_owned()), (me + 1, "end".to_owned())])?;
                model.extend((0..workers).flat_map(|k| [(k, "end".to_owned()), (k + 1, "end".to_owned())]));
                assert_eq!(found.len(), model.len());
            }
            assert_eq!(found.to_vec(w)?, model);
            for index in [0, 1023, 1024, 2047, 2048, 3000, model.len() - 1, model.len(), usize::MAX] {
                assert_eq!(found.get(w, index)?.as_ref(), model.get(index), "{index}");
            }
            // Values of no size, and a pass that fails.
            let mut nothing = w.dist_vec::<()>()?;
            for fails in [false, true] {
                let done = parallel_for!(w, unordered, buffer nothing;
                for i in 0..3000 {
                    nothing.push(());
                    assert!(!fails || i != 2000, "an accident");
                });
                assert_eq!(done.is_err(), fails);
            }
            assert_eq!(
                (nothing.to_vec(w)?.len(), nothing.get(w, 2999)?, nothing.get(w, 3000)?),
                (3000, Some(()), None)
            );
            found.delete(w)?;
            nothing.delete(w)
        })
        .unwrap();
    }
}

#[test]
fn elements_that_serde_refuses_are_named() {
    run(3, |w| {
        let mut list = w.dist_vec::<Difficult>()?.named("list");
        let mine = |bad: u8| (0..2000).map(move |k| Difficult(if k == 100 { bad } else { 0 }));
        let failed = list.extend(w, mine(1)).unwrap_err();
        assert!(failed.to_string().contains("list"), "{failed}");
        assert!(matches!(failed, Error::Entry { .. }), "{failed}");
        w.barrier()
    })
    .unwrap();
}

#[test]
fn a_checked_loop_merges_too() {
    run(3, |w| {
        w.check_loops(true);
        let mut lists = w.dist_multi_map::<usize, usize>()?;
        for _ in 0..2 {
            parallel_for!(w, unordered, buffer lists;
            for i in 0..100 {
                lists.add(&(i % 3), i);
            })?;
        }
        let once = (0..100).step_by(3);
        assert_eq!(lists.get(w, &0)?, Some(once.clone().chain(once).collect()));
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_pass_that_fails_leaves_the_map_as_it_was() {
    for workers in WORKERS {
        run(workers, |w| {
            let mut counts = w.dist_map::<usize, u64, _>(Sum)?;
            for pass in 0..4 {
                let done = parallel_for!(w, unordered, buffer counts;
                for i in 0..100 {
                    counts.add(&(i % 10), 1);
                    assert!(pass % 2 == 0 || i != 61, "an accident");
                });
                assert_eq!(done.is_ok(), pass % 2 == 0, "{done:?}");
            }
            assert_eq!((counts.len(), counts.get(w, &3)?), (10, Some(20)));
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn what_cannot_be_merged_is_an_error_that_names_the_key_on_every_worker() {
    for workers in WORKERS {
        run(workers, |w| {
            let mut map = w.dist_map::<u32, u64, _>(|a: &mut u64, b: u64| {
                assert!(b != 77, "not this one");
                *a += b;
            })?;
            map = map.named("sums");
            map.extend(w, [(5, 1)])?;
            let failed = map.extend(w, [(5, 77), (6, 1)]).unwrap_err();
            let text = failed.to_string();
            assert!(text.contains("sums") && text.contains("not this one"), "{text}");
            // Some workers may have merged before: the map is not used any more, by anybody.
            let refused = map.get(w, &5).unwrap_err();
            assert!(matches!(&refused, Error::Poisoned { array, .. } if array == "sums"), "{refused}");
            let refused = map.extend(w, [(5, 1)]).unwrap_err();
            assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");

            for kind in [1, 2] {
                let mut map: DistMap<u32, Difficult, Last> = w.dist_map(Last)?.named("difficult");
                map.extend(w, (0..40).map(|k| (k, Difficult(0))))?;
                let failed = map.extend(w, [(23, Difficult(kind))]);
                if kind == 1 || workers > 1 && failed.is_err() {
                    let text = failed.unwrap_err().to_string();
                    assert!(text.contains("difficult") && text.contains("23"), "{text}");
                } else {
                    // It moved to nobody; whoever looks finds out.
                    failed?;
                    assert!(matches!(map.get(w, &23), Err(Error::Message(_))));
                }
            }
            w.barrier()
        })
        .unwrap();
    }
}

#[test]
fn memory_that_runs_out_is_an_error_and_comes_back() {
    let job = hectare_dsm::Job::builder().reserve(16 << 20).max_workers(2).embedded().unwrap();
    run_on(&job, 2, |w| {
        let mut map = w.dist_map::<u32, Vec<u8>, _>(Last)?;
        let failed = map.extend(w, [(w.rank(), vec![7; 20 << 20])]);
        assert!(matches!(failed, Err(Error::Core(_) | Error::PeerFailed { .. })), "{failed:?}");
        map.delete(w)?;
        let mut map = w.dist_map::<u32, Vec<u8>, _>(Append)?.named("bytes");
        let _: &DistMultiMap<u32, u8> = &map;
        map.delete(w)?;
        map = w.dist_map::<u32, Vec<u8>, _>(Append)?;
        for _ in 0..20 {
            map.extend(w, (0..1000).map(|k| (k, 1)))?;
        }
        assert_eq!(map.get(w, &999)?.map(|list| list.len()), Some(40));
        Ok(())
    })
    .unwrap();
}

/// Results of pipelines and ordered loops from entries that another loop has moved before.
fn after_a_move(w: &mut Context<'_>) -> Result<Vec<String>> {
    let entries = w.entries([40, 30], 2000, |k| ([k * k % 40, k * 7 % 30], k as u64))?;
    let (mut rows, mut columns) = (w.zeros::<u64, 1>([40])?, w.zeros::<u64, 1>([30])?);
    parallel_for!(w, unordered, write [rows, columns];
    for ((i, j), x) in entries {
        rows[i] += *x;
        columns[j] += *x;
    })?;
    let mut found = Vec::new();
    {
        let local = entries.local();
        let groups = local.lazy().cloned().group_by(|[i, _], _| [*i]).materialize(w)?;
        found.push(format!("{:?}", groups.to_vec(w)?));
        let combined = local.lazy().cloned().rekey(|[_, j], _| j.to_string());
        let combined = combined.combine(|a, b| a.rotate_left(3) ^ b).to_map(w, Last)?;
        found.push(format!("{:?}", combined.to_vec(w)?));
        let lists = local.lazy().cloned().group_by(|[i, j], _| (i % 3, *j as u8)).to_map(w, Append)?;
        found.push(format!("{:?}", lists.to_vec(w)?));
    }
    let (mut list, mut lists) = (w.dist_vec::<(usize, u64)>()?, w.dist_multi_map::<u8, u64>()?);
    parallel_for!(w, ordered, buffer [list, lists];
    for ((i, j), x) in entries {
        list.push((i, *x));
        lists.add(&((i * j % 7) as u8), *x);
    })?;
    found.push(format!("{:?} {:?}", list.to_vec(w)?, lists.to_vec(w)?));
    Ok(found)
}

#[test]
fn order_does_not_depend_on_where_entries_were_before() {
    let expected = run(1, after_a_move).unwrap().remove(0);
    for workers in [2, 3, 5, 8, 12] {
        for found in run(workers, after_a_move).unwrap() {
            assert!(found == expected, "{workers} workers");
        }
    }
}
