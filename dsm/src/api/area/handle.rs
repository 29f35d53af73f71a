//! The readers' side of an area.
use crate::api::job::Shared;
use crate::api::worker::Worker;
use crate::engine::directory::AreaId;
use crate::engine::directory::find;
use crate::error::{Error, Result};
use crate::log::bitmap::Log;
use crate::memory::clock;
use crate::protocol::ownership;
use crate::segment::element::{Element, ElementType};
use crate::segment::layout::{AreaLayout, AreaSlot, LINE};
use crate::segment::parts::Parts;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The version of an area: compared by term, then by counter; it only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Rises when ownership is taken over without consent.
    pub term: u64,
    /// Counts publications; 0 is the area as it was created.
    pub counter: u64,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.term, self.counter)
    }
}

/// How often a reader looks again at what is being published, which takes microseconds.
const LOOKS: u32 = 10_000;

/// The longest row that is logged as a whole, in bytes.
const LARGEST_LOGGED_ROW: u64 = 4096;

/// What a handle knows of its area, whatever its element type.
#[derive(Debug)]
pub(crate) struct AreaCore {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: AreaId,
    pub(crate) name: String,
    pub(crate) layout: AreaLayout,
    slot: &'static AreaSlot,
    start: *mut u8,
    pub(crate) len: usize,
    pub(crate) row: usize,
    /// Whether rows are logged as a whole, by whatever means they are written (see `LOG.md`): then one bit in
    /// the middle of a row, a line that no other row shares, tells whether the row is logged.
    pub(crate) by_rows: bool,
    /// Whether its owner looks it through before a round: automatic tracking, or check mode.
    pub(crate) looked_through: bool,
    /// Points into the mapping as `slot` does; handed out for the lifetime of `self` only, and `shared` keeps the
    /// mapping.
    log: Log<'static>,
}

// SAFETY: `start` points into the segment's mapping, which `shared` keeps; what lies there is accessed by
// atomics or under the ownership and round protocols.
unsafe impl Send for AreaCore {}
// SAFETY: as for Send.
unsafe impl Sync for AreaCore {}

impl AreaCore {
    pub(crate) fn find(shared: &Arc<Shared>, name: &str, element: ElementType) -> Result<AreaCore> {
        crate::engine::directory::spec::check_name(name, shared.segment.config().max_name_bytes as usize)?;
        loop {
            let id =
                find::find(&shared.segment, name).ok_or_else(|| Error::NoSuchArea { name: name.into() })?;
            match AreaCore::of(shared, id, name, element) {
                // Deleted between two looks at it: there may be another of the name.
                Err(Error::Deleted { .. }) => {}
                other => return other,
            }
        }
    }

    /// What a handle needs to know of an area.
    ///
    /// # Errors
    /// [`Error::Deleted`] if the area was deleted before all was read, [`Error::WrongType`].
    pub(crate) fn of(shared: &Arc<Shared>, id: AreaId, name: &str, element: ElementType) -> Result<AreaCore> {
        let slot = &shared.segment.areas()[id.index as usize];
        let about = &slot.about;
        let found = ElementType {
            size: about.elem_size.load(Ordering::Relaxed),
            align: about.elem_align.load(Ordering::Relaxed),
            kind: about.elem_kind.load(Ordering::Relaxed),
        };
        let offset = about.extent_offset.load(Ordering::Relaxed);
        let row = about.row_len.load(Ordering::Relaxed).max(1) as usize;
        let len = about.len.load(Ordering::Relaxed) as usize;
        let flags = about.flags.load(Ordering::Relaxed);
        let layout = slot.layout_copy();
        if !find::unchanged(id, slot) {
            return Err(Error::Deleted { name: name.into() });
        }
        if found != element {
            return Err(Error::WrongType {
                name: name.into(),
                asked: element.to_string(),
                found: found.to_string(),
            });
        }
        let parts = Parts::with(&shared.segment, slot, &layout, offset);
        let log = Log {
            level0: parts.level0(),
            level1: parts.level1(),
            dirty: shared.segment.dirty(id.index as usize),
        };
        // SAFETY: the lifetime is that of the mapping, which `shared` keeps for as long as the core exists.
        let log = unsafe { std::mem::transmute::<Log<'_>, Log<'static>>(log) };
        let row_bytes = row as u64 * u64::from(element.size);
        let looked_through = flags & crate::segment::parts::flag::AUTOMATIC != 0
            || shared.segment.config().check != 0
            || crate::engine::scan::is_asked_for();
        let by_rows = row > 1
            && parts.layout.is_logged()
            && !looked_through
            && (row_bytes.is_multiple_of(LINE) || row_bytes >= 2 * LINE)
            && row_bytes <= LARGEST_LOGGED_ROW;
        Ok(AreaCore {
            shared: shared.clone(),
            id,
            name: name.into(),
            layout,
            // SAFETY: as for `log` above.
            slot: unsafe { &*std::ptr::from_ref(parts.slot) },
            start: parts.start(),
            len,
            row,
            by_rows,
            looked_through,
            log,
        })
    }

    #[inline]
    pub(crate) fn slot(&self) -> &AreaSlot {
        self.slot
    }

    #[inline]
    pub(crate) fn parts(&self) -> Parts<'_> {
        // SAFETY: `start` and `layout` came from `Parts::of` for this slot; `shared` keeps the mapping.
        unsafe { Parts::again(self.slot(), &self.layout, self.start) }
    }

    /// The owner's hand on the log.
    #[inline]
    pub(crate) fn log(&self) -> &Log<'_> {
        &self.log
    }

    #[inline]
    pub(crate) fn check_live(&self) -> Result<()> {
        if self.id.is_live(self.slot()) { Ok(()) } else { Err(self.deleted()) }
    }

    /// Whether there is an area to talk about: not in a forked child, and not once it was deleted.
    pub(crate) fn is_there(&self) -> bool {
        self.shared.check_process().is_ok() && self.id.is_live(self.slot())
    }

    #[cold]
    fn deleted(&self) -> Error {
        Error::Deleted { name: self.name.clone() }
    }

    #[inline]
    pub(crate) fn check_job(&self, worker: &Worker) -> Result<()> {
        worker.shared().check_process()?;
        if Arc::ptr_eq(&self.shared, worker.shared()) { Ok(()) } else { Err(self.other_job()) }
    }

    #[cold]
    fn other_job(&self) -> Error {
        Error::OtherJob { name: self.name.clone() }
    }

    #[cold]
    pub(crate) fn no_copy(&self) -> Error {
        Error::NoReaderCopy { name: self.name.clone() }
    }

    pub(crate) fn ownership(&self) -> ownership::Word {
        ownership::load(&self.slot().own.ownership)
    }

    pub(crate) fn version_of(&self, copy: usize) -> Version {
        let (term, counter) = self.parts().copies()[copy].version();
        Version { term, counter }
    }

    /// The newest version, read without a pin: both halves from one publication.
    pub(crate) fn newest(&self) -> Option<Version> {
        let parts = self.parts();
        if parts.layout.copies == 0 {
            return None;
        }
        for _ in 0..LOOKS {
            if let Some((term, counter)) = parts.reader_copies().version() {
                return Some(Version { term, counter });
            }
            // A deleted area's slot may be another's by now, with more copies.
            parts.copies().get(parts.current())?;
            std::hint::spin_loop();
        }
        // Whoever publishes stands still or is dead.
        Some(self.version_of(parts.current()))
    }

    /// The lines to log for some elements, which exist: of their rows, if rows are logged as a whole.
    #[inline]
    pub(crate) fn lines(&self, range: Range<usize>, size: usize) -> Range<usize> {
        let range = if self.by_rows {
            range.start / self.row * self.row..range.end.next_multiple_of(self.row).min(self.len)
        } else {
            range
        };
        range.start * size / LINE as usize..(range.end * size).div_ceil(LINE as usize)
    }

    pub(crate) fn force(&self) {
        self.shared.segment.forced(self.id.index as usize).set();
    }
}

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
        self.core.check_job(worker)?;
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
    /// An area without a log answers with everything, and so does one whose publisher stands still in the middle.
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
        if !parts.layout.is_logged() {
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
    /// [`Worker::sync_area`].
    pub fn request_sync(&self) {
        if self.core.is_there() {
            self.core.force();
            self.core.shared.segment.header().sync.request();
        }
    }

    /// How often a publication of the area was put off because every copy was pinned, because a worker stood
    /// still while it copied it (`StallPolicy::Pin`), or for the sake of its group.
    pub fn put_off(&self) -> u64 {
        if self.core.is_there() { self.core.slot().round.put_off.load(Ordering::Relaxed) } else { 0 }
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
