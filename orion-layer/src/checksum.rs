//! Checksums of what a checkpoint holds.

/// The steps of FNV-1a over words of eight bytes in place of bytes, which is faster and no hash that a library has; however the
/// bytes come in pieces. Finds damage, not malice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checksum {
    hash: u64,
    word: u64,
    bits: u32,
}

impl Checksum {
    pub(crate) const fn new() -> Checksum {
        Checksum { hash: 0xcbf2_9ce4_8422_2325, word: 0, bits: 0 }
    }

    /// A bijection of `hash` for every `word`, and the other way round: one changed word always shows.
    fn mix(hash: u64, word: u64) -> u64 {
        (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        // Up to the end of a word that an earlier piece began.
        let lead = if self.bits == 0 { 0 } else { (8 - self.bits as usize / 8).min(bytes.len()) };
        let (lead, rest) = bytes.split_at(lead);
        lead.iter().for_each(|byte| self.add_byte(*byte));
        let (words, rest) = rest.as_chunks::<8>();
        self.hash = words.iter().fold(self.hash, |hash, word| Self::mix(hash, u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.add_byte(*byte));
    }

    fn add_byte(&mut self, byte: u8) {
        self.word |= u64::from(byte) << self.bits;
        self.bits += 8;
        if self.bits == 64 {
            *self = Checksum { hash: Self::mix(self.hash, self.word), word: 0, bits: 0 };
        }
    }

    pub(crate) fn value(&self) -> u64 {
        Self::mix(self.hash, self.word)
    }
}

/// The checksum of some bytes.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let mut checksum = Checksum::new();
    checksum.add(bytes);
    checksum.value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_do_not_matter_and_damage_does(
            bytes in prop::collection::vec(any::<u8>(), 1..100),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
            at: prop::sample::Index,
            flipped in 1u8..,
        ) {
            let whole = checksum(&bytes);
            let mut bounds: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            bounds.extend([0, bytes.len()]);
            bounds.sort_unstable();
            let mut pieces = Checksum::new();
            bounds.windows(2).for_each(|piece| pieces.add(&bytes[piece[0]..piece[1]]));
            prop_assert_eq!(pieces.value(), whole);
            let mut damaged = bytes.clone();
            damaged[at.index(bytes.len())] ^= flipped;
            prop_assert_ne!(checksum(&damaged), whole);
        }
    }
}
