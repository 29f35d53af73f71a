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

/// The types of a loop.
pub(super) trait Types {
    type Space: IterationSpace;
    type Arrays: Arrays;
    type Sums: Accumulators;
    type Keys: KeySlice<Self::Space, Self::Arrays>;
    type Body: Body<Self::Space, Self::Arrays, Self::Sums>;
}

impl<S, A, C, K, F> Types for (S, A, C, K, F)
where
    S: IterationSpace,
    A: Arrays,
    C: Accumulators,
    K: KeySlice<S, A>,
    F: Body<S, A, C>,
{
    type Space = S;
    type Arrays = A;
    type Sums = C;
    type Keys = K;
    type Body = F;
}

/// The values of a loop's accumulators.
pub(super) type Values<L> = <<L as Types>::Sums as Accumulators>::Values;
/// Where a loop's iterations lie.
pub(super) type Placed<L> = <<L as Types>::Space as IterationSpace>::Placed;

/// A call of a loop, without its arrays.
pub(super) struct Called<'c, L: Types> {
    pub(super) head: &'c LoopHead<'c>,
    pub(super) space: &'c L::Space,
    pub(super) accumulators: &'c L::Sums,
    pub(super) describe: Describe<'c>,
    pub(super) slice: Slice<'c, L::Keys>,
    pub(super) body: &'c L::Body,
}

impl<L: Types> Clone for Called<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Types> Copy for Called<'_, L> {}
