//! Arrays made of dense arrays. All calls are collective.
use super::DistArray;
use crate::array::{SparseArray, Value};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_data::entries::{Entries, Entry};
use hectare_dsm::Element;

impl<T: Element, const N: usize> DistArray<T, N> {
    /// A new array of the same shape and partitioning, with elements computed by `value`. Collective.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let counts = w.from_fn([3, 2], |[i, j]| (i + j) as u32)?;
    ///     let logarithms = counts.map(w, |_index, count| f64::from(count + 1).ln())?;
    ///     assert_eq!(logarithms.get(w, [0, 0])?, 0.0);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Poisoned`], and those of [`Context::zeros`].
    #[track_caller]
    pub fn map<U: Element>(
        &self,
        context: &mut Context<'_>,
        mut value: impl FnMut([usize; N], T) -> U,
    ) -> Result<DistArray<U, N>> {
        let site = Site::here();
        self.check()?;
        DistArray::make_as(context, site, self.shape, self.layout.clone(), |worker, window, data| {
            // The layout is the same, so that one old part holds these elements.
            if let Some(part) = (0..self.parts.len()).find(|part| self.window(*part) == *window) {
                let old = self.parts[part].read(worker)?;
                for ((new, old), index) in data.iter_mut().zip(old).zip(window.indices()) {
                    *new = value(index, *old);
                }
            }
            Ok(())
        })
    }

    /// A sparse array of the elements that pass, in the same shape. Collective.
    ///
    /// # Errors
    /// [`Error::Shape`] if a dimension has more than 2^32 indices, [`Error::Poisoned`], [`Error::Diverged`],
    /// [`Error::WorkerLost`], [`Error::Core`].
    #[track_caller]
    pub fn filter(
        &self,
        context: &mut Context<'_>,
        mut keep: impl FnMut([usize; N], T) -> bool,
    ) -> Result<SparseArray<T, N>>
    where
        T: Value,
    {
        let site = Site::here();
        let wrong = |what: String| Error::Shape { array: self.name.clone(), what };
        let mut list = Vec::new();
        self.for_each_local(context, |index, value| {
            if keep(index, value) {
                list.push(Entry { key: index.map(|at| at as u32), value });
            }
        })?;
        let mine = Entries::from_vec(self.shape, list).map_err(|error| wrong(error.to_string()));
        let mine = context.agree_on_same(site, mine)?;
        SparseArray::make(context, site, mine)
    }

    /// A new array in which what had index `i` in dimension `dim` has index [`permutation`][p]`.apply(i)`, with
    /// the permutation of `seed`: the same as in sparse arrays that are permuted with that seed, on any number of
    /// workers. Collective.
    ///
    /// [p]: Context::permutation
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let a = w.from_fn([5, 2], |[i, j]| (i * 2 + j) as f32)?;
    ///     let b = a.permute(w, 0, 42)?;
    ///     let place = w.permutation(5, 42).apply(3) as usize;
    ///     assert_eq!(b.read(w)?.row(place), a.read(w)?.row(3));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension or it has more than 2^32 indices, [`Error::Poisoned`], and
    /// those of [`Context::zeros`].
    #[track_caller]
    pub fn permute(&self, context: &mut Context<'_>, dim: usize, seed: u64) -> Result<DistArray<T, N>> {
        let site = Site::here();
        if dim >= N || self.shape[dim] > 1 << 32 {
            let what = format!("dimension {dim} of the shape {:?} cannot be permuted", self.shape);
            return Err(Error::Shape { array: self.name.clone(), what });
        }
        let words = context.words_of_permutation(dim, seed);
        context.with_arguments(site, words, |context| {
            let permutation = context.permutation(self.shape[dim], seed);
            DistArray::make_as(context, site, self.shape, self.layout.clone(), |worker, window, data| {
                self.parts.iter().try_for_each(|old| old.ask(worker))?;
                let parts = self.parts.iter().enumerate();
                let parts = parts.map(|(part, old)| Ok((self.window(part), old.read(worker)?)));
                let parts = parts.collect::<Result<Vec<_>>>()?;
                for (new, mut index) in data.iter_mut().zip(window.indices()) {
                    index[dim] = permutation.invert(index[dim] as u32) as usize;
                    let old =
                        parts.iter().find_map(|(window, old)| window.place(index).map(|place| old[place]));
                    *new = old.unwrap_or(*new);
                }
                Ok(())
            })
        })
    }
}
