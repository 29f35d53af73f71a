//! Connected components of batches of consecutive iterations.
use super::{Batches, Touched};
use crate::mutant::{self, Mutant};
use std::ops::Range;

/// Finds components of iterations and rows, batch by batch, without clearing up between batches.
struct Forest {
    /// Iterations of the batch: the parent of each, itself for a root.
    parent: Vec<u32>,
    /// For each row, the batch that last touched it, and an iteration of its component there.
    seen: Vec<(u32, u32)>,
    batch: u32,
}

impl Forest {
    fn new(rows: usize) -> Forest {
        Forest { parent: Vec::new(), seen: vec![(0, 0); rows], batch: 0 }
    }

    fn find(&mut self, mut at: u32) -> u32 {
        while self.parent[at as usize] != at {
            let above = self.parent[self.parent[at as usize] as usize];
            self.parent[at as usize] = above;
            at = above;
        }
        at
    }

    /// Joins what touches the same row, if any iteration of the batch may write it: rows that are only read join nothing.
    fn join(&mut self, touched: &Touched, range: Range<usize>, written: &[bool]) {
        self.batch += 1;
        self.parent.clear();
        self.parent.extend(0..range.len() as u32);
        for (local, iteration) in range.enumerate() {
            let local = local as u32;
            for (at, key) in touched.of(iteration).iter().enumerate() {
                let row = key.number();
                if !written[row] || at > 0 && mutant::is(Mutant::EdgeDropped) {
                    continue;
                }
                let (batch, other) = self.seen[row];
                if batch == self.batch {
                    let (a, b) = (self.find(other), self.find(local));
                    // The first iteration is the root: components go by their first iterations.
                    let (low, high) = if a < b { (a, b) } else { (b, a) };
                    self.parent[high as usize] = low;
                } else {
                    self.seen[row] = (self.batch, local);
                }
            }
        }
    }
}

/// How the largest component grows with the batch: of batches of a size, taken as a sample.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Growth {
    /// Iterations in a batch.
    pub batch: usize,
    /// The share of a batch's weight that its largest component has, in the mean.
    pub largest: f64,
}

/// Which rows any iteration may write.
fn written(touched: &Touched) -> Vec<bool> {
    let mut written = vec![false; touched.rows()];
    touched.keys().iter().filter(|key| key.writes()).for_each(|key| written[key.number()] = true);
    written
}

/// How many batches of each size are looked at.
const SAMPLES: usize = 6;

/// The smallest batch that is worth a hand-over.
const SMALLEST: usize = 128;

impl Growth {
    /// Measures it for batches of twice the size each, until one component has nearly all of them.
    pub fn measure(touched: &Touched) -> Vec<Growth> {
        let (total, written) = (touched.len(), written(touched));
        let mut forest = Forest::new(touched.rows());
        let mut list = Vec::new();
        let mut size = SMALLEST.min(total.max(1));
        loop {
            let whole = (total / size).max(1);
            let (samples, mut share) = (whole.min(SAMPLES), 0.0);
            for sample in 0..samples {
                let start = sample * whole / samples * size;
                let range = start..(start + size).min(total);
                forest.join(touched, range.clone(), &written);
                let mut weights = vec![0u64; range.len()];
                let mut all = 0;
                for (local, iteration) in range.enumerate() {
                    let weight = u64::from(touched.weight(iteration));
                    weights[forest.find(local as u32) as usize] += weight;
                    all += weight;
                }
                share += weights.iter().max().map_or(1.0, |most| *most as f64 / all as f64);
            }
            let largest = share / samples as f64;
            list.push(Growth { batch: size, largest });
            if size >= total || largest > 0.9 && list.len() > 1 {
                return list;
            }
            size = (2 * size).min(total);
        }
    }
}

/// Batches of `size` consecutive iterations each, whose groups are the components of their conflicts.
pub fn components(touched: &Touched, size: usize) -> Batches {
    let (total, written) = (touched.len(), written(touched));
    let mut forest = Forest::new(touched.rows());
    let mut made = Batches::empty();
    made.iterations.reserve(total);
    let (mut number, mut count): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for start in (0..total).step_by(size.max(1)) {
        let range = start..(start + size).min(total);
        forest.join(touched, range.clone(), &written);
        number.clear();
        number.resize(range.len(), u32::MAX);
        count.clear();
        for local in 0..range.len() as u32 {
            let root = forest.find(local);
            if root == local {
                number[local as usize] = count.len() as u32;
                count.push(0);
            }
            let group = number[root as usize];
            number[local as usize] = group;
            count[group as usize] += 1;
        }
        // By counting: each component's iterations keep their order.
        let first = made.iterations.len();
        let mut place = first as u32;
        for count in &mut count {
            let here = place;
            place += *count;
            *count = here;
            made.groups.push(place);
        }
        made.iterations.resize(first + range.len(), 0);
        for (local, iteration) in range.enumerate() {
            let at = &mut count[number[local] as usize];
            made.iterations[*at as usize] = iteration as u32;
            *at += 1;
        }
        made.batches.push(made.groups.len() as u32 - 1);
    }
    made
}
