//! Rows in blocks, and iterations by the blocks that they touch: for loops whose order does not matter.
//!
//! With one row of each of two arrays in an iteration, this is the rotation of Orion and DSGD, over blocks of whatever the data
//! name; with two rows of one array, a tournament in which each pair of blocks meets once.
use super::{Batches, BlockRows, Touched};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// The most groups that are coloured.
const MOST_TILES: usize = 4096;

/// How rows are put into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Neighbours together: blocks are ranges.
    Ranges,
    /// Each to the lightest block, the heaviest row first.
    Spread,
}

/// The block of each row, the rows that are only read, and how often each row is used: blocks of all arrays are numbered through. Rows that nobody writes have
/// none.
fn blocks_of(touched: &Touched, parts: usize, cut: Cut) -> (Vec<u32>, [Vec<u32>; 2]) {
    // There are fewer accesses than that (`Touched::end_iteration`).
    let mut weights = vec![0u32; touched.rows()];
    let mut only_written = true;
    for key in touched.keys() {
        weights[key.number()] += 1;
        only_written &= key.writes();
    }
    let mut written: Vec<bool> = weights.iter().map(|weight| only_written && *weight > 0).collect();
    if !only_written {
        touched.keys().iter().filter(|key| key.writes()).for_each(|key| written[key.number()] = true);
    }
    let is_read = |row: &u32| weights[*row as usize] > 0 && !written[*row as usize];
    let read = (0..touched.rows() as u32).filter(is_read).collect();
    let uses = weights;
    let weights: Vec<u64> = uses.iter().map(|uses| u64::from(*uses)).collect();
    let mut blocks = vec![NONE; touched.rows()];
    for (array, rows) in touched.arrays().enumerate() {
        let first = (array * parts) as u32;
        let all: u64 = rows.clone().filter(|row| written[*row]).map(|row| weights[row]).sum();
        match cut {
            Cut::Ranges => {
                let mut before = 0;
                for row in rows.filter(|row| written[*row]) {
                    // By the middle of the row's weight.
                    let at = (2 * before + weights[row]) * parts as u64 / (2 * all).max(1);
                    blocks[row] = first + (at as u32).min(parts as u32 - 1);
                    before += weights[row];
                }
            }
            Cut::Spread => {
                let mut order: Vec<usize> = rows.filter(|row| written[*row]).collect();
                order.sort_by_key(|row| (Reverse(weights[*row]), *row));
                let mut loads: BTreeSet<(u64, u32)> = (0..parts as u32).map(|part| (0, part)).collect();
                for row in order {
                    let Some((load, part)) = loads.pop_first() else { continue };
                    blocks[row] = first + part;
                    loads.insert((load + weights[row], part));
                }
            }
        }
    }
    (blocks, [read, uses])
}

const NONE: u32 = u32::MAX;

/// The tiles: iterations that touch the same blocks.
struct Tiles {
    /// The blocks of each, in ascending order.
    blocks: Vec<Vec<u32>>,
    /// The tile of each iteration.
    of: Vec<u16>,
    /// How many iterations each has.
    counts: Vec<u32>,
    /// Their weight.
    weights: Vec<u64>,
}

/// Numbers of tiles are of 16 bits.
const _: () = assert!(MOST_TILES <= u16::MAX as usize);

impl Tiles {
    fn of(touched: &Touched, blocks: &[u32], parts: usize) -> Option<Tiles> {
        let side = touched.arrays().count() * parts;
        // Tiles of one or two blocks are found by these; `side` stands for none.
        let mut pairs = vec![NONE; (side + 1) * (side + 1)];
        let mut others: HashMap<Vec<u32>, u32> = HashMap::new();
        let of = Vec::with_capacity(touched.len());
        let mut tiles = Tiles { blocks: Vec::new(), of, counts: Vec::new(), weights: Vec::new() };
        let mut free: Vec<u32> = vec![NONE; parts];
        let mut own: Vec<u32> = Vec::new();
        for iteration in 0..touched.len() {
            if let [a, b] = touched.of(iteration) {
                let (a, b) = (blocks[a.number()], blocks[b.number()]);
                if a < b && b != NONE {
                    // Most often it is known.
                    let known = pairs[a as usize * (side + 1) + b as usize];
                    if known != NONE {
                        tiles.add(known, touched.weight(iteration));
                        continue;
                    }
                }
            }
            own.clear();
            for key in touched.of(iteration) {
                let block = blocks[key.number()];
                if block != NONE && !own.contains(&block) {
                    own.push(block);
                }
            }
            own.sort_unstable();
            let known = match own[..] {
                // In conflict with nothing: in equal shares.
                [] => &mut free[iteration * parts / touched.len()],
                [one] => &mut pairs[one as usize * (side + 1) + side],
                [one, two] => &mut pairs[one as usize * (side + 1) + two as usize],
                _ => match others.get_mut(&own) {
                    Some(_) => others.get_mut(&own)?,
                    None => others.entry(own.clone()).or_insert(NONE),
                },
            };
            if *known == NONE {
                *known = tiles.blocks.len() as u32;
                tiles.blocks.push(own.clone());
                tiles.counts.push(0);
                tiles.weights.push(0);
                if tiles.blocks.len() > MOST_TILES {
                    return None;
                }
            }
            tiles.add(*known, touched.weight(iteration));
        }
        Some(tiles)
    }

    #[inline(always)]
    fn add(&mut self, tile: u32, weight: u32) {
        self.of.push(tile as u16);
        self.counts[tile as usize] += 1;
        self.weights[tile as usize] += u64::from(weight);
    }

    /// The colour of each tile: tiles of one colour share no block. First fit, along the diagonals of the blocks' numbers, which
    /// takes as few colours as can be for pairs of blocks.
    fn colours(&self, parts: usize) -> Vec<u32> {
        let diagonal = |tile: &usize| {
            let sum: usize = self.blocks[*tile].iter().map(|block| *block as usize % parts).sum();
            (self.blocks[*tile].len() == 1, sum % parts, self.blocks[*tile].clone(), *tile)
        };
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        order.sort_by_cached_key(diagonal);
        let mut used: Vec<BTreeSet<u32>> = Vec::new();
        let mut colours = vec![0; self.blocks.len()];
        for tile in order {
            let fits = |used: &BTreeSet<u32>| self.blocks[tile].iter().all(|block| !used.contains(block));
            let colour = used.iter().position(fits).unwrap_or(used.len());
            if colour == used.len() {
                used.push(BTreeSet::new());
            }
            used[colour].extend(&self.blocks[tile]);
            colours[tile] = colour as u32;
        }
        colours
    }
}

/// Batches of tiles of one colour each, of blocks of which every array has `parts`; `None` if there are too many tiles.
pub fn blocks(touched: &Touched, parts: usize, cut: Cut) -> Option<Batches> {
    let (block_of, [read, uses]) = blocks_of(touched, parts, cut);
    let mut tiles = Tiles::of(touched, &block_of, parts)?;
    let colours = tiles.colours(parts);
    let mut order: Vec<usize> = (0..tiles.blocks.len()).collect();
    let home = |tile: usize| tiles.blocks[tile].first().map_or(0, |block| block % parts as u32);
    order.sort_by_key(|tile| (colours[*tile], home(*tile), *tile));
    let mut place = tiles.counts.clone();
    let mut made = Batches::empty();
    let mut end = 0;
    for (at, tile) in order.iter().enumerate() {
        let count = std::mem::replace(&mut place[*tile], end);
        end += count;
        made.groups.push(end);
        made.homes.push(home(*tile));
        if order.get(at + 1).is_none_or(|next| colours[*next] != colours[*tile]) {
            made.batches.push(at as u32 + 1);
        }
    }
    made.iterations = vec![0; touched.len()];
    for (iteration, tile) in tiles.of.iter().enumerate() {
        let at = &mut place[usize::from(*tile)];
        made.iterations[*at as usize] = iteration as u32;
        *at += 1;
    }
    let mut rows = vec![Vec::new(); touched.arrays().count() * parts];
    for (row, block) in (0u32..).zip(&block_of).filter(|(_, block)| **block != NONE) {
        rows[*block as usize].push(row);
    }
    let of_group = order.iter().map(|tile| std::mem::take(&mut tiles.blocks[*tile])).collect();
    let weights = order.iter().map(|tile| tiles.weights[*tile]).collect();
    made.blocks = Some(BlockRows { rows, read, uses, of_group, weights });
    Some(made)
}
