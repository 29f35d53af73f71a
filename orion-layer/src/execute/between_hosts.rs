//! What a loop that keeps its dependences sends from host to host.
use hectare_dependence::loop_nest::LoopNest;
use hectare_dependence::placement::{ArrayPlacement, Placement};
use serde::Serialize;

/// Bytes that the hosts of a program send each other in a pass of a loop, without what clocks of relaxed arrays add. Every host has
/// copies of all arrays: each byte counts once for each other host.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BetweenHosts {
    /// How many hosts.
    pub hosts: usize,
    /// Of parts that workers of different hosts hand over.
    pub handed: f64,
    /// Of what is written, at the end of the pass.
    pub written: f64,
}

impl BetweenHosts {
    /// Parts that go back to who begins with them do not count: they were written at the end of the last pass, to all hosts.
    pub(super) fn of(
        nest: &LoopNest,
        placement: &Placement,
        hosts: usize,
        host_of: impl Fn(usize) -> usize,
    ) -> BetweenHosts {
        let copies = hosts.saturating_sub(1) as f64;
        let crosses = |from: usize, to: usize| host_of(from) != host_of(to);
        let mut handed = 0.0;
        for (rank, tiles) in placement.tiles.iter().enumerate() {
            for (array, part, to) in tiles.iter().flat_map(|tile| &tile.gives) {
                if crosses(rank, *to as usize) {
                    handed += placement.part_bytes(nest, *array, *part);
                }
            }
        }
        let is_written = |array: usize| nest.accesses_of(array).any(|access| access.mode.writes());
        let written = (0..nest.arrays.len())
            .filter(|array| is_written(*array) && placement.arrays[*array] != ArrayPlacement::Relaxed);
        let bytes = |array: usize| {
            let named = &nest.arrays[array];
            (named.shape.iter().product::<usize>() * named.element_bytes) as f64
        };
        let written = written.map(bytes).fold(0.0, |sum, bytes| sum + bytes);
        BetweenHosts { hosts, handed: handed * copies, written: written * copies }
    }
}
