//! The placer of a program without RDMA.
use super::{Lines, News, RdmaDevice, RdmaError, Standing, no_card};
use crate::own::Own;
use hectare_dsm as dsm;
use hectare_dsm::agent::Agent;
use hectare_net::{HostId, Place};
use hectare_session::Time;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// Places nothing.
#[derive(Debug, Default)]
pub struct Placer {
    news: VecDeque<News>,
}

impl Placer {
    /// Places nothing.
    pub fn none(_: Option<RdmaError>) -> Placer {
        Placer::default()
    }

    /// # Errors
    /// Always.
    pub fn open(_: &RdmaDevice, _: IpAddr) -> Result<Placer, RdmaError> {
        Err(RdmaError::NotBuilt)
    }

    pub(crate) fn connected(&mut self, peer: HostId) {
        self.news.push_back(News::Card(peer, no_card("its agent was built without RDMA")));
    }

    pub(crate) fn disconnected(&mut self, _: HostId) {}

    pub(crate) fn card(&mut self, _: Time, _: HostId, _: &[u8]) {}

    pub(crate) fn poll(&mut self, _: Time) {}

    pub(crate) fn next_news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    pub(crate) fn grant(&mut self, _: &Agent, _: HostId, _: &[Option<dsm::AreaId>]) -> Option<Vec<Place>> {
        None
    }

    pub(crate) fn place(&mut self, _: &Own, _: HostId, _: Lines) {}

    pub(crate) fn close(&mut self, _: HostId, _: &str) {}

    pub(crate) fn forget(&mut self, _: dsm::AreaId) {}

    pub(crate) fn forget_sent(&mut self, _: HostId, _: dsm::AreaId) {}

    pub(crate) fn may_sleep(&mut self) -> bool {
        true
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        None
    }

    pub(crate) fn event_descriptor(&self) -> Option<OwnedFd> {
        None
    }

    pub(crate) fn has_none(&self, _: HostId) -> Option<String> {
        None
    }

    pub(crate) fn standing(&self, _: HostId) -> Standing {
        Standing { is_up: false, why: String::new() }
    }

    pub(crate) fn counters(&self) -> Vec<(&'static str, &'static str, u64)> {
        Vec::new()
    }
}
