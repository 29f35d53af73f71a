//! Task graphs of several workers, checked for data races before they run: of two tasks that may run at the same time, neither
//! writes an element that the other one reads or writes.
mod between_hosts;
mod near;

pub(crate) use self::between_hosts::Unsendable;

use self::near::{Blocks, Near};
use super::crossing::Kept;
use super::{MOST_TASKS, Region, Span, merged};
use crate::error::Rank;
use fnv::FnvHasher;
use std::hash::{Hash, Hasher};

/// The elements of one array that a task may access.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The array: its place in the list that a run is given.
    pub array: usize,
    /// Regions that it may read.
    pub reads: Vec<Region>,
    /// Regions that it may read and write.
    pub writes: Vec<Region>,
}

impl Access {
    /// Merges regions into fewer boxes, the largest first, and adds what may be written to what may be read.
    fn fold(&mut self) {
        let by_size = |mut regions: Vec<Region>| {
            regions.sort_by_cached_key(|region| std::cmp::Reverse(region.len()));
            regions
        };
        self.writes = by_size(merged(std::mem::take(&mut self.writes)));
        let reads = std::mem::take(&mut self.reads);
        self.reads = by_size(merged(reads.into_iter().chain(self.writes.iter().cloned())));
    }
}

/// A piece of work of one worker, between two checks of what others have done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Task {
    /// The arrays that it touches, each once.
    pub accesses: Vec<Access>,
    /// Dependences: a worker, and how many of its first tasks must be done before this one begins.
    pub after: Vec<(Rank, usize)>,
}

/// Why tasks are no [`TaskGraph`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskError {
    /// Two tasks that nothing puts in order touch the same element, and one of them writes it.
    #[error(
        "task {} of worker {} and task {} of worker {} may run at once, and both touch elements of array {array}: put one \
         after the other (`Task::after`), or let them touch different elements",
        tasks[0].1, tasks[0].0, tasks[1].1, tasks[1].0
    )]
    Race {
        /// Worker and number of each.
        tasks: [(Rank, usize); 2],
        /// The array.
        array: usize,
    },
    /// Tasks wait for each other in a circle, or for a task that there is not.
    #[error("task {} of worker {} waits for tasks that never end: `Task::after` is to name tasks that there are, in no circle", task.1, task.0)]
    Endless {
        /// Worker and number of a task that would never begin.
        task: (Rank, usize),
    },
    /// A worker has more tasks than can be counted.
    #[error("worker {rank} has {tasks} tasks: at most {most} are possible, so make them larger", most = MOST_TASKS - 1)]
    TooMany {
        /// The worker.
        rank: Rank,
        /// How many.
        tasks: usize,
    },
    /// A task names an array twice, or a region of another number of dimensions, or a step of 0.
    #[error("task {} of worker {} cannot access array {array} as it says: a task names an array of the graph once, with regions of its dimensions and steps of 1 or more", task.1, task.0)]
    Access {
        /// Worker and number.
        task: (Rank, usize),
        /// The array.
        array: usize,
    },
}

/// Tasks of several workers over arrays that lie in place, of which no two that may run at once touch the same element if one
/// of them writes it.
///
/// Each worker does its tasks in their order; between workers, a task comes after those that it names. What follows from both
/// is kept as vector clocks (Fidge, 1988; Mattern, 1988), so that making the graph costs a look at each pair of tasks
/// that may run at once and lie near each other, not at each pair.
#[derive(Debug)]
pub struct TaskGraph {
    shapes: Vec<Vec<usize>>,
    /// By worker.
    tasks: Vec<Vec<Task>>,
    clocks: Clocks,
    digest: u64,
    /// The traffic between hosts, for the places where workers and arrays were last.
    crossing: Kept,
}

impl TaskGraph {
    /// Checks the tasks of all workers: `tasks[w]` are those of worker `w`, in their order. `shapes` are the extents of
    /// the arrays.
    ///
    /// ```
    /// use hectare_dsm::tasks::{Access, Region, Task, TaskError, TaskGraph};
    ///
    /// let task = |elements, after| Task {
    ///     accesses: vec![Access { array: 0, reads: vec![], writes: vec![Region::of([elements])] }],
    ///     after,
    /// };
    /// // Worker 1 begins when worker 0 has done its first task.
    /// TaskGraph::new(vec![vec![8]], vec![vec![task(0..5, vec![])], vec![task(4..8, vec![(0, 1)])]])?;
    /// let raced = TaskGraph::new(vec![vec![8]], vec![vec![task(0..5, vec![])], vec![task(4..8, vec![])]]);
    /// assert!(matches!(raced, Err(TaskError::Race { array: 0, .. })));
    /// # Ok::<(), TaskError>(())
    /// ```
    ///
    /// # Errors
    /// [`TaskError`], which names the tasks.
    pub fn new(shapes: Vec<Vec<usize>>, mut tasks: Vec<Vec<Task>>) -> Result<TaskGraph, TaskError> {
        check_accesses(&shapes, &tasks)?;
        tasks.iter_mut().flatten().flat_map(|task| &mut task.accesses).for_each(Access::fold);
        let clocks = Clocks::of(&tasks)?;
        clocks.check_races(&Blocks::of(&shapes, &tasks), &tasks)?;
        let mut hash = FnvHasher::default();
        (&shapes, &tasks).hash(&mut hash);
        Ok(TaskGraph { shapes, tasks, clocks, digest: hash.finish(), crossing: Kept::default() })
    }

    /// How many workers it is for.
    pub fn workers(&self) -> usize {
        self.tasks.len()
    }

    /// The tasks of a worker.
    pub fn of(&self, rank: Rank) -> &[Task] {
        self.tasks.get(rank as usize).map_or(&[], |tasks| tasks)
    }

    /// Whether one task, named by its worker and number, is done when the other begins. False for what is no task.
    pub fn is_before(&self, one: (Rank, usize), other: (Rank, usize)) -> bool {
        let is_task = |(rank, number): (Rank, usize)| self.of(rank).len() > number;
        is_task(one)
            && is_task(other)
            && self.clocks.of_task(other.0 as usize, other.1)[one.0 as usize] as usize > one.1
    }

    /// The extents of the arrays.
    pub fn shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    /// The same number for the same tasks.
    pub fn digest(&self) -> u64 {
        self.digest
    }
}

fn check_accesses(shapes: &[Vec<usize>], tasks: &[Vec<Task>]) -> Result<(), TaskError> {
    for (worker, list) in tasks.iter().enumerate() {
        if list.len() as u64 >= MOST_TASKS {
            return Err(TaskError::TooMany { rank: worker as Rank, tasks: list.len() });
        }
        for (number, task) in list.iter().enumerate() {
            for (at, access) in task.accesses.iter().enumerate() {
                let fits = |region: &Region| {
                    let shape = shapes.get(access.array);
                    shape.is_some_and(|shape| {
                        let inside = |(span, extent): (&Span, &usize)| {
                            span.step > 0 && (span.is_empty() || span.end <= *extent)
                        };
                        shape.len() == region.spans.len() && region.spans.iter().zip(shape).all(inside)
                    })
                };
                let twice = task.accesses[..at].iter().any(|other| other.array == access.array);
                if twice || !access.reads.iter().chain(&access.writes).all(fits) {
                    let task = (worker as Rank, number);
                    return Err(TaskError::Access { task, array: access.array });
                }
            }
        }
    }
    Ok(())
}

/// For each task, how many tasks of each worker are done when it begins.
#[derive(Debug)]
struct Clocks {
    workers: usize,
    /// By worker; the same number of entries for each task, one after the other.
    before: Vec<Vec<u32>>,
}

impl Clocks {
    fn of(tasks: &[Vec<Task>]) -> Result<Clocks, TaskError> {
        let workers = tasks.len();
        let mut clocks = Clocks { workers, before: vec![Vec::new(); workers] };
        let mut begun = vec![0; workers];
        // Each worker goes on as far as what it waits for is known; then the next does. If none gets on, none ever will.
        loop {
            let mut moved = false;
            for worker in 0..workers {
                while let Some(task) = tasks[worker].get(begun[worker]) {
                    let known = |&(rank, count): &(Rank, usize)| {
                        begun.get(rank as usize).is_some_and(|b| count <= *b)
                    };
                    if !task.after.iter().all(known) {
                        break;
                    }
                    let clock = clocks.next(worker, begun[worker], task);
                    clocks.before[worker].extend(clock);
                    begun[worker] += 1;
                    moved = true;
                }
            }
            let stuck = (0..workers).find(|worker| begun[*worker] < tasks[*worker].len());
            match stuck {
                None => return Ok(clocks),
                Some(worker) if !moved => {
                    return Err(TaskError::Endless { task: (worker as Rank, begun[worker]) });
                }
                Some(_) => {}
            }
        }
    }

    /// The clock of task `number` of a worker, when those that it waits for have theirs.
    fn next(&self, worker: usize, number: usize, task: &Task) -> Vec<u32> {
        let mut clock = match number {
            0 => vec![0; self.workers],
            _ => self.of_task(worker, number - 1).to_vec(),
        };
        clock[worker] = number as u32;
        for &(rank, count) in task.after.iter().filter(|(_, count)| *count > 0) {
            for (mine, theirs) in clock.iter_mut().zip(self.of_task(rank as usize, count - 1)) {
                *mine = (*mine).max(*theirs);
            }
            clock[rank as usize] = clock[rank as usize].max(count as u32);
        }
        clock
    }

    fn of_task(&self, worker: usize, number: usize) -> &[u32] {
        &self.before[worker][number * self.workers..][..self.workers]
    }

    fn check_races(&self, blocks: &Blocks, tasks: &[Vec<Task>]) -> Result<(), TaskError> {
        let mut found = Vec::new();
        for b in 1..self.workers {
            let near = Near::of(blocks, &tasks[b]);
            for (a, list) in tasks[..b].iter().enumerate() {
                // Done when a task begins, or begun only when it is done; the others may run beside it. As it is with the tasks
                // after it, these move on.
                let mut end = 0;
                for (number, task) in list.iter().enumerate() {
                    let first = self.of_task(a, number)[b] as usize;
                    while end < tasks[b].len() && self.of_task(b, end)[a] as usize <= number {
                        end += 1;
                    }
                    if first >= end {
                        continue;
                    }
                    near.find(task, first..end, &mut found);
                    let raced = |other: &u32| Some((*other, race(task, &tasks[b][*other as usize])?));
                    if let Some((other, array)) = found.iter().find_map(raced) {
                        let tasks = [(a as Rank, number), (b as Rank, other as usize)];
                        return Err(TaskError::Race { tasks, array });
                    }
                }
            }
        }
        Ok(())
    }
}

/// An array of which both touch an element, and one writes it.
fn race(a: &Task, b: &Task) -> Option<usize> {
    let meet = |x: &[Region], y: &[Region]| x.iter().any(|one| y.iter().any(|other| one.meets(other)));
    let both = |x: &&Access| {
        b.accesses.iter().filter(|y| x.array == y.array).any(|y| {
            // Written regions are among the read ones.
            meet(&x.writes, &y.reads) || meet(&x.reads, &y.writes)
        })
    };
    a.accesses.iter().find(both).map(|access| access.array)
}

#[cfg(test)]
mod between_hosts_tests;
#[cfg(test)]
mod tests;
