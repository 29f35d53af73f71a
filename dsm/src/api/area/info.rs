//! Information about an area without attaching to it.
use crate::engine::directory::AreaId;
use crate::engine::directory::find;
use crate::protocol::ownership;
use crate::protocol::publication::Version;
use crate::segment::mapping::Segment;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// One line of the list of areas ([`Job::areas`](crate::Job::areas)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AreaInfo {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: Option<String>,
    /// Elements.
    pub len: usize,
    /// Bytes of one copy.
    pub bytes: u64,
    /// Bytes of memory that it takes, with all copies, logs and bitmaps.
    pub footprint: u64,
    /// The element type, for people.
    pub element: String,
    /// Elements of one row.
    pub row: usize,
    /// Reader copies that have memory. In a job on several hosts, an area gets some more when another host first wants it.
    pub copies: u32,
    /// Its interval.
    pub interval: Option<Duration>,
    /// The rank that owns it or that it is on its way to; `None` if it can be claimed, or its owner is on another host.
    pub owner: Option<crate::Rank>,
    /// Whether its owner is on another host.
    pub remote: bool,
    /// The owner epoch.
    pub epoch: u64,
    /// The newest published version; `None` without reader copies.
    pub version: Option<Version>,
    /// Publications postponed: see [`Area::postponed`](crate::Area::postponed).
    pub postponed: u64,
}

impl AreaInfo {
    /// `None` if the area was deleted meanwhile.
    pub(crate) fn of(segment: &Segment, id: AreaId) -> Option<AreaInfo> {
        let index = id.index as usize;
        let slot = &segment.areas()[index];
        let word = ownership::load(&slot.own.ownership);
        let about = slot.about.about();
        let (name, group) = (find::name(segment, index), find::group(segment, index));
        let postponed = slot.round.postponed.load(Ordering::Relaxed);
        let (layout, offset) = (slot.layout_copy(), slot.about.extent_offset.load(Ordering::Relaxed));
        // All of this is of that area, and not of another one that took its slot meanwhile.
        if !find::unchanged(id, slot) {
            return None;
        }
        let parts = crate::segment::parts::Parts::with(segment, slot, &layout, offset);
        let copies = parts.reader_copies().present() as u32;
        Some(AreaInfo {
            name,
            group,
            len: about.len,
            bytes: about.bytes(),
            footprint: layout.footprint(copies),
            element: about.element.to_string(),
            row: about.row,
            copies,
            interval: about.interval,
            owner: word.holder(),
            remote: word.is_remote(),
            epoch: word.epoch(),
            version: parts.copies().get(parts.current()).map(|record| record.version()),
            postponed,
        })
    }
}
