//! Groups are dealt to workers.
use super::{Batches, Touched};

/// An assignment of groups to workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// The worker of each group.
    pub workers: Vec<u32>,
    /// The sum over all batches of the weight of the busiest worker.
    pub longest: u64,
}

/// The homes of groups are kept if the busiest worker has at most this many times the least load that it could have.
const KEPT: f64 = 1.1;

/// The most that a worker is given of a batch because it has rows already, in shares.
const FULL: f64 = 1.03;

/// Nobody has used a row yet.
const NOBODY: u32 = u32::MAX;

/// Deals the groups of each batch, the heaviest first, to whoever used most of their rows last, unless it has its share already: then
/// to whoever has least. Groups with homes go there, if that is about as even.
pub fn deal(touched: &Touched, batches: &Batches, workers: usize) -> Dealt {
    let weight =
        |group| batches.of_group(group).iter().map(|at| u64::from(touched.weight(*at as usize))).sum();
    let weights: Vec<u64> = match &batches.blocks {
        Some(blocks) => blocks.weights.clone(),
        None => (0..batches.group_count()).map(weight).collect(),
    };
    let homes = batches.homes.iter().max().map_or(0, |most| *most as usize + 1);
    let mut dealt = Dealt { workers: vec![0; weights.len()], longest: 0 };
    let mut last = vec![NOBODY; if homes == 0 { touched.rows() } else { 0 }];
    let mut order: Vec<usize> = Vec::new();
    let (mut loads, mut votes) = (vec![0u64; workers], vec![0u32; workers]);
    for batch in 0..batches.len() {
        let groups = batches.groups_of(batch);
        order.clear();
        order.extend(groups.clone());
        order.sort_unstable_by_key(|group| (std::cmp::Reverse(weights[*group]), *group));
        loads.fill(0);
        let all: u64 = order.iter().map(|group| weights[*group]).sum();
        let full = (all as f64 / workers as f64 * FULL) as u64;
        for group in &order {
            let keys = || batches.of_group(*group).iter().flat_map(|at| touched.of(*at as usize));
            let mut to = (0..workers).min_by_key(|worker| (loads[*worker], *worker)).unwrap_or(0);
            if homes == 0 {
                votes.fill(0);
                for key in keys() {
                    if let Some(votes) = votes.get_mut(last[key.number()] as usize) {
                        *votes += 1;
                    }
                }
                let room = |worker: &usize| loads[*worker] + weights[*group] <= full;
                let most = (0..workers).filter(room).max_by_key(|worker| votes[*worker]);
                to = most.filter(|most| votes[*most] > votes[to]).unwrap_or(to);
                keys().for_each(|key| last[key.number()] = to as u32);
            }
            dealt.workers[*group] = to as u32;
            loads[to] += weights[*group];
        }
        let mut longest = loads.iter().copied().max().unwrap_or(0);
        if homes > 0 {
            let home = |group: usize| batches.homes[group] as usize * workers / homes;
            loads.fill(0);
            groups.clone().for_each(|group| loads[home(group)] += weights[group]);
            let at_home = loads.iter().copied().max().unwrap_or(0);
            if at_home as f64 <= KEPT * longest as f64 {
                groups.for_each(|group| dealt.workers[group] = home(group) as u32);
                longest = at_home;
            }
        }
        dealt.longest += longest;
    }
    dealt
}

impl Dealt {
    /// Appends the iterations that a worker runs in a batch, in an order in which they may run. Where groups have no homes, these
    /// are sorted: no group's order is another.
    pub fn list(&self, batches: &Batches, (batch, worker): (usize, usize), list: &mut Vec<u32>) {
        let from = list.len();
        for group in batches.groups_of(batch).filter(|group| self.workers[*group] as usize == worker) {
            list.extend_from_slice(batches.of_group(group));
        }
        if batches.homes.is_empty() {
            list[from..].sort_unstable();
        }
    }
}
