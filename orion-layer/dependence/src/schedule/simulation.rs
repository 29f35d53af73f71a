//! The model of time against a discrete simulation of a rotation, which knows nothing of schedules, placements and chains: workers on
//! a ring hand blocks to their neighbours, and every host's link sends packets in turn for all that wait for it.
use super::{Rotation, Schedule, Team, Verdict, choose};
use crate::analysis::analyze;
use crate::hosts::{Bound, Hosts, Link, PassTime, Work, pass_time};
use crate::loop_nest::{Access, Affine, LoopNest, LoopVar, Mode, NamedArray, Order, Space, Subscript};
use crate::placement::Placement;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Pieces in which a link sends a block.
const PACKETS: f64 = 16.0;

/// The rotation that is simulated.
struct Ring {
    workers: usize,
    per_host: usize,
    link: Link,
    /// The work of each worker with each block, in nanoseconds.
    work: Vec<Vec<f64>>,
    block_bytes: f64,
    /// The part that a worker keeps, and writes.
    own_bytes: f64,
}

/// An event of the simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A worker has ended a step.
    Worked(usize),
    /// The link of a host has sent a packet.
    Sent(usize),
    /// A block is at the worker that works on it after this one.
    Comes(usize, usize),
}

/// Blocks that wait for a link: what is left of each, and to whom it goes.
type Queue = VecDeque<(f64, (usize, usize))>;

impl Ring {
    fn blocks(&self) -> usize {
        2 * self.workers
    }

    /// The time until all hosts have sent all.
    fn simulate(&self) -> f64 {
        let (workers, blocks) = (self.workers, self.blocks());
        let hosts = workers / self.per_host;
        let packet = self.block_bytes / PACKETS;
        let host = |worker: usize| worker / self.per_host;
        let mut events: BinaryHeap<Reverse<(u64, Event)>> = BinaryHeap::new();
        // Worker w begins with blocks 2w and 2w + 1.
        let mut from_afar = vec![vec![false; blocks]; workers];
        let mut has: Vec<Vec<bool>> =
            (0..workers).map(|worker| (0..blocks).map(|block| block / 2 == worker).collect()).collect();
        let (mut step, mut busy) = (vec![0; workers], vec![false; workers]);
        let mut links: Vec<Queue> = vec![Queue::new(); hosts];
        let mut sends = vec![false; hosts];
        let (mut now, mut ended) = (0, 0);
        // The last pass left each block with the worker after the one that begins with it. It sent the first of the two ahead.
        let goes_back = |first: usize| host(first) != host((first + 1) % workers);
        for first in (0..workers).filter(|first| goes_back(*first)) {
            let (last, block) = ((first + 1) % workers, 2 * first + 1);
            has[first][block] = false;
            links[host(last)].push_back((self.block_bytes, (first, block)));
        }
        loop {
            for worker in 0..workers {
                let block = (2 * worker + step[worker]) % blocks;
                if !busy[worker] && step[worker] < blocks && has[worker][block] {
                    busy[worker] = true;
                    // Who has nothing to do takes part in the rounds of a hand-over, and nobody else.
                    let rounds = if from_afar[worker][block] { self.link.hand_over_ns } else { 0.0 };
                    let takes = rounds + self.work[worker][block];
                    events.push(Reverse((now + takes as u64, Event::Worked(worker))));
                }
            }
            for (number, queue) in links.iter().enumerate() {
                if let Some((left, _)) = queue.front().filter(|_| !sends[number]) {
                    sends[number] = true;
                    let takes = left.min(packet) / self.link.bytes_per_ns;
                    events.push(Reverse((now + takes as u64, Event::Sent(number))));
                }
            }
            let Some(Reverse((at, event))) = events.pop() else { return ended as f64 };
            now = at;
            match event {
                Event::Comes(worker, block) => has[worker][block] = true,
                Event::Worked(worker) => {
                    let block = (2 * worker + step[worker]) % blocks;
                    (busy[worker], step[worker], ended) = (false, step[worker] + 1, now.max(ended));
                    let next = (worker + workers - 1) % workers;
                    // Each block goes once around: the last who has it keeps it.
                    let first = block / 2;
                    if next == first && block % 2 == 0 && goes_back(first) {
                        // For the next pass, while the last step of this one is under way.
                        links[host(worker)].push_back((self.block_bytes, (first, block)));
                    } else if next != first && host(next) == host(worker) {
                        let takes = 500.0 + self.block_bytes / 4.0;
                        events.push(Reverse((now + takes as u64, Event::Comes(next, block))));
                    } else if next != first {
                        links[host(worker)].push_back((self.block_bytes, (next, block)));
                    }
                }
                Event::Sent(number) => {
                    sends[number] = false;
                    let Some((left, to)) = links[number].pop_front() else { continue };
                    ended = now.max(ended);
                    match (left - packet, to) {
                        (left, to) if left > 0.0 => links[number].push_front((left, to)),
                        (_, (worker, block)) => {
                            let is_for_next = block / 2 == worker && block % 2 == 0;
                            if is_for_next {
                                // It is taken when the pass ends.
                                ended = now + self.link.hand_over_ns as u64;
                            }
                            (has[worker][block], from_afar[worker][block]) = (true, true);
                        }
                    }
                }
            }
        }
    }

    /// The loop that does this: `i` stays with its worker, `j` goes around, an element of an array for each of both.
    fn nest(&self) -> LoopNest {
        let extents = [48 * self.workers, 48 * self.workers];
        let var =
            |(name, extent): (&str, usize)| LoopVar { name: name.into(), bounds: Some((0, extent as i64)) };
        let dims = ["i", "j"].into_iter().zip(extents).map(var).collect();
        let mut nest = LoopNest::new("loop", Order::Unordered, Space::Dense, dims);
        let bytes = [self.own_bytes * self.workers as f64, self.block_bytes * self.blocks() as f64];
        for (number, name) in ["rows", "columns"].into_iter().enumerate() {
            let element_bytes = (bytes[number] / extents[number] as f64) as usize;
            nest.arrays.push(NamedArray { name: name.into(), shape: vec![extents[number]], element_bytes });
            nest.accesses.push(Access {
                array: number,
                subscripts: vec![Subscript::Index(Affine::var(number))],
                mode: Mode::Update,
                text: name.into(),
                line: 0,
            });
        }
        nest
    }

    /// The model's prediction, without the constant cost of a pass.
    fn predict(&self) -> PassTime {
        let nest = self.nest();
        let rotation = Rotation::over(vec![0, 1]);
        let grid = rotation.grid(&[48 * self.workers; 2], self.workers);
        let steps = rotation.steps(&grid, self.workers);
        let cuts: Vec<Vec<i64>> = grid
            .iter()
            .map(|cells| (0..=*cells).map(|cell| (48 * self.workers * cell / cells) as i64).collect())
            .collect();
        let placement = Placement::of(&nest, &cuts, &steps, self.workers).unwrap();
        let all: f64 = self.work.iter().flatten().sum();
        let blocks = self.blocks();
        let mut work = Work::even(&steps, &grid, self.workers, all);
        for (worker, shares) in work.shares.iter_mut().enumerate() {
            for (step, share) in shares.iter_mut().enumerate() {
                *share = self.work[worker][(2 * worker + step) % blocks] / all;
            }
        }
        let hosts = Hosts::even(self.workers / self.per_host, self.workers, self.link);
        pass_time(&nest, &steps, &placement, &work, &hosts)
    }

    /// Of some numbers.
    fn random(seed: u64) -> Ring {
        let mut state = seed;
        let mut draw = |from: f64, to: f64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            from + (to - from) * ((state >> 33) as f64 / (1u64 << 31) as f64)
        };
        let per_host = draw(1.0, 4.9) as usize;
        let workers = per_host * draw(2.0, 8.9) as usize;
        let latency = 10f64.powf(draw(3.5, 7.0));
        let link = Link::of_network(latency, 10f64.powf(draw(-2.5, 1.0)));
        let typical = 10f64.powf(draw(5.0, 8.0));
        let work =
            (0..workers).map(|_| (0..2 * workers).map(|_| typical * draw(0.7, 1.3)).collect()).collect();
        let bytes = 10f64.powf(draw(4.0, 7.0));
        Ring {
            workers,
            per_host,
            link,
            work,
            block_bytes: (bytes / 24.0).floor() * 24.0,
            own_bytes: (bytes / 48.0).floor() * 48.0,
        }
    }
}

#[test]
fn the_model_says_what_a_simulation_of_the_ring_does() {
    let mut errors = Vec::new();
    let mut bounds = Vec::new();
    for seed in 0..400 {
        let ring = Ring::random(seed);
        let predicted = ring.predict();
        // Barriers are no part of the simulation.
        let time = predicted.total_ns() - 3.0 * ring.link.barrier_ns - 2000.0;
        let simulated = ring.simulate();
        let error = time / simulated - 1.0;
        assert!(error.abs() < 0.2, "seed {seed}: {time} ns, and simulated {simulated}");
        errors.push(error.abs());
        bounds.push(predicted.bound());
    }
    errors.sort_by(f64::total_cmp);
    assert!(errors[errors.len() / 2] < 0.01, "median error {}", errors[errors.len() / 2]);
    let most = errors[errors.len() * 99 / 100];
    assert!(most < 0.1, "one in a hundred is off by more than {most}");
    for bound in [Bound::Compute, Bound::Steps, Bound::Link] {
        assert!(bounds.contains(&bound), "{bound:?} is not among what was simulated");
    }
}

#[test]
fn parts_of_the_time_add_up_and_grow_with_their_causes() {
    let ring = Ring::random(7);
    let time = ring.predict();
    let slower =
        Ring { link: Link { bytes_per_ns: ring.link.bytes_per_ns / 2.0, ..ring.link }, ..Ring::random(7) };
    let later = Ring {
        link: Link { hand_over_ns: ring.link.hand_over_ns * 3.0 + 1e6, ..ring.link },
        ..Ring::random(7)
    };
    assert!(slower.predict().link_ns > time.link_ns);
    assert!(later.predict().steps_ns > time.steps_ns);
    for part in [time.compute_ns, time.balance_ns, time.steps_ns, time.link_ns] {
        assert!(part >= 0.0 && part <= time.total_ns(), "{time:?}");
    }
}

#[test]
fn links_decide_only_where_bits_do_not_depend_on_it() {
    let slow = Link::of_network(1e8, 10.0);
    let ring = Ring { workers: 2, per_host: 1, work: vec![vec![1e3; 4]; 2], ..Ring::random(1) };
    let hosts = Hosts::even(2, 2, slow);
    let chosen = |nest: &LoopNest, follows_links| {
        let cut = |_: usize, cells: usize| (0..=cells).map(|cell| (96 * cell / cells) as i64).collect();
        let team = Team { hosts: Some(&hosts), follows_links, ..Team::of_one_host(2, false) };
        let choice = choose(nest, &analyze(nest), None, &cut, team).unwrap();
        let of = |verdict: fn(&Verdict) -> bool| {
            let names = choice.candidates.iter().filter(|candidate| verdict(&candidate.verdict));
            names.map(|candidate| candidate.name.clone()).collect::<Vec<_>>()
        };
        let better = of(|verdict| matches!(verdict, Verdict::DifferentBits(_)));
        (of(|verdict| matches!(verdict, Verdict::Chosen(_))).concat(), better)
    };
    let rotation = chosen(&ring.nest(), false);
    assert!(rotation.0.starts_with("rotation"), "{rotation:?}");
    assert_eq!(rotation.1, ["serial"]);
    assert_eq!(chosen(&ring.nest(), true), ("serial".into(), vec![]));
    // Without conflicts, any schedule makes the same bits. It has to pay, though.
    let mut free = ring.nest();
    free.accesses.truncate(1);
    free.accesses[0].mode = Mode::Write;
    assert_eq!(chosen(&free, false).0, chosen(&free, true).0);
}
