//! Checkpoints: what is in them, and whether a run may go on from one.
use super::training::{Options, say};
use fnv::FnvHasher;
use hectare::orion::{Context, Error, Result};
use hectare::{DistArray, SparseArray};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;
use std::path::Path;

/// The properties that two runs must share for one to go on where the other ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Origin {
    rank: usize,
    seed: u64,
    steps: String,
    shape: [usize; 2],
    entries: usize,
    /// Of the indices and values, in whatever order.
    hash: u64,
}

/// Factors after so many passes.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) passes: usize,
    pub(crate) factors: [DistArray<f32, 2>; 2],
}

impl Origin {
    /// That of this run. Collective.
    pub(crate) fn new(w: &mut Context<'_>, o: &Options, train: &SparseArray<f32, 2>) -> Result<Origin> {
        let mut hash = 0;
        train.for_each_local(|key, value| {
            let mut one = FnvHasher::default();
            key.iter().for_each(|index| one.write_usize(*index));
            one.write_u32(value.to_bits());
            hash = u64::wrapping_add(hash, one.finish());
        });
        let hash = w.all_reduce(hash, u64::wrapping_add)?;
        let steps = format!("{:?}", o.steps);
        Ok(Origin { rank: o.rank, seed: o.seed, steps, shape: train.shape(), entries: train.len(), hash })
    }

    /// The first difference from the run of a checkpoint, in words.
    fn difference(&self, other: &Origin) -> Option<String> {
        let differ = |what: &str, there: &dyn ToString, here: &dyn ToString| {
            let (there, here) = (there.to_string(), here.to_string());
            (there != here).then(|| format!("{what} {there}, and this run has {here}"))
        };
        let shape = |[rows, columns]: [usize; 2]| format!("{rows} rows and {columns} columns");
        differ("--rank", &other.rank, &self.rank)
            .or_else(|| differ("--seed", &other.seed, &self.seed))
            .or_else(|| differ("--steps", &other.steps.to_lowercase(), &self.steps.to_lowercase()))
            .or_else(|| differ("entries in", &shape(other.shape), &shape(self.shape)))
            .or_else(|| differ("entries, as many as", &other.entries, &self.entries))
            .or_else(|| {
                (self.hash != other.hash).then(|| "other entries of the same shape to learn from".into())
            })
    }

    /// The factors of a checkpoint, if there is one. Collective.
    pub(crate) fn resume(&self, w: &mut Context<'_>, o: &Options, path: &Path) -> Result<Option<Begun>> {
        let Some(saved) = w.open_checkpoint(path)? else { return Ok(None) };
        if let Some(difference) = self.difference(&saved.value("origin")?) {
            let what = format!(
                "the checkpoint is of a run with {difference}: run with the same, or name another --checkpoint"
            );
            return Err(Error::Format { file: path.display().to_string(), what });
        }
        let passes = saved.value("passes")?;
        if passes >= o.passes {
            w.root(|| {
                say(format_args!(
                    "nothing left to learn: the checkpoint is of pass {passes} (--passes {})",
                    o.passes
                ));
            });
        }
        Ok(Some(Begun { passes, factors: [saved.array(w, "u")?, saved.array(w, "v")?] }))
    }

    /// Saves factors after so many passes. Collective.
    pub(crate) fn save(
        &self,
        w: &mut Context<'_>,
        path: &Path,
        passes: usize,
        [u, v]: [&DistArray<f32, 2>; 2],
    ) -> Result<()> {
        w.save_checkpoint(path, |c| {
            c.value("origin", self)?;
            c.value("passes", &passes)?;
            c.array("u", u)?;
            c.array("v", v)
        })
    }
}
