//! Who is in the job: liveness, the number of workers, and the return of dead workers' slots.
use crate::engine::runtime::{Local, Runtime};
use crate::engine::shared::Shared;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Error, Rank, Result};
use crate::memory::process;
use crate::primitive::fault_point;
use crate::protocol::ownership;
use crate::protocol::round::slot_state;
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a join that needs the slot of a dead worker waits for another process that is freeing slots.
const LONGEST_REAPING: Duration = Duration::from_secs(5);

/// The membership mutex, held: its holder is the only one to free slots.
#[derive(Debug)]
struct Membership<'s>(&'s Shared);

impl<'s> Membership<'s> {
    fn try_lock(shared: &'s Shared) -> Option<Membership<'s>> {
        let header = shared.segment.header();
        // A reaper that died is of no consequence: everything that it does is repeated.
        header.membership.try_lock()?;
        let pid = std::process::id();
        header.reaper_started.store(process::start_time(pid), Ordering::Relaxed);
        header.reaper_pid.store(pid, Ordering::Relaxed);
        Some(Membership(shared))
    }
}

impl Drop for Membership<'_> {
    fn drop(&mut self) {
        self.0.segment.header().membership.unlock();
    }
}

/// Takes a free slot and locks its life mutex; the seat is left in `JOINING`.
///
/// A slot is taken under its own life mutex, so a process that stands still in the middle of joining keeps
/// one slot from the others and nothing else. The membership mutex is for those who free slots.
pub(crate) fn take_slot(shared: &Shared, wanted: Option<Rank>) -> Result<Rank> {
    let seats = shared.segment.all_seats();
    let max = seats.len() as Rank;
    let here = shared.segment.ranks_here();
    let ranks = match wanted {
        Some(rank) if rank >= max => {
            return Err(Error::NoSuchRank { rank, max: max as usize });
        }
        Some(rank) if !here.contains(&rank) => {
            return Err(match shared.segment.host_of(rank) {
                Some(_) => shared.on_other_host(rank),
                // More than the job's hosts have in all.
                None => Error::NoSuchRank { rank, max: shared.segment.hosts_end() as usize },
            });
        }
        Some(rank) => rank..rank + 1,
        None => here.clone(),
    };
    let is_free = |rank: &Rank| seats[*rank as usize].state() == slot_state::FREE;
    let since = Instant::now();
    loop {
        if let Some(membership) = Membership::try_lock(shared) {
            fault_point();
            reap(&membership, wanted);
        }
        if let Some(rank) = ranks.clone().filter(is_free).find(|rank| try_slot(shared, *rank)) {
            return check_host(shared, rank).map(|()| rank);
        }
        // A slot that is free is being looked at by somebody; a dead worker's is yet to be freed.
        if !ranks.clone().any(|rank| is_free(&rank) || shared.is_dead(rank)) {
            return Err(match wanted {
                Some(rank) => Error::RankTaken { rank, pid: shared.process_of(rank).0 },
                None => Error::TooManyWorkers { asked: 1, free: 0, max: here.len() },
            });
        }
        if since.elapsed() >= LONGEST_REAPING {
            let holder = ranks.clone().find(is_free).unwrap_or(shared.reaper_rank());
            let pid = shared.process_of(holder).0;
            return Err(Error::TimedOut {
                what: "a worker slot".into(),
                waited: since.elapsed(),
                missing: format!(
                    "process {pid} stands still while it takes or frees one: let it go on, or end it"
                ),
            });
        }
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// The clock at which a worker enters the clocks: that of its host. Other hosts may have been told that its workers have
/// reached that one.
pub(crate) fn clock_to_enter(shared: &Shared) -> u64 {
    let acting = &shared.segment.header().sync.acting;
    let clocks = [&acting.local_clock, &acting.lowest_clock].map(|clock| clock.load(Ordering::Relaxed));
    clocks.into_iter().find(|clock| *clock != u64::MAX).unwrap_or(0)
}

/// Whether a round has found no worker of this host in the clocks, in a job on several: other hosts may have been told since, and
/// do not wait for any of them.
pub(crate) fn has_left_clocks(shared: &Shared) -> bool {
    let local = &shared.segment.header().sync.acting.local_clock;
    shared.segment.spans_hosts() && local.load(Ordering::Relaxed) == u64::MAX
}

/// Takes the slot if it is free and nobody else is taking it.
fn try_slot(shared: &Shared, rank: Rank) -> bool {
    let segment = &shared.segment;
    let record = &segment.workers()[rank as usize];
    let clock = clock_to_enter(shared);
    let is_taken = segment.rounds().take_seat(rank, &record.life, clock, || {
        let pid = std::process::id();
        record.pid.store(pid, Ordering::Relaxed);
        record.tid.store(process::thread_id(), Ordering::Relaxed);
        record.started.store(process::start_time(pid), Ordering::Relaxed);
        record.stack.store(process::stack(pid), Ordering::Relaxed);
        record.namespace.store(process::namespace(), Ordering::Relaxed);
        record.ended_ns.store(0, Ordering::Relaxed);
        record.follows.store(0, Ordering::Relaxed);
    });
    if !is_taken {
        return false;
    }
    shared.set_absent(rank, 0);
    fault_point();
    shared.recount();
    fault_point();
    true
}

/// Whether the other hosts still wait for workers of this one; else the slot is given back.
fn check_host(shared: &Shared, rank: Rank) -> Result<()> {
    // SeqCst: after the seat was taken; pairs with `Agent::have_all_left`.
    if shared.segment.header().agent.deserted.load(Ordering::SeqCst) == 0 {
        return Ok(());
    }
    free_slot(shared, rank);
    Err(Error::HostLeft { job: shared.name() })
}

/// Frees the slots of workers that died: their areas become claimable. Only between rounds, so that a claim on
/// a chunk that names a dead worker is never taken for one of the slot's next worker.
fn reap(membership: &Membership<'_>, wanted: Option<Rank>) {
    let shared = membership.0;
    let seats = shared.segment.seats();
    for (rank, seat) in seats.iter().enumerate() {
        match seat.state() {
            slot_state::FREE => {}
            // Asking the kernel about everybody is left to those who need the slot.
            slot_state::LIVE if wanted.is_some_and(|wanted| wanted as usize != rank) => {}
            _ => {
                shared.is_dead(rank as Rank);
            }
        }
    }
    // Those who are dead now. Who dies in a round that begins meanwhile may leave a claim behind, and waits
    // for the next reaper.
    let is_dead = |rank: &Rank| seats[*rank as usize].state() == slot_state::DEAD;
    let dead: Vec<Rank> = (0..seats.len() as Rank).filter(is_dead).collect();
    if !dead.is_empty() {
        let local = Local::new();
        let runtime = Runtime { shared, local: &local };
        let orphan = |rank| orphan_areas(shared, rank);
        runtime.rounds().bury(&dead, shared.reaper_rank(), &runtime, orphan, std::thread::yield_now);
    }
    shared.recount();
}

/// Ends the round in whose middle the workers of this host died, if they did, and frees their slots; false if somebody else
/// frees slots: then there may be more to do.
pub(crate) fn bury_the_dead(shared: &Shared) -> bool {
    let Some(membership) = Membership::try_lock(shared) else { return false };
    reap(&membership, None);
    true
}

/// Runs a round, though no worker of this host is left, for what belongs to none of them. False if there is one, or somebody else
/// frees slots. Nobody joins meanwhile.
pub(crate) fn run_deserted(shared: &Shared) -> bool {
    let run = |runtime: &Runtime<'_>| {
        runtime.rounds().run_deserted(shared.reaper_rank(), runtime, std::thread::yield_now)
    };
    as_reaper(shared, run).unwrap_or(false)
}

/// Runs a round that waits for nobody, for what nobody writes, unless another is under way, or somebody else frees slots. `stalled` is
/// since when the caller has found somebody to stand still, in which round: it may go on with that one.
pub(crate) fn run_at_once(shared: &Shared, stalled: &Cell<Option<(u64, Instant)>>) {
    as_reaper(shared, |runtime| {
        runtime.local.stalled_since.set(stalled.get());
        runtime.rounds().run_at_once(shared.reaper_rank(), runtime);
        stalled.set(runtime.local.stalled_since.get());
    });
}

/// Does something as the only one to free slots; `None` if somebody else is that.
fn as_reaper<R>(shared: &Shared, act: impl FnOnce(&Runtime<'_>) -> R) -> Option<R> {
    let _membership = Membership::try_lock(shared)?;
    fault_point();
    let local = Local::new();
    Some(act(&Runtime { shared, local: &local }))
}

/// Makes claimable what worker `rank` held, or was given.
pub(crate) fn orphan_areas(shared: &Shared, rank: Rank) {
    let segment = &shared.segment;
    for (index, slot) in segment.areas()[..segment.used_areas()].iter().enumerate() {
        if ownership::orphan(&slot.own.ownership, rank) {
            futex_wake_all(low_half(&slot.own.ownership));
            shared.tell_of_owner(index);
        }
    }
}

/// Gives the slot of a worker that has left back.
pub(crate) fn free_slot(shared: &Shared, rank: Rank) {
    let segment = &shared.segment;
    orphan_areas(shared, rank);
    fault_point();
    let life = &segment.workers()[rank as usize].life;
    segment.all_seats()[rank as usize].give_back(life, || shared.recount());
}

impl Shared {
    /// Whether more workers live than this process has cores.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.live_workers() > self.cores
    }

    /// Workers that live, or join or leave, as counted last.
    #[inline]
    pub(crate) fn live_workers(&self) -> usize {
        self.segment.header().live_workers.load(Ordering::Relaxed) as u32 as usize
    }

    /// Counts the seats that are taken: see [`Rounds::recount`](crate::protocol::round::Rounds::recount).
    pub(crate) fn recount(&self) {
        self.segment.rounds().recount(&self.segment.header().live_workers);
    }
}

#[cfg(all(test, feature = "fault-points"))]
mod tests;
