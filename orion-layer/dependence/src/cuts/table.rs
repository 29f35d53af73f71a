//! From an index to its part by one lookup.
use super::Cuts;

/// The longest table: at 2 bytes a bucket, it stays in a core's second-level cache.
const MAX_BUCKETS: usize = 1 << 18;

/// A table that finds the part in which an index lies.
///
/// Dimensions of up to 2^18 indices have one bucket per index; in larger ones, a bucket says in which part its
/// first index lies, and the bounds that follow are compared.
#[derive(Clone, Debug)]
pub struct PartTable {
    /// The part of index `bucket << shift`.
    first: Vec<u16>,
    shift: u32,
    /// The end of each part.
    ends: Vec<u64>,
}

impl PartTable {
    pub(super) fn new(cuts: &Cuts) -> PartTable {
        let (extent, parts) = (cuts.extent(), cuts.parts());
        assert!(parts <= 1 << 16, "{parts} parts: a table of parts holds at most 65,536");
        assert!(extent <= 1 << 32, "extent {extent}: a table of parts is for indices below 2^32");
        let shift = (extent.div_ceil(MAX_BUCKETS)).next_power_of_two().trailing_zeros();
        let mut part = 0;
        let mut first = Vec::with_capacity(extent.div_ceil(1 << shift));
        for start in (0..extent).step_by(1 << shift) {
            while cuts.bounds()[part + 1] <= start {
                part += 1;
            }
            first.push(part as u16);
        }
        PartTable { first, shift, ends: cuts.bounds()[1..].iter().map(|&end| end as u64).collect() }
    }

    /// The part of an index.
    ///
    /// # Panics
    /// If `index` is not below the extent.
    #[inline]
    pub fn find(&self, index: u32) -> usize {
        let mut part = usize::from(self.first[(index >> self.shift) as usize]);
        while self.ends[part] <= u64::from(index) {
            part += 1;
        }
        part
    }
}
