//! Sparse arrays outside of loops: the same on any number of workers.
use crate::common;

use common::Scratch;
use hectare_orion::array::text::whitespace;
use hectare_orion::array::{Entry, SparseArray};
use hectare_orion::{Context, Error, Result, run};
use serde::{Deserialize, Serialize};

const COUNT: usize = 500;
const SHAPE: [usize; 2] = [90, 70];

fn key(k: usize) -> [usize; 2] {
    [k * 7 % 90, k * k % 70]
}

fn made(w: &mut Context<'_>) -> Result<SparseArray<u32, 2>> {
    w.entries(SHAPE, COUNT, |k| (key(k), k as u32))
}

/// The entries that `of` makes of key and value, in the order of the keys.
fn expected<U>(of: impl Fn([usize; 2], u32) -> Option<([usize; 2], U)>) -> Vec<Entry<U, 2>> {
    let entry = |([i, j], value): ([usize; 2], U)| Entry { key: [i as u32, j as u32], value };
    let mut list: Vec<_> = (0..COUNT).filter_map(|k| of(key(k), k as u32)).map(entry).collect();
    list.sort_by_key(|entry| entry.key);
    list
}

/// Entries of one key in the order of their values.
fn sorted<U: Ord>(mut list: Vec<Entry<U, 2>>) -> Vec<Entry<U, 2>> {
    list.sort_by(|a, b| (a.key, &a.value).cmp(&(b.key, &b.value)));
    list
}

#[test]
fn arrays_are_made_of_arrays() {
    for workers in 1..=4 {
        run(workers, |w| {
            let array = made(w)?;
            let mapped = array.map(w, |[i, _], value| format!("{i}:{value}"))?;
            let found = sorted(mapped.to_vec(w)?);
            assert_eq!(found, sorted(expected(|[i, j], value| Some(([i, j], format!("{i}:{value}"))))));
            let even = array.filter(w, |_, value| value % 2 == 0)?;
            assert_eq!((even.len(), even.shape()), (COUNT / 2, SHAPE));
            assert_eq!(
                sorted(even.to_vec(w)?),
                sorted(expected(|key, value| (value % 2 == 0).then_some((key, value))))
            );
            let halves = array.filter_map(w, |_, value| (value % 2 == 0).then_some(value / 2))?;
            assert_eq!(
                sorted(halves.to_vec(w)?),
                sorted(expected(|key, v| (v % 2 == 0).then_some((key, v / 2))))
            );
            let none = array.filter(w, |_, _| false)?;
            assert!(none.is_empty() && none.to_vec(w)?.is_empty());
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn a_dimension_is_permuted_alike_on_any_number_of_workers() {
    let permuted = |workers| {
        let mut all = run(workers, |w| {
            w.set_seed(5);
            let array = made(w)?.permute(w, 0, 1)?.permute(w, 1, 2)?;
            assert_eq!((array.len(), array.shape()), (COUNT, SHAPE));
            assert_eq!(array.histogram(0).total(), COUNT as u64);
            let (rows, columns) = (w.permutation(90, 1), w.permutation(70, 2));
            let renamed =
                |[i, j]: [usize; 2]| [rows.apply(i as u32) as usize, columns.apply(j as u32) as usize];
            let found = sorted(array.to_vec(w)?);
            assert_eq!(found, sorted(expected(|key, value| Some((renamed(key), value)))));
            Ok(found)
        });
        all.as_mut().unwrap().remove(0)
    };
    let one = permuted(1);
    assert!((2..=4).all(|workers| permuted(workers) == one));
}

#[test]
fn histograms_count_all_workers_entries() {
    for workers in [1, 3] {
        run(workers, |w| {
            let array = made(w)?;
            for (dim, extent) in SHAPE.into_iter().enumerate() {
                let histogram = array.histogram(dim);
                assert_eq!((histogram.extent(), histogram.width()), (extent, 1));
                for index in 0..extent {
                    let count = (0..COUNT).filter(|k| key(*k)[dim] == index).count();
                    assert_eq!(histogram.counts()[index], count as u64);
                }
            }
            Ok(())
        })
        .unwrap();
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Event {
    Seen,
    Rated { stars: f32, words: Vec<String> },
}

#[test]
fn entries_are_of_any_serde_type() {
    for workers in 1..=3 {
        run(workers, |w| {
            let event = |k: usize| match k % 3 {
                0 => Event::Seen,
                _ => Event::Rated { stars: k as f32 / 3.0, words: vec!["good".into(); k % 5] },
            };
            let events = w.entries([100], 100, |k| ([99 - k], event(k)))?;
            let all = events.to_vec(w)?;
            assert!((0..100).all(|k| all[99 - k] == Entry { key: [99 - k as u32], value: event(k) }));
            let rated = events.filter(w, |_, event| *event != Event::Seen)?;
            assert_eq!(rated.len(), 66);
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn text_is_read_as_it_was_saved() {
    let scratch = Scratch::new("sparse-text");
    for workers in 1..=3 {
        let path = scratch.0.join(format!("{workers}"));
        run(workers, |w| {
            let array = made(w)?.map(w, |_, value| *value as f32 / 7.0)?;
            array.save_text(w, &path)?;
            let again = w.text_file_with_shape(&path, SHAPE, whitespace::<f32, 2>)?;
            let bits = |list: Vec<Entry<f32, 2>>| {
                sorted(list.into_iter().map(|e| Entry { key: e.key, value: e.value.to_bits() }).collect())
            };
            assert_eq!(bits(again.to_vec(w)?), bits(array.to_vec(w)?));
            // A file that cannot be written is the same error on every worker.
            let failed = array.save_text(w, "/nowhere/at/all");
            assert!(matches!(failed, Err(Error::Io { file, .. }) if file == "/nowhere/at/all"));
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn keys_outside_and_dimensions_that_are_not_there_are_refused() {
    for workers in 1..=3 {
        let errors = run(workers, |w| {
            let outside = w.entries([10, 10], 10, |k| ([k, k + 1], 0u8));
            let vast = w.entries([1 << 33], 1, |k| ([k], 0u8));
            let dimension = made(w)?.named("ratings").permute(w, 2, 0);
            let held = made(w)?.named("held");
            let local = held.local();
            let held = held.permute(w, 0, 0);
            drop(local);
            // All workers are still together.
            w.barrier()?;
            let said = |result: Result<()>| result.unwrap_err().to_string();
            Ok([
                said(outside.map(drop)),
                said(vast.map(drop)),
                said(dimension.map(drop)),
                said(held.map(drop)),
            ])
        })
        .unwrap();
        let [outside, vast, dimension, held] = &errors[0];
        assert!(outside.contains("the entry at [9, 10] lies outside the shape [10, 10]"), "{outside}");
        assert!(vast.contains("dimension 0 would have extent 8589934592"), "{vast}");
        assert_eq!(dimension, "array \"ratings\": it has no dimension 2 of 2");
        assert_eq!(held, "array \"held\" cannot be permuted while its local entries are held");
        assert!(errors.iter().all(|other| *other == errors[0]), "{errors:?}");
    }
}
