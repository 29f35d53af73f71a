//! Forced syncs: publications that other hosts request, and the answers to requests of workers of this host.
use super::Agent;
use crate::engine::directory::AreaId;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::Result;
use crate::memory::clock;
use crate::protocol::word::Phase;
use std::sync::atomic::Ordering;

/// A publication that was asked for ([`Agent::force`]).
#[derive(Clone, Copy, Debug)]
pub struct Forced {
    area: AreaId,
    /// The first round that is sure to look at the area.
    round: u64,
    since_ns: u64,
}

/// The outcome of a publication that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Published {
    /// All that the owner had written by then is published.
    All,
    /// The owner was not in the round, or is no more; or there was no copy to publish into.
    PutOff,
}

impl Agent {
    /// Asks for a round that publishes an area of this host; [`Agent::published`] tells the outcome.
    ///
    /// # Errors
    /// [`Error::Deleted`](crate::Error::Deleted).
    pub fn force(&self, area: AreaId) -> Result<Forced> {
        self.desk.hold(area)?;
        let since_ns = clock::now_ns();
        self.desk.ask_for(area.index as usize, true);
        self.desk.ask_for_round(true);
        // After the mark: a round that is still open finds it.
        let word = self.desk.shared.segment.rounds().load_total();
        let is_open = matches!(word.phase(), Phase::Idle | Phase::Open);
        self.desk.release(area);
        Ok(Forced { area, round: word.round() + u64::from(!is_open), since_ns })
    }

    /// The outcome of a publication that was asked for; `None` while a round may still publish it. Where no worker is left, none
    /// will.
    pub fn published(&self, forced: &Forced) -> Option<Published> {
        let area = forced.area;
        if self.desk.hold(area).is_err() {
            return Some(Published::PutOff);
        }
        let published = self.published_of(forced);
        self.desk.release(area);
        published
    }

    fn published_of(&self, forced: &Forced) -> Option<Published> {
        let segment = &self.desk.shared.segment;
        let (sync, index) = (&segment.header().sync, forced.area.index as usize);
        let slot = &segment.areas()[index];
        // Before the word, and Acquire: pairs with the release of the actor of the round that confirmed it. So the word is that of this
        // round or of a later one.
        let is_confirmed = slot.round.confirmed_ns.load(Ordering::Acquire) >= forced.since_ns;
        // Before `whole` and the area's mark: what past rounds left there is read below.
        let word = segment.rounds().load_total();
        // One that waited for nobody says nothing of owners that were not in it.
        let completed = sync.acting.whole.load(Ordering::Relaxed);
        if is_confirmed {
            let is_past = matches!(word.phase(), Phase::Idle | Phase::Open) || word.is_past(forced.round);
            return is_past.then_some(Published::All);
        }
        if self.is_deserted() {
            let is_dirty = segment.dirty(index).is_set();
            return Some(if is_dirty { Published::PutOff } else { Published::All });
        }
        if completed < forced.round && word.phase() == Phase::Idle && !sync.is_requested() {
            // It was given up, or the one that was asked for was over before the word was looked at: nobody may open another.
            self.desk.ask_for(index, true);
            self.desk.ask_for_round(true);
        }
        // One that found its owner arrived before it was asked for asks for another.
        let goes_on = sync.is_requested() || word.phase() != Phase::Idle;
        let is_over = completed >= forced.round && !(goes_on && completed < forced.round + 2);
        is_over.then_some(Published::PutOff)
    }

    /// Answers the requests for an area up to number `request` ([`Event::Requested`]): what its owner had written by the time of the
    /// request is published here, in a round that is past, unless `postponed` says that it could not be published there; or, of an area
    /// that is sent on demand, what was published there has arrived here.
    ///
    /// [`Event::Requested`]: super::news::Event::Requested
    pub fn answer(&self, area: AreaId, request: u64, postponed: bool) {
        if self.desk.hold(area).is_ok() {
            let record = &self.desk.shared.segment.areas()[area.index as usize].agent.request;
            record.answer(request, postponed);
            // Who reads outside of rounds sleeps on it.
            futex_wake_all(low_half(record.answers()));
            let runtime = self.desk.runtime();
            self.desk.shared.segment.remote_clocks().call(&runtime.rounds(), &runtime);
            self.desk.release(area);
        }
    }
}
