//! Tiles that are taken as they come free ([`Dynamic`](hectare_dependence::schedule::Dynamic)).
//!
//! All parts that a pass writes are released when it begins. A worker that wants to run a tile acquires the parts that the tile
//! needs, all or none: two tiles that conflict share a part (`verify_dynamic`), and the ownership word of a part lets one worker
//! have it. Which tiles were run is in words that all see (`claims.rs`), written by who has the parts. So what
//! is chosen (`choose.rs`) is a matter of speed alone, and may be a guess; that no tile runs twice, and no two at once that
//! conflict, hangs on the parts.
//!
//! Nobody waits for a part: a worker that finds none of the tiles that are left free waits until another ends one, or fails.
mod choose;
mod claims;

pub(super) use self::claims::{Claims, Progress};
use hectare_dependence::placement::TilePlan;
use hectare_dependence::schedule::{Rotation, Tile, for_each_cell, scrambled};
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::ops::Range;

/// The tiles of a loop, of all workers.
#[derive(Debug)]
pub(super) struct FreeTiles {
    pub(super) tiles: Vec<FreeTile>,
    /// Blocks of all dimensions together.
    blocks: usize,
    pub(super) claims: OnceCell<Claims>,
    /// How many passes have begun.
    pub(super) passes: Cell<u64>,
}

/// A tile that any worker may run.
#[derive(Debug)]
pub(super) struct FreeTile {
    /// Who has its iterations.
    pub(super) home: usize,
    /// Its blocks, one of each dimension of the rotation, numbered together.
    blocks: Vec<usize>,
    /// The parts of each array that it needs.
    pub(super) parts: Vec<Range<usize>>,
    /// Its cells one after the other, in the order in which they are run.
    pub(super) cells: Vec<usize>,
}

impl FreeTiles {
    /// The tiles of a rotation, by worker; cells of `scramble`d ones are run in an order without a pattern.
    pub(super) fn new(rotation: &Rotation, tiles: &[Vec<TilePlan>], scramble: bool) -> FreeTiles {
        let mut numbers = BTreeMap::new();
        let mut number = |dim: usize, start: usize| {
            let next = numbers.len();
            *numbers.entry((dim, start)).or_insert(next)
        };
        let of = |home: usize, plan: &TilePlan, number: &mut dyn FnMut(usize, usize) -> usize| FreeTile {
            home,
            blocks: rotation.dims.iter().map(|dim| number(*dim, plan.tile.cells[*dim].start)).collect(),
            parts: plan.parts.clone(),
            cells: if scramble { scrambled(&plan.tile, rotation.dims[0], 1) } else { in_order(&plan.tile) },
        };
        let mut all = Vec::new();
        for (home, tiles) in tiles.iter().enumerate() {
            all.extend(tiles.iter().map(|plan| of(home, plan, &mut number)));
        }
        let blocks = numbers.len();
        FreeTiles { tiles: all, blocks, claims: OnceCell::new(), passes: Cell::new(0) }
    }
}

fn in_order(tile: &Tile) -> Vec<usize> {
    let mut cells = Vec::new();
    for_each_cell(tile, |cell| {
        cells.extend_from_slice(cell);
        true
    });
    cells
}
