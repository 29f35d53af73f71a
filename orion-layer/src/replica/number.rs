//! The elements of relaxed arrays: numbers whose changes can be added up.
use crate::accumulate::Number;

/// A number whose change is a number: what another worker did to an element is added to what this one did.
pub trait Additive: Number {
    /// The change from `before` to this; integers wrap.
    fn minus(self, before: Self) -> Self;

    /// Whether it is zero.
    fn is_zero(self) -> bool;

    /// Its size, for the drift that a report tells of.
    fn magnitude(self) -> f64;
}

macro_rules! integers {
    ($($of:ty)*) => {$(
        impl Additive for $of {
            #[inline]
            fn minus(self, before: $of) -> $of {
                self.wrapping_sub(before)
            }

            #[inline]
            fn is_zero(self) -> bool {
                self == 0
            }

            #[inline]
            #[allow(clippy::unnecessary_cast, unused_comparisons)]
            fn magnitude(self) -> f64 {
                // A change of an unsigned number may be a negative one that wrapped.
                let size = self.min(self.wrapping_neg().max(0));
                if self < 0 { -(self as f64) } else if size == 0 { self as f64 } else { size as f64 }
            }
        }
    )*};
}
integers!(i32 i64 u32 u64);

macro_rules! floats {
    ($($of:ty)*) => {$(
        impl Additive for $of {
            #[inline]
            fn minus(self, before: $of) -> $of {
                self - before
            }

            #[inline]
            fn is_zero(self) -> bool {
                self == 0.0
            }

            #[inline]
            fn magnitude(self) -> f64 {
                f64::from(self.abs())
            }
        }
    )*};
}
floats!(f32 f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitudes_of_changes() {
        assert_eq!(3u32.minus(5).magnitude(), 2.0);
        assert_eq!(5u64.minus(3).magnitude(), 2.0);
        assert_eq!(3i32.minus(5).magnitude(), 2.0);
        assert_eq!((i64::MIN).magnitude(), 2f64.powi(63));
        assert_eq!((1.5f32).minus(2.0).magnitude(), 0.5);
        assert_eq!(3u32.plus(2u32.minus(7)), 3u32.wrapping_sub(5));
    }
}
