//! Memory of areas for devices that read and write it by themselves.
use super::Agent;
use super::desk::Desk;
use super::held::Held;
use crate::engine::directory::{AreaId, find};
use crate::error::{Error, Result};
use crate::protocol::ownership;
use crate::segment::parts::Parts;
use std::ptr::NonNull;
use std::rc::Rc;

/// The writer copy of an area whose owner is on another host, for a device that writes it for that host.
///
/// The memory stays mapped and the area's for as long as this lives, also if the area is deleted, and nobody here looks at it by
/// references. Lines that were not marked ([`Receiving::mark`](super::receive::Receiving::mark)) are never published; those that
/// were are read by rounds from [`Receiving::commit`](super::receive::Receiving::commit) on, until what was committed is
/// published. The area cannot be taken over meanwhile ([`Agent::take_over`]).
#[derive(Debug)]
pub struct ExposedWriter {
    exposed: Exposed,
}

/// A published copy, for a device that reads it while it is held.
///
/// The memory stays mapped and the area's for as long as this lives, also if the area is deleted. What is in it stays still only
/// while a [`Held`] holds it.
#[derive(Debug)]
pub struct ExposedCopy {
    exposed: Exposed,
}

#[derive(Debug)]
struct Exposed {
    desk: Rc<Desk>,
    area: AreaId,
    start: NonNull<u8>,
    len: usize,
}

impl Exposed {
    /// Of an area that is in use once more for it.
    fn new(desk: &Rc<Desk>, area: AreaId, start: impl FnOnce(&Parts<'_>) -> *mut u8) -> Exposed {
        let parts = Parts::of(&desk.shared.segment, area.index as usize);
        let len = parts.slot.about.about().bytes() as usize;
        let start = NonNull::new(start(&parts)).expect("a mapped segment");
        Exposed { desk: desk.clone(), area, start, len }
    }
}

impl Drop for Exposed {
    fn drop(&mut self) {
        if self.desk.shared.check_process().is_ok() {
            self.desk.release(self.area);
        }
    }
}

impl Agent {
    /// Exposes the writer copy of an area whose owner is on another host. Once at a time.
    ///
    /// ```
    /// use hectare_dsm::agent::RemoteWorker;
    /// use hectare_dsm::{AreaSpec, ElementType, Job};
    /// let job = Job::builder().hosts(&[1, 1], 0).embedded()?;
    /// let agent = job.agent()?;
    /// let area = agent.create(&AreaSpec::new("a").copies(3), ElementType::of::<u64>(), 100)?;
    /// let exposed = agent.expose(area)?;
    /// assert_eq!(exposed.len(), 800);
    /// assert!(agent.expose(area).is_err());
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Deleted`], [`Error::OwnerHere`], [`Error::InvalidArea`] if it is exposed, [`Error::ForkedChild`].
    pub fn expose(&self, area: AreaId) -> Result<ExposedWriter> {
        let desk = &self.desk;
        desk.shared.check_process()?;
        desk.hold(area)?;
        let segment = &desk.shared.segment;
        let name = || find::name(segment, area.index as usize);
        let exposed = Exposed::new(desk, area, |parts| parts.writer());
        if !ownership::load(&segment.areas()[area.index as usize].own.ownership).is_remote() {
            return Err(Error::OwnerHere { name: name() });
        }
        if !desk.exposed.borrow_mut().insert(area) {
            return Err(Error::InvalidArea { name: name(), what: "exposed twice".into() });
        }
        Ok(ExposedWriter { exposed })
    }
}

impl Held {
    /// Exposes the memory of this copy.
    ///
    /// # Errors
    /// [`Error::Deleted`].
    pub fn expose(&self) -> Result<ExposedCopy> {
        let (desk, area, copy) = self.place();
        desk.hold(area)?;
        Ok(ExposedCopy { exposed: Exposed::new(desk, area, |parts| parts.reader(copy)) })
    }
}

impl ExposedWriter {
    /// The first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.exposed.start
    }

    /// How many bytes the area has.
    #[allow(clippy::len_without_is_empty, reason = "areas are not empty")]
    pub fn len(&self) -> usize {
        self.exposed.len
    }

    /// The area.
    pub fn area(&self) -> AreaId {
        self.exposed.area
    }
}

impl Drop for ExposedWriter {
    fn drop(&mut self) {
        self.exposed.desk.exposed.borrow_mut().remove(&self.exposed.area);
    }
}

impl ExposedCopy {
    /// The first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.exposed.start
    }

    /// How many bytes the area has.
    #[allow(clippy::len_without_is_empty, reason = "areas are not empty")]
    pub fn len(&self) -> usize {
        self.exposed.len
    }
}
