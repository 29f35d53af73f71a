//! The test that batches keep what a loop promises.
use super::{Batches, Touched};
use crate::loop_nest::Order;

/// A violation that batches would commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// They are not lists of the iterations.
    #[error("the batches do not have every iteration once: iteration {0}")]
    NotOnce(usize),
    /// Groups of one batch conflict.
    #[error("groups {groups:?} of batch {batch} touch the same row {row}")]
    Conflict {
        /// The batch.
        batch: usize,
        /// The groups.
        groups: [usize; 2],
        /// The row's number.
        row: usize,
    },
    /// Iterations that depend on each other have changed places.
    #[error("iteration {later} comes before iteration {earlier}, which touches the same row {row}")]
    OutOfOrder {
        /// The iteration that was to be later.
        later: usize,
        /// The one that was to be earlier.
        earlier: usize,
        /// The row's number.
        row: usize,
    },
}

/// The last accesses to a row.
#[derive(Clone, Copy, Default)]
struct Last {
    /// The group that last wrote it, and the iteration, plus one each.
    write: (u32, u32),
    /// The groups that used it since; [`MANY`] if there are several of the batch.
    used: u32,
    /// The batch of `used`.
    batch: u32,
    /// The latest iteration that used it since, plus one.
    latest: u32,
}

const MANY: u32 = u32::MAX;

/// Refuses batches by which groups that may run at once conflict, or, if the loop is ordered, conflicting iterations change
/// places.
///
/// # Errors
/// [`Broken`].
pub fn verify(touched: &Touched, batches: &Batches, order: Order) -> Result<(), Broken> {
    once(touched, batches)?;
    conflicts(touched, batches, order)
}

/// Refuses batches that do not have every iteration once.
///
/// # Errors
/// [`Broken::NotOnce`].
pub fn once(touched: &Touched, batches: &Batches) -> Result<(), Broken> {
    let mut seen = vec![false; touched.len()];
    for iteration in &batches.iterations {
        let seen = seen.get_mut(*iteration as usize).ok_or(Broken::NotOnce(*iteration as usize))?;
        if std::mem::replace(seen, true) {
            return Err(Broken::NotOnce(*iteration as usize));
        }
    }
    if let Some(missing) = seen.iter().position(|seen| !seen) {
        return Err(Broken::NotOnce(missing));
    }
    Ok(())
}

fn conflicts(touched: &Touched, batches: &Batches, order: Order) -> Result<(), Broken> {
    let is_ordered = order == Order::Ordered;
    let mut last = vec![Last::default(); touched.rows()];
    for batch in 0..batches.len() {
        let first = batches.batches[batch];
        for group in batches.groups_of(batch) {
            let own = group as u32 + 1;
            for iteration in batches.of_group(group) {
                for key in touched.of(*iteration as usize) {
                    let row = key.number();
                    let Last { write, used, batch: of, latest } = &mut last[row];
                    let conflict = |other: u32| {
                        let groups = [other as usize - 1, group];
                        Err(Broken::Conflict { batch, groups, row })
                    };
                    if write.0 > first && write.0 != own {
                        return conflict(write.0);
                    }
                    let is_here = *of == batch as u32 + 1;
                    if key.writes() && is_here && *used != own {
                        return conflict(if *used == MANY { first + 1 } else { *used });
                    }
                    let earlier = if key.writes() { write.1.max(*latest) } else { write.1 };
                    if is_ordered && earlier > *iteration + 1 {
                        let (later, earlier) = (earlier as usize - 1, *iteration as usize);
                        return Err(Broken::OutOfOrder { later, earlier, row });
                    }
                    *used = if is_here && *used != own { MANY } else { own };
                    *of = batch as u32 + 1;
                    *latest = (*latest).max(*iteration + 1);
                    if key.writes() {
                        *write = (own, (*iteration + 1).max(write.1));
                    }
                }
            }
        }
    }
    Ok(())
}
