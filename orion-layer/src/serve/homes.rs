//! Who merges contributions to which block, and whether a block has changed.
use super::blocks::Blocks;
use super::worker_areas::WorkerAreas;
use crate::error::Result;
use crate::fabric::with_rest;
use hectare_dsm::{Cells, Worker};
use std::cell::Cell;

/// For each worker a set of the blocks that it uses in the present loop, one bit each, and after it two words: how often
/// the set was written, and how often the worker has changed blocks. And for each block its version.
#[derive(Debug)]
pub(super) struct Homes {
    users: WorkerAreas<u64>,
    versions: WorkerAreas<u64>,
    workers: usize,
    me: usize,
    /// Whether each worker merges all contributions, to a copy of its own.
    in_copies: bool,
}

/// The number of words after the set.
const AFTER: usize = 2;
/// Their places, counted from the end.
const ANNOUNCED: usize = 2;
const CHANGES: usize = 1;

/// In a version: these bits tell workers apart, those above are the worker's count of changes.
const RANK_BITS: u32 = 16;

impl Homes {
    /// All workers call this, and then [`Homes::find`].
    pub(super) fn make(worker: &mut Worker, name: &str, blocks: &Blocks, workers: usize) -> Result<Homes> {
        let words = blocks.count().div_ceil(64) + AFTER;
        let users = WorkerAreas::make(worker, &format!("{name}/users"), words, workers)?;
        let versions =
            |worker: &mut Worker| WorkerAreas::common(worker, &format!("{name}/versions"), blocks.count());
        let (users, versions) = with_rest(worker, users, WorkerAreas::delete, versions)?;
        Ok(Homes { users, versions, workers, me: worker.rank() as usize, in_copies: false })
    }

    /// Of a worker that merges all contributions itself, to a copy of its own.
    pub(super) fn of_copy(worker: &mut Worker, name: &str, blocks: &Blocks) -> Result<Homes> {
        let words = blocks.count().div_ceil(64) + AFTER;
        let users = WorkerAreas::alone(worker, &format!("{name}/users"), words)?;
        let versions =
            |worker: &mut Worker| WorkerAreas::alone(worker, &format!("{name}/versions"), blocks.count());
        let (users, versions) = with_rest(worker, users, WorkerAreas::delete, versions)?;
        Ok(Homes { users, versions, workers: 1, me: 0, in_copies: true })
    }

    /// Finds what the others have made.
    pub(super) fn find(&mut self, worker: &mut Worker) -> Result<()> {
        self.users.find(worker)?;
        self.versions.find(worker)
    }

    /// Whether that is known.
    pub(super) fn is_found(&self) -> bool {
        self.users.is_found() && self.versions.is_found()
    }

    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.users.delete(worker)?;
        self.versions.delete(worker)
    }

    /// This worker uses these blocks, and no others.
    pub(super) fn announce(&self, worker: &Worker, used: impl Iterator<Item = usize>) -> Result<()> {
        let words = self.users.cells(worker, self.me)?;
        let last = words.len() - ANNOUNCED;
        (0..last).for_each(|word| words.set(word, 0));
        words.set(last, words.get(last) + 1);
        for block in used {
            words.set(block / 64, words.get(block / 64) | 1 << (block % 64));
        }
        Ok(())
    }

    /// A word after the set, of each worker.
    fn each(&self, worker: &Worker, word: usize) -> Result<Vec<u64>> {
        let mut counts = Vec::with_capacity(self.workers);
        for rank in 0..self.workers {
            let words = self.users.cells(worker, rank)?;
            counts.push(words.observe(words.len() - word));
        }
        Ok(counts)
    }

    /// How often each worker has announced what it uses: while this stays, homes do.
    pub(super) fn announced(&self, worker: &Worker) -> Result<Vec<u64>> {
        self.each(worker, ANNOUNCED)
    }

    /// How often each worker has changed blocks: while this stays, the versions of all blocks do.
    pub(super) fn changes(&self, worker: &Worker) -> Result<Vec<u64>> {
        self.each(worker, CHANGES)
    }

    /// For a while: who uses what, to be asked often.
    pub(super) fn look<'w>(&self, worker: &'w Worker) -> Result<BlockUsers<'w>> {
        let mut users = Vec::with_capacity(self.workers);
        for rank in 0..self.workers {
            users.push(self.users.cells(worker, rank)?);
        }
        Ok(BlockUsers { users, in_copies: self.in_copies })
    }

    /// The versions of all blocks.
    pub(super) fn versions<'w>(&self, worker: &'w Worker) -> Result<Versions<'w>> {
        let mine = self.users.cells(worker, self.me)?;
        let count = Cell::new(mine.get(mine.len() - CHANGES));
        Ok(Versions { all: self.versions.cells(worker, 0)?, mine, count, me: self.me as u64 })
    }
}

/// Versions of blocks. The home of a block writes its version, after all elements that it changes in one go; who sees the
/// version sees them. A version that a block once had never comes back: it has the worker in it that gave it, and a count
/// of that worker's, of 48 bits, which at a change in each microsecond lasts for nine years.
#[derive(Clone, Debug)]
pub(super) struct Versions<'w> {
    all: Cells<'w, u64>,
    mine: Cells<'w, u64>,
    count: Cell<u64>,
    me: u64,
}

impl Versions<'_> {
    /// The version of a block; to be asked before its elements are read, which are that of this version or later.
    #[inline(always)]
    pub(super) fn of(&self, block: usize) -> u64 {
        // Acquire: pairs with the release in `set`.
        self.all.observe(block)
    }

    /// A version that no block has had, for what is changed next.
    pub(super) fn next(&self) -> u64 {
        self.count.set(self.count.get() + 1);
        self.count.get() << RANK_BITS | self.me
    }

    /// A block has been changed.
    #[inline(always)]
    pub(super) fn set(&self, block: usize, version: u64) {
        self.all.publish(block, version);
    }

    /// All versions that [`Versions::next`] gave are set.
    pub(super) fn tell(&self) {
        // Release: pairs with the acquire in `Homes::each`.
        self.mine.publish(self.mine.len() - CHANGES, self.count.get());
    }
}

/// Who uses what.
#[derive(Clone, Debug)]
pub(super) struct BlockUsers<'w> {
    users: Vec<Cells<'w, u64>>,
    in_copies: bool,
}

impl BlockUsers<'_> {
    /// The worker that merges contributions to a block, and whether it is the only one that uses it. Blocks that several
    /// use, or nobody, are spread evenly.
    pub(super) fn home(&self, block: usize) -> (usize, bool) {
        if self.in_copies {
            return (0, false);
        }
        let mut users =
            (0..self.users.len()).filter(|rank| self.users[*rank].get(block / 64) >> (block % 64) & 1 == 1);
        match (users.next(), users.next()) {
            (Some(only), None) => (only, true),
            _ => (block % self.users.len(), false),
        }
    }
}
