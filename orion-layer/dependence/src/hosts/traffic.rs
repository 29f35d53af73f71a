//! Bytes that hosts send each other in a pass.
use super::Hosts;
use crate::loop_nest::LoopNest;
use crate::placement::{Placement, Rank};
use serde::Serialize;

/// Bytes that hosts send each other in a pass of a loop that keeps its dependences, by link. A part goes to the host of who takes it
/// alone; what is written stays where it is until somebody elsewhere reads it, which is no part of this.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// `handed[a][b]`: of parts that workers of host `a` hand over to workers of host `b`.
    pub handed: Vec<Vec<f64>>,
    /// `begun[a][b]`: of parts that were left with workers of host `a` by the last pass, and begin with workers of host `b`.
    pub begun: Vec<Vec<f64>>,
}

impl Traffic {
    /// The traffic of one pass after another.
    pub fn of(nest: &LoopNest, placement: &Placement, hosts: &Hosts) -> Traffic {
        let none = vec![vec![0.0; hosts.count()]; hosts.count()];
        let mut traffic = Traffic { handed: none.clone(), begun: none };
        for (worker, tiles) in placement.tiles.iter().enumerate() {
            for (array, part, to) in tiles.iter().flat_map(|tile| &tile.gives) {
                let (from, to) = (hosts.of(worker), hosts.of(*to as usize));
                if from != to {
                    traffic.handed[from][to] += placement.part_bytes(nest, *array, *part);
                }
            }
        }
        for (array, part, ends) in begun(nest, placement, hosts) {
            let [from, to] = ends.map(|rank| hosts.of(rank as usize));
            traffic.begun[from][to] += placement.part_bytes(nest, array, part);
        }
        traffic
    }

    /// Bytes from host `from` to host `to`.
    pub fn on(&self, from: usize, to: usize) -> f64 {
        self.handed[from][to] + self.begun[from][to]
    }

    /// Bytes that the host sends that sends most.
    pub fn busiest(&self) -> f64 {
        let hosts = 0..self.handed.len();
        let sums = hosts.clone().map(|from| hosts.clone().map(|to| self.on(from, to)).sum::<f64>());
        sums.fold(0.0, f64::max)
    }
}

/// The parts of written arrays that a pass leaves on another host than the next one begins with: array, part, and who has it last and
/// first.
pub(super) fn begun(nest: &LoopNest, placement: &Placement, hosts: &Hosts) -> Vec<(usize, usize, [Rank; 2])> {
    let mut begun = Vec::new();
    for (array, ends) in placement.first.iter().zip(&placement.last).enumerate() {
        for (part, ends) in ends.0.iter().zip(ends.1).enumerate().filter(|_| nest.is_written(array)) {
            if let (Some(first), Some(last)) = ends {
                let [from, to] = [*last, *first].map(|rank| hosts.of(rank as usize));
                begun.extend((from != to).then_some((array, part, [*last, *first])));
            }
        }
    }
    begun
}
