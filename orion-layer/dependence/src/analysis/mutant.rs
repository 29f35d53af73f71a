//! Faults that tests put into the analysis, to see that the checks notice.

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// The factor of a loop variable in the sink loses its sign, as `A[c - i]` does in Orion.
    FlippedSign,
    /// Two writes are no conflict in an unordered loop, as in Orion.
    DroppedWritePair,
    /// An access does not conflict with itself.
    DroppedSelfPair,
    /// A pair is only looked at in the order of the text.
    DroppedReversal,
    /// "Any" in front of a fixed distance means "positive or zero", as in Orion.
    ForwardOnly,
    /// Both accesses see the same value of an inner variable.
    SharedInner,
    /// The last iteration of a dimension is forgotten.
    TightBound,
    /// Bounds of dimensions are not used, as in Orion.
    NoBounds,
    /// A range does not include its last element.
    ShortRange,
    /// Two ranges meet only where they begin alike.
    RangeStart,
    /// An unknown subscript is taken for a constant.
    KnownUnknown,
    /// Inequalities are rounded to the wrong side.
    RoundedUp,
    /// Only the first subscript of an access counts (sound, but not precise).
    FirstSubscript,
    /// Entries with equal indices are no conflict.
    DistinctEntries,
    /// The GCD test asks for divisibility by twice the divisor.
    GreedyGcd,
    /// The bounds test leaves out the inner variables.
    NarrowBanerjee,
}

#[cfg(test)]
impl Mutant {
    /// All of them.
    pub(super) const ALL: [Mutant; 16] = [
        Mutant::FlippedSign,
        Mutant::DroppedWritePair,
        Mutant::DroppedSelfPair,
        Mutant::DroppedReversal,
        Mutant::ForwardOnly,
        Mutant::SharedInner,
        Mutant::TightBound,
        Mutant::NoBounds,
        Mutant::ShortRange,
        Mutant::RangeStart,
        Mutant::KnownUnknown,
        Mutant::RoundedUp,
        Mutant::FirstSubscript,
        Mutant::DistinctEntries,
        Mutant::GreedyGcd,
        Mutant::NarrowBanerjee,
    ];
}

#[cfg(test)]
thread_local! {
    static CHOSEN: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Whether the analysis has this fault: never, outside tests.
#[inline(always)]
pub(super) fn is(mutant: Mutant) -> bool {
    #[cfg(test)]
    return CHOSEN.get() == Some(mutant);
    #[cfg(not(test))]
    {
        let _ = mutant;
        false
    }
}

/// Runs something with this fault in the analysis (of this thread).
#[cfg(test)]
pub(super) fn with<R>(mutant: Mutant, run: impl FnOnce() -> R) -> R {
    CHOSEN.set(Some(mutant));
    let result = run();
    CHOSEN.set(None);
    result
}
