//! Descriptions of areas for other hosts.
use super::Agent;
use crate::engine::directory::{AreaId, find};
use crate::error::Rank;
use crate::protocol::ownership;
use crate::protocol::publication::Version;
use crate::segment::element::ElementType;
use crate::segment::parts::Parts;
use std::time::Duration;

/// The description of an area that other hosts need.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AreaDescription {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: Option<String>,
    /// The type of its elements.
    pub element: ElementType,
    /// Elements.
    pub len: usize,
    /// Elements of one row.
    pub row: usize,
    /// Reader copies.
    pub copies: u32,
    /// Its interval.
    pub interval: Option<Duration>,
    /// Between versions that go to another host ([`AreaSpec::external_interval`](crate::AreaSpec::external_interval)).
    pub external_interval: Option<Duration>,
    /// Whether other hosts are sent what they ask for ([`AreaSpec::on_demand`](crate::AreaSpec::on_demand)).
    pub on_demand: bool,
    /// Whether its owner is on another host.
    pub remote: bool,
    /// The owner's host, if it is another one and known.
    pub owner: Option<usize>,
    /// The worker of that host to which one of this host gave it, if that is how it got there.
    pub left_to: Option<Rank>,
    /// The worker of another host to which it was given and not left yet, so that it is this host's still.
    pub given_to: Option<Rank>,
    /// Rises with each change of owner: already when the area is given, not only when it is taken.
    pub epoch: u64,
}

impl Agent {
    /// Describes an area; `None` if it was deleted.
    pub fn describe(&self, area: AreaId) -> Option<AreaDescription> {
        let segment = &self.desk.shared.segment;
        let index = area.index as usize;
        let slot = segment.areas().get(index).filter(|slot| area.is_live(slot))?;
        let about = slot.about.about();
        let word = ownership::load(&slot.own.ownership);
        let description = AreaDescription {
            name: find::name(segment, index),
            group: find::group(segment, index),
            element: about.element,
            len: about.len,
            row: about.row,
            copies: about.copies,
            interval: about.interval,
            external_interval: about.external_interval,
            on_demand: about.on_demand,
            remote: word.is_remote(),
            owner: segment.owner_host(word),
            left_to: word.left_to(),
            given_to: Some(word.rank()).filter(|rank| word.is_transit() && segment.host_of(*rank).is_some()),
            epoch: word.epoch(),
        };
        find::unchanged(area, slot).then_some(description)
    }

    /// The newest version of an area that is published here; `None` if it was deleted, has no reader copy, or is being
    /// published at this moment.
    pub fn newest(&self, area: AreaId) -> Option<Version> {
        self.desk.hold(area).ok()?;
        let parts = Parts::of(&self.desk.shared.segment, area.index as usize);
        let newest = if parts.layout.copies == 0 { None } else { parts.reader_copies().version() };
        self.desk.release(area);
        newest
    }

    /// The version of an area of another host that was handed over to the rounds last, until the agent may receive the next one
    /// ([`Agent::may_receive`]): it may not be published yet, but of an area that is sent on demand, workers read it. `None` if
    /// nothing is handed over, or the area is gone.
    pub fn arrived(&self, area: AreaId) -> Option<Version> {
        self.desk.hold(area).ok()?;
        let arrived = self.desk.shared.segment.areas()[area.index as usize].agent.arrival.handed_over();
        self.desk.release(area);
        Some(arrived?.version)
    }

    /// The area of a name, if there is one here.
    pub fn find(&self, name: &str) -> Option<AreaId> {
        find::find(&self.desk.shared.segment, name)
    }
}
