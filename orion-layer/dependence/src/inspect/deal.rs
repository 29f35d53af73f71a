//! Groups are dealt to workers.
use super::{Batches, Touched};

/// Which worker runs which groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// The worker of each group.
    pub workers: Vec<u32>,
    /// The sum over all batches of the weight of the busiest worker.
    pub longest: u64,
}

/// The homes of groups are kept if the busiest worker is no heavier than so many times what it could be.
const KEPT: f64 = 1.1;

/// Deals the groups of each batch, the heaviest first, to whoever has least; or by their homes, if that is about as even.
pub fn deal(touched: &Touched, batches: &Batches, workers: usize) -> Dealt {
    let weights: Vec<u64> = (0..batches.group_count())
        .map(|group| batches.of_group(group).iter().map(|at| u64::from(touched.weight(*at as usize))).sum())
        .collect();
    let homes = batches.homes.iter().max().map_or(0, |most| *most as usize + 1);
    let mut dealt = Dealt { workers: vec![0; weights.len()], longest: 0 };
    let mut order: Vec<usize> = Vec::new();
    for batch in 0..batches.len() {
        let groups = batches.groups_of(batch);
        order.clear();
        order.extend(groups.clone());
        order.sort_by_key(|group| (std::cmp::Reverse(weights[*group]), *group));
        let mut loads = vec![0u64; workers];
        for group in &order {
            let least = (0..workers).min_by_key(|worker| (loads[*worker], *worker)).unwrap_or(0);
            dealt.workers[*group] = least as u32;
            loads[least] += weights[*group];
        }
        let mut longest = loads.iter().copied().max().unwrap_or(0);
        if homes > 0 {
            let home = |group: usize| batches.homes[group] as usize * workers / homes;
            let mut loads = vec![0u64; workers];
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
