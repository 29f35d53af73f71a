//! An area as a handle of any element type knows it.
use super::directory::{AreaId, find};
use super::shared::{Shared, check_is_asked_for};
use crate::error::{Error, Result, Unshared};
use crate::log::bitmap::Log;
use crate::protocol::conflict::{Conflict, Over};
use crate::protocol::ownership;
use crate::protocol::publication::Version;
use crate::segment::about::About;
use crate::segment::element::ElementType;
use crate::segment::layout::{AreaLayout, AreaSlot, LINE};
use crate::segment::parts::Parts;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often a reader looks again at what is being published, which takes microseconds.
pub(crate) const LOOKS: u32 = 10_000;

/// The longest row that is logged as a whole, in bytes.
const LARGEST_LOGGED_ROW: u64 = 4096;

/// A handle's knowledge of its area, whatever its element type.
#[derive(Debug)]
pub(crate) struct AreaCore {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: AreaId,
    pub(crate) name: String,
    pub(crate) layout: AreaLayout,
    pub(crate) slot: &'static AreaSlot,
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
            let id = find::find_shown(&shared.segment, name)
                .ok_or_else(|| Error::NoSuchArea { name: name.into() })?;
            match AreaCore::of(shared, id, name, element) {
                // Deleted between two looks at it: there may be another of the name.
                Err(Error::Deleted { .. }) => {}
                Err(error @ Error::WrongType { host: Some(_), .. }) => {
                    shared.tell_taken_for(name, element);
                    return Err(error);
                }
                other => return other,
            }
        }
    }

    /// Looks up an area for a handle.
    ///
    /// # Errors
    /// [`Error::Deleted`] if the area was deleted before all was read, [`Error::WrongType`].
    pub(crate) fn of(shared: &Arc<Shared>, id: AreaId, name: &str, element: ElementType) -> Result<AreaCore> {
        let slot = &shared.segment.areas()[id.index as usize];
        let About { element: found, len, row, automatic, .. } = slot.about.about();
        let offset = slot.about.extent_offset.load(Ordering::Relaxed);
        let (layout, word) = (slot.layout_copy(), ownership::load(&slot.own.ownership));
        if !find::unchanged(id, slot) {
            return Err(Error::Deleted { name: name.into() });
        }
        if found != element {
            return Err(Error::WrongType {
                name: name.into(),
                host: word.is_remote().then(|| shared.segment.host_text(shared.segment.owner_host(word))),
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
        let looked_through = automatic || shared.segment.config().check != 0 || check_is_asked_for();
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
    pub(crate) fn check_job(&self, shared: &Arc<Shared>) -> Result<()> {
        shared.check_process()?;
        if Arc::ptr_eq(&self.shared, shared) { Ok(()) } else { Err(self.other_job()) }
    }

    /// Its owner's host keeps it, or that of the worker that it was given to.
    #[cold]
    pub(crate) fn owner_elsewhere(&self, word: ownership::OwnershipWord) -> Error {
        let segment = &self.shared.segment;
        let next = || word.holder().and_then(|rank| segment.host_of(rank));
        let host = segment.host_text(segment.owner_host(word).or_else(next));
        let error = Error::OwnerElsewhere { name: self.name.clone(), host };
        self.shared.refused_handover(error)
    }

    /// Whether the area can be given to worker `to`, also if that is of another host.
    ///
    /// # Errors
    /// [`Error::CannotLeave`].
    pub(crate) fn check_leaving(&self, to: u32) -> crate::error::Result<()> {
        let segment = &self.shared.segment;
        let Some(host) = segment.host_of(to) else { return Ok(()) };
        let why = match () {
            () if self.layout.copies == 0 => "it has no reader copies, which is what other hosts are sent",
            () if self.slot().about.group.load(Ordering::Relaxed) != 0 => {
                "it is of a group, and the areas of a group have their owners on one host"
            }
            // Check mode looks an area through on every host, and arrivals are published before they are taken.
            () if self.slot().about.is_automatic() => {
                "this host tracks its writes; create it with `Tracking::Logged` or `Tracking::Whole`"
            }
            () => return Ok(()),
        };
        let host = segment.host_text(Some(host));
        let error = Error::CannotLeave { name: self.name.clone(), rank: to, host, why: why.into() };
        Err(self.shared.refused_handover(error))
    }

    /// The error that tells its owner an objection of other hosts.
    #[cold]
    pub(crate) fn conflict(&self, conflict: Conflict) -> Error {
        let segment = &self.shared.segment;
        let here = segment.host_text(Some(segment.config().here as usize));
        let (name, host, is_known) =
            (self.name.clone(), segment.host_text(Some(conflict.host)), conflict.is_known);
        let error = match conflict.over {
            Over::Name => Error::NameClash { name, here, host, is_known },
            Over::Type([size, align, kind]) => {
                let asked = ElementType { size, align, kind }.to_string().into();
                let found = self.slot().about.about().element.to_string().into();
                Error::TypeClash { name, here: here.into(), host, asked, found }
            }
            Over::Members => Error::NotShared { name, host: here, why: Unshared::Members },
            Over::Length => Error::NotShared { name, host: here, why: Unshared::Length },
            Over::Group => {
                let group = find::group(segment, self.id.index as usize).unwrap_or_default();
                Error::GroupClash { name, group, here, host, is_known }
            }
        };
        tracing::warn!(%error, "a conflict with another host");
        error
    }

    #[cold]
    fn other_job(&self) -> Error {
        Error::OtherJob { name: self.name.clone() }
    }

    #[cold]
    pub(crate) fn no_copy(&self) -> Error {
        Error::NoReaderCopy { name: self.name.clone() }
    }

    pub(crate) fn ownership(&self) -> ownership::OwnershipWord {
        ownership::load(&self.slot().own.ownership)
    }

    pub(crate) fn version_of(&self, copy: usize) -> Version {
        self.parts().copies()[copy].version()
    }

    /// The newest version, read without a pin: both halves from one publication.
    pub(crate) fn newest(&self) -> Option<Version> {
        let parts = self.parts();
        if parts.layout.copies == 0 {
            return None;
        }
        for _ in 0..LOOKS {
            if let Some(version) = parts.reader_copies().version() {
                return Some(version);
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

    /// Asks the owner's host for what the area is there now; the number of the request.
    pub(crate) fn request(&self) -> u64 {
        let request = self.slot().agent.request.make();
        self.shared.tell_agent(self.id.index as usize);
        request
    }

    /// Whether a request is answered, and the owner could not publish.
    pub(crate) fn answer_to(&self, request: u64) -> Option<bool> {
        self.slot().agent.request.answer_to(request)
    }
}
