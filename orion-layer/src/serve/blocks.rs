//! Keys, and blocks of them.

/// About the bytes of a block, which is one row if that has more: a line of a cache, the least that two cores exchange.
const BYTES: usize = 64;

/// Slots are numbers below this, and so the keys of an array are fewer.
pub(super) const MOST_KEYS: usize = 1 << 31;

/// The keys of an array, in row-major order: its elements if it has one dimension, else its rows. Blocks are of
/// `2^shift` keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    /// How many keys.
    pub(super) keys: usize,
    /// Elements of a key.
    pub(super) unit: usize,
    shift: u32,
}

impl Blocks {
    pub(super) fn of(shape: &[usize], element_bytes: usize) -> Blocks {
        let unit = if shape.len() > 1 { shape[shape.len() - 1] } else { 1 };
        let keys = if shape.len() > 1 { shape[..shape.len() - 1].iter().product() } else { shape[0] };
        let in_line = (BYTES / (unit * element_bytes).max(1)).max(1);
        Blocks { keys, unit, shift: in_line.ilog2() }
    }

    /// The block of a key.
    #[inline]
    pub(super) fn block(&self, key: u32) -> usize {
        (key >> self.shift) as usize
    }

    /// How many blocks there are.
    pub(super) fn count(&self) -> usize {
        self.keys.div_ceil(1 << self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_rows() {
        let elements = Blocks::of(&[100], 4);
        assert_eq!((elements.keys, elements.unit, elements.count()), (100, 1, 7));
        assert_eq!((elements.block(15), elements.block(16), elements.block(99)), (0, 1, 6));
        let rows = Blocks::of(&[10, 3, 100], 8);
        assert_eq!((rows.keys, rows.unit, rows.count(), rows.block(29)), (30, 100, 30, 29));
        let short = Blocks::of(&[10, 2], 8);
        assert_eq!((short.count(), short.block(9)), (3, 2));
        assert_eq!(Blocks::of(&[0], 4).count(), 0);
    }
}
