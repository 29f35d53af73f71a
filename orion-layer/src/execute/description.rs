//! Checks and relaxes the description of a loop before it is analyzed.
use super::LoopHead;
use crate::relax::{Consistency, Treatment};
use hectare_dependence::loop_nest::{LoopNest, Order, Subscript};

/// Why a loop cannot be run as it is described.
#[derive(Debug, thiserror::Error)]
pub(super) enum DescriptionError {
    #[error("{names} loop variables for a space of {dims} dimensions")]
    Variables { names: usize, dims: usize },
    #[error("its consistency is {0}, and it relaxes and buffers no array that this could be about")]
    NothingRelaxed(Consistency),
    #[error("{0}")]
    Clocks(String),
    #[error(
        "{0} is served, and only arrays under `relax` and `buffer` have a `tail`: give the others a loop of their own"
    )]
    ServedTail(String),
    #[error("an ordered loop cannot be relaxed: say `unordered`, or `Consistency::Serializable`")]
    Ordered,
    #[error("{access:?} names array number {number}, which is not passed")]
    NoArray { access: String, number: usize },
    #[error("{access:?} has {subscripts} subscripts, {array} has {dimensions} dimensions")]
    Subscripts { access: String, subscripts: usize, array: String, dimensions: usize },
    #[error("{access:?} names variable number {variable}, the loop has {variables}")]
    NoVariable { access: String, variable: usize, variables: usize },
    #[error("{access:?} writes {array}, which is passed for reading")]
    ReadOnly { access: String, array: String },
    #[error("{array} is passed for writing, but no access writes it: pass it for reading")]
    NeverWritten { array: String },
}

/// Whether a loop may write an array, and how it treats it.
pub(super) type Treated = (bool, Treatment);

/// Gives up the dependences of the arrays that the loop relaxes or buffers, unless it is to keep them.
pub(super) fn relax(
    nest: &mut LoopNest,
    head: &LoopHead<'_>,
    treated: &[Treated],
    workers: usize,
) -> Result<(), DescriptionError> {
    let exact = |treatment| treatment == Treatment::Exact;
    if treated.iter().all(|(_, treatment)| exact(*treatment)) {
        return match head.relax.is_exact() {
            true => Ok(()),
            false => Err(DescriptionError::NothingRelaxed(head.relax.consistency)),
        };
    }
    // Collected arrays are merged when the pass ends, and need no promise.
    let collected = |treatment| treatment == Treatment::Collected;
    let is_collected = |(_, (_, treatment)): &(usize, &Treated)| collected(*treatment);
    nest.relaxed.extend(treated.iter().enumerate().filter(is_collected).map(|(number, _)| number));
    if treated.iter().all(|(_, treatment)| exact(*treatment) || collected(*treatment)) {
        return Ok(());
    }
    if let Some(complaint) = head.relax.complaint() {
        return Err(DescriptionError::Clocks(complaint));
    }
    if let Some(served) = treated.iter().position(|(_, treatment)| *treatment == Treatment::Served)
        && !head.relax.tail.is_none()
    {
        return Err(DescriptionError::ServedTail(nest.arrays[served].name.clone()));
    }
    if nest.order == Order::Ordered && !head.relax.is_exact() {
        return Err(DescriptionError::Ordered);
    }
    for (number, (_, treatment)) in treated.iter().enumerate().filter(|all| !is_collected(all)) {
        if !exact(*treatment) && !head.relax.is_exact() {
            nest.relaxed.push(number);
        } else if treatment.contributes() {
            // One worker merges contributions at once, wherever they go.
            let accesses = nest.accesses.iter_mut().filter(|access| access.array == number);
            accesses.for_each(|access| access.subscripts.fill(Subscript::Unknown));
        }
    }
    if !head.relax.is_exact() {
        nest.least_cells = head.relax.cells(hectare_dependence::schedule::iterations(nest), workers);
    }
    Ok(())
}

/// Checks a description against its arrays.
pub(super) fn check(nest: &LoopNest, written: &[bool]) -> Result<(), DescriptionError> {
    for access in &nest.accesses {
        let Some(array) = nest.arrays.get(access.array) else {
            return Err(DescriptionError::NoArray { access: access.text.clone(), number: access.array });
        };
        if access.subscripts.len() != array.shape.len() {
            return Err(DescriptionError::Subscripts {
                access: access.text.clone(),
                subscripts: access.subscripts.len(),
                array: array.name.clone(),
                dimensions: array.shape.len(),
            });
        }
        let variables = nest.dims.len() + nest.inner.len();
        let forms = access.subscripts.iter().flat_map(|subscript| match subscript {
            Subscript::Index(form) => vec![form],
            Subscript::Range(start, end) => vec![start, end],
            Subscript::Full | Subscript::Unknown => Vec::new(),
        });
        if let Some(variable) =
            forms.filter_map(|form| form.coefficients.iter().rposition(|c| *c != 0)).find(|k| *k >= variables)
        {
            return Err(DescriptionError::NoVariable { access: access.text.clone(), variable, variables });
        }
        if access.mode.writes() && !written[access.array] {
            let (access, array) = (access.text.clone(), array.name.clone());
            return Err(DescriptionError::ReadOnly { access, array });
        }
    }
    for (number, array) in nest.arrays.iter().enumerate() {
        if written[number] && !nest.is_written(number) {
            return Err(DescriptionError::NeverWritten { array: array.name.clone() });
        }
    }
    Ok(())
}
