//! The elements of factors: `f32` or `f64`.

#[cfg(target_arch = "x86_64")]
use super::product;
use super::{Kernels, Pass, Rate, Step, run_on};
use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// A floating-point number that factors are made of; areas can hold it.
pub trait Element:
    hectare::Element
    + Debug
    + Default
    + PartialOrd
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + 'static
{
    /// Elements in a line of 64 bytes, which is the unit that rows are made of.
    const LANES: usize;

    /// Rounds `value` to this type.
    fn from_f64(value: f64) -> Self;
    /// Exactly.
    fn from_f32(value: f32) -> Self;
    /// Exactly.
    fn to_f64(self) -> f64;
    /// The square root.
    fn sqrt(self) -> Self;
    /// `self * factor + addend`, rounded once.
    fn fused(self, factor: Self, addend: Self) -> Self;
    /// The product of two rows by `product.rs`.
    ///
    /// # Safety
    /// The machine must have the features of `Instructions::Avx512`.
    #[cfg(target_arch = "x86_64")]
    unsafe fn product_avx512(p: &[Self], q: &[Self]) -> Self;
    /// The product of two rows by `product.rs`.
    ///
    /// # Safety
    /// The machine must have the features of `Instructions::Avx2`.
    #[cfg(target_arch = "x86_64")]
    unsafe fn product_avx2(p: &[Self], q: &[Self]) -> Self;
    /// Runs `pass` with the kernel that `kernels` stands for. Call [`Kernels::run`] instead.
    fn run<P: Pass<Self>>(kernels: &Kernels<Self>, rate: Rate<Self>, pass: P) -> P::Out;
}

macro_rules! element {
    ($type:ident, $avx512:ident, $avx2:ident, $lanes:literal, lines: $($lines:literal)*) => {
        impl Element for $type {
            const LANES: usize = $lanes;

            #[inline(always)]
            fn from_f64(value: f64) -> Self {
                value as Self
            }
            #[inline(always)]
            fn from_f32(value: f32) -> Self {
                value.into()
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn fused(self, factor: Self, addend: Self) -> Self {
                self.mul_add(factor, addend)
            }

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn product_avx512(p: &[Self], q: &[Self]) -> Self {
                // SAFETY: the caller vouches for the features.
                unsafe { product::$avx512(p, q) }
            }
            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn product_avx2(p: &[Self], q: &[Self]) -> Self {
                // SAFETY: the caller vouches for the features.
                unsafe { product::$avx2(p, q) }
            }

            fn run<P: Pass<Self>>(kernels: &Kernels<Self>, rate: Rate<Self>, pass: P) -> P::Out {
                // A number of lines that the compiler knows lets it keep both rows in registers; 0 stands for
                // one that it does not know.
                match (kernels.step(), kernels.lines()) {
                    $((Step::Fixed, $lines) => run_on::<_, _, $lanes, $lines, false>(kernels, rate, pass),)*
                    (Step::Fixed, _) => run_on::<_, _, $lanes, 0, false>(kernels, rate, pass),
                    $((Step::Adagrad, $lines) => run_on::<_, _, $lanes, $lines, true>(kernels, rate, pass),)*
                    (Step::Adagrad, _) => run_on::<_, _, $lanes, 0, true>(kernels, rate, pass),
                }
            }
        }
    };
}

// Ranks up to 16, 32, 64 and 100 in f32; 8, 16, 32 and 100 in f64.
element!(f32, f32_avx512, f32_avx2, 16, lines: 1 2 4 7);
element!(f64, f64_avx512, f64_avx2, 8, lines: 1 2 4 13);
