//! Levels of the graph of dependences.
use super::{Batches, Touched};

/// Into how many groups a level is divided: workers get equal shares of them.
const SHARES: usize = 24;

/// The levels of a graph: an iteration's level is one above the highest of those that it depends on.
pub(super) struct Levels {
    of: Vec<u32>,
    /// The weight of each level.
    pub(super) weights: Vec<u64>,
}

impl Levels {
    /// Finds them; `None` if there are more than `most`.
    pub(super) fn of(touched: &Touched, most: usize) -> Option<Levels> {
        // For each row, the level after its last write, and after its last use.
        let mut after = vec![(0u32, 0u32); touched.rows()];
        let (mut of, mut weights) = (Vec::with_capacity(touched.len()), Vec::new());
        for iteration in 0..touched.len() {
            let keys = touched.of(iteration);
            let earliest = keys.iter().map(|key| {
                let (write, used) = after[key.number()];
                if key.writes() { used } else { write }
            });
            let level = earliest.max().unwrap_or(0);
            for key in keys {
                let (write, used) = &mut after[key.number()];
                *used = (*used).max(level + 1);
                if key.writes() {
                    *write = (*write).max(level + 1);
                }
            }
            if weights.len() <= level as usize {
                if weights.len() >= most {
                    return None;
                }
                weights.push(0);
            }
            weights[level as usize] += u64::from(touched.weight(iteration));
            of.push(level);
        }
        Some(Levels { of, weights })
    }

    /// The batches: one for each level, in groups of consecutive iterations of about the same weight.
    pub(super) fn batches(&self, touched: &Touched) -> Batches {
        let mut place = vec![0u32; self.weights.len() + 1];
        self.of.iter().for_each(|level| place[*level as usize + 1] += 1);
        (1..place.len()).for_each(|level| place[level] += place[level - 1]);
        let starts = place.clone();
        let mut made = Batches::empty();
        made.iterations = vec![0; self.of.len()];
        for (iteration, level) in self.of.iter().enumerate() {
            let at = &mut place[*level as usize];
            made.iterations[*at as usize] = iteration as u32;
            *at += 1;
        }
        for (level, ends) in starts.windows(2).enumerate() {
            let share = self.weights[level].div_ceil(SHARES as u64).max(1);
            let mut weight = 0;
            for at in ends[0]..ends[1] {
                weight += u64::from(touched.weight(made.iterations[at as usize] as usize));
                if weight >= share || at + 1 == ends[1] {
                    made.groups.push(at + 1);
                    weight = 0;
                }
            }
            made.batches.push(made.groups.len() as u32 - 1);
        }
        made
    }
}

/// A batch for each level; `None` if there are more than `most`.
pub fn levels(touched: &Touched, most: usize) -> Option<Batches> {
    Some(Levels::of(touched, most)?.batches(touched))
}
