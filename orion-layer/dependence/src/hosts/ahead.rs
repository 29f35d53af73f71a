//! Parts of arrays that are sent, while a pass runs, to the host where the next pass begins with them.
use super::Hosts;
use super::traffic::begun;
use crate::loop_nest::LoopNest;
use crate::placement::{Placement, Rank};

/// A part of an array that can be sent to where the next pass begins with it while this one still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ahead {
    /// The worker that has it last.
    pub worker: usize,
    /// The last of that worker's tiles that needs it.
    pub tile: usize,
    /// The array.
    pub array: usize,
    /// Its part.
    pub part: usize,
    /// The worker that needs it first.
    pub to: Rank,
}

impl Ahead {
    /// The parts that can be sent ahead in a pass that another one follows: those that the next pass begins with on another host than
    /// this one leaves them on, and that the worker who has them last does not need in its last tile.
    pub fn of(nest: &LoopNest, placement: &Placement, hosts: &Hosts) -> Vec<Ahead> {
        let mut found = Vec::new();
        for (array, part, [last, to]) in begun(nest, placement, hosts) {
            let worker = last as usize;
            let tiles = &placement.tiles[worker];
            let user = tiles.iter().rposition(|tile| tile.parts[array].contains(&part));
            if let Some(tile) = user.filter(|tile| tile + 1 < tiles.len()) {
                found.push(Ahead { worker, tile, array, part, to });
            }
        }
        found
    }
}
