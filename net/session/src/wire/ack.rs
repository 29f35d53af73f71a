//! Acknowledgements: ranges of packet numbers, newest first (RFC 9000 section 19.3).
use super::array;

/// The most ranges in one acknowledgement.
pub(crate) const MAX_RANGES: usize = 64;
/// The most bytes that one takes: numbers in a range of the window take at most three bytes each.
pub(crate) const MAX_BYTES: usize = 21 + MAX_RANGES * 2 * 3;

/// An acknowledgement, from the receiver of packets to their sender.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ack {
    /// How long the newest packet waited for this acknowledgement, in microseconds.
    pub(crate) delay_us: u32,
    /// How many packets came with the mark of congestion (RFC 3168), since the session began.
    pub(crate) congested: u64,
    /// Which packets came: first and last number of each range, newest range first, with gaps between them.
    pub(crate) ranges: Vec<(u64, u64)>,
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A number in groups of seven bits, lowest first, at most three groups.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in [0, 7, 14] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

impl Ack {
    /// Appends it to `out`; at most [`MAX_BYTES`].
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let newest = self.ranges.first().map_or(0, |range| range.1);
        out.extend_from_slice(&newest.to_le_bytes());
        out.extend_from_slice(&self.congested.to_le_bytes());
        out.extend_from_slice(&self.delay_us.to_le_bytes());
        out.push(self.ranges.len() as u8);
        let mut above = newest;
        for (at, &(first, last)) in self.ranges.iter().enumerate() {
            if at > 0 {
                put(out, above - last - 2);
            }
            put(out, last - first);
            above = first;
        }
    }

    /// Reads one that takes all of `bytes`; none if it is not well formed.
    pub(crate) fn read(bytes: &[u8]) -> Option<Ack> {
        let newest = u64::from_le_bytes(array(bytes, 0)?);
        let congested = u64::from_le_bytes(array(bytes, 8)?);
        let delay_us = u32::from_le_bytes(array(bytes, 16)?);
        let count = usize::from(*bytes.get(20)?);
        if count == 0 || count > MAX_RANGES {
            return None;
        }
        let mut rest = &bytes[21..];
        let mut ranges = Vec::with_capacity(count);
        let mut last = newest;
        for at in 0..count {
            if at > 0 {
                last = last.checked_sub(take(&mut rest)?)?;
            }
            let first = last.checked_sub(take(&mut rest)?)?;
            ranges.push((first, last));
            if at + 1 < count {
                last = first.checked_sub(2)?;
            }
        }
        rest.is_empty().then_some(Ack { delay_us, congested, ranges })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            newest in 1_u64 << 24.., delay_us: u32, congested: u64,
            steps in prop::collection::vec((0..1_u64 << 15, 0..1_u64 << 15), 1..=MAX_RANGES)
        ) {
            let mut ranges = Vec::new();
            let mut last = newest;
            for (length, gap) in steps {
                ranges.push((last - length, last));
                last = last - length - gap - 2;
            }
            let ack = Ack { delay_us, congested, ranges };
            let mut bytes = Vec::new();
            ack.write(&mut bytes);
            prop_assert!(bytes.len() <= MAX_BYTES);
            prop_assert_eq!(Ack::read(&bytes), Some(ack));
            prop_assert_eq!(Ack::read(&bytes[..bytes.len() - 1]), None);
            bytes.push(0);
            prop_assert_eq!(Ack::read(&bytes), None);
        }

        #[test]
        fn any_bytes_are_ranges_in_order_or_nothing(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(ack) = Ack::read(&bytes) {
                prop_assert!(ack.ranges.iter().all(|(first, last)| first <= last));
                prop_assert!(ack.ranges.windows(2).all(|pair| pair[1].1 + 1 < pair[0].0));
            }
        }
    }
}
