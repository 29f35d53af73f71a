//! Which rows cross from worker to worker, for modes in which each worker writes memory of its own: before a batch
//! a worker needs those rows of its share that another worker wrote last, and no others.

use super::Plan;

/// A row that a worker needs and another one wrote last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    /// The row's number: users first, then items (see [`Plan::rows_of`]).
    pub row: u32,
    /// The worker that wrote it last.
    pub from: u32,
    /// The batch in which that was; of the epoch before, if it is not below the batch that imports.
    pub written: u32,
}

/// The imports of every batch and worker. The first epoch differs from the others: it begins with an initial
/// model that everybody has, the others with what the epoch before wrote.
#[derive(Debug)]
pub struct Imports {
    workers: usize,
    first: Lists,
    later: Lists,
}

/// A list per batch and worker, one after the other.
#[derive(Debug)]
struct Lists {
    imports: Vec<Import>,
    ends: Vec<usize>,
}

/// Who wrote a row last, and in which batch.
type LastWrite = Option<(u32, u32)>;

impl Imports {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut last = vec![None; plan.users() + plan.items()];
        // The rows that an epoch writes, and who writes each last, are the same in every epoch, so from the second
        // on all are alike.
        let first = Lists::of_epoch(plan, &mut last);
        let later = Lists::of_epoch(plan, &mut last);
        Self { workers: plan.workers(), first, later }
    }

    /// The rows that `worker` has to fetch before `batch` of `epoch` (counted from 0), in order of first use.
    pub fn of(&self, epoch: usize, worker: usize, batch: usize) -> &[Import] {
        let lists = if epoch == 0 { &self.first } else { &self.later };
        let list = batch * self.workers + worker;
        let begin = if list == 0 { 0 } else { lists.ends[list - 1] };
        &lists.imports[begin..lists.ends[list]]
    }

    /// How many rows cross in `epoch`.
    pub fn count(&self, epoch: usize) -> usize {
        if epoch == 0 { self.first.imports.len() } else { self.later.imports.len() }
    }
}

impl Lists {
    fn of_epoch(plan: &Plan, last: &mut [LastWrite]) -> Self {
        let (mut imports, mut ends) = (Vec::new(), Vec::new());
        for batch in 0..plan.batches() {
            for worker in 0..plan.workers() {
                for row in plan.share(worker, batch).iter().flat_map(|rating| plan.rows_of(rating)) {
                    // No other worker has this row in this batch, so what is written here is read no earlier than
                    // in the next; and once written, the row is this worker's own and not imported twice.
                    let write = last[row as usize].replace((worker as u32, batch as u32));
                    if let Some((from, written)) = write
                        && from as usize != worker
                    {
                        imports.push(Import { row, from, written });
                    }
                }
                ends.push(imports.len());
            }
        }
        Self { imports, ends }
    }
}
