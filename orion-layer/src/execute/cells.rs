//! The cells of a pass, as a body runs over them.
use super::meter::Meter;
use hectare_dependence::schedule::{Choice, cell_number};
use std::cell::Cell;

/// The cells of a pass.
pub(super) struct Cells<'p> {
    /// How many there are along each dimension, and where they are cut.
    pub(super) choice: &'p Choice,
    /// Notes the loads of cells.
    pub(super) meter: Option<&'p Meter>,
    /// The number of the cell under way.
    pub(super) current: Cell<usize>,
}

impl<'p> Cells<'p> {
    /// Cells whose loads are noted, if there is a meter.
    pub(super) fn new(choice: &'p Choice, meter: Option<&'p Meter>) -> Self {
        Cells { choice, meter, current: Cell::new(0) }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.choice.grid.iter().product()
    }

    /// Notes that a cell is under way; its number.
    pub(super) fn begin(&self, cell: &[usize]) -> usize {
        let number = cell_number(&self.choice.grid, cell);
        self.current.set(number);
        number
    }
}
