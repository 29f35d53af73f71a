//! Loops whose subscripts come from data: what each iteration touches is found by running the loop's subscripts alone, and
//! the iterations are grouped by it (inspector and executor: Saltz, Mirchandaney and Crowley, 1991).
//!
//! A plan is a sequence of *batches* of *groups* of iterations. Groups of one batch touch nothing in common that one of them
//! writes, so that workers may share them out; one group's iterations stay in their order on one worker. The plan does not
//! depend on the number of workers, and so neither do the results.
//!
//! - [`components`]: batches of consecutive iterations, whose groups are the connected components of the conflict graph
//!   (Cyclades: Pan et al., 2016). Keeps the order of whatever conflicts.
//! - [`levels`]: a batch for each level of the graph of dependences. Keeps that order, too.
//! - [`blocks`]: elements in blocks; groups are the iterations that touch the same blocks, coloured. For loops whose order
//!   does not matter.
mod blocks;
mod choose;
mod components;
mod deal;
mod levels;
#[cfg(test)]
mod tests;
mod touched;
mod verify;

pub use self::blocks::{Cut, blocks};
pub use self::choose::{Inspected, Kind, Pace, Tried, choose};
pub use self::components::{Growth, components};
pub use self::deal::{Dealt, deal};
pub use self::levels::levels;
pub use self::touched::{Key, TooMany, Touched};
pub use self::verify::{Broken, once, verify};

/// Iterations in groups, in batches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    /// The iterations, group by group; in each group in the order in which they run.
    pub iterations: Vec<u32>,
    /// The place of each group's first iteration in `iterations`, and the end of the last.
    pub groups: Vec<u32>,
    /// The place of each batch's first group, and the end of the last.
    pub batches: Vec<u32>,
    /// Groups with the same number here are best run by the same worker, and this many numbers there are; none if it does not
    /// matter.
    pub homes: Vec<u32>,
    /// If groups are tiles of blocks of rows: which.
    pub blocks: Option<BlockRows>,
}

/// The rows that groups touch, if groups are tiles of blocks of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockRows {
    /// The rows of each block, in ascending order. Of those of one batch, no two groups have a block in common.
    pub rows: Vec<Vec<u32>>,
    /// Rows that iterations read, and none writes: of no block.
    pub read: Vec<u32>,
    /// How often iterations use each row.
    pub uses: Vec<u32>,
    /// The blocks of each group, in ascending order.
    pub of_group: Vec<Vec<u32>>,
    /// The weight of each group.
    pub weights: Vec<u64>,
}

impl Batches {
    /// Without iterations.
    fn empty() -> Batches {
        Batches { iterations: Vec::new(), groups: vec![0], batches: vec![0], homes: Vec::new(), blocks: None }
    }

    /// How many batches.
    pub fn len(&self) -> usize {
        self.batches.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many groups, of all batches.
    pub fn group_count(&self) -> usize {
        self.groups.len() - 1
    }

    /// The groups of a batch.
    pub fn groups_of(&self, batch: usize) -> std::ops::Range<usize> {
        self.batches[batch] as usize..self.batches[batch + 1] as usize
    }

    /// The iterations of a group.
    pub fn of_group(&self, group: usize) -> &[u32] {
        &self.iterations[self.groups[group] as usize..self.groups[group + 1] as usize]
    }
}
