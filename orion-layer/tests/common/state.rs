//! The state of a program, in a checkpoint.
use hectare_orion::array::SparseArray;
use hectare_orion::collections::{DistMap, DistVec, Last, Sum};
use hectare_orion::{Context, DistArray, Result, run};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rating {
    pub(crate) stars: f64,
    pub(crate) words: Option<String>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) epoch: usize,
    pub(crate) losses: Vec<f32>,
    rates: BTreeMap<String, f64>,
}

pub(crate) fn progress() -> Progress {
    Progress {
        epoch: 12,
        losses: vec![0.1, 1e-40, f32::INFINITY],
        rates: BTreeMap::from([("u".into(), 0.1 + 0.2)]),
    }
}

/// Floats of all kinds, also some that are no numbers.
pub(crate) fn bits([i, j, k]: [usize; 3]) -> u32 {
    ((i * 31 + j * 7 + k) as u32).wrapping_mul(0x9E37_79B9)
}

pub(crate) const SHAPE: [usize; 3] = [13, 4, 3];

pub(crate) fn dense(w: &mut Context<'_>) -> Result<DistArray<f32, 3>> {
    w.from_fn(SHAPE, |index| f32::from_bits(bits(index)))
}

pub(crate) fn rating(k: usize) -> Rating {
    Rating { stars: k as f64 / 3.0, words: k.is_multiple_of(3).then(|| "so so ".repeat(k % 7)) }
}

pub(crate) fn sparse(w: &mut Context<'_>) -> Result<SparseArray<Rating, 2>> {
    w.entries([3000, 50], 700, |k| ([4 * k, k % 50], rating(k)))
}

/// More than a block of elements for each worker.
pub(crate) const ELEMENTS: usize = 5000;

pub(crate) fn collections(w: &mut Context<'_>) -> Result<(DistMap<String, Rating, Last>, DistVec<f32>)> {
    let mut map = w.dist_map(Last)?;
    let mine = (w.rank() == 0).then(|| (0..700).map(|k| (format!("{k} stars"), rating(k))));
    map.extend(w, mine.into_iter().flatten())?;
    let mut list = w.dist_vec()?;
    let mine = (w.rank() == 0).then(|| (0..ELEMENTS).map(|k| f32::from_bits(bits([k, 0, 0]))));
    list.extend(w, mine.into_iter().flatten())?;
    Ok((map, list))
}

pub(crate) fn save(w: &mut Context<'_>, path: &Path) -> Result<()> {
    let (dense, sparse) = (dense(w)?, sparse(w)?);
    let (empty, none) = (w.zeros::<u8, 2>([0, 7])?, w.entries([5], 0, |_| ([0], ()))?);
    let (map, list) = collections(w)?;
    let nobody = w.dist_map::<u8, u8, _>(Sum)?;
    w.save_checkpoint(path, |c| {
        c.value("progress", &progress())?;
        c.array("dense", &dense)?;
        c.entries("sparse", &sparse)?;
        c.value("best", &f64::NEG_INFINITY)?;
        c.array("empty", &empty)?;
        c.map("map", &map)?;
        c.vector("list", &list)?;
        c.map("nobody", &nobody)?;
        c.entries("none", &none)
    })
}

/// The error of `restore`: the same on every worker, after which the program goes on.
pub(crate) fn error_of<R>(path: &Path, restore: impl Fn(&mut Context<'_>) -> Result<R> + Sync) -> String {
    let mut first: Option<String> = None;
    for workers in 1..=3 {
        let errors = run(workers, |w| {
            let said = restore(w).err().map_or("no error".into(), |error| error.to_string());
            w.barrier()?;
            Ok(said)
        });
        for error in errors.unwrap() {
            assert!(first.as_ref().is_none_or(|first| *first == error), "{first:?}, then {error}");
            first = Some(error);
        }
    }
    let error = first.unwrap();
    assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
    error
}
