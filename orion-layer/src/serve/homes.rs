//! Who merges contributions to which block, and how often a block has changed.
use super::blocks::Blocks;
use super::boxes::Boxes;
use crate::error::Result;
use hectare_dsm::{Cells, Worker};

/// For each worker a set of the blocks that it uses in the present loop, one bit each, and after it how often the set was
/// written; and for each block its version.
#[derive(Debug)]
pub(super) struct Homes {
    users: Boxes<u64>,
    versions: Boxes<u64>,
    workers: usize,
    me: usize,
}

impl Homes {
    /// All workers call this.
    pub(super) fn make(worker: &mut Worker, name: &str, blocks: &Blocks, workers: usize) -> Result<Homes> {
        let words = blocks.count().div_ceil(64) + 1;
        let users = Boxes::make(worker, &format!("{name}/users"), words, workers)?;
        let versions = Boxes::common(worker, &format!("{name}/versions"), blocks.count())?;
        Ok(Homes { users, versions, workers, me: worker.rank() as usize })
    }

    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.users.delete(worker)?;
        self.versions.delete(worker)
    }

    /// This worker uses these blocks, and no others.
    pub(super) fn announce(&self, worker: &Worker, used: impl Iterator<Item = usize>) -> Result<()> {
        let words = self.users.cells(worker, self.me)?;
        let last = words.len() - 1;
        (0..last).for_each(|word| words.set(word, 0));
        words.set(last, words.get(last) + 1);
        for block in used {
            words.set(block / 64, words.get(block / 64) | 1 << (block % 64));
        }
        Ok(())
    }

    /// How often each worker has announced what it uses: while this stays, homes do.
    pub(super) fn announced(&self, worker: &Worker) -> Result<Vec<u64>> {
        let mut counts = Vec::with_capacity(self.workers);
        for rank in 0..self.workers {
            let words = self.users.cells(worker, rank)?;
            counts.push(words.get(words.len() - 1));
        }
        Ok(counts)
    }

    /// For a while: the sets and versions, to be asked often.
    pub(super) fn look<'w>(&self, worker: &'w Worker) -> Result<Census<'w>> {
        let mut users = Vec::with_capacity(self.workers);
        for rank in 0..self.workers {
            users.push(self.users.cells(worker, rank)?);
        }
        Ok(Census { users })
    }

    /// The versions of all blocks: how often each was changed. Written by the home of a block, after the block.
    pub(super) fn versions<'w>(&self, worker: &'w Worker) -> Result<Cells<'w, u64>> {
        self.versions.cells(worker, 0)
    }
}

/// Who uses what.
#[derive(Clone, Debug)]
pub(super) struct Census<'w> {
    users: Vec<Cells<'w, u64>>,
}

impl Census<'_> {
    /// The worker that merges contributions to a block, and whether it is the only one that uses it. Blocks that several
    /// use, or nobody, are spread evenly.
    pub(super) fn home(&self, block: usize) -> (usize, bool) {
        let mut users =
            (0..self.users.len()).filter(|rank| self.users[*rank].get(block / 64) >> (block % 64) & 1 == 1);
        match (users.next(), users.next()) {
            (Some(only), None) => (only, true),
            _ => (block % self.users.len(), false),
        }
    }
}
