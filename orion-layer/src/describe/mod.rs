//! The pieces of a description that `parallel_for!` expands to, besides the call itself. Not for programs.
mod clauses;

pub use self::clauses::{Buffer, Clauses, Entries, Read, Relax, Serve, Write};
pub use crate::contract::CapturedValue;

use crate::accumulate::Fold;
use hectare_dependence::loop_nest::{Access, Affine, LoopNest, LoopVar, Mode, Subscript};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// Turns of the loops in a slice for one iteration of the loop, at most.
const TURNS: u32 = 1 << 24;

/// Counts a turn of a loop in a slice. One that goes on for longer than a body does is given up: it unwinds, and the keys
/// of its interval are looked up one by one.
#[inline]
pub fn turn(turns: u32) -> u32 {
    if turns == TURNS {
        // Without the message of a panic: nothing is wrong with the program.
        std::panic::resume_unwind(Box::new("a slice without an end"));
    }
    turns + 1
}

/// Notes why the loop is not inspected, whose subscripts come from data.
pub fn uninspected(nest: &mut LoopNest, why: &str) {
    nest.uninspected = Some(why.to_owned());
}

/// A sum of products: a number, and values from outside the loop.
pub type Products<'a> = &'a [(i64, &'a [Option<i64>])];

fn sum(products: Products<'_>) -> Option<i64> {
    products.iter().try_fold(0i64, |sum, (factor, values)| {
        let product = values.iter().try_fold(*factor, |product, value| product.checked_mul((*value)?))?;
        sum.checked_add(product)
    })
}

/// A value from outside the loop.
#[derive(Clone, Copy, Debug)]
pub struct Invariant {
    /// The value, modulo 2^64; `None` if it is no integer.
    pub value: Option<i64>,
    /// Whether its type has 64 bits.
    pub is_wide: bool,
}

impl Invariant {
    /// Identifies this description among others at the same place.
    pub fn fingerprint(hash: i64) -> Invariant {
        Invariant { value: Some(hash), is_wide: true }
    }

    /// The key by which a plan is kept.
    pub fn key(self) -> [i64; 2] {
        [self.value.unwrap_or(0), i64::from(self.value.is_some()) + 2 * i64::from(self.is_wide)]
    }
}

/// Integers whose casts to 64 bits are those of their values.
pub trait Integer {
    /// Whether the type has 64 bits.
    const IS_WIDE: bool;

    /// The value, modulo 2^64.
    fn value(&self) -> i64;
}

macro_rules! integers {
    ($is_wide:literal: $($of:ty)*) => { $(
        impl Integer for $of {
            const IS_WIDE: bool = $is_wide;

            fn value(&self) -> i64 {
                *self as i64
            }
        }
    )* };
}

integers!(true: usize isize u64 i64);
integers!(false: u8 u16 u32 i8 i16 i32);

impl<T: Integer> Integer for &T {
    const IS_WIDE: bool = T::IS_WIDE;

    fn value(&self) -> i64 {
        (**self).value()
    }
}

/// A value of which it is not known whether it is an integer. The two traits below tell, by the order in which methods
/// are found: one of the type itself comes before one of a reference to it.
#[derive(Debug)]
pub struct Captured<'a, T: ?Sized>(pub &'a T);

/// For integers.
pub trait OfInteger {
    /// The value.
    fn invariant(&self) -> Invariant;
}

impl<T: Integer> OfInteger for Captured<'_, T> {
    fn invariant(&self) -> Invariant {
        Invariant { value: Some(self.0.value()), is_wide: T::IS_WIDE }
    }
}

/// For all else.
pub trait OfAnything {
    /// No value.
    fn invariant(&self) -> Invariant;
}

impl<T: ?Sized> OfAnything for &Captured<'_, T> {
    fn invariant(&self) -> Invariant {
        Invariant { value: None, is_wide: false }
    }
}

/// The hash of a value from outside, which tells whether it has changed. Found as the traits above are.
pub trait OfHash {
    /// The hash.
    fn trace(&self) -> Option<u64>;
}

impl<T: Hash + ?Sized> OfHash for Captured<'_, T> {
    fn trace(&self) -> Option<u64> {
        let mut hasher = FxHasher::default();
        self.0.hash(&mut hasher);
        Some(hasher.finish())
    }
}

/// For all else.
pub trait OfOther {
    /// Nothing, but for what holds nothing that could change.
    fn trace(&self) -> Option<u64>;
}

impl<T: ?Sized> OfOther for &Captured<'_, T> {
    fn trace(&self) -> Option<u64> {
        (size_of_val(self.0) == 0).then_some(0)
    }
}

/// Types whose values are [`CapturedValue`].
pub trait PlainValue {
    /// The value.
    fn plain(&self) -> CapturedValue;
}

macro_rules! plain_values {
    ($($value:ident: $($of:ty)* => $plain:expr;)*) => { $($(
        impl PlainValue for $of {
            #[inline]
            fn plain(&self) -> CapturedValue {
                let $value = *self;
                $plain
            }
        }
    )*)* };
}

plain_values! {
    value: u8 u16 u32 u64 usize i8 i16 i32 i64 isize i128 => CapturedValue::Integer(value as i128);
    value: u128 => CapturedValue::Large(value);
    value: f32 => CapturedValue::F32(value.to_bits());
    value: f64 => CapturedValue::F64(value.to_bits());
    value: bool => CapturedValue::Bool(value);
    value: char => CapturedValue::Char(value);
}

impl<T: PlainValue> PlainValue for &T {
    #[inline]
    fn plain(&self) -> CapturedValue {
        (**self).plain()
    }
}

/// For plain values. Found as the traits above are.
pub trait OfPlain {
    /// The value.
    fn plain(&self) -> Option<CapturedValue>;
}

impl<T: PlainValue> OfPlain for Captured<'_, T> {
    #[inline]
    fn plain(&self) -> Option<CapturedValue> {
        Some(self.0.plain())
    }
}

/// For all else.
pub trait OfNothingPlain {
    /// Nothing.
    fn plain(&self) -> Option<CapturedValue>;
}

impl<T: ?Sized> OfNothingPlain for &Captured<'_, T> {
    #[inline]
    fn plain(&self) -> Option<CapturedValue> {
        None
    }
}

/// One number made of several, if all are known.
pub fn basis(traces: &[Option<u64>]) -> Option<u64> {
    let mut hasher = FxHasher::default();
    for trace in traces {
        hasher.write_u64((*trace)?);
    }
    Some(hasher.finish())
}

/// The value of a body without accumulators.
#[derive(Clone, Copy, Debug)]
pub struct Finished;

/// An affine form; `None` if it overflows, if a value in it is no integer, or if it was computed in integers of
/// less than 64 bits (not all of `wide`), which wrap around.
pub fn affine(constant: Products<'_>, factors: &[(usize, Products<'_>)], wide: &[bool]) -> Option<Affine> {
    if !wide.iter().all(|is_wide| *is_wide) {
        return None;
    }
    let mut form = Affine::constant(sum(constant)?);
    for (variable, products) in factors {
        if form.coefficients.len() <= *variable {
            form.coefficients.resize(variable + 1, 0);
        }
        let factor = &mut form.coefficients[*variable];
        *factor = factor.checked_add(sum(products)?)?;
    }
    Some(form)
}

/// One index.
pub fn index(form: Option<Affine>) -> Subscript {
    form.map_or(Subscript::Unknown, Subscript::Index)
}

/// `first..last`.
pub fn range(first: Option<Affine>, last: Option<Affine>) -> Subscript {
    first.zip(last).map_or(Subscript::Unknown, |(first, last)| Subscript::Range(first, last))
}

/// An index that is not known.
pub fn anything() -> Subscript {
    Subscript::Unknown
}

/// The variable of a loop inside the body: it runs from the least value of `first` to the greatest of `last`.
pub fn inner(nest: &mut LoopNest, name: &str, first: Option<Affine>, last: Option<Affine>) {
    let bounds = least_and_greatest(nest, first.as_ref())
        .zip(least_and_greatest(nest, last.as_ref()))
        .map(|((start, _), (_, end))| (start, end.max(start)));
    nest.inner.push(LoopVar { name: name.into(), bounds });
}

fn least_and_greatest(nest: &LoopNest, form: Option<&Affine>) -> Option<(i64, i64)> {
    let form = form?;
    let (mut least, mut greatest) = (form.constant, form.constant);
    for (variable, factor) in nest.dims.iter().chain(&nest.inner).zip(&form.coefficients) {
        if *factor == 0 {
            continue;
        }
        let (start, end) = variable.bounds?;
        // Where the variable takes no value, nothing is run, and any bounds will do.
        let (a, b) = (factor.checked_mul(start)?, factor.checked_mul(end.checked_sub(1)?.max(start))?);
        least = least.checked_add(a.min(b))?;
        greatest = greatest.checked_add(a.max(b))?;
    }
    Some((least, greatest))
}

/// Adds an access. `row` says that the last dimension is not given and means all of it; no subscripts at all mean
/// anything in every dimension.
pub fn access(
    nest: &mut LoopNest,
    array: usize,
    subscripts: &[Subscript],
    row: bool,
    mode: Mode,
    text: &str,
    line: u32,
) {
    let mut subscripts = subscripts.to_vec();
    if row {
        subscripts.push(Subscript::Full);
    }
    // One value may be an array of indices.
    let dims = nest.arrays[array].shape.len();
    if subscripts.len() != dims {
        subscripts = vec![Subscript::Unknown; dims];
    }
    nest.accesses.push(Access { array, subscripts, mode, text: text.into(), line });
}

/// A fold, with the types of its function known.
pub fn fold<T, F: Fn(T, T) -> T>(identity: T, combine: F) -> Fold<T, F> {
    Fold(identity, combine)
}
