//! Which parts of the segment are free.
//!
//! The table of areas says what is in use; [`FreeList`] is a cache of the gaps between them, kept in storage
//! that the caller provides. It is meant to live in shared memory under a robust mutex: when a holder of that
//! mutex died, the next one calls [`FreeList::rebuild`] with the extents of the table, whatever the list held.
//!
//! Free extents are in address order and maximal: two of them never touch. Hence there is at most one more of
//! them than there are live extents, and storage for one entry more than the table has slots never runs out.
//! Less storage works too: [`FreeList::allocate`] then avoids splits that do not fit, and
//! [`FreeList::release`] refuses with [`Corrupt::Full`] what it cannot record.

use std::fmt;

#[cfg(test)]
mod tests;

/// A contiguous range of bytes of the segment.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub(crate) struct Extent {
    /// Offset of the first byte in the segment.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Extent {
    /// The offset behind the last byte, or `None` when it does not fit in 64 bits.
    fn end(self) -> Option<u64> {
        self.offset.checked_add(self.len)
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}+{:#x}", self.offset, self.len)
    }
}

/// Extents contradict each other: the table of areas or the list of free extents is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Corrupt {
    /// Two live extents share bytes. The list was left empty.
    #[error("live extents {first} and {second} overlap")]
    Overlap {
        /// The extent with the lower offset.
        first: Extent,
        /// The extent with the higher offset.
        second: Extent,
    },
    /// An extent reaches outside the range that is managed. A list that was being rebuilt was left empty.
    #[error("extent {extent} is not within {whole}")]
    OutOfRange {
        /// The extent that reaches outside.
        extent: Extent,
        /// The range that it should lie in.
        whole: Extent,
    },
    /// A released extent is already free, wholly or in part. The list is unchanged.
    #[error("extent {extent} is already free, in whole or in part, as {free}")]
    DoubleFree {
        /// The extent that was released.
        extent: Extent,
        /// The free extent that it shares bytes with.
        free: Extent,
    },
    /// The storage has no room for one more free extent. A release left the list unchanged, a rebuild empty.
    #[error("no room for free extent {extent} in a list of {capacity} entries")]
    Full {
        /// The extent that could not be recorded.
        extent: Extent,
        /// How many entries the storage has.
        capacity: usize,
    },
}

/// The free extents of a segment, in address order, in borrowed storage.
#[derive(Debug)]
pub(crate) struct FreeList<'a> {
    entries: &'a mut [Extent],
    len: &'a mut u64,
}

impl<'a> FreeList<'a> {
    /// Takes the list that `entries[..len]` holds; [`rebuild`](Self::rebuild) gives it its first content.
    ///
    /// A `len` beyond the storage, which only damage can cause, counts as the storage's length.
    pub(crate) fn new(entries: &'a mut [Extent], len: &'a mut u64) -> Self {
        *len = (*len).min(entries.len() as u64);
        Self { entries, len }
    }

    /// Replaces the list by the gaps that `live` leaves in `whole`. Sorts `live` by offset.
    ///
    /// # Errors
    /// [`Corrupt::Overlap`] or [`Corrupt::OutOfRange`] when `live` cannot be, [`Corrupt::Full`] when it leaves
    /// more gaps than the storage has entries. In each case the list is empty afterwards, so that nothing can
    /// be allocated from it.
    pub(crate) fn rebuild(&mut self, whole: Extent, live: &mut [Extent]) -> Result<(), Corrupt> {
        *self.len = 0;
        let gaps = self.fill_gaps(whole, live)?;
        *self.len = gaps as u64;
        Ok(())
    }

    /// Writes the gaps between `live` to the storage and returns how many there are.
    fn fill_gaps(&mut self, whole: Extent, live: &mut [Extent]) -> Result<usize, Corrupt> {
        let whole_end = whole.end().ok_or(Corrupt::OutOfRange { extent: whole, whole: ADDRESSABLE })?;
        live.sort_unstable_by_key(|extent| (extent.offset, extent.len));
        let capacity = self.entries.len();
        let mut gaps = 0;
        let mut note_gap = |from: u64, to: u64| {
            if from < to {
                let extent = Extent { offset: from, len: to - from };
                *self.entries.get_mut(gaps).ok_or(Corrupt::Full { extent, capacity })? = extent;
                gaps += 1;
            }
            Ok(())
        };
        let mut previous = Extent { offset: whole.offset, len: 0 };
        let mut free_from = whole.offset;
        for &extent in live.iter().filter(|extent| extent.len > 0) {
            let out_of_range = Corrupt::OutOfRange { extent, whole };
            let end = extent.end().filter(|&end| end <= whole_end).ok_or(out_of_range)?;
            if extent.offset < whole.offset {
                return Err(out_of_range);
            }
            if extent.offset < free_from {
                return Err(Corrupt::Overlap { first: previous, second: extent });
            }
            note_gap(free_from, extent.offset)?;
            previous = extent;
            free_from = end;
        }
        note_gap(free_from, whole_end)?;
        Ok(gaps)
    }

    /// Takes `len` bytes at a multiple of `align` and returns their offset: from the smallest free extent that
    /// holds them, and of several such from the one with the lowest address. What alignment skips stays free.
    ///
    /// Returns `None` when no free extent holds them, when `len` is 0, or when the storage is full and every
    /// extent that holds them would have to be split in two.
    ///
    /// # Panics
    /// When `align` is not a power of two.
    pub(crate) fn allocate(&mut self, len: u64, align: u64) -> Option<u64> {
        assert!(align.is_power_of_two(), "alignment {align} is not a power of two");
        if len == 0 {
            return None;
        }
        let full = self.extents().len() == self.entries.len();
        let mut best: Option<(usize, u64)> = None;
        for (index, extent) in self.extents().iter().enumerate() {
            let Some(offset) = fit(*extent, len, align) else { continue };
            let splits = offset > extent.offset && extent.len - (offset - extent.offset) > len;
            let smaller = best.is_none_or(|(best, _)| extent.len < self.entries[best].len);
            if smaller && !(full && splits) {
                best = Some((index, offset));
            }
        }
        let (index, offset) = best?;
        let extent = self.entries[index];
        let head = Extent { offset: extent.offset, len: offset - extent.offset };
        let tail = Extent { offset: offset + len, len: extent.len - head.len - len };
        match (head.len > 0, tail.len > 0) {
            (false, false) => self.remove(index),
            (true, false) => self.entries[index] = head,
            (false, true) => self.entries[index] = tail,
            (true, true) => {
                self.entries[index] = head;
                self.insert(index + 1, tail);
            }
        }
        Some(offset)
    }

    /// Gives `extent` back and joins it with the free extents that it touches. An empty extent is ignored.
    ///
    /// # Errors
    /// [`Corrupt::DoubleFree`] when a part of it is free already, [`Corrupt::OutOfRange`] when it ends beyond
    /// 64 bits, [`Corrupt::Full`] when it touches no free extent and the storage is full. The list is unchanged
    /// in each case.
    pub(crate) fn release(&mut self, extent: Extent) -> Result<(), Corrupt> {
        let end = extent.end().ok_or(Corrupt::OutOfRange { extent, whole: ADDRESSABLE })?;
        if extent.len == 0 {
            return Ok(());
        }
        let free = self.extents();
        let index = free.partition_point(|free| free.offset < extent.offset);
        let before = index.checked_sub(1).map(|before| free[before]);
        let after = free.get(index).copied();
        // A free extent whose end does not fit in 64 bits is damage, and is never joined with anything.
        if let Some(free) = before.filter(|free| free.end().is_none_or(|end| end > extent.offset)) {
            return Err(Corrupt::DoubleFree { extent, free });
        }
        if let Some(free) = after.filter(|free| free.offset < end || free.end().is_none()) {
            return Err(Corrupt::DoubleFree { extent, free });
        }
        let joins_before = before.is_some_and(|free| free.end() == Some(extent.offset));
        let joined_after = after.filter(|free| free.offset == end);
        match (joins_before, joined_after) {
            (true, Some(after)) => {
                self.entries[index - 1].len += extent.len + after.len;
                self.remove(index);
            }
            (true, None) => self.entries[index - 1].len += extent.len,
            (false, Some(after)) => {
                self.entries[index] = Extent { offset: extent.offset, len: extent.len + after.len };
            }
            (false, None) if free.len() == self.entries.len() => {
                return Err(Corrupt::Full { extent, capacity: self.entries.len() });
            }
            (false, None) => self.insert(index, extent),
        }
        Ok(())
    }

    /// Takes the free extent with the highest address.
    pub(crate) fn pop(&mut self) -> Option<Extent> {
        let last = *self.extents().last()?;
        *self.len -= 1;
        Some(last)
    }

    /// How many bytes are free.
    pub(crate) fn total(&self) -> u64 {
        self.extents().iter().fold(0, |total, extent| total.saturating_add(extent.len))
    }

    /// The length of the largest free extent in bytes; 0 when nothing is free.
    pub(crate) fn largest(&self) -> u64 {
        self.extents().iter().map(|extent| extent.len).max().unwrap_or(0)
    }

    /// The free extents in address order. No two of them touch, and none is empty.
    pub(crate) fn extents(&self) -> &[Extent] {
        // In bounds: `new` clamps the length, and every change keeps it within the storage.
        &self.entries[..*self.len as usize]
    }

    /// Makes `extent` the entry at `index`. The caller has checked that there is room.
    fn insert(&mut self, index: usize, extent: Extent) {
        let used = self.extents().len();
        self.entries.copy_within(index..used, index + 1);
        self.entries[index] = extent;
        *self.len += 1;
    }

    /// Removes the entry at `index`.
    fn remove(&mut self, index: usize) {
        let used = self.extents().len();
        self.entries.copy_within(index + 1..used, index);
        *self.len -= 1;
    }
}

/// Every offset that 64 bits can name: the range that an overflowing extent is out of.
const ADDRESSABLE: Extent = Extent { offset: 0, len: u64::MAX };

/// Where `len` bytes at a multiple of `align` start in `extent`, if it holds them.
fn fit(extent: Extent, len: u64, align: u64) -> Option<u64> {
    let offset = extent.offset.checked_next_multiple_of(align)?;
    let end = offset.checked_add(len)?;
    (end <= extent.end()?).then_some(offset)
}
