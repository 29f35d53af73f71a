//! A worker's own copy of a buffered array, on several hosts.
use crate::array::DistArray;
use crate::error::Result;
use hectare_dsm::{Cells, Element, Worker};

/// A worker's own copy of the elements and the helper values, where nobody can write those of another host: each worker applies
/// all contributions to all elements, in the same order under `Bsp`.
#[derive(Debug)]
pub(super) struct Mirror<T, S> {
    pub(super) elements: Vec<T>,
    pub(super) states: Vec<S>,
}

/// A copy that is good for the next pass, too, if nobody writes the array between them.
#[derive(Debug)]
pub(super) struct Kept<T, S> {
    pub(super) mirror: Mirror<T, S>,
    /// `None` until the array is lent.
    pub(super) stamps: Option<Stamps>,
}

/// Of the elements, and of the helper values if there are any.
pub(super) type Stamps = (u64, Option<u64>);

/// Where the elements and helper values are that contributions change: of arrays that are open, or of the worker's own copy.
pub(crate) type Places<'a, T, S> = (Cells<'a, T>, Option<Cells<'a, S>>);

/// Those of an array, or of the copy if there is one.
pub(super) fn places_of<'a, T: Element, S: Element, const N: usize>(
    target: &DistArray<T, N>,
    state: Option<&DistArray<S, N>>,
    mirror: &'a mut Option<Mirror<T, S>>,
    worker: &'a Worker,
) -> Result<Places<'a, T, S>> {
    Ok(match mirror {
        Some(Mirror { elements, states }) => {
            (Cells::from_mut(elements), state.map(|_| Cells::from_mut(&mut states[..])))
        }
        None => (target.open_cells(worker)?, state.map(|state| state.open_cells(worker)).transpose()?),
    })
}
