//! Which tasks of a worker lie near a region: an index of what they touch by blocks of elements.
use super::{Region, Task};
use fnv::{FnvHashMap, FnvHasher};
use std::hash::{Hash, Hasher};
use std::ops::Range;

/// A region over more blocks than this is not entered block by block, but compared with all.
const MOST_BLOCKS: usize = 32;

/// Elements of a block of each array in each dimension: about as wide as what tasks touch, so that each touches few blocks, and
/// few tasks touch a block.
pub(super) struct Blocks {
    width: Vec<Vec<usize>>,
}

impl Blocks {
    /// Blocks for these tasks over arrays of these shapes.
    pub(super) fn of(shapes: &[Vec<usize>], tasks: &[Vec<Task>]) -> Blocks {
        let mut sums: Vec<(u64, Vec<u64>)> = shapes.iter().map(|shape| (0, vec![0; shape.len()])).collect();
        for access in tasks.iter().flatten().flat_map(|task| &task.accesses) {
            let (count, sums) = &mut sums[access.array];
            for region in &access.reads {
                *count += 1;
                for (sum, span) in sums.iter_mut().zip(&region.spans) {
                    *sum += (span.end - span.start) as u64;
                }
            }
        }
        let widths = |(count, sums): &(u64, Vec<u64>)| {
            sums.iter().map(|sum| (sum / (*count).max(1)).max(1) as usize).collect()
        };
        Blocks { width: sums.iter().map(widths).collect() }
    }

    /// Calls `visit` with a number for each block that holds elements of a region, which is not empty; false, and no call, if those
    /// are too many. Two blocks may have the same number.
    fn each(&self, array: usize, region: &Region, mut visit: impl FnMut(u64)) -> bool {
        let width = &self.width[array];
        let hull: Vec<Range<usize>> = region
            .spans
            .iter()
            .zip(width)
            .map(|(span, width)| span.start / width..(span.end - 1) / width + 1)
            .collect();
        let count = hull.iter().try_fold(1usize, |all, range| all.checked_mul(range.len()));
        if count.is_none_or(|count| count > MOST_BLOCKS) {
            return false;
        }
        let mut at: Vec<usize> = hull.iter().map(|range| range.start).collect();
        loop {
            let mut hash = FnvHasher::default();
            (array, &at).hash(&mut hash);
            visit(hash.finish());
            let Some(dim) = (0..at.len()).rev().find(|dim| at[*dim] + 1 < hull[*dim].end) else {
                return true;
            };
            at[dim] += 1;
            for later in dim + 1..at.len() {
                at[later] = hull[later].start;
            }
        }
    }
}

/// The tasks of one worker by the blocks that they touch. What a task writes is among what it reads, so reads are enough.
pub(super) struct Near<'a> {
    blocks: &'a Blocks,
    /// The tasks that touch a block, in their order.
    at: FnvHashMap<u64, Vec<u32>>,
    /// Those that touch too many.
    everywhere: Vec<u32>,
}

impl<'a> Near<'a> {
    pub(super) fn of(blocks: &'a Blocks, tasks: &[Task]) -> Near<'a> {
        let mut near = Near { blocks, at: FnvHashMap::default(), everywhere: Vec::new() };
        for (number, task) in tasks.iter().enumerate() {
            let number = number as u32;
            for (array, region) in regions(task) {
                let is_entered =
                    blocks.each(array, region, |block| add(near.at.entry(block).or_default(), number));
                if !is_entered {
                    add(&mut near.everywhere, number);
                }
            }
        }
        near
    }

    /// Collects those of the tasks `among` that may touch an element that `task` touches, and perhaps some that do not.
    pub(super) fn find(&self, task: &Task, among: Range<usize>, found: &mut Vec<u32>) {
        found.clear();
        let among = among.start as u32..among.end as u32;
        let within = |list: &[u32]| {
            let end = list.partition_point(|number| *number < among.end);
            let start = list[..end].partition_point(|number| *number < among.start);
            start..end
        };
        found.extend_from_slice(&self.everywhere[within(&self.everywhere)]);
        for (array, region) in regions(task) {
            let is_found = self.blocks.each(array, region, |block| {
                if let Some(list) = self.at.get(&block) {
                    found.extend_from_slice(&list[within(list)]);
                }
            });
            if !is_found {
                // All of them.
                found.clear();
                found.extend(among);
                return;
            }
        }
        found.sort_unstable();
        found.dedup();
    }
}

/// The regions that a task reads or writes, with their arrays: none is empty.
fn regions(task: &Task) -> impl Iterator<Item = (usize, &Region)> {
    task.accesses.iter().flat_map(|access| access.reads.iter().map(|region| (access.array, region)))
}

fn add(list: &mut Vec<u32>, number: u32) {
    if list.last() != Some(&number) {
        list.push(number);
    }
}
