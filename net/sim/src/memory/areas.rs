//! Groups and areas of a simulated host: its own, and those that it receives.
use super::handover::Owner;
use crate::force_requests::Requests;
use crate::judge::Published;
use hectare_net::{Arrival, Description, HostId, PinId, Version};
use std::collections::BTreeSet;
use std::rc::Rc;

/// A group of this host.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// Its areas.
    pub(crate) members: Vec<OwnArea>,
    pub(super) copies: Vec<Copied>,
    pub(super) newest: Option<usize>,
    /// To whom the worker has given it.
    pub(super) given: Option<HostId>,
    /// The agent was told so.
    pub(super) given_is_told: bool,
    /// The worker has dropped it.
    pub(crate) is_dropped: bool,
    /// It was left to another host, which may not have its last state yet.
    pub(super) is_left: bool,
}

impl Own {
    /// Whether it is sent on demand.
    pub(crate) fn is_on_demand(&self) -> bool {
        self.members.iter().any(|area| area.description.on_demand)
    }
}

/// An area of this host.
#[derive(Debug)]
pub(crate) struct OwnArea {
    /// Its description.
    pub(crate) description: Description,
    /// The directory accepted its name.
    pub(crate) accepted: bool,
    pub(super) interval_us: u64,
    /// Of its ownership: raised by whoever gives or claims it.
    pub(super) epoch: u64,
    pub(super) writer: Vec<u8>,
    pub(super) dirty: BTreeSet<u32>,
    pub(super) version: Version,
    /// The counter with which each line changed last.
    pub(super) changed: Vec<u64>,
}

/// A reader copy.
#[derive(Debug)]
pub(super) struct Copied {
    pub(super) published: Option<Rc<Published>>,
    pub(super) published_ns: u64,
    pub(super) pin: Option<PinId>,
    /// The pin is of an agent that is gone.
    pub(super) dead: bool,
}

/// A group that is received.
#[derive(Debug)]
pub(crate) struct Remote {
    /// Its areas.
    pub(crate) members: Vec<RemoteArea>,
    /// Committed and not published.
    pub(crate) arrival: Option<Arrival>,
    /// The label of what is visible.
    pub(super) label: u64,
    /// The owner's round of what is visible.
    pub(crate) round: Option<u64>,
    /// Workers read it.
    pub(crate) attached: bool,
    /// Between the beginnings of cuts.
    pub(crate) interval_us: u64,
    /// Requests of workers.
    pub(super) requests: Requests,
    /// Where its owner is.
    pub(super) owner: Owner,
}

impl Remote {
    /// Each area as a new agent is told of it, with the version that is published here or, where it is sent on demand, has arrived.
    pub(super) fn kept(&self) -> Vec<Option<(Description, Option<Version>)>> {
        let arrived = self.arrival.as_ref().filter(|_| self.is_on_demand());
        let of = |(place, member): (usize, &RemoteArea)| {
            let arrived = arrived.and_then(|arrival| arrival.versions.get(place).copied());
            Some((member.description.clone(), arrived.or(member.version)))
        };
        self.members.iter().enumerate().map(of).collect()
    }

    /// One that has no areas yet, and that nobody reads.
    pub(super) fn of(owner: Owner) -> Remote {
        Remote {
            members: Vec::new(),
            arrival: None,
            label: 0,
            round: None,
            attached: false,
            interval_us: 0,
            requests: Requests::default(),
            owner,
        }
    }

    /// Whether it is sent on demand.
    pub(crate) fn is_on_demand(&self) -> bool {
        self.members.iter().any(|area| area.description.on_demand)
    }
}

/// An area that is received.
#[derive(Debug)]
pub(crate) struct RemoteArea {
    /// Its description.
    pub(crate) description: Description,
    pub(super) writer: Vec<u8>,
    pub(super) log: BTreeSet<u32>,
    pub(super) reader: Vec<u8>,
    /// The visible version.
    pub(crate) version: Option<Version>,
    /// Who waits for it is told that its owner has dropped it.
    pub(super) is_ownerless: bool,
}
