//! Which workers are alive: the kernel is asked, which is never wrong, and no time-out decides.
use crate::engine::shared::Shared;
use crate::error::Rank;
use crate::memory::clock;
use crate::memory::mutex::{Locked, RobustMutex};
use crate::memory::process;
use crate::protocol::round::{Found, Life, slot_state};
use crate::segment::layout::WorkerRecord;
use crate::segment::tally::count;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a process that was seen to end is waited for: one that waits for a device may take as long as that does.
const LONGEST_END: Duration = Duration::from_secs(1);
/// The same for a process that cannot be looked at.
const UNSEEN_END: Duration = Duration::from_millis(10);

/// The bit of a mark that says that the process was killed and counted; process ids are smaller.
const COUNTED: u64 = 1 << 63;

/// A process that is marked to be killed for a stall.
#[derive(Debug)]
pub(crate) struct Condemned<'s> {
    place: &'s AtomicU64,
    id: u64,
}

impl Life for RobustMutex {
    fn try_lock(&self) -> Option<bool> {
        RobustMutex::try_lock(self).map(|how| how == Locked::OwnerDied)
    }

    fn unlock(&self) {
        RobustMutex::unlock(self);
    }
}

/// Whether another thread may still run in the process of a worker whose thread has ended. The kernel ends the threads of
/// a process each for itself, some microseconds apart, and one that runs may write through a view that was lent to it
/// (`std::thread::scope`).
///
/// To be called with the mutex `life`. Notes when the end was first seen.
fn may_run(record: &WorkerRecord) -> bool {
    let now = clock::now_ns();
    let seen = match record.ended_ns.load(Ordering::Relaxed) {
        0 => {
            record.ended_ns.store(now, Ordering::Relaxed);
            now
        }
        seen => seen,
    };
    let limit = match seen_to_run(record) {
        Some(false) => return false,
        Some(true) => LONGEST_END,
        None => UNSEEN_END,
    };
    u128::from(now.saturating_sub(seen)) < limit.as_nanos()
}

/// Whether the process of a worker may run, as `/proc` has it; `None` if that does not say.
fn seen_to_run(record: &WorkerRecord) -> Option<bool> {
    let namespace = record.namespace.load(Ordering::Relaxed);
    if namespace == 0 || namespace != process::namespace() {
        return None;
    }
    let pid = record.pid.load(Ordering::Relaxed);
    process::may_run(pid, record.started.load(Ordering::Relaxed), record.stack.load(Ordering::Relaxed))
}

impl Shared {
    /// The rank in whose name a round of the dead is finished: no worker has it.
    pub(crate) fn reaper_rank(&self) -> Rank {
        self.segment.config().max_workers
    }

    /// The process of a worker, or of the reaper: its id and start time.
    pub(crate) fn process_of(&self, rank: Rank) -> (u32, u64) {
        let header = self.segment.header();
        let (pid, started) = match self.segment.workers().get(rank as usize) {
            Some(record) => (&record.pid, &record.started),
            None => (&header.reaper_pid, &header.reaper_started),
        };
        (pid.load(Ordering::Relaxed), started.load(Ordering::Relaxed))
    }

    /// Marks a process as one to be killed for a stall.
    ///
    /// Every slot of the process is marked, since each may be seen to stall, and the first of them decides. A
    /// reaper without a slot is marked in the header.
    pub(crate) fn condemn(&self, pid: u32, started: u64) -> Condemned<'_> {
        let id = u64::from(pid) << 32 | started & 0xffff_ffff;
        let mut places = self.places_of(pid, started);
        let place = places.next().unwrap_or(&self.segment.header().reaper_condemned);
        for place in std::iter::once(place).chain(places) {
            let marked = place.load(Ordering::Relaxed);
            if marked & !COUNTED != id {
                // Relaxed, here and below: the changes alone decide, and nothing is read on their account.
                let _ = place.compare_exchange(marked, id, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
        Condemned { place, id }
    }

    /// Whether the caller, who has killed a process, is to count it: one of all that saw it stall, whoever of them was the first
    /// to mark it, and whoever killed it before the others.
    pub(crate) fn is_to_count(&self, condemned: &Condemned<'_>, pid: u32, started: u64) -> bool {
        let (id, counted) = (condemned.id, condemned.id | COUNTED);
        let is_first =
            condemned.place.compare_exchange(id, counted, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        self.places_of(pid, started).for_each(|place| place.store(counted, Ordering::Relaxed));
        is_first
    }

    fn places_of(&self, pid: u32, started: u64) -> impl Iterator<Item = &AtomicU64> {
        let of_it = move |record: &&WorkerRecord| {
            record.pid.load(Ordering::Relaxed) == pid && record.started.load(Ordering::Relaxed) == started
        };
        self.segment.workers().iter().filter(of_it).map(|record| &record.condemned)
    }

    /// Asks the kernel whether a worker is dead: a thread that ends, by whatever means, gives up the mutex
    /// that it holds for life. It ends without leaving only with its whole process (`Tenure`), and is dead when no
    /// other thread of that can still write through a view ([`may_run`]). A reaper holds the membership mutex
    /// instead; it is dead when nobody holds that: one that lives lets go when the round is past, or when it leaves the round to others
    /// and has no claim ([`Rounds::run_at_once`](crate::protocol::round::Rounds::run_at_once)).
    pub(crate) fn is_dead(&self, rank: Rank) -> bool {
        if rank == self.reaper_rank() {
            return self.while_no_reaper(|| true);
        }
        let record = &self.segment.workers()[rank as usize];
        // The kernel tells the first who asks; `ended_ns`, which is written under the mutex, tells the others.
        let has_ended = |died| (died || record.ended_ns.load(Ordering::Relaxed) != 0) && !may_run(record);
        let found = self.segment.all_seats()[rank as usize].look(&record.life, has_ended);
        if found == Found::Died {
            self.recount();
            count(&self.segment.header().counters.deaths, 1);
            tracing::warn!(rank, pid = record.pid.load(Ordering::Relaxed), "worker is dead");
        }
        found != Found::Living
    }

    /// Runs `act` while nobody frees slots or can begin to; false if somebody does.
    pub(crate) fn while_no_reaper(&self, act: impl FnOnce() -> bool) -> bool {
        let membership = &self.segment.header().membership;
        if membership.try_lock().is_none() {
            return false;
        }
        let answer = act();
        membership.unlock();
        answer
    }

    /// Whether nobody living sits at this rank any more: it left, or it is dead.
    pub(crate) fn is_gone(&self, rank: Rank) -> bool {
        let state = self.segment.all_seats().get(rank as usize).map(|seat| seat.state());
        matches!(state, None | Some(slot_state::FREE | slot_state::ABSENT)) || self.is_dead(rank)
    }

    /// The process whose worker has a rank and lives; 0 for one of another host.
    pub(crate) fn live_process(&self, rank: Rank) -> Option<u32> {
        self.segment.all_seats().get(rank as usize)?;
        let since = Instant::now();
        let record = &self.segment.workers()[rank as usize];
        loop {
            // SeqCst: as everywhere for the state of a seat.
            if self.is_gone(rank) {
                return None;
            }
            // While somebody else asks for the same worker, the dead look alive: the answer of their process counts.
            if seen_to_run(record) != Some(false) || since.elapsed() >= LONGEST_END {
                return Some(record.pid.load(Ordering::Relaxed));
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Notes that a worker has failed and nobody comes in its place.
    pub(crate) fn note_absent(&self, rank: Rank) {
        let marks = self.segment.workers().iter().map(|record| record.absent.load(Ordering::Relaxed));
        // The first is the one to name: others may have failed because of it.
        let order = marks.max().unwrap_or(0).saturating_add(1);
        self.set_absent(rank, order);
    }

    /// Sets the mark of a worker that has failed; 0 takes it back. The agent is told of a change of one of this host.
    pub(crate) fn set_absent(&self, rank: Rank, order: u32) {
        // SeqCst: `Job::note_failure` stores, and then looks at the seat; who joins stores its seat's state, and then this.
        let before = self.segment.workers()[rank as usize].absent.swap(order, Ordering::SeqCst);
        if before != order && self.segment.host_of(rank).is_none() {
            self.note_worker_change();
        }
    }

    /// Tells the agent, if there is one, that a worker of this host has joined or left, or that its mark has changed.
    pub(crate) fn note_worker_change(&self) {
        if self.segment.spans_hosts() {
            // Release: after the change; pairs with `Agent::look_for_workers`.
            self.segment.header().agent.worker_changes.fetch_add(1, Ordering::Release);
            self.ring_for_agent();
        }
    }

    /// Whether a worker of another host has failed, as its launcher says there ([`crate::Job::note_failure`]), until somebody takes
    /// its rank there. That it is of a host that lives is its seat's affair.
    pub(crate) fn has_failed_elsewhere(&self, rank: Rank) -> bool {
        self.segment.host_of(rank).is_some() && self.has_failed(rank)
    }

    /// Whether a worker has failed, as its launcher says, and nobody has taken its rank since.
    pub(crate) fn has_failed(&self, rank: Rank) -> bool {
        // Relaxed: nothing was written before a mark that who reads it needs.
        let is_marked = |record: &WorkerRecord| record.absent.load(Ordering::Relaxed) != 0;
        self.segment.workers().get(rank as usize).is_some_and(is_marked)
    }

    /// The one of these workers, of another host, that has failed first.
    pub(crate) fn failed_of(&self, ranks: Range<Rank>) -> Option<Rank> {
        let order = |rank: &Rank| self.segment.workers()[*rank as usize].absent.load(Ordering::Relaxed);
        ranks.filter(|rank| self.has_failed_elsewhere(*rank)).min_by_key(order)
    }

    /// How many workers the job has room for, on all hosts.
    pub(crate) fn most_workers(&self) -> usize {
        match self.segment.spans_hosts() {
            true => self.segment.hosts_end() as usize,
            false => self.segment.all_seats().len(),
        }
    }

    /// How many workers are there, those of other hosts included.
    pub(crate) fn present_workers(&self) -> usize {
        let seats = (0..).zip(self.segment.seats_of_all_hosts());
        seats.filter(|(rank, seat)| seat.is_there() && !self.has_failed_elsewhere(*rank)).count()
    }

    /// Of workers `0..count` that are not there and will not come, says their launcher, the one that failed first.
    pub(crate) fn absent_worker(&self, count: usize) -> Option<Rank> {
        let of_each = self.segment.workers().iter().zip(self.segment.all_seats()).take(count);
        // Relaxed: nothing was written before a mark that who reads it needs; the seat is looked at by itself.
        let marks = of_each.map(|(record, seat)| (record.absent.load(Ordering::Relaxed), seat.is_there()));
        let is_gone = |rank: Rank, is_there: bool| !is_there || self.has_failed_elsewhere(rank);
        let gone =
            (0..).zip(marks).filter(|(rank, (order, is_there))| *order != 0 && is_gone(*rank, *is_there));
        gone.min_by_key(|(_, (order, _))| *order).map(|(rank, _)| rank)
    }
}
