//! Rows that were looked up one by one, and contributions to keys that no slice had foreseen.
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Rows by their keys. Rows are added through a shared reference, and stay where they are until all of them go.
#[derive(Debug)]
pub(super) struct Looked<T> {
    heads: Vec<Link<T>>,
}

type Link<T> = OnceCell<Box<Node<T>>>;

#[derive(Debug)]
struct Node<T> {
    key: u32,
    row: Box<[T]>,
    next: Link<T>,
}

const HEADS: usize = 256;

impl<T> Looked<T> {
    pub(super) fn new() -> Looked<T> {
        Looked { heads: Vec::new() }
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        if self.heads.is_empty() {
            self.heads.resize_with(HEADS, OnceCell::new);
        }
        self.heads.iter_mut().for_each(|head| drop(head.take()));
    }

    /// Forgets a row.
    pub(super) fn forget(&mut self, key: u32) {
        self.heads[key as usize % HEADS].take();
    }

    /// The row of a key, which `fetch` makes unless it is known.
    pub(super) fn row(&self, key: u32, fetch: impl FnOnce() -> Box<[T]>) -> &[T] {
        let mut link = &self.heads[key as usize % HEADS];
        while let Some(node) = link.get() {
            if node.key == key {
                return &node.row;
            }
            link = &node.next;
        }
        &link.get_or_init(|| Box::new(Node { key, row: fetch(), next: OnceCell::new() })).row
    }
}

/// What was contributed to a key since the last clock, and what was seen of its state at first.
#[derive(Debug)]
pub(super) struct Extra<T, S> {
    pub(super) sums: Box<[T]>,
    pub(super) seen: Box<[S]>,
}

/// Contributions by their keys.
pub(super) type Extras<T, S> = BTreeMap<u32, Extra<T, S>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_made_once_and_stay() {
        let mut looked = Looked::new();
        looked.clear();
        let row = |key: u32, value: u32| looked.row(key, || vec![value].into()).to_vec();
        let first = looked.row(3, || vec![30].into());
        // In the same chain.
        let colliding = 3 + HEADS as u32;
        assert_eq!((row(colliding, 40), row(3, 31), row(colliding, 41)), (vec![40], vec![30], vec![40]));
        assert_eq!(first, [30]);
        looked.forget(3);
        assert_eq!(looked.row(3, || vec![32].into()), [32]);
        looked.clear();
        assert_eq!(looked.row(3, || vec![33].into()), [33]);
    }
}
