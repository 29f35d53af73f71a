//! Checkpoints: what one number of workers saves, another restores bit for bit, and nothing else.
use crate::common;
use crate::common::state;

use common::Scratch;
use hectare_orion::array::Entry;
use hectare_orion::collections::Last;
use hectare_orion::{Context, Error, Result, run};
use state::{ELEMENTS, Progress, Rating, SHAPE, bits, error_of, progress, rating, save};
use std::path::Path;

fn check(w: &mut Context<'_>, path: &Path) -> Result<()> {
    let c = w.open_checkpoint(path)?.expect("the file is there");
    assert_eq!(c.value::<Progress>("progress")?, progress());
    assert_eq!(c.value::<f64>("best")?, f64::NEG_INFINITY);
    let dense = c.array::<f32, 3>(w, "dense")?;
    assert_eq!((dense.shape(), dense.name()), (SHAPE, "dense"));
    dense.for_each(w, |index, element| assert_eq!(element.to_bits(), bits(index)))?;
    let sparse = c.entries::<Rating, 2>(w, "sparse")?;
    assert_eq!((sparse.shape(), sparse.len(), sparse.name()), ([3000, 50], 700, "sparse"));
    let expected: Vec<_> =
        (0..700).map(|k| Entry { key: [4 * k as u32, k as u32 % 50], value: rating(k) }).collect();
    assert_eq!(sparse.to_vec(w)?, expected);
    assert_eq!(c.array::<u8, 2>(w, "empty")?.shape(), [0, 7]);
    let mut map = c.map::<String, Rating, _>(w, "map", Last)?;
    let list = map.to_vec(w)?;
    assert_eq!((map.name(), map.len(), list.len()), ("map", 700, 700));
    assert!(list.into_iter().all(|(key, value)| value == rating(key[..key.len() - 6].parse().unwrap())));
    assert_eq!(map.get(w, "699 stars")?, Some(rating(699)));
    // It grows as before.
    let more = (w.rank() == 0).then(|| [("699 stars".to_owned(), rating(1)), ("new".to_owned(), rating(2))]);
    map.extend(w, more.into_iter().flatten())?;
    assert_eq!((map.len(), map.get(w, "699 stars")?), (701, Some(rating(1))));
    assert!(c.map::<u8, u8, _>(w, "nobody", Last)?.is_empty());
    let mut list = c.vector::<f32>(w, "list")?;
    let same = |(k, element): (usize, &f32)| element.to_bits() == bits([k, 0, 0]);
    assert!(list.len() == ELEMENTS && list.to_vec(w)?.iter().enumerate().all(same));
    list.extend(w, (w.rank() == 0).then_some(0.5))?;
    assert_eq!((list.get(w, ELEMENTS)?, list.name()), (Some(0.5), "list"));
    let none = c.entries::<(), 1>(w, "none")?;
    assert_eq!((none.shape(), none.len()), ([5], 0));
    Ok(())
}

#[test]
fn any_number_of_workers_restores_what_any_number_saved() {
    let scratch = Scratch::new("checkpoints");
    for savers in 1..=3 {
        let path = scratch.0.join(format!("{savers}.ckpt"));
        run(savers, |w| save(w, &path)).unwrap();
        for restorers in 1..=4 {
            run(restorers, |w| check(w, &path)).unwrap();
        }
    }
}

#[test]
fn restored_entries_are_spread_over_the_workers() {
    let scratch = Scratch::new("checkpoint-spread");
    let path = scratch.0.join("state");
    run(1, |w| save(w, &path)).unwrap();
    let shares = run(4, |w| {
        let c = w.open_checkpoint(&path)?.expect("the file is there");
        Ok(c.entries::<Rating, 2>(w, "sparse")?.local().len())
    })
    .unwrap();
    assert_eq!(shares.iter().sum::<usize>(), 700);
    assert!(shares.iter().all(|share| (150..200).contains(share)), "{shares:?}");
}

#[test]
fn other_programs_checkpoints_are_refused() {
    let scratch = Scratch::new("checkpoint-other");
    let path = scratch.0.join("state");
    run(2, |w| save(w, &path)).unwrap();
    let open = |w: &mut Context<'_>| Ok::<_, Error>(w.open_checkpoint(&path)?.expect("the file is there"));
    for (error, what) in [
        (
            error_of(&path, |w| open(w)?.array::<f32, 3>(w, "weights")),
            "it has no array \"weights\", only [\"dense\", \"empty\"]: is it another program's checkpoint?",
        ),
        (
            error_of(&path, |w| open(w)?.array::<f64, 3>(w, "dense")),
            "array \"dense\" has elements of f32, not of f64",
        ),
        (error_of(&path, |w| open(w)?.array::<u32, 3>(w, "dense")), "has elements of f32, not of u32"),
        (
            error_of(&path, |w| open(w)?.array::<f32, 2>(w, "dense")),
            "array \"dense\" has shape [13, 4, 3], not 2 dimensions",
        ),
        (error_of(&path, |w| open(w)?.array::<f32, 2>(w, "sparse")), "array \"sparse\" is sparse"),
        (error_of(&path, |w| open(w)?.entries::<f32, 3>(w, "dense")), "array \"dense\" is dense"),
        (error_of(&path, |w| open(w)?.entries::<f32, 2>(w, "sparse")), "has entries of Rating, not of f32"),
        (
            error_of(&path, |w| open(w)?.entries::<Rating, 3>(w, "sparse")),
            "array \"sparse\" has shape [3000, 50], not 3",
        ),
        (error_of(&path, |w| open(w)?.entries::<Rating, 3>(w, "ratings")), "no sparse array \"ratings\""),
        (
            error_of(&path, |w| open(w)?.value::<usize>("step")),
            "no value \"step\", only [\"best\", \"progress\"]",
        ),
        (
            error_of(&path, |w| open(w)?.map::<String, Rating, _>(w, "counts", Last)),
            "it has no map \"counts\", only [\"map\", \"nobody\"]",
        ),
        (
            error_of(&path, |w| open(w)?.map::<String, f32, _>(w, "map", Last)),
            "map \"map\" has entries of (String, Rating), not of (String, f32)",
        ),
        (error_of(&path, |w| open(w)?.vector::<f32>(w, "map")), "it has no vector \"map\", only [\"list\"]"),
        (error_of(&path, |w| open(w)?.vector::<u32>(w, "list")), "has entries of f32, not of u32"),
        (error_of(&path, |w| open(w)?.value::<usize>("progress")), "value \"progress\": invalid type"),
    ] {
        assert!(error.contains(what), "{error}");
    }
}
