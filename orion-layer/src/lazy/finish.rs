//! The ends of pipelines: sparse arrays.
use super::duplicates::Duplicates;
use super::gather::{KeyError, gather, meet};
use super::spread::spread;
use super::{Pipeline, Stage};
use crate::array::{Entries, Entry, SparseArray, Value};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::site::Site;

impl<P, D, const N: usize> Pipeline<P, D>
where
    P: Stage<Key = [usize; N]>,
    D: Duplicates<P::Value>,
    P::Value: Value,
    D::Out: Value,
{
    /// Runs the pipeline: one pass over each worker's entries, in which every entry goes through all stages before
    /// the next. If no stage has changed keys, the array has the shape of the source and nothing moves; otherwise
    /// its shape is the least that holds all keys, and its entries move once, so that they are sorted by key over all
    /// workers, about as many on each. Collective.
    ///
    /// # Errors
    /// [`Error::Entry`] that names key and worker, the same on every worker: for a key that several entries got
    /// after keys were changed, a key from 2^32 on, a function that panics (with the key in the source), a value that serde
    /// cannot encode or decode, and when there is no memory for more entries. Those of the source: [`Error::Parse`],
    /// [`Error::Io`], [`Error::Format`]. [`Error::Core`], [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn materialize(self, context: &mut Context<'_>) -> Result<SparseArray<D::Out, N>> {
        self.run(context, Site::here(), None)
    }

    /// [`Pipeline::materialize`] with a given shape, so that two arrays fit each other. Collective.
    ///
    /// # Errors
    /// Those of [`Pipeline::materialize`]; a key outside of the shape is an [`Error::Entry`] as well.
    #[track_caller]
    pub fn materialize_in(
        self,
        context: &mut Context<'_>,
        shape: [usize; N],
    ) -> Result<SparseArray<D::Out, N>> {
        self.run(context, Site::here(), Some(shape))
    }

    fn run(
        self,
        context: &mut Context<'_>,
        site: Site,
        shape: Option<[usize; N]>,
    ) -> Result<SparseArray<D::Out, N>> {
        let Pipeline { pipe, mut duplicates } = self;
        let (name, worker) = (pipe.name(), context.rank());
        // Entries with the keys of the source stay where they are, in their order.
        let source = pipe.shape().and_then(|shape| <[usize; N]>::try_from(shape).ok());
        let stay = D::KEEPS && source.is_some();
        let given = shape;
        let items = gather(pipe, worker, (&mut duplicates, !stay), |key: [usize; N]| {
            let outside = |dim: usize| key[dim] >= given.map_or(1 << 32, |shape| shape[dim]);
            if (0..N).any(outside) {
                let key = key.to_vec();
                return Err(match given {
                    Some(shape) => KeyError::Outside { key, shape: shape.to_vec() },
                    None => KeyError::TooLarge { key },
                });
            }
            Ok(key.map(|index| index as u32))
        });
        let met = if stay {
            let items = context.agree_on_same(site, items)?;
            Ok(items.into_iter().map(|item| (item.key, duplicates.first(item.value))).collect())
        } else {
            meet((&name, worker), spread(context, site, &name, items)?, duplicates)
        };
        let mine = met.and_then(|list: Vec<([u32; N], D::Out)>| {
            let list: Vec<_> = list.into_iter().map(|(key, value)| Entry { key, value }).collect();
            let least = |dim: usize| list.iter().map(|entry| entry.key[dim] as usize + 1).max().unwrap_or(0);
            let shape = given.or(source).unwrap_or_else(|| std::array::from_fn(least));
            let wrong = |what: String| Error::Shape { array: site.to_string(), what };
            Entries::from_vec(shape, list).map_err(|error| wrong(error.to_string()))
        });
        let mine = context.agree_on_same(site, mine)?;
        SparseArray::make(context, site, mine)
    }
}
