//! The round: arrive, plan, copy, publish. See `SYNC.md` beside this file for the protocol and its argument.
mod actor;
mod at_once;
mod life;
mod reap;
mod seat;
mod work;

pub(crate) use self::life::{Found, Life};
pub(crate) use self::seat::{Seat, slot_state};
pub(crate) use self::work::{Ended, Pause, Work};

use super::word::{Phase, RoundWord, SLEEP};
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point};

/// The words of the round and the seats of the workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds<'a> {
    pub(crate) word: &'a AtomicU64,
    pub(crate) actor: &'a AtomicU64,
    /// The last round that was completed, as against given up.
    pub(crate) completed: &'a AtomicU64,
    /// The last round that was planned without some live worker.
    pub(crate) partial: &'a AtomicU64,
    /// Seats for every rank there can be.
    pub(crate) all_seats: &'a [Seat],
    /// How many of them were ever taken.
    pub(crate) seats_high: &'a AtomicU32,
}

impl Rounds<'_> {
    /// The seats that were ever taken, as many as there are by now: a slice kept from an earlier look may lack
    /// a worker that has joined since.
    pub(crate) fn seats(&self) -> &[Seat] {
        // SeqCst: a joiner raises this before it settles; pairs as `arrived` does (see SYNC.md).
        let high = self.seats_high.load(Ordering::SeqCst) as usize;
        &self.all_seats[..high.min(self.all_seats.len())]
    }

    #[inline]
    pub(crate) fn load(&self) -> RoundWord {
        // Acquire: pairs with the release of every transition, so that whoever sees a round past sees what
        // it published.
        RoundWord(self.word.load(Ordering::Acquire))
    }

    pub(crate) fn load_total(&self) -> RoundWord {
        // SeqCst: in one total order with `arrived` and the seats' states, as in `shift`.
        RoundWord(self.word.load(Ordering::SeqCst))
    }

    /// Changes the word from `from` (whether or not somebody sleeps on it) to `to` and wakes sleepers.
    fn shift(&self, from: RoundWord, to: RoundWord, work: &impl Work) -> bool {
        let mut expected = from.0;
        loop {
            // SeqCst: one total order with `arrived` and the seats' states (see SYNC.md, "late arrival").
            match self.word.compare_exchange(expected, to.0, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(old) => {
                    if RoundWord(old).has_sleepers() {
                        work.wake();
                    }
                    if to.phase() == Phase::Idle {
                        work.ended();
                    }
                    return true;
                }
                Err(now) if now & !SLEEP == from.0 & !SLEEP => expected = now,
                Err(_) => return false,
            }
        }
    }

    /// Opens the next round if none is under way, and returns the word as it then stands. `all` waits for
    /// known stragglers too.
    pub(crate) fn open(&self, all: bool, work: &impl Work) -> RoundWord {
        loop {
            let seen = self.load();
            match seen.phase() {
                Phase::Idle => {
                    let opened = RoundWord::new(seen.round(), Phase::Open).for_all(all);
                    if self.shift(seen, opened, work) {
                        return opened;
                    }
                }
                Phase::Open if all && !seen.waits_for_all() => {
                    self.shift(seen, seen.for_all(true), work);
                }
                _ => return seen,
            }
        }
    }

    /// Whether everybody that the round waits for has arrived.
    fn is_complete(&self, word: RoundWord) -> bool {
        let round = word.round();
        self.seats().iter().all(|seat| {
            !seat.is_live() || seat.arrived() >= round || (!word.waits_for_all() && seat.is_straggler())
        })
    }

    /// Whether worker `rank` is inside this round.
    pub(crate) fn takes_part(&self, rank: u32, round: u64) -> bool {
        let seat = &self.all_seats[rank as usize];
        // SeqCst: ordered with the shift from Open to Plan, see SYNC.md, "late arrival".
        seat.arrived() == round && seat.is_live()
    }

    /// The live workers but `me` that may hold a view of an area which was recalled before `round` was seen in the
    /// word.
    pub(crate) fn late_readers(&self, me: u32, round: u64) -> impl Iterator<Item = u32> {
        let seats = self.seats().iter().enumerate();
        // SeqCst: whoever arrived in `round` is inside it, or left it after the area was recalled. See SYNC.md,
        // "lending".
        let is_late = move |(rank, seat): &(usize, &Seat)| {
            *rank != me as usize && seat.is_live() && seat.arrived() < round
        };
        seats.filter(is_late).map(|(rank, _)| rank as u32)
    }

    /// A synchronization point of worker `me`, which holds no view: takes part in the round that is open,
    /// if one is. `None`: nothing to take part in.
    #[inline]
    pub(crate) fn participate(&self, me: u32, work: &impl Work) -> Option<Ended> {
        let seat = &self.all_seats[me as usize];
        if seat.is_straggler() {
            return self.settle(me, work);
        }
        let seen = self.load();
        if seen.phase() != Phase::Open {
            return None;
        }
        let round = seen.round();
        self.arrive(me, round);
        if !self.load_total().is_past(round) {
            return Some(self.drive(me, round, work));
        }
        // Acquire: pairs with the release in `finish`.
        //
        // Past already. If it was completed with everybody in it, it waited for this arrival. A mark of a later round,
        // which may be under way by now, says nothing of this one.
        let completed = self.completed.load(Ordering::Acquire) == round;
        if completed && self.partial.load(Ordering::Relaxed) < round {
            return Some(Ended::Completed(round));
        }
        // Else it may have gone on without this worker, and later ones may have been planned without knowing
        // what it may read now.
        Some(self.settle(me, work).unwrap_or(Ended::GivenUp(round)))
    }

    /// Stores the arrival of `me` in `round`, which was seen open. The worker stays until the round is past.
    fn arrive(&self, me: u32, round: u64) {
        fault_point();
        // SeqCst: either the actor's look at this seat, which comes after its shift to Plan, sees the
        // arrival, or this worker's next look at the word sees the shift. Both are safe because the worker
        // stays until the round is past.
        self.all_seats[me as usize].arrived.store(round, Ordering::SeqCst);
        fault_point();
    }

    /// Does whatever `round` needs from `me` until it is past.
    pub(crate) fn drive(&self, me: u32, round: u64, work: &impl Work) -> Ended {
        // Whether to look who is there: on arrival, and when a wait was long. In between, the last to arrive
        // looks, and polling the seats would only delay it.
        let mut look = true;
        loop {
            let seen = self.load_total();
            if seen.is_past(round) {
                // Acquire: pairs with the release in `finish`.
                let completed = self.completed.load(Ordering::Acquire) == round;
                return if completed { Ended::Completed(round) } else { Ended::GivenUp(round) };
            }
            match seen.phase() {
                Phase::Idle => return Ended::GivenUp(round),
                Phase::Open if look && self.is_complete(seen) => self.lead(me, seen, work),
                Phase::Open => look = self.await_arrivals(seen, work),
                _ => self.step(me, seen, work),
            }
        }
    }

    /// One step of what the round, past [`Phase::Open`], needs from `me` when the word is `seen`.
    fn step(&self, me: u32, seen: RoundWord, work: &impl Work) {
        let round = seen.round();
        match seen.phase() {
            Phase::Idle | Phase::Open => {}
            Phase::Plan | Phase::Publish => self.act_or_wait(me, seen, work),
            Phase::Copy => {
                work.copy(round, me);
                // Whoever sees the last chunk done says so: the actor may be asleep. It alone publishes.
                if work.copied(round) {
                    fault_point();
                    self.shift(seen, RoundWord::new(round, Phase::Publish), work);
                } else if work.pause(seen) != Pause::Again {
                    if !self.replace_dead_actor(me, round, work) {
                        self.pass_over_actor(me, seen, work);
                    }
                    work.tend(round, me);
                }
            }
        }
    }

    /// Not everybody is here yet: waits, looks for the dead among the missing, and in the end gives up. True
    /// if it is time to look who is there.
    fn await_arrivals(&self, seen: RoundWord, work: &impl Work) -> bool {
        let pause = work.pause(seen);
        if pause == Pause::Again {
            return false;
        }
        let round = seen.round();
        let mut found_dead = false;
        for (rank, seat) in self.seats().iter().enumerate() {
            if seat.is_live() && seat.arrived() < round {
                found_dead |= work.is_dead(rank as u32);
            }
        }
        let give_up = match pause {
            Pause::OutOfTime => true,
            // Those who wait for everybody have all the time in the world.
            Pause::OutOfPatience => !seen.waits_for_all(),
            _ => false,
        };
        if !found_dead && give_up {
            self.give_up(seen, work);
        }
        true
    }

    /// Gives up the open round `seen`: against the actor's shift to Plan, one compare-and-swap decides. Those who
    /// wait for everybody open the next one.
    fn give_up(&self, seen: RoundWord, work: &impl Work) {
        let round = seen.round();
        if !self.shift(seen, RoundWord::new(round + 1, Phase::Idle), work) {
            return;
        }
        let missing = |seat: &Seat| seat.is_live() && seat.arrived() < round && !seat.is_straggler();
        let mut late =
            self.seats().iter().enumerate().filter(|(_, seat)| missing(seat)).map(|(rank, seat)| {
                fault_point();
                seat.set_missed(round);
                rank as u32
            });
        work.gave_up(round, &mut late);
        late.for_each(drop);
    }

    /// Brings the seat of `me`, which holds no view, up to the present: a worker that joins, or a straggler
    /// that comes back. Waits for an idle moment, or takes part in the round that is open.
    pub(crate) fn settle(&self, me: u32, work: &impl Work) -> Option<Ended> {
        let seat = &self.all_seats[me as usize];
        loop {
            let seen = self.load_total();
            let round = seen.round();
            match seen.phase() {
                Phase::Open => {
                    self.arrive(me, round);
                    // If the round is past, later ones may have been planned without knowing what this worker
                    // may read now.
                    if !self.load_total().is_past(round) {
                        return Some(self.drive(me, round, work));
                    }
                }
                Phase::Idle => {
                    // SeqCst: comes before the next look at the word; pairs with `Seat::arrived`. If the word still says
                    // idle then, every later actor sees the new value.
                    seat.arrived.fetch_max(round - 1, Ordering::SeqCst);
                    fault_point();
                    let now = self.load_total();
                    if now.round() == round && now.phase() == Phase::Idle {
                        return None;
                    }
                }
                // The actor may or may not have seen this seat: hold no view until its round is past.
                _ => {
                    self.drive_past(me, round, work);
                }
            }
        }
    }

    /// Waits, without being part of it, until `round` is past; takes it over if its actor is dead.
    pub(crate) fn drive_past(&self, me: u32, round: u64, work: &impl Work) {
        loop {
            let seen = self.load();
            if seen.is_past(round) {
                return;
            }
            if matches!(seen.phase(), Phase::Idle | Phase::Open) {
                return;
            }
            if self.is_actor(me, round) {
                self.drive(me, round, work);
            } else if work.pause(seen) != Pause::Again {
                self.replace_dead_actor(me, round, work);
            }
        }
    }

    /// Takes `me` out of the rounds. A round that was waiting for nobody else is run from here.
    pub(crate) fn leave(&self, me: u32, work: &impl Work) {
        self.participate(me, work);
        fault_point();
        self.all_seats[me as usize].set_state(slot_state::LEAVING);
        fault_point();
        let seen = self.load_total();
        if seen.phase() == Phase::Open && self.is_complete(seen) {
            self.lead(me, seen, work);
            if self.is_actor(me, seen.round()) {
                self.drive(me, seen.round(), work);
            }
        }
    }
}
