//! What goes from host to host while workers of several hosts run a plan over arrays of which each host has a copy: which units
//! of which arrays a worker sends to a host after which of its tasks.
//!
//! A unit (a row, or an element) is sent to a host when a task there touches it, and the host has not what was written to it last;
//! by the worker that wrote it last, after the task that did. As who touches it waits for that task, and whoever writes it next
//! waits for those who have touched it, what has come may be put in place at any time before the task that needs it: no task of the
//! host touches it meanwhile.
mod position;

pub(crate) use self::position::Position;
use crate::error::Rank;

/// Units of an array that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    pub(crate) array: u32,
    pub(crate) first: u32,
    pub(crate) count: u32,
}

/// In which passes a piece is sent after its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum When {
    /// In all: a later task of the same pass needs it.
    Always,
    /// In all but the last: a task of the next pass does.
    BeforeLast,
    /// After the last, when all tasks are done: the host is the array's home, which has all of it in the end.
    InEnd,
}

/// Units that a worker sends to a host after one of its tasks of a pass.
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

/// What one worker sends to another host.
#[derive(Debug, Default)]
pub(crate) struct Route {
    /// Before its first task: what the arrays were before the run.
    initial: Vec<Piece>,
    /// Where the pieces of each task begin, in the order of tasks; the last, where they end. Empty if there are none.
    starts: Vec<u32>,
    pieces: Vec<(When, Piece)>,
    /// By task, as bits: whether a worker of the host waits for it.
    told: Vec<u64>,
}

impl Route {
    /// What is sent before the first task.
    pub(crate) fn initial(&self) -> &[Piece] {
        &self.initial
    }

    /// The bytes of what is sent before the first task; `unit_bytes` has the size of a unit of each array.
    pub(crate) fn initial_bytes(&self, unit_bytes: &[usize]) -> u64 {
        self.initial
            .iter()
            .map(|piece| u64::from(piece.count) * unit_bytes[piece.array as usize] as u64)
            .sum()
    }

    /// The bytes of all that is sent in so many passes.
    fn bytes(&self, passes: usize, unit_bytes: &[usize]) -> u64 {
        let times = |when: When| match when {
            When::Always => passes,
            When::BeforeLast => passes.saturating_sub(1),
            When::InEnd => passes.min(1),
        };
        let bytes = |(when, piece): &(When, Piece)| {
            times(*when) as u64 * u64::from(piece.count) * unit_bytes[piece.array as usize] as u64
        };
        let initial = if passes == 0 { 0 } else { self.initial_bytes(unit_bytes) };
        initial + self.pieces.iter().map(bytes).sum::<u64>()
    }

    fn of(&self, task: usize) -> &[(When, Piece)] {
        match (self.starts.get(task), self.starts.get(task + 1)) {
            (Some(start), Some(end)) => &self.pieces[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// What is sent after a task of a pass, the last one or another.
    pub(crate) fn after(&self, task: usize, is_last: bool) -> impl Iterator<Item = Piece> + '_ {
        let is_due = move |(when, piece): &(When, Piece)| is_sent(*when, is_last).then_some(*piece);
        self.of(task).iter().filter_map(is_due)
    }

    /// What is sent when the worker has done all its tasks.
    pub(crate) fn home(&self) -> impl Iterator<Item = Piece> + '_ {
        self.pieces.iter().filter_map(|(when, piece)| (*when == When::InEnd).then_some(*piece))
    }

    /// Whether a worker of the host waits for a task.
    pub(crate) fn tells(&self, task: usize) -> bool {
        self.told.get(task / 64).is_some_and(|word| word >> (task % 64) & 1 != 0)
    }
}

fn is_sent(when: When, is_last: bool) -> bool {
    match when {
        When::Always => true,
        When::BeforeLast => !is_last,
        When::InEnd => false,
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
    /// From all units that are sent, and those that are before the first tasks: of the first worker of a host to another. `told` has
    /// tasks for which a worker of a host waits.
    pub(crate) fn new(
        workers: usize,
        hosts: usize,
        tasks: usize,
        mut initial: Vec<Sent>,
        mut sent: Vec<Sent>,
        told: impl Iterator<Item = (Rank, usize, usize)>,
    ) -> Crossing {
        let mut routes: Vec<Route> = (0..workers * hosts).map(|_| Route::default()).collect();
        initial.sort_unstable();
        sent.sort_unstable();
        for one in &initial {
            let route = &mut routes[one.from as usize * hosts + one.to as usize];
            match route.initial.last_mut() {
                Some(last) if follows(*last, one) => last.count += one.count,
                _ => route.initial.push(piece(one)),
            }
        }
        for of_route in sent.chunk_by(|one, other| (one.from, one.to) == (other.from, other.to)) {
            let route = &mut routes[of_route[0].from as usize * hosts + of_route[0].to as usize];
            for one in of_route {
                let is_new = route.starts.len() <= one.task as usize + 1;
                route.starts.resize(route.starts.len().max(one.task as usize + 2), route.pieces.len() as u32);
                match route.pieces.last_mut() {
                    Some((when, last)) if !is_new && *when == one.when && follows(*last, one) => {
                        last.count += one.count;
                    }
                    _ => route.pieces.push((one.when, piece(one))),
                }
                route.starts[one.task as usize + 1] = route.pieces.len() as u32;
            }
        }
        for (from, to, task) in told {
            let route = &mut routes[from as usize * hosts + to];
            route.told.resize(route.told.len().max(tasks.div_ceil(64)), 0);
            route.told[task / 64] |= 1 << (task % 64);
        }
        Crossing { hosts, routes, needs: Vec::new() }
    }

    /// With what tasks have to wait for beside what they say, as it follows from that only by way of others.
    pub(crate) fn with_needs(self, needs: Vec<Vec<(u32, Rank, u64)>>) -> Crossing {
        Crossing { needs, ..self }
    }

    /// What a worker's task waits for besides: other workers, and how many tasks of each must be done.
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

fn piece(one: &Sent) -> Piece {
    Piece { array: one.array, first: one.unit, count: one.count }
}

fn follows(last: Piece, one: &Sent) -> bool {
    last.array == one.array && last.first + last.count == one.unit
}
