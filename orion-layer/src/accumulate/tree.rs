//! The fixed tree in which the partials of cells are combined.
use super::{Accumulators, read_one};
use crate::error::{Error, Result};

/// The combined value of cells `index << level .. (index + 1) << level`.
#[derive(Debug)]
struct Node<V> {
    level: u32,
    index: u64,
    values: V,
}

/// Partials of one loop on their way to the root of the tree.
#[derive(Debug)]
pub(crate) struct Tree<'a, C: Accumulators> {
    accumulators: &'a C,
    cells: u64,
    nodes: Vec<Node<C::Values>>,
}

impl<'a, C: Accumulators> Tree<'a, C> {
    /// A tree over `cells` cells.
    pub(crate) fn new(accumulators: &'a C, cells: usize) -> Tree<'a, C> {
        Tree { accumulators, cells: cells as u64, nodes: Vec::new() }
    }

    /// Adds the partial of one cell; each cell is added once, in any order. Of cells that follow each other, few partials are
    /// kept, for they may be large.
    pub(crate) fn add(&mut self, cell: usize, mut values: C::Values) {
        self.accumulators.set_aside(&mut values);
        let node = Node { level: 0, index: cell as u64, values };
        Self::push(self.accumulators, self.cells, &mut self.nodes, node);
    }

    /// Puts a node on top of a stack, and combines it with those below as far as they are its neighbours.
    fn push(accumulators: &C, cells: u64, stack: &mut Vec<Node<C::Values>>, mut node: Node<C::Values>) {
        loop {
            match Self::step(accumulators, cells, stack, node) {
                Ok(parent) => node = parent,
                Err(node) => return stack.push(node),
            }
        }
    }

    /// Combines neighbours as far as they are here.
    fn reduce(&mut self) {
        self.nodes.sort_unstable_by_key(|node| node.index << node.level);
        let mut stack: Vec<Node<C::Values>> = Vec::with_capacity(self.nodes.len().min(64));
        for node in self.nodes.drain(..) {
            Self::push(self.accumulators, self.cells, &mut stack, node);
        }
        self.nodes = stack;
    }

    /// The parent of the node on top of `stack`, if its children are all there; else the node as it was.
    fn step(
        accumulators: &C,
        cells: u64,
        stack: &mut Vec<Node<C::Values>>,
        node: Node<C::Values>,
    ) -> std::result::Result<Node<C::Values>, Node<C::Values>> {
        let (level, index) = (node.level + 1, node.index / 2);
        if node.index.is_multiple_of(2) {
            // The last node of a level has no sibling, and is its own parent.
            let is_last = (node.index + 1) << node.level >= cells;
            let is_alone = is_last && (node.index != 0 || 1 << node.level < cells);
            return if is_alone { Ok(Node { level, index, ..node }) } else { Err(node) };
        }
        let is_sibling =
            |below: &mut Node<C::Values>| below.level == node.level && below.index + 1 == node.index;
        match stack.pop_if(is_sibling) {
            Some(below) => Ok(Node { level, index, values: accumulators.combine(below.values, node.values) }),
            None => Err(node),
        }
    }

    /// The partials that this worker has to send.
    pub(crate) fn encode(&mut self, bytes: &mut Vec<u8>) {
        self.reduce();
        if let Some(first) = self.nodes.first_mut() {
            self.accumulators.take_back(&mut first.values);
        }
        for node in &self.nodes {
            bytes.extend_from_slice(&node.level.to_le_bytes());
            bytes.extend_from_slice(&node.index.to_le_bytes());
            self.accumulators.write(&node.values, bytes);
        }
    }

    /// Adds what another worker sent.
    pub(crate) fn decode(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let node = (|| {
                let (level, index) = (read_one(&mut bytes)?, read_one(&mut bytes)?);
                Some(Node { level, index, values: self.accumulators.read(&mut bytes)? })
            })();
            self.nodes.push(node.ok_or_else(|| Error::Message("decoded: a partial is cut off".into()))?);
        }
        Ok(())
    }

    /// The value of all cells.
    pub(crate) fn root(mut self) -> C::Values {
        self.reduce();
        match self.nodes.pop() {
            Some(mut node) if self.nodes.is_empty() => {
                self.accumulators.take_back(&mut node.values);
                node.values
            }
            _ => self.accumulators.identities(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ArraySum, Fold, Min, Number, Sum, Sums};
    use super::*;

    /// Combination that shows its own shape.
    fn shape(cells: usize, split: impl Fn(usize) -> usize, workers: usize) -> u64 {
        let hash = (Fold(0u64, |a: u64, b: u64| a.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(9) ^ b),);
        let mut root = Tree::new(&hash, cells);
        for worker in 0..workers {
            let mut tree = Tree::new(&hash, cells);
            for cell in (0..cells).rev().filter(|cell| split(*cell) == worker) {
                tree.add(cell, (cell as u64 + 1,));
            }
            let mut bytes = Vec::new();
            tree.encode(&mut bytes);
            root.decode(&bytes).unwrap();
        }
        root.root().0
    }

    #[test]
    fn the_tree_is_the_same_for_every_split() {
        for cells in (1..70).chain([576, 2304]) {
            let alone = shape(cells, |_| 0, 1);
            for workers in [2, 3, 4, 7, 16] {
                assert_eq!(shape(cells, |cell| cell * workers / cells, workers), alone, "{cells} in runs");
                assert_eq!(shape(cells, |cell| cell % workers, workers), alone, "{cells} in turn");
            }
        }
    }

    /// Two workers with every other cell each, who begin cells with what `begin` makes of their accumulators.
    fn arrays<T: Number>(one: T, begin: impl Fn(&(ArraySum<T>,)) -> (Sums<T>,)) -> Vec<T> {
        let sums = [0, 1].map(|_| (ArraySum::<T>::new(3),));
        let mut root = Tree::new(&sums[0], 10);
        for (worker, sums) in sums.iter().enumerate() {
            let mut tree = Tree::new(sums, 10);
            for cell in (0..10).filter(|cell| cell % 2 == worker) {
                let mut values = begin(sums);
                values.0.add(cell % 3, one);
                tree.add(cell, values);
            }
            let mut bytes = Vec::new();
            tree.encode(&mut bytes);
            root.decode(&bytes).unwrap();
        }
        root.root().0.into_vec()
    }

    #[test]
    fn arrays_are_added_up_whoever_makes_the_zeros() {
        assert_eq!(arrays(1u64, |sums| sums.identities()), [4, 3, 3]);
        assert_eq!(arrays(1u64, |_| (ArraySum::new(3),).identities()), [4, 3, 3]);
        assert_eq!(arrays(1.0f32, |sums| sums.identities()), [4.0, 3.0, 3.0]);
    }

    #[test]
    fn partials_of_a_run_are_few() {
        let sums = (Sum::<f64>::new(), Min::<i64>::new());
        let mut tree = Tree::new(&sums, 2304);
        for cell in 768..1536 {
            tree.add(cell, (1.0, cell as i64));
        }
        let mut bytes = Vec::new();
        tree.encode(&mut bytes);
        assert!(bytes.len() / 28 <= 24, "{} nodes", bytes.len() / 28);
        assert_eq!(tree.nodes.iter().map(|node| node.values.0).sum::<f64>(), 768.0);
    }
}
