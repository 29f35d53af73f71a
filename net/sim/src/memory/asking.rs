//! Workers that want what a group of another host is now, and hosts without rounds while their worker waits for that.
use super::HostMemory;
use crate::judge::key;
use crate::options::Mode;
use hectare_net::{Event, GroupId};

impl HostMemory {
    /// Whether the worker waits, outside of rounds, for a group that is sent on demand. It does no more when the group is deleted, or
    /// something newer is published than what has arrived, which can come only after a round.
    pub(super) fn waits_for_an_answer(&mut self) -> bool {
        let waits = |group: &GroupId| {
            let judge = self.judge.borrow();
            let newest = judge.newest(*group).map(|newest| &newest.state.versions);
            self.remote.get(group).is_some_and(|remote| {
                let arrived = remote.arrival.as_ref().map(|arrival| &arrival.versions);
                let may_come = (arrived.is_none() || arrived == newest) && !judge.is_deleted(*group);
                !remote.requests.are_answered() && may_come
            })
        };
        self.awaited = self.awaited.filter(waits);
        self.awaited.is_some()
    }

    /// A worker may want what a group of another host is now.
    pub(super) fn request(&mut self) {
        // None of them at the end, so that there is one.
        if self.requests == 0 || self.worker.iteration == self.iterations {
            return;
        }
        let may_wait = self.awaits > 0 && self.mode == Mode::Barrier && !self.worker.waits;
        for (&group, remote) in &mut self.remote {
            let on_demand = remote.is_on_demand();
            let shows = remote.attached
                && (on_demand || remote.members.iter().all(|member| member.version.is_some()));
            if shows && self.random.chance(self.requests) {
                let judge = self.judge.borrow();
                let newest = match on_demand {
                    // The owner's agent need not have seen more than what clocks have told since.
                    true => judge.at_clock(group, self.lowest),
                    false => judge.newest(group).map_or(0, |newest| key(group, &newest.state)),
                };
                // Nothing keeps what it is answered with from arriving.
                let may_wait =
                    on_demand && may_wait && remote.arrival.is_none() && remote.requests.are_answered();
                let request = remote.requests.make(newest);
                if may_wait && self.random.chance(self.awaits) {
                    self.awaited = Some(group);
                }
                self.events.push_back(Event::Force { group, request });
            }
        }
    }
}
