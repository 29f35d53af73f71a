//! Who computes what: batches of the ratings, and in each batch the connected components dealt out to workers
//! (Cyclades: Pan et al., 2016).
//!
//! Within a batch no two workers have a rating with a row in common, and each keeps the order of the batch, so the
//! result is that of the serial loop, bit by bit, whoever computes which component. That freedom is used twice: to
//! balance the load, and to give a component to the worker that last wrote most of its rows (*affinity*), so that
//! fewer rows move between cores.

pub mod imports;

use super::components::Components;
use super::data::Rating;
use imports::Imports;
use std::cmp::Reverse;
use std::sync::OnceLock;

/// How much more than its even share a worker may get of a batch for the sake of affinity.
const SLACK: f64 = 0.15;

/// The options of a plan.
#[derive(Clone, Copy, Debug)]
pub struct PlanOptions {
    /// Ratings in a batch.
    pub batch: usize,
    /// Workers to deal out to.
    pub workers: usize,
    /// Whether components go to the worker that last wrote most of their rows.
    pub affinity: bool,
}

/// The batches of an epoch, dealt out. The same plan serves every epoch.
#[derive(Debug)]
pub struct Plan {
    users: usize,
    items: usize,
    batches: usize,
    streams: Vec<Stream>,
    balance: Balance,
    imports: OnceLock<Imports>,
}

/// A worker's ratings of all batches, one batch after the other.
#[derive(Debug, Default)]
struct Stream {
    ratings: Vec<Rating>,
    /// Where each batch ends.
    ends: Vec<usize>,
}

/// The parallelism that conflicts leave.
#[derive(Clone, Copy, Debug)]
pub struct Balance {
    /// The part of a batch that is in its largest component, on average.
    pub largest_component: f64,
    /// Ratings, over the sum of the largest share of each batch: no schedule of these shares is faster.
    pub speed_up_limit: f64,
}

impl Plan {
    /// Plans an epoch over `ratings`, of `users` and `items`.
    ///
    /// # Panics
    /// When a rating's row does not exist, or there are 2^32 rows or more.
    pub fn new(ratings: &[Rating], users: usize, items: usize, options: PlanOptions) -> Self {
        assert!(users + items < u32::MAX as usize, "rows are numbered with 32 bits");
        assert!(
            ratings.iter().all(|rating| (rating.user as usize) < users && (rating.item as usize) < items),
            "ratings name rows of the model"
        );
        let PlanOptions { batch, workers, affinity } = options;
        let batches = ratings.len().div_ceil(batch);
        let mut streams: Vec<Stream> = (0..workers).map(|_| Stream::default()).collect();
        let (mut largest_components, mut largest_shares) = (0, 0);

        let mut dealer = Dealer::new(users + items, workers, affinity);
        for ratings in ratings.chunks(batch) {
            let edges = ratings.iter().map(|rating| (rating.user, users as u32 + rating.item));
            if workers == 1 {
                streams[0].ratings.extend_from_slice(ratings);
            } else {
                dealer.deal(edges.clone(), ratings.len());
                for (rating, (user, _)) in ratings.iter().zip(edges) {
                    streams[dealer.worker_of(user)].ratings.push(*rating);
                }
            }
            let mut largest_share = 0;
            for stream in &mut streams {
                let begin = stream.ends.last().copied().unwrap_or(0);
                stream.ends.push(stream.ratings.len());
                largest_share = largest_share.max(stream.ratings.len() - begin);
            }
            largest_shares += largest_share;
            largest_components += dealer.components.sizes().iter().max().copied().unwrap_or(0) as usize;
        }
        let balance = Balance {
            largest_component: largest_components as f64 / ratings.len() as f64,
            speed_up_limit: ratings.len() as f64 / largest_shares as f64,
        };
        Self { users, items, batches, streams, balance, imports: OnceLock::new() }
    }

    /// Rows of users: the first `users` row numbers.
    pub fn users(&self) -> usize {
        self.users
    }

    /// Rows of items: their row numbers follow those of the users.
    pub fn items(&self) -> usize {
        self.items
    }

    /// Workers.
    pub fn workers(&self) -> usize {
        self.streams.len()
    }

    /// Batches in an epoch.
    pub fn batches(&self) -> usize {
        self.batches
    }

    /// The parallelism that conflicts leave. The largest component is 0 for one worker, who needs none.
    pub fn balance(&self) -> Balance {
        self.balance
    }

    /// The ratings of `worker` in `batch`, in the order of the batch.
    pub fn share(&self, worker: usize, batch: usize) -> &[Rating] {
        let (ratings, count) = self.share_and_rest(worker, batch);
        &ratings[..count]
    }

    /// The ratings of `worker` in `batch` and in all later batches of the epoch, and how many are in `batch`.
    pub fn share_and_rest(&self, worker: usize, batch: usize) -> (&[Rating], usize) {
        let stream = &self.streams[worker];
        let begin = if batch == 0 { 0 } else { stream.ends[batch - 1] };
        (&stream.ratings[begin..], stream.ends[batch] - begin)
    }

    /// The row numbers of a rating's user and item.
    pub fn rows_of(&self, rating: &Rating) -> [u32; 2] {
        [rating.user, self.users as u32 + rating.item]
    }

    /// Which rows cross from worker to worker, computed when first asked for.
    pub fn imports(&self) -> &Imports {
        self.imports.get_or_init(|| Imports::new(self))
    }
}

/// Deals the components of a batch out to workers, and remembers who wrote which row last.
struct Dealer {
    components: Components,
    affinity: bool,
    loads: Vec<usize>,
    /// The last writer of each row, or `NOBODY`.
    last_writers: Vec<u16>,
    /// For each component and worker, how many rows of the one the other wrote last.
    written: Vec<u32>,
    /// The components, largest first.
    order: Vec<(Reverse<u32>, u32)>,
    /// The worker of each component.
    chosen: Vec<u16>,
}

const NOBODY: u16 = u16::MAX;

impl Dealer {
    fn new(rows: usize, workers: usize, affinity: bool) -> Self {
        assert!(workers < NOBODY as usize, "workers are numbered with 16 bits");
        Self {
            components: Components::new(rows),
            affinity,
            loads: vec![0; workers],
            last_writers: vec![NOBODY; rows],
            written: Vec::new(),
            order: Vec::new(),
            chosen: Vec::new(),
        }
    }

    fn deal(&mut self, edges: impl Iterator<Item = (u32, u32)> + Clone, ratings: usize) {
        let workers = self.loads.len();
        self.components.find(edges);
        let count = self.components.sizes().len();
        self.written.clear();
        self.written.resize(count * workers, 0);
        if self.affinity {
            for place in 0..self.components.rows().len() {
                let row = self.components.rows()[place];
                let writer = self.last_writers[row as usize];
                if writer != NOBODY {
                    self.written[self.components.of(row) * workers + writer as usize] += 1;
                }
            }
        }
        self.order.clear();
        self.order.extend(
            self.components.sizes().iter().zip(0..).map(|(size, component)| (Reverse(*size), component)),
        );
        self.order.sort_unstable();

        // Largest first to the least loaded: within 4/3 of the best balance (Graham, 1969). With affinity, to the
        // one that wrote most of it, as long as that one's share stays within the slack.
        let most = ((ratings as f64 / workers as f64) * (1.0 + SLACK)) as usize;
        self.loads.fill(0);
        self.chosen.clear();
        self.chosen.resize(count, NOBODY);
        for (Reverse(size), component) in &self.order {
            let (size, component) = (*size as usize, *component as usize);
            let written = &self.written[component * workers..][..workers];
            let worker = (0..workers)
                .min_by_key(|worker| {
                    let fits = self.affinity && self.loads[*worker] + size <= most;
                    (!fits, if fits { Reverse(written[*worker]) } else { Reverse(0) }, self.loads[*worker])
                })
                .expect("there is a worker");
            self.loads[worker] += size;
            self.chosen[component] = worker as u16;
        }
        for place in 0..self.components.rows().len() {
            let row = self.components.rows()[place];
            self.last_writers[row as usize] = self.chosen[self.components.of(row)];
        }
    }

    fn worker_of(&self, row: u32) -> usize {
        self.last_writers[row as usize] as usize
    }
}
