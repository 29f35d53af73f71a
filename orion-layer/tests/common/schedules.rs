//! Random schedules, right and wrong.
#![allow(clippy::single_range_in_vec_init)]
use super::random::Random;
use hectare_dependence::schedule::{Schedule, Steps, Tile};
use std::ops::Range;

/// The schedule of a seed: right for a loop without dependences, unless it is broken on purpose.
#[derive(Clone, Debug)]
pub struct Arbitrary {
    pub seed: u64,
    /// Whether one in two is broken.
    pub broken: bool,
}

/// A schedule's fault that is one for every loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// A tile is run twice.
    Repeated,
    /// A tile is not run.
    Omitted,
    /// A tile lies outside the grid.
    Outside,
    /// A step has a tile too few.
    ShortStep,
    /// More cells than iterations.
    FineGrid,
    /// The grid has another number of dimensions.
    LongGrid,
    /// Not wrong: tiles without cells, some with odd bounds.
    Empty,
}

impl Arbitrary {
    pub fn fault(&self) -> Fault {
        let faults = [
            Fault::Repeated,
            Fault::Omitted,
            Fault::Outside,
            Fault::ShortStep,
            Fault::FineGrid,
            Fault::LongGrid,
            Fault::Empty,
            Fault::Empty,
        ];
        let mut random = Random(self.seed ^ 0xfa17);
        if self.broken && random.percent(50) { *random.pick(&faults) } else { Fault::None }
    }

    fn build(&self, random: &mut Random, grid: &[usize], workers: usize) -> Steps {
        let whole = || grid.iter().map(|cells| 0..*cells).collect::<Vec<Range<usize>>>();
        let dim = random.below(grid.len());
        let other = random.below(grid.len());
        let order = random.below(3);
        match random.below(4) {
            // Blocks of one dimension, dealt out to the workers in turn.
            0 => (0..grid[dim].div_ceil(workers))
                .map(|step| {
                    let tile = |worker: usize| {
                        let at = step * workers + worker;
                        let at = if order == 0 { (grid[dim] - 1).wrapping_sub(at) } else { at };
                        let mut cells = whole();
                        cells[dim] = at..at.wrapping_add(1);
                        (at < grid[dim]).then_some(Tile { cells })
                    };
                    (0..workers).map(tile).collect()
                })
                .collect(),
            // A rotation: one dimension stays, another goes around, in either direction.
            1 | 2 if dim != other => {
                let share = |cells: usize, part: usize, of: usize| cells * part / of..cells * (part + 1) / of;
                let turns = workers * (1 + random.below(2));
                (0..turns)
                    .map(|step| {
                        let tile = |worker: usize| {
                            let mut cells = whole();
                            cells[dim] = share(grid[dim], worker, workers);
                            let at = match order {
                                0 => worker + turns - step,
                                // All at once: right only where the second dimension carries nothing.
                                1 => step,
                                _ => worker + step,
                            };
                            cells[other] = share(grid[other], at % turns, turns);
                            let tile = Tile { cells };
                            (!tile.is_empty()).then_some(tile)
                        };
                        (0..workers).map(tile).collect()
                    })
                    .collect()
            }
            // Each cell by itself, in any order, on any worker.
            _ => {
                let mut all = vec![Vec::new()];
                for cells in grid {
                    let longer = |tile: Vec<Range<usize>>| {
                        (0..*cells).map(move |at| tile.iter().cloned().chain([at..at + 1]).collect())
                    };
                    all = all.into_iter().flat_map(longer).collect();
                }
                if order != 0 {
                    random.shuffle(&mut all);
                }
                let mut steps = Steps::new();
                while !all.is_empty() {
                    let alone = random.percent(50);
                    let who = random.below(workers);
                    let mut take = |worker: usize| match alone && worker != who {
                        true => None,
                        false => all.pop().map(|cells| Tile { cells }),
                    };
                    steps.push((0..workers).map(&mut take).collect());
                }
                steps
            }
        }
    }
}

impl Schedule for Arbitrary {
    fn name(&self) -> String {
        format!("number {}", self.seed)
    }

    fn grid(&self, extents: &[usize], _workers: usize) -> Vec<usize> {
        let mut random = Random(self.seed);
        let mut grid: Vec<usize> =
            extents.iter().map(|extent| 1 + random.below((*extent).clamp(1, 5))).collect();
        match self.fault() {
            Fault::FineGrid => grid[0] = extents[0].max(1) + 1,
            Fault::LongGrid => grid.push(1),
            _ => {}
        }
        grid
    }

    fn steps(&self, grid: &[usize], workers: usize) -> Steps {
        let mut random = Random(self.seed ^ 0x57e5);
        let mut steps = self.build(&mut random, grid, workers);
        let places: Vec<(usize, usize)> = (0..steps.len())
            .flat_map(|step| (0..workers).map(move |worker| (step, worker)))
            .filter(|(step, worker)| steps[*step][*worker].is_some())
            .collect();
        let (step, worker) = *random.pick(&places);
        let dim = random.below(grid.len());
        match self.fault() {
            Fault::Repeated => {
                let mut again = vec![None; workers];
                again[random.below(workers)] = steps[step][worker].clone();
                steps.insert(random.below(steps.len() + 1), again);
            }
            Fault::Omitted => steps[step][worker] = None,
            Fault::Outside => {
                let cells = &mut steps[step][worker].as_mut().expect("picked for that").cells;
                cells[dim].end = grid[dim] + 1;
            }
            Fault::ShortStep => {
                steps[step].pop();
            }
            Fault::Empty => {
                let mut cells: Vec<Range<usize>> = grid.iter().map(|cells| 0..*cells).collect();
                #[allow(clippy::reversed_empty_ranges)]
                let odd = [0..0, grid[dim]..grid[dim], grid[dim]..0, grid[dim] + 7..2, usize::MAX..0];
                cells[dim] = random.pick(&odd).clone();
                steps.insert(0, vec![Some(Tile { cells }); workers]);
            }
            Fault::None | Fault::FineGrid | Fault::LongGrid => {}
        }
        steps
    }
}
