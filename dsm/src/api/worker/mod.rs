//! Workers: threads of control that own areas and take part in rounds.
mod clocks;
mod join;
mod waiting;

use crate::engine::area_core::AreaCore;
use crate::engine::directory::reclaim::reclaim;
use crate::engine::runtime::scan::{Scanned, UnloggedWrite};
use crate::engine::runtime::{Local, Runtime};
use crate::engine::shared::Shared;
use crate::error::{Error, Rank, Result};
use crate::memory::clock;
use crate::memory::tenure::Tenure;
use crate::protocol::round::{Ended, Work, slot_state};
use crate::protocol::word::{Phase, RoundWord};
use crate::segment::tally::add;
use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often `service` looks at the clock, in time: it adapts the number of calls in between to this.
const LOOK_EVERY_NS: u64 = 20_000;
const LONGEST_STRIDE: u32 = 1024;
/// How long an area that is to be given published may be postponed.
const LONGEST_PUBLICATION: Duration = Duration::from_secs(10);

/// The outcome of a forced sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Synced {
    /// The round that was completed.
    pub round: u64,
    /// How many rounds before it were abandoned because a worker did not arrive.
    pub abandoned: u32,
    /// How many of the requested areas stay dirty, because every reader copy is pinned by a straggler or an observer, or
    /// because their owner did not take part. They are published in a later round.
    pub postponed: u32,
}

/// A thread that is registered with a job.
///
/// A worker calls [`service`](Worker::service) regularly, at points where it holds no view of any area, which the borrow
/// checker enforces. It is tied to the thread that created it; dropping it leaves the job.
///
/// A thread must not end before its worker is dropped: if the value was leaked (`Box::leak`, `mem::forget`), other
/// threads may still have views of it. If such a thread ends, the process is terminated with a message.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    local: Rc<Local>,
    rank: Rank,
    /// The idle word that the last service left behind.
    idle: RoundWord,
    /// Calls until the next look at the clock.
    countdown: Cell<u32>,
    /// Calls that were not made before a look that came early.
    skipped: Cell<u32>,
    stride: u32,
    looked_ns: u64,
    /// Ends with the worker, after it has left.
    _tenure: Tenure,
    _thread: PhantomData<*const ()>,
}

impl Worker {
    /// The worker's number in its job. In a fresh job, [`Job::run`](crate::Job::run) numbers from 0.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn local(&self) -> &Rc<Local> {
        &self.local
    }

    pub(crate) fn runtime(&self) -> Runtime<'_> {
        Runtime { shared: &self.shared, local: &self.local }
    }

    /// The round of this worker's last synchronization point.
    #[inline]
    pub(crate) fn arrived(&self) -> u64 {
        // Relaxed: the worker's own word.
        self.shared.segment.all_seats()[self.rank as usize].arrived.load(Ordering::Relaxed)
    }

    /// A synchronization point: takes part in a round if one is open, and opens one if an area is due.
    ///
    /// Cheap when there is nothing to do (a few loads), so it can be called once per batch or per row. It reads the clock
    /// about every 20 us or every 1024 calls, whichever comes first; intervals are late by at most that, or by the time
    /// between two calls.
    ///
    /// # Errors
    /// [`Error::ForkedChild`]; as of every synchronization point, [`Error::Unlogged`] under `HECTARE_CHECK=1`, and
    /// [`Error::PeerFailed`] in a job on several hosts that has ended; of each area of this worker once,
    /// [`Error::NameClash`] and [`Error::GroupClash`] if another host has one of its name or group, and [`Error::TypeClash`] if a
    /// worker there took it for one of other elements.
    #[inline]
    pub fn service(&mut self) -> Result<()> {
        if self.serve_if_due()? { self.complain_at_end() } else { Ok(()) }
    }

    /// [`Worker::service`] in the middle of something else, which is to do all that it does: fails only if the job has ended. The rest
    /// is told at its end, or by the next synchronization point.
    #[inline]
    pub(crate) fn service_within(&mut self) -> Result<()> {
        if self.serve_if_due()? { self.shared.check_ending() } else { Ok(()) }
    }

    /// Has the next synchronization point look whether a round is due, however many there were since the last look: those of a wait
    /// follow on each other, and those of a loop are far apart.
    pub(crate) fn look_soon(&self) {
        self.skipped.update(|skipped| skipped + self.countdown.get().saturating_sub(1));
        self.countdown.set(1);
    }

    /// Serves rounds, if there may be any; whether it did.
    #[inline]
    fn serve_if_due(&mut self) -> Result<bool> {
        self.shared.check_process()?;
        self.countdown.update(|calls| calls - 1);
        // Relaxed: only a hint; what follows a change loads it again.
        let word = self.shared.segment.header().sync.word.load(Ordering::Relaxed);
        if word == self.idle.0 && self.countdown.get() != 0 {
            return Ok(false);
        }
        self.serve();
        Ok(true)
    }

    /// The errors of a synchronization point that has done all it does: also that an area of this worker conflicts with one of
    /// another host.
    #[inline]
    pub(crate) fn complain_at_end(&self) -> Result<()> {
        self.complain()?;
        let count = &self.shared.segment.header().agent.conflicts;
        if self.local.heard.has_news(count) { self.complain_of_clash() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn complain_of_clash(&self) -> Result<()> {
        let count = self.local.heard.begin(&self.shared.segment.header().agent.conflicts);
        let mut found = None;
        self.local.owned.for_each(|core| {
            // One that is deleted has left its slot.
            if found.is_none() && core.id.is_live(core.slot) {
                found = core.slot.agent.conflicts.take().map(|conflict| core.conflict(conflict));
            }
        });
        // There may be more of them: then it looks again.
        found.map_or_else(
            || {
                self.local.heard.end(count);
                Ok(())
            },
            Err,
        )
    }

    /// The errors of a synchronization point: that the job has ended, and what check mode has found in this worker's log
    /// (`HECTARE_CHECK=1`), once.
    #[inline]
    pub(crate) fn complain(&self) -> Result<()> {
        if self.shared.segment.header().ending.has_come() || self.local.complaint.borrow().is_some() {
            return self.complain_of_something();
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn complain_of_something(&self) -> Result<()> {
        self.shared.check_ending()?;
        self.local.complaint.take().map_or(Ok(()), Err)
    }

    #[cold]
    #[inline(never)]
    fn serve(&mut self) {
        let is_due = self.countdown.get() == 0 && self.is_round_due();
        let opened = is_due.then(|| self.runtime().rounds().open(false, &self.runtime()).round());
        let ended = self.take_part();
        if opened.is_some_and(|round| !self.was_whole(round)) {
            // It waited for nobody, or is under way without this worker: the owners of what was asked for may not be in it.
            self.shared.segment.header().sync.request();
        }
        if let Some(Ended::GivenUp(_)) = ended {
            // Back off: those who came wait for nobody again before this long.
            let sync = &self.shared.segment.header().sync;
            let later = clock::now_ns().saturating_add(self.shared.segment.config().round_timeout_ns);
            if sync.next_due_ns.load(Ordering::Relaxed) != u64::MAX {
                sync.next_due_ns.fetch_max(later, Ordering::Relaxed);
            }
            // The publication that was asked for is still to be done; the next round does not wait for those who were missing.
            sync.request();
        }
        if self.countdown.get() == 0 {
            self.countdown.set(self.stride);
        }
    }

    /// Takes part in the round that is open, if one is.
    #[inline(always)]
    fn take_part(&mut self) -> Option<Ended> {
        self.local.kept.forget();
        self.scan();
        let runtime = self.runtime();
        let ended = runtime.rounds().participate(self.rank, &runtime);
        match ended {
            Some(Ended::Completed(_)) => add(&self.shared.tally(self.rank).rounds, 1),
            Some(Ended::GivenUp(_)) => {
                add(&self.shared.tally(self.rank).abandoned, 1);
                self.local.waiter.reset();
            }
            None => {}
        }
        self.idle = self.shared.segment.rounds().load();
        if ended.is_some() {
            self.reclaim();
        }
        ended
    }

    /// Gives the memory of deleted areas back, outside of the round.
    pub(crate) fn reclaim(&self) {
        let header = self.shared.segment.header();
        if header.pending_frees.load(Ordering::Relaxed) != 0 || header.creations.load(Ordering::Relaxed) != 0
        {
            reclaim(&self.shared);
        }
    }

    /// Looks owned areas through that are tracked automatically or checked, if a round is open.
    #[inline]
    fn scan(&self) {
        if !self.local.scanned.borrow().is_empty() {
            self.scan_owned();
        }
    }

    #[inline(never)]
    fn scan_owned(&self) {
        let word = self.shared.segment.rounds().load();
        if word.phase() != Phase::Open {
            return;
        }
        // Where another worker has deleted one, this worker's arrival gives its memory away.
        self.local.scanned.borrow_mut().retain(Scanned::is_there);
        for scanned in self.local.scanned.borrow_mut().iter_mut() {
            if scanned.is_due(&self.shared, clock::now_ns) {
                scanned.scan(&self.shared, &self.local, self.rank);
                scanned.note(word.round());
            }
        }
    }

    /// Looks at the clock, and adapts how many calls pass until the next look.
    fn is_round_due(&mut self) -> bool {
        let now = clock::now_ns();
        let since = now.saturating_sub(self.looked_ns).max(1);
        self.looked_ns = now;
        let calls = self.stride.saturating_sub(self.skipped.take()).max(1);
        let per_call = (since / u64::from(calls)).max(1);
        self.stride = (LOOK_EVERY_NS / per_call).clamp(1, u64::from(LONGEST_STRIDE)) as u32;
        self.countdown.set(0);
        let sync = &self.shared.segment.header().sync;
        // Relaxed: only whether to open a round depends on it.
        sync.take_request() || sync.next_due_ns.load(Ordering::Relaxed) <= now
    }

    /// Publishes what this worker wrote, now: forces a round of the areas that it owns, and waits for it.
    ///
    /// Workers that do not arrive within the job's round timeout are left out; [`Worker::barrier`] waits for all.
    ///
    /// # Errors
    /// Those of [`Worker::service`].
    pub fn sync(&mut self) -> Result<Synced> {
        self.shared.check_process()?;
        self.force_owned();
        let (round, abandoned) = self.complete_round(false);
        let postponed = self.postponed_areas();
        self.complain_at_end()?;
        Ok(Synced { round, abandoned, postponed })
    }

    /// Marks the areas that this worker owns to be published in the next round: those that can be.
    #[inline(always)]
    fn force_owned(&self) {
        let marks = self.shared.segment.marks();
        let scanned = !self.local.scanned.borrow().is_empty();
        self.local.owned.for_each_word(|word, owned| {
            let marks = &marks[word];
            let wanted = if scanned { owned } else { owned & marks.dirty.load(Ordering::Relaxed) };
            if wanted & !marks.forced.load(Ordering::Relaxed) != 0 {
                marks.forced.fetch_or(wanted, Ordering::Relaxed);
            }
        });
    }

    #[inline]
    fn postponed_areas(&self) -> u32 {
        let marks = self.shared.segment.marks();
        let mut count = 0;
        self.local.owned.for_each_word(|word, owned| {
            count += (owned & marks[word].forced.load(Ordering::Relaxed)).count_ones();
        });
        count
    }

    /// Whether a round that is past, or a later one, was completed with all in it whom rounds wait for. The agent runs some that wait
    /// for nobody ([`Rounds::run_at_once`](crate::protocol::round::Rounds::run_at_once)).
    #[inline]
    fn was_whole(&self, round: u64) -> bool {
        // Relaxed: whoever sees the round past sees what its actor stored.
        self.shared.segment.header().sync.acting.whole.load(Ordering::Relaxed) >= round
    }

    /// Opens rounds until one is completed; returns it and how many were given up. One that waited for nobody counts only if those who
    /// are missing do not come within the job's round timeout either.
    pub(crate) fn complete_round(&mut self, all: bool) -> (u64, u32) {
        let mut abandoned = 0;
        let timeout = Duration::from_nanos(self.shared.segment.config().round_timeout_ns);
        let mut since = None;
        loop {
            let runtime = self.runtime();
            runtime.rounds().open(all, &runtime);
            match self.take_part() {
                Some(Ended::Completed(round))
                    if self.was_whole(round)
                        || since.get_or_insert_with(Instant::now).elapsed() >= timeout =>
                {
                    return (round, abandoned);
                }
                Some(Ended::Completed(_)) => {}
                Some(Ended::GivenUp(_)) => abandoned += 1,
                // A round that began without this worker, a straggler until now, is under way.
                None => {
                    let runtime = self.runtime();
                    let seen = runtime.rounds().load();
                    if !matches!(seen.phase(), Phase::Idle | Phase::Open) {
                        runtime.rounds().drive_past(self.rank, seen.round(), &runtime);
                    }
                }
            }
        }
    }

    /// Forces the area and waits until it is published.
    pub(crate) fn publish(&mut self, core: &AreaCore) -> Result<()> {
        self.within(Some(LONGEST_PUBLICATION), |worker| worker.publish_once_possible(core))
    }

    fn publish_once_possible(&mut self, core: &AreaCore) -> Result<()> {
        let since = Instant::now();
        let index = core.id.index as usize;
        loop {
            core.check_live()?;
            core.force();
            self.complete_round(false);
            if !self.shared.segment.dirty(index).is_set() {
                return Ok(());
            }
            if since.elapsed() >= LONGEST_PUBLICATION {
                return Err(Error::TimedOut {
                    what: format!("the publication of area {:?}", core.name),
                    waited: since.elapsed(),
                    missing: "every reader copy is pinned by a straggler or an observer".into(),
                });
            }
            std::thread::yield_now();
        }
    }

    /// Serves rounds while waiting for something else.
    pub(crate) fn keep_up(&mut self) {
        // The process was checked by whoever waits, and another call says that the job has ended.
        let _ = self.service_within();
        std::thread::yield_now();
    }

    /// The unlogged writes that check mode ([`JobBuilder::check`](crate::JobBuilder::check)) has found in
    /// this worker's areas since the last call.
    pub fn unlogged_writes(&mut self) -> Vec<UnloggedWrite> {
        self.local.unlogged.take()
    }

    /// Says that this worker's program fails because another worker has: a launcher names the other one
    /// ([`Job::is_consequence`](crate::Job::is_consequence)). Holds until somebody takes the rank. `false` takes it back.
    ///
    /// ```
    /// use hectare_dsm::Job;
    /// let job = Job::embedded()?;
    /// let worker = job.worker()?;
    /// worker.note_consequence(true);
    /// drop(worker);
    /// assert!(job.is_consequence(0));
    /// let next = job.worker()?;
    /// assert!(next.rank() == 0 && !job.is_consequence(0));
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    pub fn note_consequence(&self, follows: bool) {
        // Relaxed: read when the process has ended, and alone (`Job::is_consequence`).
        self.shared.segment.workers()[self.rank as usize].follows.store(follows.into(), Ordering::Relaxed);
    }

    /// Refuses a rank that is not a live worker's.
    #[inline]
    pub(crate) fn check_peer(&self, rank: Rank) -> Result<()> {
        let seat = self.shared.segment.all_seats().get(rank as usize);
        if seat.is_some_and(|seat| slot_state::is_elsewhere(seat.state())) {
            let is_there = seat.is_some_and(|seat| seat.state() == slot_state::REMOTE)
                && !self.shared.has_failed_elsewhere(rank);
            return if is_there { Ok(()) } else { Err(Error::NoSuchWorker { rank }) };
        }
        let alive = self.shared.segment.seats().get(rank as usize).is_some_and(|seat| seat.is_live());
        if alive { Ok(()) } else { Err(Error::NoSuchWorker { rank }) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.shared.check_process().is_err() {
            return;
        }
        if self.local.gave_away.get() && !std::thread::panicking() {
            // Only rounds publish to other hosts, and there are none when the last worker has left.
            let _ = self.sync();
        }
        // It may have areas, which go while there is a worker.
        drop(self.local.extension.take());
        self.local.owned.clear();
        let runtime = self.runtime();
        runtime.rounds().leave(self.rank, &runtime);
        crate::engine::membership::free_slot(&self.shared, self.rank);
        // The agent tells other hosts, also when nobody is left here.
        self.shared.note_worker_change();
        runtime.wake();
    }
}
