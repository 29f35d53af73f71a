//! The readers' side of an area.
use crate::api::worker::Worker;
use crate::engine::area_core::{AreaCore, LOOKS};
use crate::engine::shared::Shared;
use crate::error::{Error, Result};
use crate::memory::clock;
use crate::protocol::publication::Version;
use crate::segment::element::{Element, ElementType};
use crate::segment::layout::LINE;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// An area, for reading. Cheap to clone, may be sent between threads; dropping it detaches.
///
/// Views are borrowed from the worker, so none can be held across a synchronization point:
///
/// ```compile_fail
/// # use hectare_dsm::{Area, Worker};
/// fn broken(worker: &mut Worker, area: &Area<f32>) {
///     let view = area.read(worker).unwrap();
///     worker.service().unwrap(); // error: `*worker` is also borrowed as immutable
///     println!("{}", view[0]);
/// }
/// ```
pub struct Area<T> {
    pub(crate) core: Arc<AreaCore>,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> std::fmt::Debug for Area<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Area")
            .field("name", &self.core.name)
            .field("len", &self.core.len)
            .finish_non_exhaustive()
    }
}

impl<T> Clone for Area<T> {
    fn clone(&self) -> Area<T> {
        Area { core: self.core.clone(), element: PhantomData }
    }
}

impl<T: Element> Area<T> {
    pub(crate) fn around(core: Arc<AreaCore>) -> Area<T> {
        Area { core, element: PhantomData }
    }

    pub(crate) fn attach(shared: &Arc<Shared>, name: &str) -> Result<Area<T>> {
        let core = AreaCore::find(shared, name, ElementType::of::<T>())?;
        Ok(Area::around(Arc::new(core)))
    }

    /// The area's name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Elements in the area.
    pub fn len(&self) -> usize {
        self.core.len
    }

    /// Whether the area has no elements.
    pub fn is_empty(&self) -> bool {
        self.core.len == 0
    }

    /// Elements per row.
    pub fn row_len(&self) -> usize {
        self.core.row
    }

    #[inline]
    fn visible(&self, worker: &Worker) -> Result<usize> {
        self.core.check_job(worker.shared())?;
        self.core.check_live()?;
        if self.core.layout.copies == 0 {
            return Err(self.core.no_copy());
        }
        Ok(self.core.parts().visible(worker.arrived()))
    }

    /// The newest version that was published when `worker` last stood at a synchronization point: one whole
    /// version, never a mix. It stays the same until the worker's next synchronization point.
    ///
    /// # Errors
    /// [`Error::Deleted`], [`Error::NoReaderCopy`], [`Error::OtherJob`], [`Error::ForkedChild`].
    #[inline]
    pub fn read<'w>(&self, worker: &'w Worker) -> Result<&'w [T]> {
        let copy = self.visible(worker)?;
        let data = self.core.parts().reader(copy).cast::<T>();
        // SAFETY: the copy has `len` elements of `T` (checked on attaching), any bytes are a `T`. Nobody
        // writes this copy while the slice lives: the worker's arrival word pins it, the word moves only in
        // calls that need `&mut Worker`, and the worker, which the slice borrows, lives: a thread that ends
        // with one ends the process (`Tenure`). The mapping lives as long as the worker.
        Ok(unsafe { std::slice::from_raw_parts(data, self.core.len) })
    }

    /// One row of [`Area::read`].
    ///
    /// # Errors
    /// Those of [`Area::read`], and [`Error::OutOfRange`].
    #[inline]
    pub fn row<'w>(&self, worker: &'w Worker, row: usize) -> Result<&'w [T]> {
        let data = self.read(worker)?;
        let start = row.saturating_mul(self.core.row);
        let end = start.saturating_add(self.core.row);
        data.get(start..end).ok_or_else(|| out_of_range(&self.core, start, end))
    }

    /// The version that [`Area::read`] shows to this worker.
    ///
    /// # Errors
    /// Those of [`Area::read`].
    pub fn version(&self, worker: &Worker) -> Result<Version> {
        Ok(self.core.version_of(self.visible(worker)?))
    }

    /// The newest published version, whether or not any given worker can see it yet; `None` for an area
    /// without reader copies or one that was deleted, and in a forked child.
    pub fn newest_version(&self) -> Option<Version> {
        if self.core.is_there() { self.core.newest() } else { None }
    }

    /// When the version that this worker sees was published, in nanoseconds of `CLOCK_MONOTONIC`; 0 for an
    /// area that was never published.
    ///
    /// # Errors
    /// Those of [`Area::read`].
    pub fn timestamp_ns(&self, worker: &Worker) -> Result<u64> {
        let copy = self.visible(worker)?;
        Ok(self.core.parts().copies()[copy].timestamp_ns.load(Ordering::Relaxed))
    }

    /// How stale the visible version may be: the time since it was last known to equal what the owner had
    /// written. A round that finds the area unchanged makes it fresh again.
    ///
    /// # Errors
    /// Those of [`Area::read`].
    pub fn age(&self, worker: &Worker) -> Result<Duration> {
        let copy = self.visible(worker)?;
        let parts = self.core.parts();
        let since = if copy == parts.current() {
            parts.slot.round.confirmed_ns.load(Ordering::Relaxed)
        } else {
            parts.copies()[copy].timestamp_ns.load(Ordering::Relaxed)
        };
        Ok(Duration::from_nanos(clock::now_ns().saturating_sub(since)))
    }

    /// The owner's clock ([`Worker::tick`]) when the visible version was published.
    ///
    /// # Errors
    /// Those of [`Area::read`].
    pub fn clock(&self, worker: &Worker) -> Result<u64> {
        let copy = self.visible(worker)?;
        Ok(self.core.parts().copies()[copy].clock.load(Ordering::Relaxed))
    }

    /// The elements that may have changed after version `since` up to the version that this worker sees, as
    /// ascending ranges. Exact to 64-byte lines and to generations: possibly more than changed, never less.
    /// An area without a log answers with everything, and so does one whose publisher stands still in the middle; and so is it
    /// after a version of another term.
    ///
    /// # Errors
    /// Those of [`Area::read`].
    pub fn changed_since(&self, worker: &Worker, since: Version) -> Result<Vec<Range<usize>>> {
        let copy = self.visible(worker)?;
        let seen = self.core.version_of(copy);
        if seen <= since || self.core.len == 0 {
            return Ok(Vec::new());
        }
        let parts = self.core.parts();
        // Counters of another term may be higher. The version that an area begins with is of none.
        let is_comparable = since.term == seen.term || since == Version::default();
        if !parts.layout.is_logged() || !is_comparable {
            return Ok(std::iter::once(0..self.core.len).collect());
        }
        for _ in 0..LOOKS {
            if let Some(bits) = parts.generations().changed_since(since.counter) {
                return Ok(ranges_of(&bits, size_of::<T>(), self.core.len));
            }
            std::hint::spin_loop();
        }
        // Whoever publishes stands still or is dead, and the round may wait for this worker.
        Ok(std::iter::once(0..self.core.len).collect())
    }

    /// Seals the newest generation at the next publication, so that a later
    /// [`changed_since`](Area::changed_since) of that version does not see what came before it.
    pub fn seal(&self) {
        if self.core.is_there() {
            self.core.slot().round.generations.seal_requested.store(1, Ordering::Relaxed);
        }
    }

    /// Marks the area to be published in the next round, and asks for one. Does not wait: see
    /// [`Worker::sync_area`]. Nothing happens if it has no reader copies.
    pub fn request_sync(&self) {
        if self.core.layout.copies != 0 && self.core.is_there() {
            self.core.force();
            self.core.shared.segment.header().sync.request();
        }
    }

    /// How often a publication of the area was postponed because every copy was pinned, because a worker stood
    /// still while it copied it (`StallPolicy::Pin`), or for the sake of its group.
    pub fn postponed(&self) -> u64 {
        if self.core.is_there() { self.core.slot().round.postponed.load(Ordering::Relaxed) } else { 0 }
    }

    /// Detaches from the area. The same as dropping the handle.
    pub fn detach(self) {}
}

#[cold]
pub(crate) fn out_of_range(core: &AreaCore, start: usize, end: usize) -> Error {
    Error::OutOfRange { name: core.name.clone(), start, end, len: core.len }
}

/// The element ranges that marked lines touch.
fn ranges_of(bits: &[u64], size: usize, len: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (index, word) in bits.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            let line = index * 64 + word.trailing_zeros() as usize;
            word &= word - 1;
            let start = line * LINE as usize / size;
            // A word may have bits for lines behind the last.
            if start >= len {
                break;
            }
            let end = ((line + 1) * LINE as usize).div_ceil(size).min(len);
            match ranges.last_mut() {
                Some(last) if last.end >= start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
    }
    ranges
}
