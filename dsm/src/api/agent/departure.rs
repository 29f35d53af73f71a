//! When this host's part of the program has ended, so that no other host waits for it.
use super::Agent;
use crate::engine::directory::AreaId;
use crate::engine::membership;
use crate::protocol::ownership;
use crate::protocol::round::Seat;
use crate::protocol::word::Phase;
use std::sync::atomic::Ordering;

impl Agent {
    /// Whether all workers of this host have come, and none is there any more: no round says that they are out of the clocks. Who
    /// takes a slot for the first time has not gone, though its seat is counted before it is taken.
    pub(super) fn is_deserted(&self) -> bool {
        let segment = &self.desk.shared.segment;
        segment.spans_hosts() && segment.ranks_here().all(|rank| self.is_gone_for_good(rank) == Some(true))
    }

    /// This host's part of the program has ended, whether all of its workers have come or not: the next [`Agent::look`] takes them
    /// out of the clocks, and nobody joins after this.
    ///
    /// ```
    /// use hectare_dsm::agent::Event;
    /// use hectare_dsm::{Error, Job};
    /// let job = Job::builder().hosts(&[1, 2], 1).embedded()?;
    /// let mut agent = job.agent()?;
    /// drop(job.worker()?); // the other one never comes
    /// agent.leave_job();
    /// let mut events = Vec::new();
    /// agent.look(&mut events);
    /// assert_eq!(events[1..], [Event::Deserted, Event::Clock { local: u64::MAX, lowest: 0 }]);
    /// assert!(matches!(job.worker(), Err(Error::HostLeft { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn leave_job(&mut self) {
        self.leaves = true;
        // SeqCst: as in `have_all_left`.
        self.desk.shared.segment.header().agent.deserted.store(1, Ordering::SeqCst);
    }

    /// Whether no worker of this host is left and nothing more is published here, for the other hosts to be told.
    pub(super) fn is_over(&mut self) -> bool {
        let nobody_is_left = self.leaves || self.have_all_left();
        // The last one may have died in the middle of a round.
        self.buried = self.buried || nobody_is_left && membership::bury_the_dead(&self.desk.shared);
        let is_over = nobody_is_left && self.buried;
        self.published_given = self.published_given || is_over && self.publish_given();
        is_over
    }

    /// Publishes what workers of this host gave to workers of others, if the givers died before a round did: such an area can go
    /// only then. False if it is to be tried again: every copy of an area is pinned by observers, or somebody else frees slots.
    fn publish_given(&mut self) -> bool {
        let segment = &self.desk.shared.segment;
        let is_given = |index: &usize| {
            let slot = &segment.areas()[*index];
            let word = ownership::load(&slot.own.ownership);
            let is_away = word.is_transit() && segment.host_of(word.rank()).is_some();
            is_away && AreaId::of(*index, &slot.read.state).is_some()
        };
        let given: Vec<usize> = (0..segment.used_areas()).filter(is_given).collect();
        // As an agent that was killed in a round of this left it, all may be published, and the round not past.
        let is_done = || {
            let word = segment.rounds().load_total();
            word.phase() == Phase::Idle && !given.iter().any(|index| segment.dirty(*index).is_set())
        };
        if !given.is_empty() && !is_done() {
            given.iter().for_each(|index| self.desk.ask_for(*index, true));
            membership::run_deserted(&self.desk.shared);
        }
        let nobody_gives = !segment.rounds().seats().iter().any(Seat::is_live);
        let is_done = nobody_gives && (given.is_empty() || is_done());
        // Who died in the middle of giving may not have left news of it.
        self.again.extend(given);
        is_done
    }

    /// Runs a round, as no worker is left here who would, if something has arrived or clocks of other hosts have risen. So an area that
    /// was given to a worker of this host before that one left arrives here, without an owner, and is not on its way forever.
    pub(super) fn run_due_round(&self) {
        let segment = &self.desk.shared.segment;
        // Relaxed: rounds alone write it, and nobody else runs any.
        let known = segment.header().sync.acting.lowest_clock.load(Ordering::Relaxed);
        let has_arrived = |index: usize| {
            let slot = &segment.areas()[index];
            AreaId::of(index, &slot.read.state).is_some()
                && ownership::load(&slot.own.ownership).is_remote()
                && self.desk.awaits_round(index)
        };
        if segment.remote_clocks().lowest_clock() > known || (0..segment.used_areas()).any(has_arrived) {
            membership::run_deserted(&self.desk.shared);
        }
    }

    /// Whether all workers have left. Nobody joins after that ([`Error::HostLeft`](crate::Error::HostLeft)): the other hosts would
    /// not wait for him.
    fn have_all_left(&self) -> bool {
        let deserted = &self.desk.shared.segment.header().agent.deserted;
        if !self.is_deserted() {
            return false;
        }
        if deserted.load(Ordering::Relaxed) == 0 {
            // SeqCst: before the second look at the seats; pairs with `check_host`. Whoever joins sees this, or is seen.
            deserted.store(1, Ordering::SeqCst);
            if !self.is_deserted() {
                // SeqCst: as above. Who was sent away meanwhile may come again.
                deserted.store(0, Ordering::SeqCst);
                return false;
            }
        }
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Job;
    use crate::api::agent::news::Event;
    use crate::protocol::round::slot_state;

    /// A worker that takes its slot for the first time is counted before it is there, and may stand still in between.
    #[test]
    fn a_host_whose_first_worker_is_about_to_come_has_not_left() {
        let job = Job::builder().hosts(&[1, 1], 0).embedded().unwrap();
        let mut agent = job.agent().unwrap();
        let shared = agent.desk.shared.clone();
        let (seat, life) = (&shared.segment.all_seats()[0], &shared.segment.workers()[0].life);
        assert!(life.try_lock().is_some());
        seat.incarnation.store(1, Ordering::Relaxed);
        let mut events = Vec::new();
        agent.look(&mut events);
        let has_left = |event: &Event| matches!(event, Event::Clock { local: u64::MAX, .. });
        assert!(!events.iter().any(has_left), "{events:?}");
        seat.set_state(slot_state::JOINING);
        agent.look(&mut events);
        assert!(!events.iter().any(has_left), "{events:?}");
        seat.set_state(slot_state::FREE);
        life.unlock();
        // Now it has been there and has gone.
        agent.look(&mut events);
        assert!(events.iter().any(has_left), "{events:?}");
    }
}
