//! The bytes of an area for those who do not know its element type.
use super::handle::Area;
use super::observer::Observer;
use crate::engine::area_core::AreaCore;
use crate::engine::directory::find;
use crate::error::{Error, Result};
use crate::protocol::publication::Version;
use std::ops::Range;
use std::sync::Arc;

/// A copy of some elements of one version of an area.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AreaBytes {
    /// The version.
    pub version: Version,
    /// The element type, for people: its name comes first, `struct` where it has none.
    pub element: String,
    /// Bytes of one element.
    pub element_bytes: usize,
    /// Elements of the area.
    pub len: usize,
    /// Elements of one row.
    pub row: usize,
    /// The range of these elements.
    pub range: Range<usize>,
    /// Their bytes, in the order of this machine.
    pub bytes: Vec<u8>,
}

impl Observer {
    /// Copies elements of the newest version of an area, all of them if no range is given, whatever their
    /// type. The version is pinned only while it is copied.
    ///
    /// ```
    /// # let job = hectare_dsm::Job::embedded()?;
    /// # let mut worker = job.worker()?;
    /// let mut area = worker.create::<u16>("counts", 4)?;
    /// area.write(&worker)?.fill(0x0102);
    /// worker.sync()?;
    /// let some = job.observer()?.read_bytes("counts", Some(1..3))?;
    /// assert_eq!((some.len, some.bytes.len(), some.version.counter), (4, 4, 1));
    /// assert!(some.element.starts_with("u16"));
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchArea`], [`Error::OutOfRange`], and those of [`Observer::read`].
    pub fn read_bytes(&self, name: &str, range: Option<Range<usize>>) -> Result<AreaBytes> {
        let shared = self.shared();
        shared.check_process()?;
        let segment = &shared.segment;
        let id = find::find_shown(segment, name).ok_or_else(|| Error::NoSuchArea { name: name.into() })?;
        let slot = &segment.areas()[id.index as usize];
        let element = slot.about.about().element;
        if !find::unchanged(id, slot) {
            return Err(Error::NoSuchArea { name: name.into() });
        }
        let mut core = AreaCore::of(shared, id, name, element)?;
        let (len, row, size) = (core.len, core.row, element.size as usize);
        let range = range.unwrap_or(0..len);
        if range.start > range.end || range.end > len {
            let Range { start, end } = range;
            return Err(Error::OutOfRange { name: name.into(), start, end, len });
        }
        // As many bytes as the elements have; only read here.
        (core.len, core.row) = (len * size, row * size);
        let area = Area::<u8>::around(Arc::new(core));
        let pinned = self.read(&area)?;
        let bytes = pinned[range.start * size..range.end * size].to_vec();
        let version = pinned.version();
        Ok(AreaBytes { version, element: element.to_string(), element_bytes: size, len, row, range, bytes })
    }
}
