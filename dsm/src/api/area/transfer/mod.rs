//! Ownership from worker to worker: take what was given, claim what a dead worker left.
use super::handle::Area;
use super::owned::Owned;
use crate::api::worker::Worker;
use crate::engine::area_core::AreaCore;
use crate::error::{Error, Rank, Result};
use crate::memory::copy::Kernels;
use crate::protocol::lock;
use crate::protocol::ownership;
use crate::protocol::ownership::OwnershipWord;
use crate::protocol::publication::Version;
use crate::segment::element::Element;
use crate::segment::parts::Parts;
use crate::segment::tally::count;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The loss that a claim found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The last published version, which the area was restored to; `None` for an area without reader
    /// copies, whose bytes are as the last owner left them.
    pub last_version: Option<Version>,
    /// The workers whose unpublished writes are lost: the last owner, and earlier ones who had handed the
    /// area on without publishing.
    pub lost_writers: Vec<Rank>,
}

/// A claimed area.
#[derive(Debug)]
#[non_exhaustive]
pub struct Claimed<T: Element> {
    /// The area.
    pub owned: Owned<T>,
    /// The loss.
    pub loss: Loss,
}

impl<T: Element> Area<T> {
    /// Takes an area that another worker gives ([`Owned::give`]) to this one, waiting until it does; takes
    /// part in rounds meanwhile. The writer copy goes on where the giver stopped; a giver on another host, with what it had written.
    ///
    /// # Errors
    /// [`Error::AlreadyOwner`] when this worker owns it, by whatever handle, [`Error::OwnerGone`] when whoever could give it is dead or
    /// has dropped it, also on another host, [`Error::PeerFailed`] when a host has failed, [`Error::Deleted`], [`Error::OtherJob`], [`Error::ForkedChild`]. An owner on another host that dies is seen from
    /// here when its launcher has said so there ([`Job::note_failure`](crate::Job::note_failure)), or somebody has taken its rank:
    /// [`Area::take_within`] has a limit.
    #[inline]
    pub fn take(&self, worker: &mut Worker) -> Result<Owned<T>> {
        self.core.check_job(worker.shared())?;
        self.core.check_live()?;
        match self.take_given(worker) {
            Some(owned) => Ok(owned),
            None if worker.shared().segment.spans_hosts() => {
                worker.within(None, |worker| self.take_waiting(worker, None))
            }
            None => self.take_waiting(worker, None),
        }
    }

    /// [`Area::take`] with a limit.
    ///
    /// # Errors
    /// [`Error::TimedOut`], and those of [`Area::take`].
    pub fn take_within(&self, worker: &mut Worker, timeout: Duration) -> Result<Owned<T>> {
        self.core.check_job(worker.shared())?;
        worker.within(Some(timeout), |worker| self.take_waiting(worker, Some(timeout)))
    }

    /// Takes the area if it is on its way to this worker already; none also if the worker owns it.
    ///
    /// # Errors
    /// [`Error::Deleted`], [`Error::OtherJob`], [`Error::ForkedChild`].
    pub fn try_take(&self, worker: &Worker) -> Result<Option<Owned<T>>> {
        self.core.check_job(worker.shared())?;
        self.core.check_live()?;
        Ok(self.take_given(worker))
    }

    /// Whether the worker owns the area, by whatever handle: to write, lent or open. Nobody owns one that was deleted,
    /// nor a worker one of another job.
    ///
    /// ```
    /// # use hectare_dsm::Job;
    /// let job = Job::embedded()?;
    /// let mut worker = job.worker()?;
    /// let owned = worker.create::<u64>("counts", 8)?;
    /// let area = owned.area();
    /// assert!(area.is_owned_by(&worker));
    /// owned.delete(&mut worker)?;
    /// assert!(!area.is_owned_by(&worker));
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    pub fn is_owned_by(&self, worker: &Worker) -> bool {
        let seen = self.core.ownership();
        // The word of an area that was taken is that of one on its way: only the taker knows.
        self.core.check_job(worker.shared()).is_ok()
            && self.core.check_live().is_ok()
            && seen.holder() == Some(worker.rank())
            && (!seen.is_transit() || worker.local().owned.has(self.core.id, seen.epoch()))
    }

    #[inline(always)]
    fn take_given(&self, worker: &Worker) -> Option<Owned<T>> {
        let epoch = ownership::given(&self.core.slot().own.ownership, worker.rank())?;
        crate::primitive::fault_point();
        Owned::taken(&self.core, worker, epoch)
    }

    /// Whoever waits for an area of its own waits for ever.
    fn check_not_owned(&self, worker: &Worker) -> Result<()> {
        match self.is_owned_by(worker) {
            true => Err(Error::AlreadyOwner { name: self.name().into(), rank: worker.rank() }),
            false => Ok(()),
        }
    }

    fn take_waiting(&self, worker: &mut Worker, timeout: Option<Duration>) -> Result<Owned<T>> {
        self.core.check_live()?;
        self.check_not_owned(worker)?;
        let word = &self.core.slot().own.ownership;
        // The clock costs as much as the hand-over itself.
        let since = timeout.map(|_| Instant::now());
        worker.local().waiter.reset();
        if worker.shared().segment.spans_hosts() {
            // It may have arrived, and be published by the next round.
            worker.look_soon();
        }
        loop {
            // From another host it comes by the agent, which needs a processor; so does what is on its way there.
            let looks = if is_away(worker, ownership::load(word)) { 1 } else { worker.looks() };
            for look in 0..looks {
                // After every synchronization point: the slot may be another area's by then.
                self.core.check_live()?;
                if let Some(owned) = self.take_given(worker) {
                    if look > 0 {
                        worker.spins().paid();
                    }
                    return Ok(owned);
                }
                worker.service_within()?;
                std::hint::spin_loop();
            }
            let seen = ownership::load(word);
            self.core.check_live()?;
            if let Some(owned) = self.take_given(worker) {
                return Ok(owned);
            }
            let asleep = OwnershipWord(seen.0 | ownership::SLEEP);
            let marked = seen == asleep || ownership::mark_sleeper(word, seen);
            worker.wait_step(marked.then_some((word, asleep.0)))?;
            // Also when there was a round to take part in: others may force one after the other.
            self.check_giver(worker, seen)?;
            if let (Some(timeout), Some(since)) = (timeout, since)
                && since.elapsed() >= timeout
            {
                return Err(Error::TimedOut {
                    what: format!("area {:?} to be given to worker {}", self.name(), worker.rank()),
                    waited: since.elapsed(),
                    missing: self.core.ownership().to_string(),
                });
            }
        }
    }

    fn check_giver(&self, worker: &Worker, seen: OwnershipWord) -> Result<()> {
        let word = &self.core.slot().own.ownership;
        let is_gone = |holder| worker.shared().is_gone(holder);
        if ownership::is_given_up(word, seen, worker.rank(), is_gone) {
            let segment = &worker.shared().segment;
            let host = segment.owner_host(seen).filter(|_| seen.is_remote());
            let failed = host.and_then(|host| worker.shared().failed_of(segment.ranks_of(host)));
            let host = host.map(|host| segment.host_text(Some(host)));
            return Err(Error::OwnerGone { name: self.name().into(), host, failed, rank: worker.rank() });
        }
        Ok(())
    }
}

impl Worker {
    /// Takes over an area whose owner is dead or has dropped it. The writer copy is restored whole from the
    /// last published version; what was written after it is lost, and the answer says whose writes that
    /// were.
    ///
    /// In a job on several hosts, areas are claimed on their owner's host: one of another host is waited for as by
    /// [`Worker::attach`], and refused.
    ///
    /// # Errors
    /// [`Error::OwnerAlive`], [`Error::OwnerElsewhere`], [`Error::NoSuchArea`], [`Error::WrongType`],
    /// [`Error::ForkedChild`]; on several hosts those of [`Worker::attach`].
    pub fn claim<T: Element>(&mut self, name: &str) -> Result<Claimed<T>> {
        let core = self.attach::<T>(name)?.core;
        let word = &core.slot().own.ownership;
        let last = lock::seize_from(word, self.rank(), |seen| {
            core.check_live()?;
            if is_away(self, seen) {
                return Err(core.owner_elsewhere(seen));
            }
            match seen.holder() {
                Some(owner) if !self.shared().is_gone(owner) => {
                    self.shared().counted(Err(Error::OwnerAlive { name: name.into(), owner }))
                }
                _ => Ok(()),
            }
        })?;
        crate::primitive::fault_point();
        self.wait_for_lock(&core);
        let shared = self.shared().clone();
        // No round from here on publishes what the last owner had not, though its readers are waited for in rounds.
        let dirty = shared.segment.dirty(core.id.index as usize);
        let was_dirty = dirty.take();
        // Whoever may read it since it was lent must be gone before it is written.
        if let Some(round) = lock::views_until(&core.slot().own.lent, &shared.segment.rounds())
            && let Err(error) = self.wait_for_readers(&core, round)
        {
            dirty.put(was_dirty);
            ownership::let_go(word, self.rank(), last.epoch() + 1);
            return Err(error);
        }
        let mut loss = Loss { last_version: core.newest(), lost_writers: Vec::new() };
        let parts = core.parts();
        // The log does not know all: what was written through raw pointers may not have been looked for yet, and
        // another claimer may have died here.
        let differs = differs(&parts);
        if was_dirty || differs || parts.layout.copies == 0 {
            loss.lost_writers = lost_writers(&parts, (!last.is_released()).then(|| last.rank()));
        }
        if differs {
            restore(&parts);
        }
        crate::primitive::fault_point();
        for word in parts.level0().iter().chain(parts.level1()).chain(parts.writers()) {
            word.store(0, Ordering::Relaxed);
        }
        parts.slot.round.term.fetch_add(1, Ordering::Relaxed);
        count(&self.shared().segment.header().counters.claims, 1);
        shared.tell_of_owner(core.id.index as usize);
        let owned = Owned::begin(&core, self, last.epoch() + 1);
        Ok(Claimed { owned, loss })
    }

    /// Waits until no round is under way that planned the area before it was claimed.
    fn wait_for_lock(&self, core: &Arc<AreaCore>) {
        let runtime = self.runtime();
        let rounds = runtime.rounds();
        lock::wait_past(&core.slot().round.lock, &rounds, self.rank(), &runtime);
    }
}

/// Whether the owner is on another host, or whoever the area was given to.
fn is_away(worker: &Worker, seen: OwnershipWord) -> bool {
    let segment = &worker.shared().segment;
    let is_there = |rank| segment.host_of(rank).is_some();
    seen.is_remote() || (segment.spans_hosts() && seen.holder().is_some_and(is_there))
}

fn lost_writers(parts: &Parts<'_>, last: Option<Rank>) -> Vec<Rank> {
    let mut ranks = Vec::new();
    for (index, word) in parts.writers().iter().enumerate() {
        let bits = word.load(Ordering::Relaxed);
        ranks.extend((0..64).filter(|bit| bits >> bit & 1 != 0).map(|bit| index as Rank * 64 + bit));
    }
    ranks.extend(last.filter(|last| !ranks.contains(last)));
    ranks
}

/// Whether the writer copy holds something else than the newest published copy.
fn differs(parts: &Parts<'_>) -> bool {
    if parts.layout.copies == 0 {
        return false;
    }
    let bytes = parts.padded_bytes();
    // SAFETY: both copies have `padded_bytes` bytes. The caller has just become the owner and waited until no
    // round that planned the area is under way; no later round plans it, since it is not dirty, so neither copy
    // is written by anybody else.
    unsafe {
        let newest = std::slice::from_raw_parts(parts.reader(parts.current()), bytes);
        std::slice::from_raw_parts(parts.writer(), bytes) != newest
    }
}

/// Copies the newest published copy over the writer copy, whole.
fn restore(parts: &Parts<'_>) {
    let bytes = parts.padded_bytes();
    // SAFETY: as in `differs`; nobody reads the writer copy either (`wait_for_readers`).
    unsafe { Kernels::get().copy_dense(parts.writer(), parts.reader(parts.current()), bytes, bytes) };
}

#[cfg(test)]
mod tests;
