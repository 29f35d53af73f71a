//! Traffic between hosts whose workers run a plan over arrays of which each host has a copy: which units of which arrays a worker
//! sends to a host, after which of its tasks.
//!
//! A unit (a row, or an element) is sent to a host when a task there touches it, and the host has not what was written to it last;
//! by the worker that wrote it last, after the task that did. As who touches it waits for that task, and whoever writes it next
//! waits for those who have touched it, what has come may be put in place at any time before the task that needs it: no task of the
//! host touches it meanwhile.
mod places;
mod position;

pub(crate) use self::places::{Kept, Places};
pub(crate) use self::position::Position;
use crate::error::Rank;

/// Units of an array that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    pub(crate) array: u32,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// When a piece is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum When {
    /// Before the first task: what the array was before the run.
    Before,
    /// After its task in all passes: a later task of the same pass needs it.
    Always,
    /// After its task in all passes but the last: a task of the next pass does.
    BeforeLast,
    /// When all tasks are done: the host is the array's home, which has all of it in the end.
    AtEnd,
}

/// Units that a worker sends to a host: before its tasks, after one of them, or in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sent {
    pub(crate) from: Rank,
    pub(crate) to: u32,
    pub(crate) task: u32,
    pub(crate) when: When,
    pub(crate) array: u32,
    pub(crate) unit: u32,
    pub(crate) count: u32,
}

/// The pieces that one worker sends to another host.
#[derive(Debug, Default)]
pub(crate) struct Route {
    /// Before its first task.
    pub(crate) initial: Vec<Piece>,
    /// Where the pieces of each task begin, in the order of tasks; the last, where they end. Empty if there are none.
    starts: Vec<u32>,
    /// After tasks; whether in the last pass, too.
    pieces: Vec<(bool, Piece)>,
    /// When it has done all of them.
    pub(crate) home: Vec<Piece>,
    /// By task, as bits: whether a worker of the host waits for it.
    told: Vec<u64>,
}

/// The bytes of pieces; `unit_bytes` has the size of a unit of each array.
pub(crate) fn bytes_of<'p>(pieces: impl IntoIterator<Item = &'p Piece>, unit_bytes: &[usize]) -> u64 {
    let bytes = |piece: &Piece| u64::from(piece.count) * unit_bytes[piece.array as usize] as u64;
    pieces.into_iter().map(bytes).sum()
}

impl Route {
    /// Adds what is sent next, in the order of `Sent`.
    fn add(&mut self, one: &Sent) {
        let piece = Piece { array: one.array, first: one.unit, count: one.count };
        let follows = |last: &Piece| last.array == piece.array && last.first + last.count == piece.first;
        let list = match one.when {
            When::Before => &mut self.initial,
            When::AtEnd => &mut self.home,
            When::Always | When::BeforeLast => {
                let (end, in_last) = (one.task as usize + 1, one.when == When::Always);
                let is_new = self.starts.len() <= end;
                self.starts.resize(self.starts.len().max(end + 1), self.pieces.len() as u32);
                match self.pieces.last_mut() {
                    Some((when, last)) if !is_new && *when == in_last && follows(last) => {
                        last.count += piece.count;
                    }
                    _ => self.pieces.push((in_last, piece)),
                }
                self.starts[end] = self.pieces.len() as u32;
                return;
            }
        };
        match list.last_mut().filter(|last| follows(last)) {
            Some(last) => last.count += piece.count,
            None => list.push(piece),
        }
    }

    /// The bytes of all that is sent in so many passes.
    fn bytes(&self, passes: usize, unit_bytes: &[usize]) -> u64 {
        let Some(before_last) = passes.checked_sub(1) else { return 0 };
        let in_last = self.pieces.iter().filter(|(in_last, _)| *in_last).map(|(_, piece)| piece);
        let all = self.pieces.iter().map(|(_, piece)| piece);
        bytes_of(self.initial.iter().chain(&self.home).chain(in_last), unit_bytes)
            + before_last as u64 * bytes_of(all, unit_bytes)
    }

    /// The pieces that are sent after a task of a pass, the last one or another.
    pub(crate) fn after(&self, task: usize, is_last: bool) -> impl Iterator<Item = Piece> + '_ {
        let pieces = match (self.starts.get(task), self.starts.get(task + 1)) {
            (Some(start), Some(end)) => &self.pieces[*start as usize..*end as usize],
            _ => &[],
        };
        pieces.iter().filter_map(move |(in_last, piece)| (*in_last || !is_last).then_some(*piece))
    }

    /// Whether a worker of the host waits for a task.
    pub(crate) fn tells(&self, task: usize) -> bool {
        self.told.get(task / 64).is_some_and(|word| word >> (task % 64) & 1 != 0)
    }
}

/// All routes of a plan.
#[derive(Debug)]
pub(crate) struct Crossing {
    hosts: usize,
    /// By worker and host.
    routes: Vec<Route>,
    /// By worker: a task, another worker, and how many tasks of that one must be done before it, besides what the task waits for. In the
    /// order of tasks; empty if the plan says it all.
    needs: Vec<Vec<(u32, Rank, u64)>>,
}

impl Crossing {
    /// From all units that are sent. `told` has tasks for which a worker of a host waits: whose, the host, and the task.
    pub(crate) fn new(
        workers: usize,
        hosts: usize,
        mut sent: Vec<Sent>,
        told: Vec<(Rank, usize, usize)>,
    ) -> Crossing {
        let mut routes: Vec<Route> = (0..workers * hosts).map(|_| Route::default()).collect();
        sent.sort_unstable();
        for one in &sent {
            routes[one.from as usize * hosts + one.to as usize].add(one);
        }
        for (from, to, task) in told {
            let told = &mut routes[from as usize * hosts + to].told;
            told.resize(told.len().max(task / 64 + 1), 0);
            told[task / 64] |= 1 << (task % 64);
        }
        Crossing { hosts, routes, needs: Vec::new() }
    }

    /// With what tasks have to wait for beside what they say, as it follows from that only by way of others.
    pub(crate) fn with_needs(self, needs: Vec<Vec<(u32, Rank, u64)>>) -> Crossing {
        Crossing { needs, ..self }
    }

    /// Further waits of a worker's task: for which other workers, and how many tasks of each must be done.
    pub(crate) fn needs(&self, rank: Rank, task: usize) -> impl Iterator<Item = (Rank, u64)> + Clone + '_ {
        let all = self.needs.get(rank as usize).map_or(&[][..], |needs| needs);
        let first = all.partition_point(|need| (need.0 as usize) < task);
        all[first..].iter().take_while(move |need| need.0 as usize == task).map(|need| (need.1, need.2))
    }

    pub(crate) fn route(&self, from: Rank, to: usize) -> &Route {
        &self.routes[from as usize * self.hosts + to]
    }

    /// The bytes that hosts send each other in so many passes: `bytes[from][to]`, if worker `w` is on `host_of[w]`.
    pub(crate) fn bytes(&self, host_of: &[usize], passes: usize, unit_bytes: &[usize]) -> Vec<Vec<u64>> {
        let mut all = vec![vec![0; self.hosts]; self.hosts];
        for (rank, from) in host_of.iter().enumerate() {
            for (to, sum) in all[*from].iter_mut().enumerate() {
                *sum += self.route(rank as Rank, to).bytes(passes, unit_bytes);
            }
        }
        all
    }
}
