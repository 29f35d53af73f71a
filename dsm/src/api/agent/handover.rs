//! Areas that go from host to host: an agent leaves them to others, and takes what is left to this one.
use super::Agent;
use super::receive::restore;
use crate::engine::directory::AreaId;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Error, Rank, Result};
use crate::protocol::ownership;
use crate::protocol::publication::Version;
use crate::protocol::round::slot_state;
use crate::protocol::word::Phase;
use crate::segment::parts::Parts;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

impl Agent {
    /// Leaves an area, which a worker of this host has given to one of another ([`Event::Given`]), for good: its owner is on that
    /// host from now on, and what it publishes is received. False, and nothing has changed, if it was not given to `to` under this
    /// epoch, or `version` is not the newest, or something newer is written or a round is at it.
    ///
    /// ```
    /// use hectare_dsm::agent::{Event, RemoteWorker};
    /// use hectare_dsm::Job;
    /// let job = Job::builder().hosts(&[1, 1], 0).embedded()?;
    /// let (mut agent, mut worker) = (job.agent()?, job.worker()?);
    /// agent.set_worker(1, RemoteWorker::There)?;
    /// let mut owned = worker.create::<u64>("a", 9)?;
    /// owned.write(&worker)?.fill(1);
    /// owned.give(&worker, 1)?;
    /// worker.sync()?;
    /// let mut events = Vec::new();
    /// agent.look(&mut events);
    /// let given = events.iter().find_map(|event| match event {
    ///     Event::Given { area, to: 1, epoch } => Some((*area, *epoch)),
    ///     _ => None,
    /// });
    /// let (area, epoch) = given.expect("it was given");
    /// let version = agent.newest(area).expect("it is published");
    /// assert!(agent.leave(area, 1, epoch, version)?);
    /// assert!(agent.describe(area).expect("it is there").remote);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Deleted`], [`Error::ForkedChild`].
    ///
    /// [`Event::Given`]: super::news::Event::Given
    pub fn leave(&self, area: AreaId, to: Rank, epoch: u64, version: Version) -> Result<bool> {
        self.desk.shared.check_process()?;
        self.desk.hold(area)?;
        let left = self.leave_held(area, to, epoch, version);
        self.desk.release(area);
        Ok(left)
    }

    /// Whether all that was written of an area, which nobody writes any more, is published. Also of one that was deleted.
    pub fn is_all_published(&self, area: AreaId) -> bool {
        if self.desk.hold(area).is_err() {
            return true;
        }
        let segment = &self.desk.shared.segment;
        // In this order: a round that has cleared the mark, and is past by the word, is seen to have published what is newest. A later
        // one finds no mark, as nobody writes.
        let is_dirty = segment.dirty(area.index as usize).is_set();
        let is_between = matches!(segment.rounds().load_total().phase(), Phase::Idle | Phase::Open);
        self.desk.release(area);
        !is_dirty && is_between
    }

    fn leave_held(&self, area: AreaId, to: Rank, epoch: u64, version: Version) -> bool {
        let parts = Parts::of(&self.desk.shared.segment, area.index as usize);
        if !self.is_all_published(area) || parts.reader_copies().version() != Some(version) {
            return false;
        }
        // Arrivals from now on have another source than those before.
        self.desk.sources.borrow_mut().remove(area);
        if parts.slot.agent.arrival.handed_over().is_some() {
            parts.slot.agent.arrival.reopen();
        }
        self.wake(area, ownership::leave_to(&parts.slot.own.ownership, to, epoch))
    }

    /// Takes an area of another host, which was left to worker `rank` of this one: as it is published here it is that worker's from
    /// now on, under this epoch; anybody may claim it if that one is gone. False, and nothing has changed, as long as something of
    /// it has arrived that is not published in a round that is past, while it is received into or its writer copy is exposed
    /// ([`Agent::expose`]), and until the worker has come.
    ///
    /// # Errors
    /// [`Error::OwnerHere`] if its owner is on this host, or was as of a later epoch; [`Error::NoSuchWorker`] if the rank is not one
    /// of this host; [`Error::Deleted`], [`Error::ForkedChild`].
    pub fn take_over(&self, area: AreaId, rank: Rank, epoch: u64) -> Result<bool> {
        let shared = &self.desk.shared;
        shared.check_process()?;
        if !shared.segment.ranks_here().contains(&rank) {
            return Err(Error::NoSuchWorker { rank });
        }
        self.desk.hold(area)?;
        let taken = self.take_held(area, rank, epoch);
        self.desk.release(area);
        taken
    }

    fn take_held(&self, area: AreaId, rank: Rank, epoch: u64) -> Result<bool> {
        let shared = &self.desk.shared;
        let segment = &shared.segment;
        let index = area.index as usize;
        let parts = Parts::of(segment, index);
        let word = &parts.slot.own.ownership;
        let here = || Error::OwnerHere { name: crate::engine::directory::find::name(segment, index) };
        let seen = ownership::load(word);
        if !seen.is_remote() || seen.epoch() >= epoch {
            return Err(here());
        }
        let is_written = |of: &RefCell<HashSet<AreaId>>| of.borrow().contains(&area);
        if is_written(&self.desk.receiving) || is_written(&self.desk.exposed) || !self.desk.may_receive(area)
        {
            return Ok(false);
        }
        let Some(gone) = self.is_gone_for_good(rank) else { return Ok(false) };
        let Some(version) = parts.reader_copies().version() else { return Ok(false) };
        self.desk.sources.borrow_mut().remove(area);
        // Of cuts that were never complete.
        restore(&parts, &self.desk.log(area));
        parts.slot.round.term.store(version.term, Ordering::Relaxed);
        for writers in parts.writers() {
            writers.store(0, Ordering::Relaxed);
        }
        parts.slot.agent.hidden.store(0, Ordering::Relaxed);
        if !self.wake(area, ownership::arrive(word, rank, epoch, gone)) {
            return Err(here());
        }
        if gone {
            shared.tell_of_owner(index);
        }
        Ok(true)
    }

    /// Whether a worker of this host has been there and is no more; `None` while it may be coming or going. Who takes a slot makes
    /// claimable what is on its way there.
    pub(super) fn is_gone_for_good(&self, rank: Rank) -> Option<bool> {
        let shared = &self.desk.shared;
        let seat = &shared.segment.all_seats()[rank as usize];
        match seat.state() {
            slot_state::LIVE => Some(shared.is_dead(rank)),
            slot_state::FREE => {
                // Whoever takes the slot has its mutex until the seat says so.
                let life = &shared.segment.workers()[rank as usize].life;
                life.try_lock()?;
                // Relaxed: written under that mutex.
                let has_been = seat.incarnation.load(Ordering::Relaxed) != 0;
                let is_free = seat.state() == slot_state::FREE;
                life.unlock();
                (has_been && is_free).then_some(true)
            }
            _ => shared.is_dead(rank).then_some(true),
        }
    }

    /// Notes that the owner of an area of another host is on host `host` now, as of the hand-over of this epoch. Of no effect if a
    /// later one is known.
    ///
    /// An area that this host has left ([`Agent::leave`]) is `left_to` a worker, until this says that it has come to the host of that
    /// one, or gone on: until then its last state is to be sent there, by the next agent, too.
    pub fn refer(&self, area: AreaId, host: usize, epoch: u64) {
        if self.desk.hold(area).is_ok() {
            let segment = &self.desk.shared.segment;
            let word = &segment.areas()[area.index as usize].own.ownership;
            let left_to = ownership::load(word).left_to().filter(|to| segment.host_of(*to) == Some(host));
            let has_come = left_to.and_then(|to| ownership::has_come(word, to, host, epoch));
            self.wake(area, has_come.or_else(|| ownership::refer(word, host, epoch)));
            self.desk.release(area);
        }
    }

    /// Notes that the owner of an area of another host has dropped it or has failed, or that there is one again: who waits for it is
    /// woken.
    pub fn note_ownerless(&self, area: AreaId, is: bool) {
        if self.desk.hold(area).is_ok() {
            let slot = &self.desk.shared.segment.areas()[area.index as usize];
            self.wake(area, ownership::note_dropped(&slot.own.ownership, is));
            self.desk.release(area);
        }
    }

    /// Wakes who sleeps on the ownership word after a change of it; whether there was one.
    fn wake(&self, area: AreaId, changed: Option<bool>) -> bool {
        if changed == Some(true) {
            let slot = &self.desk.shared.segment.areas()[area.index as usize];
            futex_wake_all(low_half(&slot.own.ownership));
        }
        changed.is_some()
    }
}
