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
    /// What the last cell of the grid adds to the accumulators is lost.
    LostPartial,
    /// A part that no iteration touches takes the elements of the part before it.
    EmptyPart,
    /// The second worker is two turns ahead in a rotation: where the next one is. (One turn would do no harm.)
    RotationAhead,
    /// A schedule may run a cell twice.
    CellsTwice,
    /// A schedule may leave out a cell.
    CellsMissing,
    /// Tiles of one step may conflict.
    ConflictsAllowed,
    /// Two tiles are held to be apart if their cells differ in any dimension at all.
    ApartAnywhere,
    /// An ordered loop may be cut anywhere.
    OrderIgnored,
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

/// Runs something with this fault on this thread, or without one.
#[cfg(test)]
pub(crate) fn with<R>(mutant: Option<Mutant>, run: impl FnOnce() -> R) -> R {
    CHOSEN.set(mutant);
    let result = run();
    CHOSEN.set(None);
    result
}
