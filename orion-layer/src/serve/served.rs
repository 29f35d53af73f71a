//! A dense array that is served to loops.
use super::arg::ServedArg;
use super::blocks::{Blocks, MOST_KEYS};
use super::state::State;
use crate::array::DistArray;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::relax::{Additive, Apply, Buffered};
use crate::site::Site;

/// An array whose used keys loops prefetch in bulk, and the function that merges contributions.
///
/// Loops say `serve w` and see a [`ServedView`](super::ServedView): `w.get(i)`, `w.row(i)`, `w.add(i, x)`, `w.add_row(i,
/// &row)`, with the same meaning as for a [`Buffered`] array, except for elements that only one worker uses, which it
/// reads and changes without delay. So on one worker, the loop is the serial one. A worker's memory is proportional to
/// what it uses, not to the array, plus four bytes for each key: an element if the array has one dimension, otherwise a
/// row. For arrays of which a worker uses little between two clocks; for others, `buffer` is simpler and cheaper.
///
/// ```
/// use hectare_orion::relax::{Consistency, Sum};
/// use hectare_orion::{parallel_for, run};
///
/// run(2, |w| {
///     // Examples that use two of a million features each.
///     let examples = w.entries([1000], 1000, |k| ([k], ([k * 7919 % 1_000_000, 3 * k], 1.0)))?;
///     let start = w.zeros::<f32, 1>([1_000_000])?;
///     let mut weights = w.served(start, Sum)?;
///     for _pass in 0..20 {
///         parallel_for!(w, unordered, serve weights, consistency = Consistency::Bounded(1);
///             for ((_row), example) in examples {
///                 let (features, label) = example;
///                 let mut score = 0.0;
///                 for feature in features {
///                     score += weights.get(*feature);
///                 }
///                 for feature in features {
///                     weights.add(*feature, 0.2 * (label - score));
///                 }
///             })?;
///     }
///     let score = weights.array().get(w, [7919])? + weights.array().get(w, [3])?;
///     assert!((score - 1.0).abs() < 0.01);
///     // The lists of keys were made once, and nothing had to be looked up one by one.
///     let serving = &w.reports()?[0].serving;
///     assert_eq!((serving.plans_made, serving.read_misses), (2, 0));
///     Ok(())
/// })?;
/// # Ok::<(), hectare_orion::Error>(())
/// ```
#[derive(Debug)]
pub struct Served<T: Additive, const N: usize, A: Apply<T>> {
    pub(super) base: Buffered<T, N, A>,
    pub(super) state: State<T, A>,
}

impl Context<'_> {
    /// An array that is served to loops, with contributions merged by `rule`. Collective.
    ///
    /// # Errors
    /// Those of [`Context::zeros`]; [`Error::Shape`] if it has 2^31 keys or more.
    #[track_caller]
    pub fn served<T: Additive, const N: usize, A: Apply<T>>(
        &mut self,
        target: DistArray<T, N>,
        rule: A,
    ) -> Result<Served<T, N, A>> {
        let state = state(&target)?;
        Ok(Served { base: self.buffered(target, rule)?, state })
    }

    /// The same with helper values that are there already, as [`Context::buffered_from_parts`]. Collective.
    ///
    /// # Errors
    /// Those of that and of [`Context::served`].
    #[track_caller]
    pub fn served_from_parts<T: Additive, const N: usize, A: Apply<T>>(
        &mut self,
        target: DistArray<T, N>,
        values: Option<DistArray<A::State, N>>,
        rule: A,
    ) -> Result<Served<T, N, A>> {
        let state = state(&target)?;
        Ok(Served { base: self.buffered_from_parts(target, values, rule)?, state })
    }
}

fn state<T: Additive, const N: usize, A: Apply<T>>(target: &DistArray<T, N>) -> Result<State<T, A>> {
    let (blocks, number) = (Blocks::of(&target.shape(), size_of::<T>()), target.number());
    if blocks.keys >= MOST_KEYS {
        let what = format!("it has {} keys, and can be served with fewer than {MOST_KEYS}", blocks.keys);
        return Err(Error::Shape { array: target.name().into(), what });
    }
    Ok(State::new(blocks, number))
}

impl<T: Additive, const N: usize, A: Apply<T>> Served<T, N, A> {
    /// The array.
    pub fn array(&self) -> &DistArray<T, N> {
        self.base.array()
    }

    /// The helper values of the rule, if there are any.
    pub fn state(&self) -> Option<&DistArray<A::State, N>> {
        self.base.state()
    }

    /// The rule: what merges contributions.
    pub fn rule(&self) -> &A {
        self.base.rule()
    }

    /// Replaces the rule, for example to change the step size. Every worker must call it with the same one.
    pub fn set_rule(&mut self, rule: A) {
        self.base.set_rule(rule);
    }

    /// Declares that this worker will use these keys in each of the next `passes` passes over the array: elements of a
    /// one-dimensional array, otherwise rows, by their numbers in row-major order. (AdaPM's intents, Renz-Wieland et al.,
    /// 2023, in passes.) They are fetched, refreshed at every clock, and relocated, like keys that a slice has found. For
    /// loops that the macro cannot slice (`prefetch = false`), or with a handwritten description. Not collective: each
    /// worker declares its own keys. Other keys are looked up one by one.
    ///
    /// # Errors
    /// [`Error::Shape`] with a key that the array does not have.
    ///
    /// ```
    /// use hectare_orion::relax::Sum;
    /// use hectare_orion::{parallel_for, run};
    ///
    /// run(2, |w| {
    ///     let start = w.zeros::<u64, 1>([100])?;
    ///     let mut counts = w.served(start, Sum)?;
    ///     counts.intend(&[7, 11], 1)?;
    ///     parallel_for!(w, unordered, serve counts, prefetch = false;
    ///         for i in 0..1000 {
    ///             // Which key it is depends on what is served.
    ///             let key = if counts.get(7) % 2 == 0 { 7 } else { 11 };
    ///             counts.add(key, 1);
    ///         })?;
    ///     assert_eq!(counts.array().get(w, [7])? + counts.array().get(w, [11])?, 1000);
    ///     assert_eq!(w.reports()?[0].serving.read_misses, 0);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    pub fn intend(&mut self, keys: &[usize], passes: usize) -> Result<()> {
        let all = self.state.blocks.keys;
        if let Some(key) = keys.iter().find(|key| **key >= all) {
            let what = format!("it has keys 0..{all}, and {key} is to be used");
            return Err(Error::Shape { array: self.array().name().into(), what });
        }
        self.state.intents.add(keys.iter().map(|key| *key as u32).collect(), passes);
        Ok(())
    }

    /// The array and the helper values, no longer served. Collective.
    ///
    /// # Errors
    /// Those of [`DistArray::delete`].
    #[allow(clippy::type_complexity)]
    #[track_caller]
    pub fn into_parts(
        self,
        context: &mut Context<'_>,
    ) -> Result<(DistArray<T, N>, Option<DistArray<A::State, N>>)> {
        context.barrier()?;
        let deleted = self.state.delete(context.fabric.worker);
        context.agree_on(Site::here(), deleted)?;
        self.base.into_parts(context)
    }

    /// For [`Context::run_served`]: the array as one that is served to the loop.
    pub fn serve(&mut self) -> ServedArg<'_, T, N, A> {
        ServedArg { base: self.base.buffer(), state: &mut self.state, params: None }
    }
}
