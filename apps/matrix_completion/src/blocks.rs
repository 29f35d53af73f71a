//! Users and items in blocks, and the ratings in the cells between them: what mode `handover` works on.
//!
//! Cells in different rows and columns of blocks have neither users nor items in common, so workers can be in them
//! at the same time (Gemulla et al., 2011).

use super::data::Rating;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bytes of user rows, and of item rows, that a tile of a cell touches: together they fit a core's second-level
/// cache, and each row is used many times before the next tile needs the room.
const TILE_BYTES: usize = 192 << 10;

/// Rows of one side of the model, dealt out to blocks.
#[derive(Debug)]
pub struct Side {
    /// The rows of each block.
    pub blocks: Vec<Vec<u32>>,
    /// Where each row is: block and place.
    places: Vec<(u32, u32)>,
}

impl Side {
    /// Deals rows out to `count` blocks with about as many ratings each: the row with most ratings first, to the
    /// block with fewest (Graham, 1969). So popular rows come first in each block too, which brings most ratings
    /// into few tiles.
    fn new(ratings_of: &[u32], count: usize) -> Self {
        let mut order: Vec<u32> = (0..ratings_of.len() as u32).collect();
        order.sort_by_key(|row| Reverse(ratings_of[*row as usize]));
        let mut blocks = vec![Vec::new(); count];
        let mut places = vec![(0, 0); ratings_of.len()];
        let mut loads: BinaryHeap<_> = (0..count).map(|block| Reverse((0, block))).collect();
        for row in order {
            let Some(Reverse((load, block))) = loads.pop() else { break };
            places[row as usize] = (block as u32, blocks[block].len() as u32);
            blocks[block].push(row);
            // Rows without ratings count too, so that blocks do not differ in size more than they must.
            loads.push(Reverse((load + u64::from(ratings_of[row as usize]) + 1, block)));
        }
        Self { blocks, places }
    }
}

/// The blocks and cells of a data set.
#[derive(Debug)]
pub struct Blocks {
    /// Users: a block for each worker.
    pub users: Side,
    /// Items: several blocks for each worker.
    pub items: Side,
    /// Ratings of each cell, by block of users and then of items. A rating's rows are places in its blocks.
    cells: Vec<Vec<Rating>>,
}

impl Blocks {
    /// Blocks for `workers` workers, with `item_blocks` blocks of items, for rows of `row_bytes` bytes.
    ///
    /// # Panics
    /// When a rating's row does not exist.
    pub fn new(
        ratings: &[Rating],
        [users, items]: [usize; 2],
        workers: usize,
        item_blocks: usize,
        row_bytes: usize,
    ) -> Self {
        let (mut of_users, mut of_items) = (vec![0; users], vec![0; items]);
        for rating in ratings {
            of_users[rating.user as usize] += 1;
            of_items[rating.item as usize] += 1;
        }
        let (users, items) = (Side::new(&of_users, workers), Side::new(&of_items, item_blocks));
        let mut cells = vec![Vec::new(); workers * item_blocks];
        for rating in ratings {
            let (user_block, user) = users.places[rating.user as usize];
            let (item_block, item) = items.places[rating.item as usize];
            let cell = user_block as usize * item_blocks + item_block as usize;
            cells[cell].push(Rating { user, item, value: rating.value });
        }
        // Tile by tile; within a tile, ratings keep the order in which they came, which is random.
        let tile = (TILE_BYTES / row_bytes).max(1) as u32;
        for cell in &mut cells {
            cell.sort_by_key(|rating| {
                let (across, down) = (rating.item / tile, rating.user / tile);
                // There and back, so that one of the two sides is still in the cache.
                (across, if across % 2 == 0 { down } else { u32::MAX - down })
            });
        }
        Self { users, items, cells }
    }

    /// Workers.
    pub fn workers(&self) -> usize {
        self.users.blocks.len()
    }

    /// The ratings of a worker's users and the items of block `items`.
    pub fn cell(&self, worker: usize, items: usize) -> &[Rating] {
        &self.cells[worker * self.items.blocks.len() + items]
    }
}
