//! Accumulators: values that iterations add to, combined in a tree that does not depend on who ran what.
//!
//! A value is a number, or a whole array of them ([`ArraySum`]).
//!
//! Every cell of a loop yields one partial. Partials combine pairwise in a binary tree over the cells' numbers;
//! a worker combines those of its own cells as far as they are neighbours, and sends the rest. The tree is
//! the same whoever combines, so the result has the same bits for every assignment of cells to workers.
mod array_sum;
mod tree;

pub use self::array_sum::{ArraySum, Sums, SumsView};
pub(crate) use self::tree::Tree;

use hectare_dsm::Element;
use hectare_dsm::bytemuck;
use std::fmt::Debug;

/// How values of one accumulator combine.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no accumulator",
    note = "accumulators are `Sum`, `Min`, `Max`, `Fold` and `ArraySum` of `hectare_orion::accumulate`, and types that implement `Accumulator`"
)]
pub trait Accumulator {
    /// The value.
    type Value: Debug;

    /// Whether values may combine in any order, as far as the program cares. If not, those of an ordered loop combine in the order
    /// of its iterations, and it runs by a schedule for which they do.
    const COMMUTES: bool = false;

    /// The neutral value, of an iteration that adds nothing.
    fn identity(&self) -> Self::Value;

    /// Combines two values. Must be associative as far as the program cares; it need not commute.
    fn combine(&self, first: Self::Value, second: Self::Value) -> Self::Value;

    /// Keeps a value that a cell has added up for the next cell of this worker, and leaves something neutral. For values that are
    /// large, and the same in whatever order they are combined; others stay as they are.
    fn set_aside(&self, _value: &mut Self::Value) {}

    /// Adds what was set aside, if anything was, and makes the value whole if it is only something neutral.
    fn take_back(&self, _value: &mut Self::Value) {}

    /// Appends the bytes of a value, for other workers: [`write_one`] of plain numbers.
    fn write(&self, value: &Self::Value, bytes: &mut Vec<u8>);

    /// Reads a value from the front of `bytes`; `None` if it is not there. [`read_one`] of plain numbers.
    fn read(&self, bytes: &mut &[u8]) -> Option<Self::Value>;
}

/// Appends the bytes of plain data.
pub fn write_one<T: Element>(value: &T, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(bytemuck::bytes_of(value));
}

/// Takes plain data off the front of `bytes`; `None` if there are too few.
pub fn read_one<T: Element>(bytes: &mut &[u8]) -> Option<T> {
    let (head, rest) = bytes.split_at_checked(size_of::<T>())?;
    *bytes = rest;
    Some(bytemuck::pod_read_unaligned(head))
}

/// The bytes of an accumulator whose values are plain data.
macro_rules! plain {
    () => {
        fn write(&self, value: &Self::Value, bytes: &mut Vec<u8>) {
            write_one(value, bytes);
        }

        fn read(&self, bytes: &mut &[u8]) -> Option<Self::Value> {
            read_one(bytes)
        }
    };
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

    plain!();
}

/// A number that can be accumulated.
pub trait Number: Element + Debug + Default {
    /// Above all others.
    const HIGHEST: Self;
    /// Below all others.
    const LOWEST: Self;
    /// Whether sums are the same in any order.
    const IS_EXACT: bool;
    /// The sum; integers wrap.
    fn plus(self, other: Self) -> Self;
    /// Whether this is lower than `other`, or NaN.
    fn is_lower(self, other: Self) -> bool;
    /// Whether this is higher than `other`, or NaN.
    fn is_higher(self, other: Self) -> bool;
}

macro_rules! numbers {
    ($($t:ident: $low:ident $high:ident $exact:literal, $a:ident $b:ident, $plus:expr, $lower:expr, $higher:expr;)*) => {$(
        impl Number for $t {
            const HIGHEST: $t = $t::$high;
            const LOWEST: $t = $t::$low;
            const IS_EXACT: bool = $exact;
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
    i32: MIN MAX true, a b, a.wrapping_add(b), a < b, a > b;
    i64: MIN MAX true, a b, a.wrapping_add(b), a < b, a > b;
    u32: MIN MAX true, a b, a.wrapping_add(b), a < b, a > b;
    u64: MIN MAX true, a b, a.wrapping_add(b), a < b, a > b;
    f32: NEG_INFINITY INFINITY false, a b, a + b, a < b || a.is_nan(), a > b || a.is_nan();
    f64: NEG_INFINITY INFINITY false, a b, a + b, a < b || a.is_nan(), a > b || a.is_nan();
}

impl<T: Number> Accumulator for Sum<T> {
    type Value = T;

    const COMMUTES: bool = true;

    fn identity(&self) -> T {
        T::default()
    }

    fn combine(&self, first: T, second: T) -> T {
        first.plus(second)
    }

    plain!();
}

impl<T: Number> Accumulator for Min<T> {
    type Value = T;

    const COMMUTES: bool = true;

    fn identity(&self) -> T {
        T::HIGHEST
    }

    fn combine(&self, first: T, second: T) -> T {
        if first.is_lower(second) { first } else { second }
    }

    plain!();
}

impl<T: Number> Accumulator for Max<T> {
    type Value = T;

    const COMMUTES: bool = true;

    fn identity(&self) -> T {
        T::LOWEST
    }

    fn combine(&self, first: T, second: T) -> T {
        if first.is_higher(second) { first } else { second }
    }

    plain!();
}

/// The accumulators of one loop: a tuple of up to four. What needs more sums is an [`ArraySum`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tuple of at most four accumulators",
    label = "a loop has at most four accumulators, in a tuple, also a single one: `(Sum::<f64>::new(),)`",
    note = "an `ArraySum` is one accumulator with as many sums as it is given"
)]
pub trait Accumulators {
    /// A value of each.
    type Values: Debug;

    /// Whether all commute ([`Accumulator::COMMUTES`]).
    const COMMUTE: bool;

    /// The identities.
    fn identities(&self) -> Self::Values;

    /// Combines each.
    fn combine(&self, first: Self::Values, second: Self::Values) -> Self::Values;

    /// [`Accumulator::set_aside`] of each.
    fn set_aside(&self, values: &mut Self::Values);

    /// [`Accumulator::take_back`] of each.
    fn take_back(&self, values: &mut Self::Values);

    /// Appends the bytes of a value of each.
    fn write(&self, values: &Self::Values, bytes: &mut Vec<u8>);

    /// Reads a value of each from the front of `bytes`; `None` if one is not there.
    fn read(&self, bytes: &mut &[u8]) -> Option<Self::Values>;
}

/// Those that the body of a loop and the runtime share.
impl<C: Accumulators + ?Sized> Accumulators for &C {
    type Values = C::Values;

    const COMMUTE: bool = C::COMMUTE;

    fn identities(&self) -> Self::Values {
        C::identities(self)
    }

    fn combine(&self, first: Self::Values, second: Self::Values) -> Self::Values {
        C::combine(self, first, second)
    }

    fn set_aside(&self, values: &mut Self::Values) {
        C::set_aside(self, values);
    }

    fn take_back(&self, values: &mut Self::Values) {
        C::take_back(self, values);
    }

    fn write(&self, values: &Self::Values, bytes: &mut Vec<u8>) {
        C::write(self, values, bytes);
    }

    fn read(&self, bytes: &mut &[u8]) -> Option<Self::Values> {
        C::read(self, bytes)
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*))*) => {$(
        impl<$($name: Accumulator),*> Accumulators for ($($name,)*) {
            type Values = ($($name::Value,)*);

            const COMMUTE: bool = true $(&& $name::COMMUTES)*;

            #[allow(clippy::unused_unit)]
            fn identities(&self) -> Self::Values {
                ($(self.$index.identity(),)*)
            }

            #[allow(unused_variables, clippy::unused_unit)]
            fn combine(&self, first: Self::Values, second: Self::Values) -> Self::Values {
                ($(self.$index.combine(first.$index, second.$index),)*)
            }

            #[allow(unused_variables)]
            fn set_aside(&self, values: &mut Self::Values) {
                $(self.$index.set_aside(&mut values.$index);)*
            }

            #[allow(unused_variables)]
            fn take_back(&self, values: &mut Self::Values) {
                $(self.$index.take_back(&mut values.$index);)*
            }

            #[allow(unused_variables)]
            fn write(&self, values: &Self::Values, bytes: &mut Vec<u8>) {
                $(self.$index.write(&values.$index, bytes);)*
            }

            #[allow(unused_variables, clippy::unused_unit)]
            fn read(&self, bytes: &mut &[u8]) -> Option<Self::Values> {
                Some(($(self.$index.read(bytes)?,)*))
            }
        }
    )*};
}
tuples! { () (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) }

#[cfg(test)]
mod tests {
    use super::*;

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
