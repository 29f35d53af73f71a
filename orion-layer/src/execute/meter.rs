//! How long each cell of a pass takes.
use std::cell::Cell;
use std::time::Instant;

/// The loads of the cells that a worker runs in a pass.
#[derive(Debug)]
pub(super) struct Meter {
    loads: Vec<Cell<u64>>,
    measures: bool,
}

impl Meter {
    /// For `cells` cells; it stays at zero if it does not measure.
    pub(super) fn of(cells: usize, measures: bool) -> Meter {
        Meter { loads: vec![Cell::new(0); cells], measures }
    }

    /// Notes the time that a cell takes.
    #[inline]
    pub(super) fn cell<R>(&self, number: usize, run: impl FnOnce() -> R) -> R {
        if !self.measures {
            return run();
        }
        let since = Instant::now();
        let result = run();
        let load = &self.loads[number];
        load.set(load.get() + since.elapsed().as_nanos() as u64);
        result
    }

    /// Nanoseconds for each cell.
    pub(super) fn into_loads(self) -> Vec<u64> {
        self.loads.into_iter().map(Cell::into_inner).collect()
    }
}
