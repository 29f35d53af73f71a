//! Random numbers that are functions of a seed, a purpose and an index, so that an array filled by any number
//! of workers, in any parts, has the same elements.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood, 2014, with Stafford's Mix13) used as a counter: number
//! `index` of a stream is the finalised `key + (index + 1) · γ`. No operation in this module depends on the
//! system's mathematical library, so the numbers are the same on every machine.
mod normal;
mod permutation;

pub use self::permutation::Permutation;

use std::ops::Range;

/// The odd integer nearest to 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// Stafford's Mix13: a bijection in which every bit of the result depends on every bit of `x`.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// An endless sequence of random numbers, each addressed by its index.
///
/// ```
/// use hectare_data::random::Stream;
/// let stream = Stream::new(7, "weights");
/// let mut whole = [0.0f32; 10];
/// stream.fill_normal(&mut whole, 0, 0.1);
/// let mut tail = [0.0f32; 4];
/// stream.fill_normal(&mut tail, 6, 0.1);
/// assert_eq!(whole[6..], tail);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: u64,
}

impl Stream {
    /// The stream of this seed for this purpose. Streams of different purposes, such as the names of arrays,
    /// have nothing to do with each other.
    pub fn new(seed: u64, purpose: &str) -> Stream {
        let step = |key: u64, byte: u8| mix(key.wrapping_add(GAMMA) ^ u64::from(byte));
        Stream { key: purpose.bytes().fold(mix(seed ^ GAMMA), step) }
    }

    /// Stream `number` of a family, such as one per cell of a grid.
    pub fn child(self, number: u64) -> Stream {
        Stream { key: mix(self.bits(number) ^ GAMMA.rotate_left(32)) }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_add(1).wrapping_mul(GAMMA)))
    }

    /// A number of `0..bound`, by multiplication (Lemire, 2019) without rejection: the probabilities of two
    /// numbers differ by at most 2^-64.
    ///
    /// # Panics
    /// If `bound` is zero.
    #[inline]
    pub fn below(self, index: u64, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below zero");
        ((u128::from(self.bits(index)) * u128::from(bound)) >> 64) as u64
    }

    /// A number of `[0, 1)`, a multiple of 2^-53.
    #[inline]
    pub fn uniform(self, index: u64) -> f64 {
        f64::unit(self.bits(index))
    }

    /// A number of the standard normal distribution, by inversion (Wichura, 1988).
    #[inline]
    pub fn normal(self, index: u64) -> f64 {
        normal::quantile(normal::open_unit(self.bits(index)))
    }

    /// Fills `out` with the numbers `first_index..first_index + out.len()` of `[range.start, range.end)`.
    ///
    /// # Panics
    /// If the range is empty or not finite.
    pub fn fill_uniform<T: Real>(self, out: &mut [T], first_index: u64, range: Range<T>) {
        let (low, high) = (range.start, range.end);
        assert!(T::is_range(low, high), "the range of uniform numbers is empty or not finite");
        for (index, element) in (first_index..).zip(out) {
            *element = T::between(low, high, T::unit(self.bits(index)));
        }
    }

    /// Fills `out` with the numbers `first_index..first_index + out.len()` of the normal distribution with mean
    /// 0 and standard deviation `sd`.
    pub fn fill_normal<T: Real>(self, out: &mut [T], first_index: u64, sd: f64) {
        for (index, element) in (first_index..).zip(out) {
            *element = T::from_f64(self.normal(index) * sd);
        }
    }

    /// Puts `items` into a random order (Durstenfeld, 1964), with the numbers of this stream from 0 on.
    pub fn shuffle<T>(self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64, last as u64 + 1) as usize);
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// `f32` or `f64`.
pub trait Real: Copy + sealed::Sealed {
    /// The upper bits as a number of `[0, 1)`.
    #[doc(hidden)]
    fn unit(bits: u64) -> Self;
    /// `low + unit · (high - low)`, below `high` also when that is rounded up to it.
    #[doc(hidden)]
    fn between(low: Self, high: Self, unit: Self) -> Self;
    #[doc(hidden)]
    fn is_range(low: Self, high: Self) -> bool;
    /// The nearest number.
    fn from_f64(value: f64) -> Self;
}

macro_rules! real {
    ($type:ty, $bits:expr) => {
        impl Real for $type {
            #[inline]
            fn unit(bits: u64) -> $type {
                const SCALE: $type = 1.0 / (1u64 << $bits) as $type;
                (bits >> (64 - $bits)) as i64 as $type * SCALE
            }

            #[inline]
            fn between(low: $type, high: $type, unit: $type) -> $type {
                (low + unit * (high - low)).min(high.next_down())
            }

            fn is_range(low: $type, high: $type) -> bool {
                low < high && (high - low).is_finite()
            }

            #[inline]
            fn from_f64(value: f64) -> $type {
                value as $type
            }
        }
    };
}
real!(f32, 24);
real!(f64, 53);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_known_sequence() {
        // The first outputs of SplitMix64 with state 1234567, as published with the reference code.
        let stream = Stream { key: 1_234_567 };
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([0, 1, 2].map(|index| stream.bits(index)), expected);
    }

    #[test]
    fn seeds_purposes_and_children_differ() {
        let streams = [
            Stream::new(0, "a"),
            Stream::new(1, "a"),
            Stream::new(0, "b"),
            Stream::new(0, ""),
            Stream::new(0, "a").child(0),
            Stream::new(0, "a").child(1),
        ];
        for (at, left) in streams.iter().enumerate() {
            assert!(streams[..at].iter().all(|right| right.bits(3) != left.bits(3)));
        }
    }

    #[test]
    fn uniform_numbers_fill_their_range_evenly() {
        let mut numbers = vec![0.0f32; 100_000];
        Stream::new(1, "uniform").fill_uniform(&mut numbers, 0, -2.0..6.0);
        let mut counts = [0u32; 8];
        for x in numbers {
            counts[(x + 2.0).floor() as usize] += 1;
        }
        // The standard deviation of a count is 105.
        assert!(counts.iter().all(|&n| n.abs_diff(12_500) < 530), "{counts:?}");
    }

    #[test]
    fn the_upper_end_is_never_reached() {
        assert!(f32::unit(u64::MAX) < 1.0);
        assert!(f64::unit(u64::MAX) < 1.0);
        assert!(f32::between(1e8, 1e8 + 8.0, f32::unit(u64::MAX)) < 1e8 + 8.0);
    }

    #[test]
    fn every_order_of_four_is_equally_likely() {
        let mut counts = std::collections::HashMap::new();
        for seed in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            Stream::new(seed, "shuffle").shuffle(&mut items);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|&n| n.abs_diff(1000) < 160), "{counts:?}");
    }

    proptest! {
        #[test]
        fn parts_do_not_matter(seed: u64, first in 0u64..u64::MAX / 2, cuts in prop::collection::vec(0usize..200, 0..5)) {
            let stream = Stream::new(seed, "parts");
            let (mut whole, mut uniform) = (vec![0.0f64; 200], vec![0.0f32; 200]);
            stream.fill_normal(&mut whole, first, 1.5);
            stream.fill_uniform(&mut uniform, first, 0.0..1.0);
            let mut bounds = cuts;
            bounds.extend([0, 200]);
            bounds.sort_unstable();
            for part in bounds.windows(2) {
                let (mut a, mut b) = (vec![0.0; part[1] - part[0]], vec![0.0; part[1] - part[0]]);
                stream.fill_normal(&mut a, first + part[0] as u64, 1.5);
                stream.fill_uniform(&mut b, first + part[0] as u64, 0.0..1.0);
                prop_assert_eq!(&whole[part[0]..part[1]], &a[..]);
                prop_assert_eq!(&uniform[part[0]..part[1]], &b[..]);
            }
        }
    }
}
