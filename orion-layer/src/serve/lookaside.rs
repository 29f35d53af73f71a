//! Rows that were looked up one by one, and contributions to keys that no slice had foreseen.
use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;

/// Rows by their keys. Rows are added through a shared reference, and stay where they are until all of them go: so what is
/// full is not made larger, but followed by a table with four times as many heads.
#[derive(Debug)]
pub(super) struct LookasideTable<T> {
    heads: Box<[Link<T>]>,
    /// Rows in this table.
    count: Cell<usize>,
    larger: OnceCell<Box<LookasideTable<T>>>,
}

type Link<T> = OnceCell<Box<Node<T>>>;

#[derive(Debug)]
struct Node<T> {
    key: u32,
    row: Box<[T]>,
    next: Link<T>,
}

/// Heads of the first table.
const HEADS: usize = 256;
/// A table is full when it has this many rows for each head.
const FULL: usize = 2;

impl<T> LookasideTable<T> {
    pub(super) fn new() -> LookasideTable<T> {
        LookasideTable::with_heads(HEADS)
    }

    fn with_heads(heads: usize) -> LookasideTable<T> {
        let heads = std::iter::repeat_with(OnceCell::new).take(heads).collect();
        LookasideTable { heads, count: Cell::new(0), larger: OnceCell::new() }
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        if self.count.take() > 0 {
            self.heads.iter_mut().for_each(|head| drop(head.take()));
            self.larger.take();
        }
    }

    /// Forgets a row, and perhaps others.
    pub(super) fn forget(&mut self, key: u32) {
        // How many there were is not known: it stays, and the table is full a little earlier.
        let mut table = self;
        loop {
            let head = key as usize % table.heads.len();
            table.heads[head].take();
            match table.larger.get_mut() {
                Some(larger) => table = larger,
                None => return,
            }
        }
    }

    /// The row of a key, which `fetch` makes unless it is known.
    pub(super) fn row(&self, key: u32, fetch: impl FnOnce() -> Box<[T]>) -> &[T] {
        let mut table = self;
        loop {
            let mut link = &table.heads[key as usize % table.heads.len()];
            while let Some(node) = link.get() {
                if node.key == key {
                    return &node.row;
                }
                link = &node.next;
            }
            if table.count.get() < FULL * table.heads.len() {
                table.count.set(table.count.get() + 1);
                return &link.get_or_init(|| Box::new(Node { key, row: fetch(), next: OnceCell::new() })).row;
            }
            table = table.larger.get_or_init(|| Box::new(LookasideTable::with_heads(4 * table.heads.len())));
        }
    }
}

/// The contributions to a key since the last clock, and the state that was seen at first.
#[derive(Debug)]
pub(super) struct PendingUpdate<T, S> {
    pub(super) sums: Box<[T]>,
    pub(super) seen: Box<[S]>,
}

/// Contributions by their keys.
pub(super) type PendingUpdates<T, S> = BTreeMap<u32, PendingUpdate<T, S>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_made_once_and_stay() {
        let mut table = LookasideTable::new();
        let row = |key: u32, value: u32| table.row(key, || vec![value].into()).to_vec();
        let first = table.row(3, || vec![30].into());
        // In the same chain.
        let colliding = 3 + HEADS as u32;
        assert_eq!((row(colliding, 40), row(3, 31), row(colliding, 41)), (vec![40], vec![30], vec![40]));
        assert_eq!(first, [30]);
        table.forget(3);
        assert_eq!(table.row(3, || vec![32].into()), [32]);
        table.clear();
        assert_eq!(table.row(3, || vec![33].into()), [33]);
    }

    #[test]
    fn more_rows_than_heads() {
        let mut table = LookasideTable::new();
        for turn in 0..2u32 {
            let first = table.row(0, || vec![turn].into());
            for key in 1..10_000 {
                assert_eq!(table.row(key, || vec![key + turn].into()), [key + turn]);
            }
            assert!((1..10_000).all(|key| table.row(key, || vec![0].into()) == [key + turn]));
            assert_eq!(first, [turn]);
            table.forget(9999);
            assert_eq!(table.row(9999, || vec![5].into()), [5]);
            table.clear();
        }
    }
}
