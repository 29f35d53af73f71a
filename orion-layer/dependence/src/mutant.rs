//! Faults that tests put into schedules and placements, to see that the checks notice.

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
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
    /// A tile of a wavefront waits for one tile fewer of the row before.
    WavefrontEarly,
    /// Rows are skewed the wrong way: what lies further on in the row before is held to lie behind.
    SkewSign,
    /// A tile of arrays in place is held to touch less than it does: nothing with its last access.
    TouchedForgotten,
    /// Conflicts through all but the first row of an iteration are not seen.
    EdgeDropped,
}

#[cfg(any(test, feature = "faults"))]
thread_local! {
    static CHOSEN: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Whether schedules have this fault: never, outside tests.
#[inline(always)]
pub(crate) fn is(mutant: Mutant) -> bool {
    #[cfg(any(test, feature = "faults"))]
    return CHOSEN.get() == Some(mutant);
    #[cfg(not(any(test, feature = "faults")))]
    {
        let _ = mutant;
        false
    }
}

/// Runs something with this fault on this thread, or without one.
#[cfg(any(test, feature = "faults"))]
pub fn with<R>(mutant: Option<Mutant>, run: impl FnOnce() -> R) -> R {
    CHOSEN.set(mutant);
    let result = run();
    CHOSEN.set(None);
    result
}
