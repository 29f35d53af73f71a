//! Joining and leaving: worker slots, and the return of those of the dead.
use super::Worker;
use crate::area::ownership;
use crate::error::{Error, Rank, Result};
use crate::job::{Job, Shared, process};
use crate::sync::round::slot_state;
use crate::sync::runtime::{Local, Runtime};
use crate::sync::wait::{futex_wake_all, low_half};
use crate::sync::word::{Phase, Word};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::Ordering;

impl Worker {
    /// Makes the calling thread a worker: the given rank, or the lowest that is free.
    pub(crate) fn join(job: &Job, rank: Option<Rank>) -> Result<Worker> {
        let shared = job.shared.clone();
        shared.check_process()?;
        let rank = take_slot(&shared, rank)?;
        let local = Rc::new(Local::new());
        // Measured before the worker counts as live, so that nobody waits for it meanwhile.
        crate::memory::copy::Kernels::get();
        let seat = &shared.segment.all_seats()[rank as usize];
        let runtime = Runtime { shared: &shared, local: &local };
        seat.state.store(slot_state::LIVE, Ordering::SeqCst);
        runtime.rounds().settle(rank, &runtime);
        let idle = shared.segment.rounds().load();
        Ok(Worker { shared, local, rank, idle, countdown: 1, stride: 1, looked_ns: 0, _thread: PhantomData })
    }
}

/// Takes a free slot and locks its life mutex; the seat is left in `JOINING`.
fn take_slot(shared: &Shared, wanted: Option<Rank>) -> Result<Rank> {
    let segment = &shared.segment;
    let header = segment.header();
    let max = segment.config().max_workers;
    header.membership.lock();
    let result = pick_slot(shared, wanted, max).inspect(|&rank| {
        let seat = &segment.all_seats()[rank as usize];
        let record = &segment.workers()[rank as usize];
        record.life.lock();
        let pid = std::process::id();
        record.pid.store(pid, Ordering::Relaxed);
        record.tid.store(process::thread_id(), Ordering::Relaxed);
        record.started.store(process::start_time(pid), Ordering::Relaxed);
        seat.incarnation.fetch_add(1, Ordering::Relaxed);
        seat.missed.store(0, Ordering::Relaxed);
        let lowest = header.sync.acting.lowest_clock.load(Ordering::Relaxed);
        seat.clock.store(if lowest == u64::MAX { 0 } else { lowest }, Ordering::Relaxed);
        seat.state.store(slot_state::JOINING, Ordering::SeqCst);
        header.live_workers.fetch_add(1, Ordering::Relaxed);
        header.sync.workers_high.fetch_max(rank + 1, Ordering::SeqCst);
    });
    header.membership.unlock();
    result
}

fn pick_slot(shared: &Shared, wanted: Option<Rank>, max: u32) -> Result<Rank> {
    let seats = shared.segment.all_seats();
    reap(shared, wanted);
    let free = |rank: &Rank| seats[*rank as usize].state.load(Ordering::SeqCst) == slot_state::FREE;
    let slots = max as usize;
    match wanted {
        Some(rank) if rank >= max => {
            Err(Error::TooManyWorkers { asked: rank as usize + 1, free: slots, max: slots })
        }
        Some(rank) if free(&rank) => Ok(rank),
        Some(rank) => {
            let pid = shared.segment.workers()[rank as usize].pid.load(Ordering::Relaxed);
            Err(Error::RankTaken { rank, pid })
        }
        None => (0..max).find(free).ok_or(Error::TooManyWorkers { asked: 1, free: 0, max: slots }),
    }
}

/// Frees the slots of workers that died: their areas become claimable. Runs under the membership mutex, and
/// only between rounds, so that a claim on a chunk that names a dead worker is never taken for one of the
/// slot's next worker.
fn reap(shared: &Shared, wanted: Option<Rank>) {
    let segment = &shared.segment;
    let seats = segment.seats();
    for (rank, seat) in seats.iter().enumerate() {
        match seat.state.load(Ordering::SeqCst) {
            slot_state::FREE => {}
            slot_state::JOINING | slot_state::LEAVING => reap_half_way(shared, rank as Rank),
            // Asking the kernel about everybody is left to those who need the slot.
            slot_state::LIVE if wanted.is_some_and(|wanted| wanted as usize != rank) => {}
            _ => {
                shared.is_dead(rank as Rank);
            }
        }
    }
    // Those who are dead now. Who dies in a round that begins meanwhile may leave a claim behind, and waits
    // for the next reaper.
    let is_dead = |rank: &usize| seats[*rank].state.load(Ordering::SeqCst) == slot_state::DEAD;
    let dead: Vec<usize> = (0..seats.len()).filter(is_dead).collect();
    if dead.is_empty() {
        return;
    }
    let local = Local::new();
    let runtime = Runtime { shared, local: &local };
    loop {
        let word: Word = runtime.rounds().load();
        // An open round has no claims yet, and a dead worker makes none.
        if matches!(word.phase(), Phase::Idle | Phase::Open) {
            break;
        }
        drive_orphaned_round(&runtime, word);
        std::thread::yield_now();
    }
    for rank in dead {
        orphan_areas(shared, rank as Rank);
        runtime.rounds().depose(rank as u32);
        seats[rank].state.store(slot_state::FREE, Ordering::SeqCst);
    }
}

/// A worker that died while joining or leaving holds no view and takes part in no round.
fn reap_half_way(shared: &Shared, rank: Rank) {
    let record = &shared.segment.workers()[rank as usize];
    let seat = &shared.segment.all_seats()[rank as usize];
    let before = seat.state.load(Ordering::SeqCst);
    if let Some(how) = record.life.try_lock() {
        let died = how == crate::memory::mutex::Locked::OwnerDied;
        if died && seat.state.load(Ordering::SeqCst) == before {
            seat.state.store(slot_state::DEAD, Ordering::SeqCst);
            shared.segment.header().live_workers.fetch_sub(1, Ordering::Relaxed);
        }
        record.life.unlock();
    }
}

/// Finishes a round all of whose participants are dead, unless somebody living is at it.
fn drive_orphaned_round(runtime: &Runtime<'_>, word: Word) {
    let rounds = runtime.rounds();
    let round = word.round();
    let lives = |rank: Rank| rounds.takes_part(rank, round) && !runtime.shared.is_dead(rank);
    if (0..rounds.seats.len() as Rank).any(lives) {
        return;
    }
    // Nobody sits at this rank, so nobody else claims in its name; chunks are inherited from the dead.
    let nobody = runtime.shared.segment.config().max_workers;
    rounds.finish_for_the_dead(nobody, round, runtime);
}

fn orphan_areas(shared: &Shared, rank: Rank) {
    let segment = &shared.segment;
    for slot in &segment.areas()[..segment.used_areas()] {
        ownership::orphan(&slot.own.ownership, rank);
        futex_wake_all(low_half(&slot.own.ownership));
    }
}

/// Gives the slot of a worker that has left back.
pub(super) fn free_slot(shared: &Shared, rank: Rank) {
    let segment = &shared.segment;
    orphan_areas(shared, rank);
    segment.header().live_workers.fetch_sub(1, Ordering::Relaxed);
    segment.all_seats()[rank as usize].state.store(slot_state::FREE, Ordering::SeqCst);
    segment.workers()[rank as usize].life.unlock();
}
