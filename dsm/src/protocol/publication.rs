//! Versions, and what makes one.

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

/// The publication of one area, as a plan made it and as whoever publishes writes it: a value, to be read from the plan in
/// one place ([`PlanEntry::publication`](crate::segment::layout::PlanEntry)), and to be sent to others.
///
/// Which lines changed is in the area's log until it is published, then in its generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Publication {
    /// The area's slot.
    pub(crate) area: u32,
    /// Its group; 0: none.
    pub(crate) group: u32,
    /// The reader copy that holds the version.
    pub(crate) copy: u32,
    /// Whether all lines were copied, whatever the log says.
    pub(crate) whole: bool,
    pub(crate) version: Version,
    /// The round that publishes it.
    pub(crate) round: u64,
    /// The owner's clock at that round.
    pub(crate) clock: u64,
    /// Its label: see `protocol/label.rs`.
    pub(crate) label: u64,
    /// The round that published the last version with an earlier label, of which a copy is kept for other hosts: see `label::keep`.
    pub(crate) kept: u64,
    /// When this was last known to be the newest that the owner had written, in monotonic nanoseconds: the time of the round, or, if
    /// the owner is on another host, an earlier one.
    pub(crate) timestamp_ns: u64,
}

#[cfg(all(test, loom))]
impl Publication {
    /// The publication by `round` in a model: the version is the round, so that a mixture of two is found.
    pub(crate) fn of_round(copy: usize, round: u64) -> Publication {
        let version = Version { term: round, counter: round };
        let copy = copy as u32;
        Publication {
            area: 0,
            group: 0,
            copy,
            whole: true,
            version,
            round,
            clock: round,
            label: 0,
            kept: super::label::NONE,
            timestamp_ns: round,
        }
    }
}
