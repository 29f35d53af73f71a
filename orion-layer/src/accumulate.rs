//! Accumulators: values that iterations add to, combined in a tree that does not depend on who ran what.
//!
//! Every cell of a loop yields one partial. Partials combine pairwise in a binary tree over the cells' numbers;
//! a worker combines those of its own cells as far as they are neighbours, and sends the rest. The tree is
//! the same whoever combines, so the result has the same bits for every assignment of cells to workers.
use crate::error::{Error, Result};
use hectare_dsm::Element;
use hectare_dsm::bytemuck;
use std::fmt::Debug;

/// How values of one accumulator combine.
pub trait Accumulator {
    /// The value.
    type Value: Element + Debug;

    /// The neutral value, of an iteration that adds nothing.
    fn identity(&self) -> Self::Value;

    /// Combines two values. Must be associative as far as the program cares; it need not commute.
    fn combine(&self, first: Self::Value, second: Self::Value) -> Self::Value;
}

/// The sum; integers wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum<T>(std::marker::PhantomData<T>);
/// The minimum; NaN if any value is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Min<T>(std::marker::PhantomData<T>);
/// The maximum; NaN if any value is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Max<T>(std::marker::PhantomData<T>);

impl<T> Sum<T> {
    /// The sum of values of this type.
    pub const fn new() -> Sum<T> {
        Sum(std::marker::PhantomData)
    }
}

impl<T> Min<T> {
    /// The minimum of values of this type.
    pub const fn new() -> Min<T> {
        Min(std::marker::PhantomData)
    }
}

impl<T> Max<T> {
    /// The maximum of values of this type.
    pub const fn new() -> Max<T> {
        Max(std::marker::PhantomData)
    }
}

/// An accumulator of one's own: an identity and a function that combines two values.
#[derive(Clone, Copy, Debug)]
pub struct Fold<T, F>(pub T, pub F);

impl<T: Element + Debug, F: Fn(T, T) -> T> Accumulator for Fold<T, F> {
    type Value = T;

    fn identity(&self) -> T {
        self.0
    }

    fn combine(&self, first: T, second: T) -> T {
        (self.1)(first, second)
    }
}

/// A number that can be accumulated.
pub trait Number: Element + Debug + Default {
    /// Above all others.
    const HIGHEST: Self;
    /// Below all others.
    const LOWEST: Self;
    /// The sum; integers wrap.
    fn plus(self, other: Self) -> Self;
    /// Whether this is lower than `other`, or NaN.
    fn is_lower(self, other: Self) -> bool;
    /// Whether this is higher than `other`, or NaN.
    fn is_higher(self, other: Self) -> bool;
}

macro_rules! numbers {
    ($($t:ident: $low:ident $high:ident, $a:ident $b:ident, $plus:expr, $lower:expr, $higher:expr;)*) => {$(
        impl Number for $t {
            const HIGHEST: $t = $t::$high;
            const LOWEST: $t = $t::$low;
            #[inline]
            fn plus(self, other: $t) -> $t {
                let ($a, $b) = (self, other);
                $plus
            }
            fn is_lower(self, other: $t) -> bool {
                let ($a, $b) = (self, other);
                $lower
            }
            fn is_higher(self, other: $t) -> bool {
                let ($a, $b) = (self, other);
                $higher
            }
        }
    )*};
}
numbers! {
    i32: MIN MAX, a b, a.wrapping_add(b), a < b, a > b;
    i64: MIN MAX, a b, a.wrapping_add(b), a < b, a > b;
    u32: MIN MAX, a b, a.wrapping_add(b), a < b, a > b;
    u64: MIN MAX, a b, a.wrapping_add(b), a < b, a > b;
    f32: NEG_INFINITY INFINITY, a b, a + b, a < b || a.is_nan(), a > b || a.is_nan();
    f64: NEG_INFINITY INFINITY, a b, a + b, a < b || a.is_nan(), a > b || a.is_nan();
}

impl<T: Number> Accumulator for Sum<T> {
    type Value = T;

    fn identity(&self) -> T {
        T::default()
    }

    fn combine(&self, first: T, second: T) -> T {
        first.plus(second)
    }
}

impl<T: Number> Accumulator for Min<T> {
    type Value = T;

    fn identity(&self) -> T {
        T::HIGHEST
    }

    fn combine(&self, first: T, second: T) -> T {
        if first.is_lower(second) { first } else { second }
    }
}

impl<T: Number> Accumulator for Max<T> {
    type Value = T;

    fn identity(&self) -> T {
        T::LOWEST
    }

    fn combine(&self, first: T, second: T) -> T {
        if first.is_higher(second) { first } else { second }
    }
}

/// The accumulators of one loop: a tuple of up to four.
pub trait Accumulators {
    /// A value of each.
    type Values: Copy + Debug;

    /// The identities.
    fn identities(&self) -> Self::Values;

    /// Combines each.
    fn combine(&self, first: Self::Values, second: Self::Values) -> Self::Values;

    /// Appends the bytes of a value of each.
    fn write(values: &Self::Values, bytes: &mut Vec<u8>);

    /// Reads a value of each from the front of `bytes`; `None` if there are too few.
    fn read(bytes: &mut &[u8]) -> Option<Self::Values>;
}

fn read_one<T: Element>(bytes: &mut &[u8]) -> Option<T> {
    let (head, rest) = bytes.split_at_checked(size_of::<T>())?;
    *bytes = rest;
    Some(bytemuck::pod_read_unaligned(head))
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*))*) => {$(
        impl<$($name: Accumulator),*> Accumulators for ($($name,)*) {
            type Values = ($($name::Value,)*);

            #[allow(clippy::unused_unit)]
            fn identities(&self) -> Self::Values {
                ($(self.$index.identity(),)*)
            }

            #[allow(unused_variables, clippy::unused_unit)]
            fn combine(&self, first: Self::Values, second: Self::Values) -> Self::Values {
                ($(self.$index.combine(first.$index, second.$index),)*)
            }

            #[allow(unused_variables)]
            fn write(values: &Self::Values, bytes: &mut Vec<u8>) {
                $(bytes.extend_from_slice(bytemuck::bytes_of(&values.$index));)*
            }

            #[allow(unused_variables, clippy::unused_unit)]
            fn read(bytes: &mut &[u8]) -> Option<Self::Values> {
                Some(($(read_one::<$name::Value>(bytes)?,)*))
            }
        }
    )*};
}
tuples! { () (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) }

/// The combined value of cells `index << level .. (index + 1) << level`.
#[derive(Clone, Copy, Debug, PartialEq)]
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

    /// Adds the partial of one cell; each cell is added once, in any order.
    pub(crate) fn add(&mut self, cell: usize, values: C::Values) {
        self.nodes.push(Node { level: 0, index: cell as u64, values });
    }

    /// Combines neighbours as far as they are here.
    fn reduce(&mut self) {
        self.nodes.sort_unstable_by_key(|node| node.index << node.level);
        let mut stack: Vec<Node<C::Values>> = Vec::with_capacity(self.nodes.len().min(64));
        for node in self.nodes.drain(..) {
            stack.push(node);
            while let Some(up) = Self::step(self.accumulators, self.cells, &mut stack) {
                stack.push(up);
            }
        }
        self.nodes = stack;
    }

    /// The parent of the topmost nodes, which are taken off, if it is known.
    fn step(accumulators: &C, cells: u64, stack: &mut Vec<Node<C::Values>>) -> Option<Node<C::Values>> {
        let top = *stack.last()?;
        let (level, index) = (top.level + 1, top.index / 2);
        if top.index.is_multiple_of(2) {
            // The last node of a level has no sibling, and is its own parent.
            let alone = (top.index + 1) << top.level >= cells && (top.index != 0 || 1 << top.level < cells);
            return alone.then(|| {
                stack.pop();
                Node { level, index, values: top.values }
            });
        }
        let below = *stack.get(stack.len().checked_sub(2)?)?;
        (below.level == top.level && below.index + 1 == top.index).then(|| {
            stack.truncate(stack.len() - 2);
            Node { level, index, values: accumulators.combine(below.values, top.values) }
        })
    }

    /// The partials that this worker has to send.
    pub(crate) fn encode(&mut self, bytes: &mut Vec<u8>) {
        self.reduce();
        for node in &self.nodes {
            bytes.extend_from_slice(&node.level.to_le_bytes());
            bytes.extend_from_slice(&node.index.to_le_bytes());
            C::write(&node.values, bytes);
        }
    }

    /// Adds what another worker sent.
    pub(crate) fn decode(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let node = (|| {
                let (level, index) = (read_one(&mut bytes)?, read_one(&mut bytes)?);
                Some(Node { level, index, values: C::read(&mut bytes)? })
            })();
            self.nodes.push(node.ok_or_else(|| Error::Message("decoded: a partial is cut off".into()))?);
        }
        Ok(())
    }

    /// The value of all cells.
    pub(crate) fn root(mut self) -> C::Values {
        self.reduce();
        match self.nodes[..] {
            [node] => node.values,
            _ => self.accumulators.identities(),
        }
    }
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn extremes_carry_nan() {
        let (low, high) = (Min::<f64>::new(), Max::<f32>::new());
        assert!(low.combine(f64::NAN, 1.0).is_nan() && low.combine(1.0, f64::NAN).is_nan());
        assert!(high.combine(f32::NAN, 1.0).is_nan() && high.combine(1.0, f32::NAN).is_nan());
        assert_eq!(low.combine(low.identity(), 3.0), 3.0);
        assert_eq!(high.combine(2.0, high.identity()), 2.0);
        assert_eq!(Min::<i32>::new().combine(4, -4), -4);
    }
}
