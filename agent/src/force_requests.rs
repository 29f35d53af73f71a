//! Forced syncs that workers of this host request from other hosts, until they are answered.
use hectare_dsm::AreaId;
use std::collections::VecDeque;

/// The requests for the areas of one group, which are asked for together.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    last: u32,
    /// The number between hosts; the area, and the number of the request there.
    open: VecDeque<(u32, AreaId, u64)>,
}

impl Requests {
    /// Enters a request; its number between hosts.
    pub(crate) fn make(&mut self, area: AreaId, request: u64) -> u32 {
        self.last += 1;
        self.open.push_back((self.last, area, request));
        self.last
    }

    /// All of them.
    pub(crate) fn all(self) -> impl Iterator<Item = (AreaId, u64)> {
        self.open.into_iter().map(|(_, area, request)| (area, request))
    }

    /// Takes those up to a number.
    pub(crate) fn answer(&mut self, number: u32) -> impl Iterator<Item = (AreaId, u64)> {
        let count = self.open.partition_point(|(other, ..)| *other <= number);
        self.open.drain(..count).map(|(_, area, request)| (area, request))
    }
}
