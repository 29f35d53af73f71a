//! How long a pass takes on several hosts: the longest chain of tiles, hand-overs and bytes.
use super::traffic::begun;
use super::{Ahead, Hosts, Link};
use crate::cuts::BlockWeights;
use crate::loop_nest::LoopNest;
use crate::placement::Placement;
use crate::tiles::{Steps, Tile};
use serde::{Deserialize, Serialize};

/// Bytes that move from one core's cache to another's in a nanosecond.
pub(crate) const MOVED_PER_NS: f64 = 4.0;
/// The cost of one hand-over within a host, in nanoseconds.
pub(crate) const HAND_OVER_NS: f64 = 500.0;
/// The cost of barriers per pass within a host, in nanoseconds.
pub(crate) const PASS_NS: f64 = 2000.0;
/// Barriers of a pass that writes: before parts are recalled, before they are handed out, and at the end.
const BARRIERS: f64 = 3.0;

/// The work of a pass.
#[derive(Clone, Debug)]
pub struct Work {
    /// The share of each tile in the iterations, by worker.
    pub(crate) shares: Vec<Vec<f64>>,
    /// All iterations, on one worker, in nanoseconds.
    pub nanoseconds: f64,
}

impl Work {
    /// Work that is spread evenly over the cells of a grid.
    pub fn even(steps: &Steps, grid: &[usize], workers: usize, nanoseconds: f64) -> Work {
        let cells: f64 = grid.iter().map(|cells| *cells as f64).product();
        let share = |tile: &Tile| tile.cells.iter().map(|range| range.len() as f64).product::<f64>() / cells;
        Work { shares: shares(steps, workers, share), nanoseconds }
    }

    /// Work that lies where the iterations are: `weights` were counted along dimensions `dims`, and `cuts` are the values of the
    /// loop's dimensions between cells. The other dimensions are not cut.
    pub fn counted(
        steps: &Steps,
        workers: usize,
        (weights, dims): (&BlockWeights, &[usize]),
        cuts: &[Vec<i64>],
        nanoseconds: f64,
    ) -> Work {
        let all = weights.weights().iter().sum::<u64>().max(1) as f64;
        let share = |tile: &Tile| {
            let ranges = weights.axes().iter().zip(dims).map(|(axis, dim)| {
                let first = cuts[*dim].first().copied().unwrap_or_default();
                let at = |cell: usize| {
                    let bound = (cuts[*dim][cell] - first) as usize;
                    axis.bounds().partition_point(|other| *other < bound).min(axis.parts())
                };
                at(tile.cells[*dim].start)..at(tile.cells[*dim].end)
            });
            let mut blocks = vec![0];
            for (range, axis) in ranges.zip(weights.axes()) {
                let next = |block: usize| range.clone().map(move |part| block * axis.parts() + part);
                blocks = blocks.into_iter().flat_map(next).collect();
            }
            blocks.into_iter().map(|block: usize| weights.weights()[block]).sum::<u64>() as f64 / all
        };
        Work { shares: shares(steps, workers, share), nanoseconds }
    }

    /// The work of the busiest worker, as a multiple of the mean.
    pub fn imbalance(&self) -> f64 {
        let sums = self.shares.iter().map(|tiles| tiles.iter().sum::<f64>());
        sums.fold(0.0, f64::max) * self.shares.len() as f64
    }
}

fn shares(steps: &Steps, workers: usize, share: impl Fn(&Tile) -> f64) -> Vec<Vec<f64>> {
    let of = |worker: usize| {
        let tiles = steps.iter().filter_map(|step| step.get(worker)?.as_ref());
        tiles.map(&share).collect()
    };
    (0..workers).map(of).collect()
}

/// The time of a pass, in nanoseconds, and what it consists of: the sum of the four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PassTime {
    /// Iterations, if all workers had equal shares and nobody waited.
    pub compute_ns: f64,
    /// Unequal shares: workers wait for the busiest, of the pass or of a step.
    pub balance_ns: f64,
    /// Hand-overs and barriers, as many as there are steps.
    pub steps_ns: f64,
    /// Bytes on their way, as far as work does not hide them.
    pub link_ns: f64,
}

/// The bottleneck of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Iterations.
    Compute,
    /// Unequal shares.
    Balance,
    /// Hand-overs and barriers.
    Steps,
    /// Bytes on their way.
    Link,
}

impl PassTime {
    /// All of it.
    pub fn total_ns(&self) -> f64 {
        self.compute_ns + self.balance_ns + self.steps_ns + self.link_ns
    }

    /// The longest of its parts.
    pub fn bound(&self) -> Bound {
        let parts = [
            (Bound::Compute, self.compute_ns),
            (Bound::Balance, self.balance_ns),
            (Bound::Steps, self.steps_ns),
            (Bound::Link, self.link_ns),
        ];
        parts
            .into_iter()
            .reduce(|longest, part| if part.1 > longest.1 { part } else { longest })
            .map_or(Bound::Compute, |(bound, _)| bound)
    }
}

/// How long a pass takes.
///
/// A tile begins when its worker is free and has the tile's parts. A part that goes to another host is sent when the tile that
/// used it ends and the host's link is free, and has come when its bytes have gone; then its taker, once free, waits for the
/// hand-over, of which rounds on its own host are a part: a worker is in a round between two tiles. At the beginning of the pass
/// each host sends what it has and others begin with, but not what was sent ahead while the pass before was still under way
/// ([`Ahead`]). Work runs beside the link: agents have processors of their own.
pub fn pass_time(
    nest: &LoopNest,
    steps: &Steps,
    placement: &Placement,
    work: &Work,
    hosts: &Hosts,
) -> PassTime {
    let writes = (0..nest.arrays.len()).any(|array| nest.is_written(array));
    let barriers = if writes { BARRIERS } else { 1.0 };
    let run = |link: &Link, waits: bool| {
        let chain = Chain { nest, steps, placement, work, hosts, link, waits };
        chain.length() + if waits { barriers * link.barrier_ns + PASS_NS } else { 0.0 }
    };
    let link = match hosts.count() {
        // There, a barrier is part of what each pass costs.
        1 => Link { barrier_ns: 0.0, ..hosts.link },
        _ => hosts.link,
    };
    let free = Link { bytes_per_ns: f64::INFINITY, ..link };
    let (all, without_bytes, alone) = (run(&link, true), run(&free, true), run(&free, false));
    let compute_ns = work.nanoseconds / work.shares.len().max(1) as f64;
    PassTime {
        compute_ns,
        balance_ns: (alone - compute_ns).max(0.0),
        steps_ns: without_bytes - alone.max(compute_ns),
        link_ns: all - without_bytes,
    }
}

struct Chain<'c> {
    nest: &'c LoopNest,
    steps: &'c Steps,
    placement: &'c Placement,
    work: &'c Work,
    hosts: &'c Hosts,
    link: &'c Link,
    /// Whether hand-overs take time.
    waits: bool,
}

impl Chain<'_> {
    /// From the beginning of the pass until the last worker has ended, and the last host has sent all.
    fn length(&self) -> f64 {
        let Chain { placement, hosts, link, .. } = *self;
        let workers = placement.tiles.len();
        // When each part comes, and whether from another host.
        let mut ready: Vec<Vec<(f64, bool)>> =
            placement.first.iter().map(|parts| vec![(0.0, false); parts.len()]).collect();
        let (mut done, mut next) = (vec![0.0f64; workers], vec![0; workers]);
        let mut sent = vec![0.0f64; hosts.count()];
        // Parts that go ahead are in place when a pass begins, and must be again when it ends.
        let mut ahead = vec![Vec::new(); workers];
        for one in Ahead::of(self.nest, placement, hosts) {
            ahead[one.worker].push(one);
        }
        for (array, part, [from, _]) in begun(self.nest, placement, hosts) {
            if ahead[from as usize].iter().any(|one| (one.array, one.part) == (array, part)) {
                continue;
            }
            let from = hosts.of(from as usize);
            sent[from] += placement.part_bytes(self.nest, array, part) / link.bytes_per_ns;
            ready[array][part] = (sent[from], true);
        }
        for step in self.steps {
            let mut leaves = Vec::new();
            for (worker, _) in step.iter().enumerate().filter(|(_, tile)| tile.is_some()) {
                let number = next[worker];
                next[worker] += 1;
                let tile = &placement.tiles[worker][number];
                let needs =
                    tile.parts.iter().zip(&mut ready).flat_map(|(parts, ready)| &mut ready[parts.clone()]);
                let (mut begins, mut from_afar) = (done[worker], false);
                for (comes, is_from_afar) in needs {
                    begins = begins.max(*comes);
                    from_afar |= std::mem::take(is_from_afar);
                }
                if from_afar && self.waits {
                    begins += link.hand_over_ns;
                }
                done[worker] = begins + self.work.shares[worker][number] * self.work.nanoseconds;
                for (array, part, to) in &tile.gives {
                    let bytes = placement.part_bytes(self.nest, *array, *part);
                    match hosts.of(*to as usize) == hosts.of(worker) {
                        true if self.waits => {
                            let comes = done[worker] + HAND_OVER_NS + bytes / MOVED_PER_NS;
                            ready[*array][*part] = (comes, false);
                        }
                        true => ready[*array][*part] = (done[worker], false),
                        false => leaves.push((done[worker], hosts.of(worker), bytes, *array, *part)),
                    }
                }
                for one in ahead[worker].iter().filter(|one| one.tile == number) {
                    let bytes = placement.part_bytes(self.nest, one.array, one.part);
                    leaves.push((done[worker], hosts.of(worker), bytes, one.array, one.part));
                }
            }
            // Who ends first sends first.
            leaves.sort_by(|a, b| a.0.total_cmp(&b.0));
            for (ended, host, bytes, array, part) in leaves {
                sent[host] = sent[host].max(ended) + bytes / link.bytes_per_ns;
                ready[array][part] = (sent[host], true);
            }
        }
        let taken = if self.waits { link.hand_over_ns } else { 0.0 };
        let came = ahead.iter().flatten().map(|one| ready[one.array][one.part].0 + taken);
        done.into_iter().chain(sent).chain(came).fold(0.0, f64::max)
    }
}
