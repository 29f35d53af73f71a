//! What is done to the description of a loop before it is analyzed.
use super::LoopHead;
use crate::relax::Treatment;
use hectare_dependence::loop_nest::{LoopNest, Order, Subscript};

/// Whether a loop may write an array, and how it treats it.
pub(super) type Treated = (bool, Treatment);

/// Gives up the dependences of the arrays that the loop relaxes or buffers, unless it is to keep them.
pub(super) fn relax(
    nest: &mut LoopNest,
    head: &LoopHead<'_>,
    treated: &[Treated],
    workers: usize,
) -> std::result::Result<(), String> {
    let exact = |treatment| treatment == Treatment::Exact;
    if treated.iter().all(|(_, treatment)| exact(*treatment)) {
        return match head.relax.is_exact() {
            true => Ok(()),
            false => Err(format!(
                "its consistency is {}, and it relaxes and buffers no array that this could be about",
                head.relax.consistency
            )),
        };
    }
    // What is only merged when the pass ends needs no promise.
    let collected = |treatment| treatment == Treatment::Collected;
    let is_collected = |(_, (_, treatment)): &(usize, &Treated)| collected(*treatment);
    nest.relaxed.extend(treated.iter().enumerate().filter(is_collected).map(|(number, _)| number));
    if treated.iter().all(|(_, treatment)| exact(*treatment) || collected(*treatment)) {
        return Ok(());
    }
    if let Some(complaint) = head.relax.complaint() {
        return Err(complaint);
    }
    if nest.order == Order::Ordered && !head.relax.is_exact() {
        return Err(
            "an ordered loop cannot be relaxed: say `unordered`, or `Consistency::Serializable`".into()
        );
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
pub(super) fn check(nest: &LoopNest, written: &[bool]) -> std::result::Result<(), String> {
    for access in &nest.accesses {
        let Some(array) = nest.arrays.get(access.array) else {
            return Err(format!(
                "{:?} names array number {}, which is not passed",
                access.text, access.array
            ));
        };
        if access.subscripts.len() != array.shape.len() {
            return Err(format!(
                "{:?} has {} subscripts, {} has {} dimensions",
                access.text,
                access.subscripts.len(),
                array.name,
                array.shape.len()
            ));
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
            return Err(format!(
                "{:?} names variable number {variable}, the loop has {variables}",
                access.text
            ));
        }
        if access.mode.writes() && !written[access.array] {
            return Err(format!("{:?} writes {}, which is passed for reading", access.text, array.name));
        }
    }
    for (number, array) in nest.arrays.iter().enumerate() {
        if written[number] && !nest.is_written(number) {
            let name = &array.name;
            return Err(format!(
                "{name} is passed for writing, but no access writes it: pass it for reading"
            ));
        }
    }
    Ok(())
}
