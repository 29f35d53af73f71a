//! A host whose worker leaves the job before the others are done: its agent goes on, and runs the rounds.
use super::HostMemory;
use hectare_net::{Event, GroupId};

/// Whether a host's worker is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// It stays to the end.
    Ever,
    /// It leaves after its last iteration.
    AWhile,
    /// It has left; what it wrote is yet to be published.
    Leaving,
    /// It has left, and other hosts are told that nobody is there.
    Deserted,
}

impl HostMemory {
    /// The worker leaves after so many iterations.
    pub(crate) fn leaves_after(&mut self, iterations: u64) {
        self.stay = Stay::AWhile;
        self.iterations = iterations;
    }

    /// Whether the worker stays to the end.
    pub(crate) fn stays(&self) -> bool {
        self.stay == Stay::Ever
    }

    /// Whether the worker has left.
    pub(crate) fn has_left(&self) -> bool {
        matches!(self.stay, Stay::Leaving | Stay::Deserted)
    }

    /// The worker leaves if it has done all: what it owns has no owner any more.
    pub(super) fn leave_if_done(&mut self) {
        let is_done = self.worker.iteration == self.iterations && !self.worker.waits;
        if self.stay != Stay::AWhile || !is_done {
            return;
        }
        self.stay = Stay::Leaving;
        self.gives_written = None;
        let owned = self.own.iter().filter(|(_, own)| own.given.is_none() && !own.is_dropped);
        for group in owned.map(|(group, _)| *group).collect::<Vec<_>>() {
            self.drop_group(group);
        }
    }

    /// A group of this host has no owner any more.
    pub(super) fn drop_group(&mut self, group: GroupId) {
        let own = self.own.get_mut(&group).expect("it is of this host");
        own.is_dropped = true;
        let members = own.members.len() as u16;
        self.judge.borrow_mut().dropped(group, true);
        self.tell_dropped(group, true, members);
    }

    /// A round of the agent's. What comes here is published: it may have been given to the worker before that one left.
    pub(super) fn run_deserted(&mut self) {
        let lowest = self.clocks.values().copied().min().unwrap_or(0);
        self.publish_arrivals(lowest);
        if self.stay == Stay::Deserted && lowest > self.lowest {
            self.lowest = lowest;
            self.events.push_back(Event::Clocks { clock: self.local, lowest });
        }
    }

    /// All that the worker wrote is published: other hosts are told that nobody is here, and its clock is out of all.
    pub(super) fn desert(&mut self) {
        self.stay = Stay::Deserted;
        let rounds = self.rounds();
        self.judge.borrow_mut().last_clock(self.host, self.local, rounds);
        self.local = u64::MAX;
        self.tell_deserted();
        self.events.push_back(Event::Clocks { clock: self.local, lowest: self.lowest });
    }

    /// That nobody is here, also for a new agent.
    pub(super) fn tell_deserted(&mut self) {
        if self.stay == Stay::Deserted {
            self.events.push_back(Event::Deserted);
        }
    }
}
