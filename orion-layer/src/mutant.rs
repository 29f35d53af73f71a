//! Faults that tests put into the executor, to see that the checks notice.

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A part is handed on before the body has run.
    EarlyGive,
    /// A worker runs a tile twice.
    TileTwice,
    /// A worker does not run its last tile.
    TileOmitted,
    /// The entries of a cell go to the worker after the one that runs it.
    WrongOwner,
    /// Entries stay where they are when other workers run their cells.
    StaleEntries,
    /// Entries of a cell are not sorted in an ordered loop.
    Unsorted,
    /// The partials of the last cell of the grid are lost.
    LostPartial,
    /// All elements of a line that is read are the first one.
    StuckLines,
    /// Dependent variables are in one round.
    PairsKept,
    /// All weights that are fed count as one.
    WeightsKept,
}

#[cfg(test)]
thread_local! {
    static CHOSEN: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Whether the executor has this fault: never, outside tests.
#[inline(always)]
pub(crate) fn is(mutant: Mutant) -> bool {
    #[cfg(test)]
    return CHOSEN.get() == Some(mutant);
    #[cfg(not(test))]
    {
        let _ = mutant;
        false
    }
}

/// Runs something with this fault on this thread.
#[cfg(test)]
pub(crate) fn with<R>(mutant: Mutant, run: impl FnOnce() -> R) -> R {
    CHOSEN.set(Some(mutant));
    let result = run();
    CHOSEN.set(None);
    result
}
