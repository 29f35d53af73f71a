//! What hosts send each other in a pass.
use super::Hosts;
use crate::loop_nest::LoopNest;
use crate::placement::{ArrayPlacement, Placement};
use serde::Serialize;

/// Bytes that hosts send each other in a pass of a loop that keeps its dependences, by link. Every host has copies of all
/// arrays: what one writes or hands over goes to each of the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// `handed[a]`: of parts that workers of host `a` hand over to workers of other hosts; so many to each other host.
    pub handed: Vec<f64>,
    /// `written[a]`: of what workers of host `a` have written at the end of the pass; so many to each other host.
    pub written: Vec<f64>,
}

impl Traffic {
    /// The traffic of one pass. Parts that go back to who begins with them do not count: they were written at the end of the last
    /// pass, to all hosts.
    pub fn of(nest: &LoopNest, placement: &Placement, hosts: &Hosts) -> Traffic {
        let mut traffic = Traffic { handed: vec![0.0; hosts.count()], written: vec![0.0; hosts.count()] };
        for (worker, tiles) in placement.tiles.iter().enumerate() {
            for (array, part, to) in tiles.iter().flat_map(|tile| &tile.gives) {
                if hosts.of(*to as usize) != hosts.of(worker) {
                    traffic.handed[hosts.of(worker)] += placement.part_bytes(nest, *array, *part);
                }
            }
        }
        for (array, placed) in
            placement.arrays.iter().enumerate().filter(|(array, _)| nest.is_written(*array))
        {
            match placed {
                ArrayPlacement::Parts { .. } => {
                    for (part, last) in placement.last[array].iter().enumerate() {
                        let host = hosts.of(last.unwrap_or_default() as usize);
                        traffic.written[host] += placement.part_bytes(nest, array, part);
                    }
                }
                // All of it is where the loop runs.
                ArrayPlacement::Whole => {
                    let named = &nest.arrays[array];
                    traffic.written[0] +=
                        named.shape.iter().product::<usize>() as f64 * named.element_bytes as f64;
                }
                // Arrays lie in place on one host only.
                ArrayPlacement::Replicated | ArrayPlacement::Relaxed | ArrayPlacement::InPlace => {}
            }
        }
        traffic
    }

    /// Bytes from host `from` to host `to`.
    pub fn on(&self, from: usize, to: usize) -> f64 {
        if from == to { 0.0 } else { self.handed[from] + self.written[from] }
    }

    /// Bytes that the host sends that sends most.
    pub fn busiest(&self) -> f64 {
        let others = self.handed.len().saturating_sub(1) as f64;
        let sums = self.handed.iter().zip(&self.written).map(|(handed, written)| (handed + written) * others);
        sums.fold(0.0, f64::max)
    }
}
