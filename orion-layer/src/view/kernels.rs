//! Row arithmetic with a fixed order of operations, so that it vectorizes and gives the same bits everywhere.
//!
//! A compiler may not reorder the additions of a floating-point sum, so `a.iter().zip(b).map(..).sum()` runs
//! one element at a time. Here a sum runs over sixteen lanes, which are added up pairwise at the end.
use std::array;
use std::hint::black_box;
use std::ops::{Add, AddAssign, Mul};

/// Lanes of a sum.
const LANES: usize = 16;

/// A number that rows are made of.
pub trait Scalar: Copy + Default + Add<Output = Self> + Mul<Output = Self> + AddAssign {}
impl<T: Copy + Default + Add<Output = T> + Mul<Output = T> + AddAssign> Scalar for T {}

/// The inner product of two rows of one length: sixteen partial sums, added up pairwise. Of what is left over when the
/// rows are taken sixteen elements at a time, eight and then four go to the first sums, and the last three, at most,
/// are added in the end, in order.
///
/// # Panics
/// If the rows have different lengths.
///
/// ```
/// assert_eq!(hectare_orion::dot(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]), 32.0);
/// ```
#[inline(always)]
pub fn dot<T: Scalar>(a: &[T], b: &[T]) -> T {
    assert_eq!(a.len(), b.len(), "dot of rows of different lengths");
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [T::default(); LANES];
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for k in 0..LANES {
            lanes[k] += a[k] * b[k];
        }
    }
    let (a_rest, b_rest) = add_lanes::<T, 8>(a_rest, b_rest, &mut lanes);
    let (a_rest, b_rest) = add_lanes::<T, 4>(a_rest, b_rest, &mut lanes);
    a_rest.iter().zip(b_rest).fold(pairwise(&lanes), |sum, (a, b)| sum + *a * *b)
}

/// The sum of the lanes: halves are added to each other until one number is left.
#[inline(always)]
fn pairwise<T: Scalar>(lanes: &[T; LANES]) -> T {
    let eight: [T; 8] = array::from_fn(|k| lanes[k] + lanes[k + 8]);
    // The compiler chooses the width of its vectors from the end on. Were the last two additions in its sight, it would
    // take two lanes at a time everywhere, and half of each vector would be empty.
    let four: [T; 4] = black_box(array::from_fn(|k| eight[k] + eight[k + 4]));
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Adds the products of the first `N` elements to the first `N` lanes, if there are as many; what is left.
#[inline(always)]
fn add_lanes<'a, T: Scalar, const N: usize>(
    a: &'a [T],
    b: &'a [T],
    lanes: &mut [T; LANES],
) -> (&'a [T], &'a [T]) {
    let (Some((a, a_rest)), Some((b, b_rest))) = (a.split_first_chunk::<N>(), b.split_first_chunk::<N>())
    else {
        return (a, b);
    };
    for k in 0..N {
        lanes[k] += a[k] * b[k];
    }
    (a_rest, b_rest)
}

/// The squared Euclidean norm of a row, summed as in [`dot`].
#[inline(always)]
pub fn norm2<T: Scalar>(a: &[T]) -> T {
    dot(a, a)
}

/// `y[k] += factor * x[k]` for every `k`.
///
/// # Panics
/// If the rows have different lengths.
#[inline(always)]
pub fn axpy<T: Scalar>(factor: T, x: &[T], y: &mut [T]) {
    assert_eq!(x.len(), y.len(), "axpy of rows of different lengths");
    for (y, x) in y.iter_mut().zip(x) {
        *y += factor * *x;
    }
}

/// `x[k] *= factor` for every `k`.
#[inline(always)]
pub fn scale<T: Scalar>(factor: T, x: &mut [T]) {
    for x in x {
        *x = *x * factor;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_has_the_documented_order_for_every_length() {
        for len in 0..70usize {
            let a: Vec<f32> = (0..len).map(|k| 1.0 / (k as f32 + 1.0)).collect();
            let b: Vec<f32> = (0..len).map(|k| 0.3 + k as f32).collect();
            let mut lanes = [0f32; 16];
            for k in 0..len / 16 * 16 {
                lanes[k % 16] += a[k] * b[k];
            }
            let mut at = len / 16 * 16;
            for step in [8, 4] {
                if at + step <= len {
                    (0..step).for_each(|k| lanes[k] += a[at + k] * b[at + k]);
                    at += step;
                }
            }
            for width in [8, 4, 2, 1] {
                for k in 0..width {
                    lanes[k] += lanes[k + width];
                }
            }
            let expected = (at..len).fold(lanes[0], |sum, k| sum + a[k] * b[k]);
            assert_eq!(dot(&a, &b).to_bits(), expected.to_bits(), "length {len}");
            let mut y = b.clone();
            axpy(2.0, &a, &mut y);
            scale(0.5, &mut y);
            for k in 0..len {
                assert_eq!(y[k], (b[k] + 2.0 * a[k]) * 0.5);
            }
        }
    }
}
