//! The staleness of reads: iterations that were run in this pass and are not merged in what is read, measured for
//! [`Every::Staleness`](crate::relax::Every::Staleness).
//!
//! At the end of every cell a worker tells how many cells it has run, and at every clock how many of each worker are in
//! what it reads from now on. So each can count what any of them lacks. All words have one writer; what is read may be
//! a little old, by the cell that its writer is in.
use crate::error::Result;
use crate::relax::{ClockTable, LoopReport, PassParams};
use hectare_dsm::Worker;

/// The count of one worker.
pub(super) struct StalenessMeter {
    /// Cells that this worker has run.
    cells: u64,
    /// Whether a worker's own changes are not in what it reads before they are merged, as with buffers.
    own: bool,
}

impl StalenessMeter {
    pub(super) fn new(own: bool) -> StalenessMeter {
        StalenessMeter { cells: 0, own }
    }

    /// How many cells this worker has run.
    pub(super) fn cells(&self) -> u64 {
        self.cells
    }

    /// From now on this worker reads what `of` had run at its clock `clock`.
    pub(super) fn note_merged(
        &self,
        clock_table: &ClockTable,
        worker: &Worker,
        of: usize,
        clock: u64,
    ) -> Result<()> {
        let cells = clock_table.cells_at(worker, of, clock)?;
        clock_table.set_merged(worker, of, cells)
    }

    /// A cell has ended, of `per_cell` iterations in the mean: whether this worker is to end clock `clock`, because what
    /// some worker reads lacks more than `most` iterations, or because another has found so before.
    pub(super) fn is_due(
        &mut self,
        clock_table: &ClockTable,
        worker: &Worker,
        params: &PassParams,
        (clock, most, per_cell): (u64, u64, f64),
        report: &mut LoopReport,
    ) -> Result<bool> {
        self.cells += 1;
        clock_table.set_progress(worker, self.cells)?;
        let mut due = false;
        for reader in 0..params.workers {
            let (theirs, done) = clock_table.clock(worker, reader)?;
            let (mut lacks, mut published) = (0, 0);
            for of in (0..params.workers).filter(|of| self.own || *of != reader) {
                let (run, merged) =
                    (clock_table.progress(worker, of)?, clock_table.merged(worker, reader, of)?);
                lacks += run.saturating_sub(merged);
                if of == reader {
                    // That others have not yet merged what it published is not mended by one more clock.
                    published = clock_table.cells_at(worker, of, theirs)?.saturating_sub(merged);
                }
            }
            let iterations = |cells: u64| (cells as f64 * per_cell) as u64;
            if reader == params.me {
                report.note_stale_iterations(iterations(lacks));
            }
            // Who is behind knows already, and has not come to the end of its cell; who is done reads no more.
            let much = iterations(lacks.saturating_sub(published)) > most;
            due |= theirs > clock || much && theirs == clock && !done;
        }
        Ok(due)
    }
}
