//! Worker clocks: bulk-synchronous, stale-synchronous and asynchronous programs.
//!
//! After the stale synchronous parallel model (Ho et al., 2013): a worker with clock c sees every update
//! that workers made before their clocks passed c - s. s = 0 is bulk-synchronous (BSP).
use super::Worker;
use crate::engine::directory::find;
use crate::engine::membership::{clock_to_enter, has_left_clocks};
use crate::engine::runtime::Runtime;
use crate::error::{Error, Rank, Result};
use crate::primitive::fault_point;
use crate::protocol::word::{Phase, RoundWord};
use crate::segment::parts::Parts;
use crate::segment::pins;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Puts worker `rank`, which is live and holds no view, into the clocks at the lowest one, with a view that is
/// not older.
///
/// # Errors
/// [`Error::HostLeft`]: a round has found no worker of this host in the clocks, and other hosts may have been told.
/// The worker is outside of them.
pub(crate) fn enter(runtime: &Runtime<'_>, rank: Rank) -> Result<()> {
    let rounds = runtime.rounds();
    let seat = &rounds.all_seats[rank as usize];
    let between = |word: RoundWord| matches!(word.phase(), Phase::Idle | Phase::Open);
    loop {
        rounds.settle(rank, runtime);
        let seen = rounds.load_total();
        if !between(seen) || seat.arrived.load(Ordering::Relaxed) + 1 < seen.round() {
            continue;
        }
        if has_left_clocks(runtime.shared) {
            // Relaxed: no planner has to see it sooner than later.
            seat.clock.store(u64::MAX, Ordering::Relaxed);
            return Err(Error::HostLeft { job: runtime.shared.name() });
        }
        let clock = clock_to_enter(runtime.shared);
        // SeqCst: if no round has gone on by the next look, every later planner sees this clock, and the lowest
        // one stays what it is until this worker ticks.
        seat.clock.store(clock, Ordering::SeqCst);
        fault_point();
        let now = rounds.load_total();
        if now.round() == seen.round() && between(now) {
            return Ok(());
        }
    }
}

impl Worker {
    /// The worker's clock: how many times it called [`Worker::tick`], counted from the lowest clock in the
    /// job when it joined.
    pub fn clock(&self) -> u64 {
        if self.shared.check_process().is_err() {
            return 0;
        }
        self.seat_clock().load(Ordering::Relaxed)
    }

    fn seat_clock(&self) -> &std::sync::atomic::AtomicU64 {
        &self.shared.segment.all_seats()[self.rank as usize].clock
    }

    /// Ends a clock period: increments the worker's clock, and schedules its writes for publication in the next round.
    /// Does not wait. Returns the new clock.
    ///
    /// # Errors
    /// [`Error::ForkedChild`].
    pub fn tick(&mut self) -> Result<u64> {
        self.shared.check_process()?;
        self.force_owned();
        let clock = self.clock().saturating_add(1);
        self.seat_clock().store(clock, Ordering::Relaxed);
        Ok(clock)
    }

    /// Takes this worker out of the clocks: [`Worker::wait_clocks`] no longer waits for it. For workers that do something
    /// other than training. The next [`Worker::rejoin_clocks`] undoes it.
    pub fn leave_clocks(&mut self) {
        if self.shared.check_process().is_err() {
            return;
        }
        self.seat_clock().store(u64::MAX, Ordering::Relaxed);
    }

    /// Puts this worker back into the clocks, at the lowest one. A synchronization point: afterwards the worker sees what
    /// the others wrote before that clock. Waits for a round in progress.
    ///
    /// # Errors
    /// [`Error::HostLeft`] in a job on several hosts, if no worker of this host was left in the clocks: the others do
    /// not wait for it any more. [`Error::ForkedChild`].
    pub fn rejoin_clocks(&mut self) -> Result<()> {
        self.shared.check_process()?;
        self.scan();
        let entered = enter(&self.runtime(), self.rank);
        self.idle = self.shared.segment.rounds().load();
        entered
    }

    /// Waits until no worker's published work is more than `staleness` clocks behind this worker's, forcing
    /// rounds as needed. With `staleness` 0, after [`Worker::tick`], this is a barrier.
    ///
    /// # Errors
    /// Those of [`Worker::service`], and [`Error::TimedOut`] at once if this thread itself, as an [`Observer`](crate::Observer), holds
    /// versions in all copies of an area that is to be published. It does not wait for workers that are dead or
    /// have left; for a live one that never arrives, or an observer that never drops its version of the only copy, it waits forever:
    /// see [`Worker::wait_clocks_within`].
    pub fn wait_clocks(&mut self, staleness: u64) -> Result<()> {
        self.wait_clocks_until(staleness, None)
    }

    /// [`Worker::wait_clocks`] with a timeout, which is exact to about a millisecond whatever the others wait for. Only a
    /// worker that stalls in the middle of copying delays everyone in that round, as the job's
    /// [`StallPolicy`](crate::StallPolicy) says.
    ///
    /// # Errors
    /// [`Error::TimedOut`], which names the workers that are behind, and the processes of observers that hold a publication up; those of [`Worker::wait_clocks`].
    pub fn wait_clocks_within(&mut self, staleness: u64, timeout: Duration) -> Result<()> {
        self.wait_clocks_until(staleness, Some(timeout))
    }

    fn wait_clocks_until(&mut self, staleness: u64, timeout: Option<Duration>) -> Result<()> {
        self.shared.check_process()?;
        // Without a limit, nobody asks the time.
        let limit = timeout.map(|timeout| (timeout, Instant::now()));
        let mine = self.clock();
        if mine == u64::MAX {
            return Ok(());
        }
        let wanted = mine.saturating_sub(staleness);
        self.within(timeout, |worker| {
            // What the rounds before this wait have postponed may be free by now, and others may wait for this worker alone.
            let mut has_tried = false;
            while worker.lowest_clock() < wanted {
                if let Some((timeout, since)) = limit
                    && since.elapsed() >= timeout
                {
                    return Err(worker.behind(wanted, since.elapsed()));
                }
                worker.shared.check_ending()?;
                let waits_for_pins = has_tried && worker.has_postponed();
                if waits_for_pins && worker.waits_for_itself() {
                    return Err(
                        worker.behind(wanted, limit.map_or(Duration::ZERO, |(_, since)| since.elapsed()))
                    );
                }
                match waits_for_pins || worker.waits_for_others_alone(wanted) {
                    true => drop(worker.wait_step(None)?),
                    false => worker.one_round(timeout.is_none()),
                }
                has_tried = true;
            }
            worker.complain_at_end()
        })
    }

    /// Whether the last round has postponed what was asked for, since every copy was pinned.
    #[inline]
    fn has_postponed(&self) -> bool {
        self.shared.segment.header().sync.acting.postponed.load(Ordering::Relaxed) != 0
    }

    #[cold]
    #[inline(never)]
    fn waits_for_itself(&self) -> bool {
        let segment = &self.shared.segment;
        pins::hold_all_copies(segment, |area| Parts::of(segment, area).reader_copies().present())
    }

    /// Whether all workers of this host have reached a clock, and some of others are not known to have: rounds here bring
    /// nothing.
    #[inline]
    fn waits_for_others_alone(&self, wanted: u64) -> bool {
        self.shared.segment.spans_hosts() && self.is_done_here(wanted)
    }

    #[inline(never)]
    fn is_done_here(&self, wanted: u64) -> bool {
        let segment = &self.shared.segment;
        segment.header().sync.acting.local_clock.load(Ordering::Relaxed) >= wanted
            && segment.remote_clocks().lowest_clock() < wanted
    }

    pub(crate) fn lowest_clock(&self) -> u64 {
        self.shared.segment.header().sync.acting.lowest_clock.load(Ordering::Relaxed)
    }

    fn behind(&self, wanted: u64, waited: Duration) -> Error {
        let segment = &self.shared.segment;
        let mut late: Vec<String> = segment
            .seats()
            .iter()
            .enumerate()
            .filter(|(_, seat)| seat.is_live() && seat.clock.load(Ordering::Relaxed) < wanted)
            .map(|(rank, seat)| {
                let pid = segment.workers()[rank].pid.load(Ordering::Relaxed);
                format!("worker {rank} (process {pid}) is at {}", seat.clock.load(Ordering::Relaxed))
            })
            .collect();
        let others = segment.remote_clocks().hosts.iter().enumerate();
        let is_late = |(host, clock): &(usize, u64)| *host != segment.remote_clocks().here && *clock < wanted;
        let clocks = others.map(|(host, record)| (host, record.clock.load(Ordering::Relaxed)));
        late.extend(clocks.filter(is_late).map(|(host, clock)| {
            let (ranks, host) = (segment.ranks_of(host), segment.host_text(Some(host)));
            match ranks.len() {
                1 => format!("worker {} of host {host} is at {clock}", ranks.start),
                _ => format!(
                    "workers {} to {} of host {host} are at {clock}",
                    ranks.start,
                    ranks.end.saturating_sub(1)
                ),
            }
        }));
        late.extend(pins::awaited(segment).into_iter().map(|(area, pid)| {
            let name = find::name(segment, area);
            match pid == std::process::id() && self.waits_for_itself() {
                true => format!("area {name:?} to be published, of which this thread holds a version: drop what `Observer::read` returned"),
                false => format!("area {name:?} to be published, of which an observer, process {pid}, holds a version"),
            }
        }));
        let missing = if late.is_empty() { "a round with every worker".into() } else { late.join(", ") };
        Error::TimedOut { what: format!("every worker to reach clock {wanted}"), waited, missing }
    }

    /// Ends a clock period, publishes what this worker wrote, and waits until every live worker has ended the same
    /// period: afterwards, each sees all writes, except for what was given away unpublished to a worker of this host
    /// ([`Owned::give`](crate::Owned::give)), which is published later. While an observer holds a version in every copy of an area
    /// ([`AreaSpec::copies`](crate::AreaSpec::copies)), it waits for that one, too.
    ///
    /// Every live worker of the job must tick, or have called [`Worker::leave_clocks`].
    ///
    /// The same as [`Worker::tick`] and [`Worker::wait_clocks`] with staleness 0.
    ///
    /// # Errors
    /// Those of [`Worker::wait_clocks`].
    pub fn barrier(&mut self) -> Result<()> {
        self.tick()?;
        self.wait_clocks(0)
    }

    /// [`Worker::barrier`] with a timeout; see [`Worker::wait_clocks_within`].
    ///
    /// # Errors
    /// [`Error::TimedOut`], which names the workers that did not arrive; the period has ended anyway, so continue waiting
    /// with [`Worker::wait_clocks_within`]. Those of [`Worker::wait_clocks`].
    pub fn barrier_within(&mut self, timeout: Duration) -> Result<()> {
        self.tick()?;
        self.wait_clocks_within(0, timeout)
    }

    /// Opens a round if none is, and takes part in one.
    pub(crate) fn one_round(&mut self, all: bool) {
        let runtime = self.runtime();
        let seen = runtime.rounds().open(all, &runtime);
        if self.take_part().is_none() {
            let runtime = self.runtime();
            runtime.rounds().drive_past(self.rank, seen.round(), &runtime);
        }
    }
}
