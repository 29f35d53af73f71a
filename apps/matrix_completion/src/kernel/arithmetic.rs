//! The instruction sets that the kernel is compiled for, and the operations that differ between them.

use super::Element;

/// The instruction sets that the kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// 512-bit vectors with fused multiply-add.
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// The baseline of the target.
    Baseline,
}

impl Instructions {
    /// The best that this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
            {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }
}

/// Arithmetic that depends on the instruction set.
pub trait Arithmetic: Copy {
    /// `a * b + c`, rounded once or twice.
    fn multiply_add<E: Element>(a: E, b: E, c: E) -> E;

    /// The product of two rows: a sum per lane, over the lines in order, and then the sum of the lanes.
    #[inline(always)]
    fn product<E: Element, const LANES: usize>(p: &[[E; LANES]], q: &[[E; LANES]]) -> E {
        let mut lanes = [E::default(); LANES];
        for (p, q) in p.iter().zip(q) {
            for k in 0..LANES {
                lanes[k] = Self::multiply_add(p[k], q[k], lanes[k]);
            }
        }
        sum(lanes)
    }
}

/// Two operations, two roundings: what every machine has.
#[derive(Clone, Copy, Debug)]
pub struct Separate;

impl Arithmetic for Separate {
    #[inline(always)]
    fn multiply_add<E: Element>(a: E, b: E, c: E) -> E {
        a * b + c
    }
}

macro_rules! fused {
    ($name:ident, $product:ident) => {
        /// Stands for [`Instructions`] of the same name; only `run_on` makes a kernel with it.
        #[cfg(target_arch = "x86_64")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        #[cfg(target_arch = "x86_64")]
        impl Arithmetic for $name {
            #[inline(always)]
            fn multiply_add<E: Element>(a: E, b: E, c: E) -> E {
                a.fused(b, c)
            }

            #[inline(always)]
            fn product<E: Element, const LANES: usize>(p: &[[E; LANES]], q: &[[E; LANES]]) -> E {
                // SAFETY: kernels with this arithmetic run on machines that have these instructions only.
                unsafe { E::$product(p.as_flattened(), q.as_flattened()) }
            }
        }
    };
}

fused!(Avx512, product_avx512);
fused!(Avx2, product_avx2);

/// The sum of the lanes: halves are added until one is left.
#[inline(always)]
fn sum<E: Element, const LANES: usize>(mut lanes: [E; LANES]) -> E {
    let mut width = LANES / 2;
    while width > 0 {
        for k in 0..width {
            lanes[k] += lanes[k + width];
        }
        width /= 2;
    }
    lanes[0]
}
