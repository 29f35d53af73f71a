//! Connected components of a batch: users and items are the nodes, ratings the edges.

/// Finds components, batch after batch, without clearing a table that is as long as the model in between.
#[derive(Debug)]
pub struct Components {
    /// A row's parent in its tree; valid if the row's stamp is the current batch's.
    parents: Vec<u32>,
    stamps: Vec<u32>,
    stamp: u32,
    /// The number of a root's component; valid if the root is in `rows`.
    numbers: Vec<u32>,
    /// The rows of the current batch, in order of appearance.
    rows: Vec<u32>,
    /// How many ratings each component of the current batch has.
    sizes: Vec<u32>,
}

impl Components {
    /// For `rows` rows in all.
    pub fn new(rows: usize) -> Self {
        let (parents, stamps, numbers) = (vec![0; rows], vec![0; rows], vec![0; rows]);
        Self { parents, stamps, stamp: 0, numbers, rows: Vec::new(), sizes: Vec::new() }
    }

    /// Finds the components of the edges, each a pair of rows. Components are numbered in order of the appearance
    /// of their first row.
    pub fn find(&mut self, edges: impl Iterator<Item = (u32, u32)> + Clone) {
        self.stamp += 1;
        self.rows.clear();
        self.sizes.clear();
        for (a, b) in edges.clone() {
            self.enter(a);
            self.enter(b);
            let (a, b) = (self.root(a), self.root(b));
            // The later row goes under the earlier one's root: with halved paths that is fast enough.
            self.parents[b as usize] = a;
        }
        for place in 0..self.rows.len() {
            let row = self.rows[place];
            if self.parents[row as usize] == row {
                self.numbers[row as usize] = self.sizes.len() as u32;
                self.sizes.push(0);
            }
        }
        for (a, _) in edges {
            let component = self.of(a);
            self.sizes[component] += 1;
        }
    }

    /// The component of a row of the current batch.
    pub fn of(&mut self, row: u32) -> usize {
        let root = self.root(row);
        self.numbers[root as usize] as usize
    }

    /// The rows of the current batch.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Ratings in each component.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    fn enter(&mut self, row: u32) {
        if self.stamps[row as usize] != self.stamp {
            self.stamps[row as usize] = self.stamp;
            self.parents[row as usize] = row;
            self.rows.push(row);
        }
    }

    fn root(&mut self, mut row: u32) -> u32 {
        loop {
            let parent = self.parents[row as usize];
            if parent == row {
                return row;
            }
            let grandparent = self.parents[parent as usize];
            self.parents[row as usize] = grandparent;
            row = grandparent;
        }
    }
}
