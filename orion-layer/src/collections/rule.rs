//! How contributions to a map are merged.

/// How contributions are merged: a closure `Fn(&mut V, V)`, or one of those ready made.
///
/// A rule must be associative: contributions are merged in parts, and the parts then with each other, in their order. How they are
/// parted depends on the schedule.
///
/// A key that is not there gets the first contribution as its value. A rule that panics ends the loop, or the call, with
/// [`Error::RulePanicked`](crate::Error::RulePanicked).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no rule for a map of `{V}`",
    label = "does not merge values of this type",
    note = "rules of maps are those of the module `collections` (`Sum`, `Min`, `Max`, `First`, `Last`, for lists `Append`) and closures \
            `|value: &mut V, later: V|`; those of the module `relax` are for buffered and served arrays"
)]
pub trait Merge<V>: 'static {
    /// A contribution.
    type Part;

    /// The value of a key's first contribution.
    fn first(&self, part: Self::Part) -> V;

    /// Merges a contribution into a value.
    fn add(&self, value: &mut V, part: Self::Part);

    /// Merges a value, made of later contributions, into an earlier one.
    fn merge(&self, value: &mut V, later: V);
}

#[diagnostic::do_not_recommend]
impl<V, F: Fn(&mut V, V) + 'static> Merge<V> for F {
    type Part = V;

    fn first(&self, part: V) -> V {
        part
    }

    fn add(&self, value: &mut V, part: V) {
        self(value, part);
    }

    fn merge(&self, value: &mut V, later: V) {
        self(value, later);
    }
}

/// Numbers that [`Sum`] adds up.
pub trait Summable: Copy + 'static {
    /// The sum; of integers, modulo 2^bits.
    fn plus(self, other: Self) -> Self;
}

macro_rules! summable {
    ($($integer:ty),*; $($float:ty),*) => {
        $(impl Summable for $integer {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        })*
        $(impl Summable for $float {
            fn plus(self, other: Self) -> Self {
                self + other
            }
        })*
    };
}
summable!(u8, i8, u16, i16, u32, i32, u64, i64, usize, isize; f32, f64);

macro_rules! rules {
    ($($(#[$about:meta])* $rule:ident<$v:ident: $bound:path> |$value:ident, $part:ident| $merge:expr;)*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $rule;

        impl<$v: $bound + 'static> Merge<$v> for $rule {
            type Part = $v;

            fn first(&self, part: $v) -> $v {
                part
            }

            fn add(&self, $value: &mut $v, $part: $v) {
                $merge;
            }

            fn merge(&self, $value: &mut $v, $part: $v) {
                $merge;
            }
        }
    )*};
}
rules! {
    /// Adds up.
    Sum<V: Summable> |value, part| *value = value.plus(part);
    /// Keeps the least; of equal ones the first.
    Min<V: Ord> |value, part| if part < *value { *value = part };
    /// Keeps the greatest; of equal ones the first.
    Max<V: Ord> |value, part| if part > *value { *value = part };
    /// Keeps what is there: a key that is known stays as it is.
    First<V: Sized> |_value, part| drop(part);
    /// Takes what comes: the last contribution in the order of the loop.
    Last<V: Sized> |value, part| *value = part;
}

/// Makes a list of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Append;

impl<T: 'static> Merge<Vec<T>> for Append {
    type Part = T;

    fn first(&self, part: T) -> Vec<T> {
        vec![part]
    }

    fn add(&self, value: &mut Vec<T>, part: T) {
        value.push(part);
    }

    fn merge(&self, value: &mut Vec<T>, mut later: Vec<T>) {
        value.append(&mut later);
    }
}
