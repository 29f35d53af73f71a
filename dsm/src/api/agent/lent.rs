//! Areas that their owners have lent: published when other hosts ask for them, and not before.
use super::Agent;
use super::force::Published;
use crate::engine::directory::AreaId;
use crate::engine::membership;
use crate::protocol::lock;
use crate::protocol::ownership;
use std::sync::atomic::{Ordering, fence};

impl Agent {
    /// Another host asks for an area of this one. If its owner has lent it ([`Owned::lend`](crate::Owned::lend)) and not published what it
    /// wrote before, publishes that, at once, whatever workers do: nobody writes it meanwhile. [`Published::PutOff`] if it is to be tried
    /// again: a round is under way, which may be publishing it, perhaps with a worker that stands still, or there was no copy to publish
    /// into. Else all is published that was lent, and the next [`Agent::look`] finds it, also if workers did that. `None` of an area that
    /// was never lent.
    ///
    /// ```
    /// use hectare_dsm::agent::Published;
    /// use hectare_dsm::{AreaSpec, Job};
    /// let job = Job::builder().hosts(&[1, 1], 0).embedded()?;
    /// let (agent, mut worker) = (job.agent()?, job.worker()?);
    /// let mut owned = worker.create::<u64>(AreaSpec::new("rows").copies(2).on_demand(), 8)?;
    /// owned.write(&worker)?.fill(7);
    /// let lent = owned.lend(&worker)?;
    /// worker.sync()?; // nobody has asked
    /// assert_eq!(lent.area().read(&worker)?[0], 0);
    /// let area = agent.find("rows").expect("it was created");
    /// assert_eq!(agent.publish_lent(area), Some(Published::All));
    /// assert_eq!(agent.publish_lent(area), Some(Published::All)); // as it was
    /// worker.sync()?;
    /// assert_eq!(lent.area().read(&worker)?[0], 7);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    pub fn publish_lent(&self, area: AreaId) -> Option<Published> {
        self.desk.hold(area).ok()?;
        let published = self.publish_held(area.index as usize);
        self.desk.release(area);
        published
    }

    fn publish_held(&self, index: usize) -> Option<Published> {
        let segment = &self.desk.shared.segment;
        let slot = &segment.areas()[index];
        // Relaxed: its owner publishes it when it lends it the next time, or this agent does.
        slot.agent.wanted_lent.store(1, Ordering::Relaxed);
        let is_lent = || ownership::load_to_read(&slot.own.ownership).is_lent();
        if !is_lent() && !ownership::may_have_views(&slot.own.lent) {
            return None;
        }
        let is_left = || {
            let is_unpublished = segment.dirty(index).is_set() && is_lent();
            // Acquire: pairs with the release in `publish_area`; who finds the mark taken back finds the lock of the round that does that.
            // It does so before it leaves news, and the owner may take the area back while the round copies it.
            fence(Ordering::Acquire);
            is_unpublished || lock::locked_by(&slot.round.lock, segment.rounds().word).is_some()
        };
        if is_left() {
            if is_lent() {
                self.desk.ask_for(index, true);
            }
            membership::run_at_once(&self.desk.shared, &self.stalled);
        }
        Some(if is_left() { Published::PutOff } else { Published::All })
    }
}
