//! Permutations of `0..len` that need no table: a Feistel network over the smallest power of two that holds
//! `len`, walked along its cycle until the number is below `len` (Luby and Rackoff, 1988; Black and Rogaway,
//! 2002).
use super::{Stream, mix};

/// Rounds of the network. Four make a pseudorandom permutation of a large domain; small domains need more.
const ROUNDS: usize = 12;

/// Bits of the smallest network: with fewer, some orders are visibly more likely than others.
const MIN_BITS: u32 = 6;

/// A random permutation of `0..len`, the same for everyone who has the stream.
///
/// ```
/// use hectare_data::random::{Permutation, Stream};
/// let permutation = Permutation::new(Stream::new(1, "users"), 1000);
/// let place = permutation.apply(17);
/// assert!(place < 1000);
/// assert_eq!(permutation.invert(place), 17);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    len: u64,
    /// Bits of the lower half.
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The permutation of `0..len` that this stream gives.
    ///
    /// # Panics
    /// If `len` is above 2^32, the largest extent of a dimension.
    pub fn new(stream: Stream, len: usize) -> Permutation {
        let len = len as u64;
        assert!(len <= 1 << 32, "cannot permute a dimension of {len}: the largest extent is 2^32");
        let bits = len.next_power_of_two().trailing_zeros().max(MIN_BITS);
        let low_bits = bits / 2;
        Permutation {
            len,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << (bits - low_bits)) - 1,
            keys: std::array::from_fn(|round| stream.bits(round as u64)),
        }
    }

    /// How many numbers it permutes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The image of `index`.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Permutation::len).
    #[inline]
    pub fn apply(&self, index: u32) -> u32 {
        self.walk(index, |mut low, mut high| {
            for keys in self.keys.chunks_exact(2) {
                high ^= mix_half(low ^ keys[0]) & self.high_mask;
                low ^= mix_half(high ^ keys[1]) & self.low_mask;
            }
            (low, high)
        })
    }

    /// The index that goes to `place`.
    ///
    /// # Panics
    /// If `place` is not below [`len`](Permutation::len).
    #[inline]
    pub fn invert(&self, place: u32) -> u32 {
        self.walk(place, |mut low, mut high| {
            for keys in self.keys.chunks_exact(2).rev() {
                low ^= mix_half(high ^ keys[1]) & self.low_mask;
                high ^= mix_half(low ^ keys[0]) & self.high_mask;
            }
            (low, high)
        })
    }

    /// The permutation as a table: element `i` is `apply(i)`.
    pub fn table(&self) -> Vec<u32> {
        (0..self.len).map(|index| self.apply(index as u32)).collect()
    }

    #[inline]
    fn walk(&self, index: u32, step: impl Fn(u64, u64) -> (u64, u64)) -> u32 {
        let mut at = u64::from(index);
        assert!(at < self.len, "{index} is outside a permutation of {}", self.len);
        loop {
            let (low, high) = step(at & self.low_mask, at >> self.low_bits);
            at = (high << self.low_bits) | low;
            if at < self.len {
                return at as u32;
            }
        }
    }
}

/// The round function.
#[inline]
fn mix_half(x: u64) -> u64 {
    mix(x) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_is_a_bijection_with_its_inverse(seed: u64, len in 1usize..3000) {
            let permutation = Permutation::new(Stream::new(seed, "test"), len);
            let table = permutation.table();
            for (index, &place) in table.iter().enumerate() {
                prop_assert_eq!(permutation.invert(place) as usize, index);
            }
            let mut sorted = table;
            sorted.sort_unstable();
            prop_assert!(sorted.iter().enumerate().all(|(index, &place)| index == place as usize));
        }
    }

    #[test]
    fn the_largest_dimension_can_be_permuted() {
        let permutation = Permutation::new(Stream::new(5, "large"), 1 << 32);
        for index in [0, 1, u32::MAX / 2, u32::MAX] {
            assert_eq!(permutation.invert(permutation.apply(index)), index);
        }
    }

    #[test]
    fn small_permutations_are_equally_likely() {
        for (len, orders) in [(3usize, 6usize), (4, 24), (5, 120)] {
            let mut counts = HashMap::new();
            for seed in 0..1000 * orders as u64 {
                *counts.entry(Permutation::new(Stream::new(seed, "small"), len).table()).or_insert(0u32) += 1;
            }
            assert_eq!(counts.len(), orders);
            let chi_square: f64 = counts.values().map(|&n| (f64::from(n) - 1000.0).powi(2) / 1000.0).sum();
            let freedom = (orders - 1) as f64;
            assert!(chi_square < freedom + 5.0 * (2.0 * freedom).sqrt(), "{len}: {chi_square}");
        }
    }

    #[test]
    fn neighbours_are_scattered() {
        let table = Permutation::new(Stream::new(2, "scatter"), 100_000).table();
        let mut counts = [0u32; 10];
        for pair in table.windows(2) {
            counts[(pair[0].abs_diff(pair[1]) / 10_000) as usize] += 1;
        }
        // The distance of two random points has density 2 (1 - x).
        for (tenth, &count) in counts.iter().enumerate() {
            let expected = 1000 * (19 - 2 * tenth as u32);
            assert!(count.abs_diff(expected) < 700, "{counts:?}");
        }
    }
}
