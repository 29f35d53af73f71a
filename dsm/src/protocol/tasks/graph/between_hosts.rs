//! Which elements of a graph's arrays go from host to host, found in one sweep over its tasks in an order in which they can run.
use super::{Region, TaskGraph};
use crate::error::Rank;
use crate::protocol::tasks::crossing::{Crossing, Places, Sent, When};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Hosts are bits of a word.
const MOST_HOSTS: usize = 64;
/// Pieces without gaps that all tasks together touch.
const MOST_RUNS: usize = 1 << 24;

/// Why a graph cannot be run by workers of several hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsendable {
    #[error("they are for at most {MOST_HOSTS} hosts")]
    Hosts,
    #[error(
        "they touch elements in too many places to be sent between hosts one by one: let the last subscript move by steps of 1"
    )]
    Places,
    #[error("an array of more than 2^32 elements cannot be sent between hosts by tasks")]
    Elements,
}

/// Elements that were written last by the same task, if by any, and are on the same hosts.
#[derive(Clone, Copy, Debug)]
struct Same {
    end: u32,
    writer: Option<(Rank, u32)>,
    has: u64,
}

/// The elements of an array, by the first of each piece.
#[derive(Debug)]
struct Elements(BTreeMap<u32, Same>);

impl Elements {
    fn new(len: u32) -> Elements {
        let all = Same { end: len, writer: None, has: 0 };
        Elements(if len == 0 { BTreeMap::new() } else { [(0, all)].into() })
    }

    /// No piece lies on both sides of `at`.
    fn cut(&mut self, at: u32) {
        let Some((start, same)) = self.0.range_mut(..at).next_back() else { return };
        if *start < at && at < same.end {
            let rest = *same;
            same.end = at;
            self.0.insert(at, rest);
        }
    }
}

/// The last dimension of a region that is not whole, or the first: behind it, elements follow each other across dimensions. None of an array
/// without dimensions, which is one element.
fn last_cut(region: &Region, shape: &[usize]) -> Option<usize> {
    let is_whole = |dim: usize| {
        let span = region.spans[dim];
        span.start == 0 && span.len() == shape[dim] && (span.step == 1 || shape[dim] == 1)
    };
    let mut last = shape.len().checked_sub(1)?;
    while last > 0 && is_whole(last) {
        last -= 1;
    }
    Some(last)
}

/// How many pieces without gaps a region has, in an array of this shape; at most the greatest number.
pub(super) fn count_runs(region: &Region, shape: &[usize]) -> usize {
    let Some(last) = last_cut(region, shape).filter(|_| !region.is_empty()) else {
        return usize::from(!region.is_empty());
    };
    let span = region.spans[last];
    let of_last = if span.step == 1 { 1 } else { span.len() };
    region.spans[..last].iter().fold(of_last, |all, span| all.saturating_mul(span.len()))
}

/// Calls `visit` with the first element and the length of each piece without gaps of a region, in an array of this shape.
pub(super) fn for_each_run(region: &Region, shape: &[usize], mut visit: impl FnMut(u32, u32)) {
    if region.is_empty() {
        return;
    }
    let Some(last) = last_cut(region, shape) else { return visit(0, 1) };
    let inner: usize = shape[last + 1..].iter().product();
    let (span, mut index) =
        (region.spans[last], region.spans[..last].iter().map(|span| span.start).collect::<Vec<_>>());
    loop {
        let row = index.iter().zip(shape).fold(0, |at, (index, extent)| at * extent + index) * shape[last];
        if span.step == 1 {
            visit(((row + span.start) * inner) as u32, (span.len() * inner) as u32);
        } else {
            (span.start..span.end)
                .step_by(span.step)
                .for_each(|at| visit(((row + at) * inner) as u32, inner as u32));
        }
        let Some(dim) =
            (0..last).rev().find(|dim| index[*dim] + region.spans[*dim].step < region.spans[*dim].end)
        else {
            return;
        };
        index[dim] += region.spans[dim].step;
        (dim + 1..last).for_each(|dim| index[dim] = region.spans[dim].start);
    }
}

struct Sweep<'a> {
    places: &'a Places,
    arrays: Vec<Elements>,
    sent: Vec<Sent>,
    /// Elements that a host touches before a task has written them: the host, the array, the first, how many.
    before: Vec<(usize, u32, u32, u32)>,
    /// By worker: its task, another worker, and how many tasks of that one must be done, whatever else it waits for.
    needs: Vec<Vec<(u32, Rank, u64)>>,
    /// By two workers: how many tasks of the second the first has waited for so.
    known: Vec<Vec<u64>>,
    runs: usize,
}

impl Sweep<'_> {
    fn touch(&mut self, array: u32, (first, count): (u32, u32), (rank, task): (Rank, u32)) {
        let host = self.places.host_of[rank as usize];
        let elements = &mut self.arrays[array as usize];
        elements.cut(first);
        elements.cut(first + count);
        for (start, same) in elements.0.range_mut(first..first + count) {
            let has = same.has >> host & 1 != 0;
            same.has |= 1 << host;
            let count = same.end - start;
            let Some((from, written)) = same.writer else {
                if !has {
                    self.before.push((host, array, *start, count));
                }
                continue;
            };
            if self.places.host_of[from as usize] == host {
                continue;
            }
            if !has {
                let (to, unit) = (host as u32, *start);
                self.sent.push(Sent { from, to, task: written, when: When::Always, array, unit, count });
            }
            // Also where they are sent for another task of the host, which need not come before this one.
            let known = &mut self.known[rank as usize][from as usize];
            if *known < u64::from(written) + 1 {
                *known = u64::from(written) + 1;
                self.needs[rank as usize].push((task, from, *known));
            }
        }
    }

    fn write(&mut self, array: u32, (first, count): (u32, u32), (rank, task): (Rank, u32)) {
        let elements = &mut self.arrays[array as usize].0;
        let within: Vec<u32> = elements.range(first..first + count).map(|(start, _)| *start).collect();
        for start in within {
            elements.remove(&start);
        }
        let has = 1 << self.places.host_of[rank as usize];
        elements.insert(first, Same { end: first + count, writer: Some((rank, task)), has });
    }

    fn look_at(&mut self, graph: &TaskGraph, rank: Rank, number: usize) -> Result<(), Unsendable> {
        for access in &graph.of(rank)[number].accesses {
            let (array, shape) = (access.array as u32, &graph.shapes[access.array]);
            let all = access.reads.iter().chain(&access.writes).map(|region| count_runs(region, shape));
            self.runs = all.fold(self.runs, usize::saturating_add);
            if self.runs > MOST_RUNS {
                return Err(Unsendable::Places);
            }
            let runs_of = |regions: &[Region]| {
                let mut runs = Vec::new();
                let each = |region| for_each_run(region, shape, |first, count| runs.push((first, count)));
                regions.iter().for_each(each);
                runs
            };
            // What is written is among what is read.
            let (read, written) = (runs_of(&access.reads), runs_of(&access.writes));
            let task = (rank, number as u32);
            read.iter().for_each(|run| self.touch(array, *run, task));
            for run in &written {
                self.touch(array, *run, task);
                self.write(array, *run, task);
            }
        }
        Ok(())
    }

    /// Sends to the arrays' homes what they get in the end.
    fn send_home(&mut self) {
        for (array, elements) in (0..).zip(&self.arrays) {
            let home = self.places.homes[array as usize];
            for (unit, same) in &elements.0 {
                if let Some((from, task)) = same.writer
                    && same.has >> home & 1 == 0
                {
                    let (to, when, count) = (home as u32, When::AtEnd, same.end - unit);
                    self.sent.push(Sent { from, to, task, when, array, unit: *unit, count });
                }
            }
        }
    }

    /// Sends what is needed before the first tasks.
    fn send_before(&mut self) {
        for (host, array, unit, count) in std::mem::take(&mut self.before) {
            let home = self.places.homes[array as usize];
            if let Some(from) = self.places.first_of(home).filter(|_| home != host) {
                self.sent.push(Sent {
                    from,
                    to: host as u32,
                    task: 0,
                    when: When::Before,
                    array,
                    unit,
                    count,
                });
            }
        }
    }
}

impl TaskGraph {
    /// The traffic from host to host in a run of the graph, made once for the same places. Each home has a worker of the graph.
    ///
    /// # Errors
    /// [`Unsendable`].
    pub(crate) fn crossing_of(&self, places: &Places) -> Result<Arc<Crossing>, Unsendable> {
        self.crossing.of(places, || self.crossing(places))
    }

    fn crossing(&self, places: &Places) -> Result<Crossing, Unsendable> {
        if places.hosts > MOST_HOSTS {
            return Err(Unsendable::Hosts);
        }
        let len = |shape: &Vec<usize>| u32::try_from(shape.iter().product::<usize>());
        let lens = self.shapes.iter().map(len).collect::<Result<Vec<_>, _>>();
        let workers = self.workers();
        let mut sweep = Sweep {
            places,
            arrays: lens.map_err(|_| Unsendable::Elements)?.into_iter().map(Elements::new).collect(),
            sent: Vec::new(),
            before: Vec::new(),
            needs: vec![Vec::new(); workers],
            known: vec![vec![0; workers]; workers],
            runs: 0,
        };
        let mut begun = vec![0; workers];
        // Each worker goes on as far as it need not wait; there is no circle.
        while (0..workers).any(|worker| begun[worker] < self.tasks[worker].len()) {
            for worker in 0..workers {
                while let Some(task) = self.tasks[worker].get(begun[worker]) {
                    if !task.after.iter().all(|(rank, count)| *count <= begun[*rank as usize]) {
                        break;
                    }
                    sweep.look_at(self, worker as Rank, begun[worker])?;
                    begun[worker] += 1;
                }
            }
        }
        sweep.send_before();
        sweep.send_home();
        let Sweep { sent, needs, .. } = sweep;
        let mut told = Vec::new();
        let mut waits = |rank: usize, other: Rank, count: u64| {
            let host = places.host_of[rank];
            if count > 0 && places.host_of[other as usize] != host {
                told.push((other, host, count as usize - 1));
            }
        };
        for (rank, (tasks, needs)) in self.tasks.iter().zip(&needs).enumerate() {
            let after = tasks.iter().flat_map(|task| &task.after);
            after.for_each(|(other, count)| waits(rank, *other, *count as u64));
            needs.iter().for_each(|(_, other, count)| waits(rank, *other, *count));
        }
        Ok(Crossing::new(workers, places.hosts, sent, told).with_needs(needs))
    }
}
