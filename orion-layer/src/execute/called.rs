//! A loop as it was called: what every step of running it is given.
use super::{Arrays, Describe, IterationSpace, LoopHead, Of, Pieces, SlicePieces};
use crate::accumulate::Accumulators;

/// The body of a loop: it gets iterations and the views of the arrays, and returns what these add to the accumulators.
pub(super) trait Body<S: IterationSpace, A: Arrays, C: Accumulators>:
    for<'a, 'b> Fn(Pieces<'a, S>, &'b mut Of<'a, A::Views>) -> C::Values
{
}

impl<S: IterationSpace, A: Arrays, C: Accumulators, F> Body<S, A, C> for F where
    F: for<'a, 'b> Fn(Pieces<'a, S>, &'b mut Of<'a, A::Views>) -> C::Values
{
}

/// A slice of a body: it gets iterations, and names keys of served arrays.
pub(super) trait KeySlice<S: IterationSpace, A: Arrays>:
    for<'a, 'b, 'c> Fn(SlicePieces<'a, S>, &'b mut Of<'c, A::Keys>)
{
}

impl<S: IterationSpace, A: Arrays, K> KeySlice<S, A> for K where
    K: for<'a, 'b, 'c> Fn(SlicePieces<'a, S>, &'b mut Of<'c, A::Keys>)
{
}

/// How a loop says which keys of served arrays it will use.
pub(super) struct Slice<'k, K> {
    /// `None`: it does not say.
    pub(super) keys: Option<&'k K>,
    /// Of what subscripts are computed, besides the iterations and arrays: the same number if that is the same. `None` if
    /// it cannot be compared.
    pub(super) basis: Option<u64>,
}

impl<K> Clone for Slice<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Slice<'_, K> {}

/// A call of a loop, without its arrays.
pub(super) struct Called<'c, S, C, K, F> {
    pub(super) head: &'c LoopHead<'c>,
    pub(super) space: &'c S,
    pub(super) accumulators: &'c C,
    pub(super) describe: Describe<'c>,
    pub(super) slice: Slice<'c, K>,
    pub(super) body: &'c F,
}
