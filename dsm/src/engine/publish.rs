//! Publishing: generations, clear log, owed bitmaps, version, all as absolute values, so that whoever finds
//! it half done finishes it.
use super::plan::Planned;
use super::runtime::Runtime;
use crate::memory::copy::words;
use crate::primitive::fault_point;
use crate::protocol::abandon;
use crate::protocol::abandon::Entries;
use crate::protocol::doorbell;
use crate::protocol::publication::Publication;
use crate::segment::parts::Parts;
use crate::segment::tally::add;
use std::sync::atomic::{AtomicU64, Ordering, fence};

impl Runtime<'_> {
    /// Makes the new versions of the plan visible.
    pub(crate) fn publish_plan(&self, round: u64, me: u32) {
        let header = self.shared.segment.header();
        let plan = &header.sync.acting.plan;
        let planned = Planned::of(&self.shared.segment);
        let is_left = abandon::left(&planned);
        let now = plan.now_ns.load(Ordering::Relaxed);
        let mut published = 0;
        for index in 0..planned.count() {
            fault_point();
            if is_left(index) {
                // Whoever abandoned it may have died in the middle.
                planned.set_aside(index, round);
            } else {
                self.publish_area(&planned.publication(index, round), now);
                published += 1;
            }
        }
        let doorbell = self.shared.segment.doorbell();
        let mut rings = doorbell.published();
        if rings {
            let clocks_rise = plan.clocks_rise.load(Ordering::Relaxed) != 0;
            let has_chosen = self.leave_news(&planned, is_left);
            rings = !doorbell.chooses() || has_chosen || (clocks_rise && self.shared.segment.spans_hosts());
        }
        let acting = &header.sync.acting;
        let mut local = plan.local_clock.load(Ordering::Relaxed);
        let mut lowest = plan.lowest_clock.load(Ordering::Relaxed);
        if published < planned.count() as u64 {
            // An area was abandoned: what its owner wrote is not published.
            local = local.min(acting.local_clock.load(Ordering::Relaxed));
            lowest = lowest.min(acting.lowest_clock.load(Ordering::Relaxed));
        }
        // Relaxed: read by those who see the round past; the shift after this releases it.
        acting.whole.store(plan.whole.load(Ordering::Relaxed), Ordering::Relaxed);
        // Release, both: pairs with the acquire in `Agent::look`, which finds news of all that the clock covers.
        acting.local_clock.store(local, Ordering::Release);
        acting.lowest_clock.store(lowest, Ordering::Release);
        if rings {
            fault_point();
            self.shared.ring_for_agent();
        }
        add(&self.shared.tally(me).published, published);
        self.shared.wake_notifiers();
    }

    /// Leaves the agent news of what was published; whether it has chosen one of these areas.
    fn leave_news(&self, planned: &Planned<'_>, is_left: impl Fn(usize) -> bool) -> bool {
        let mut has_chosen = false;
        for index in (0..planned.count()).filter(|index| !is_left(*index)) {
            fault_point();
            let area = planned.area(index) as usize;
            let (marks, bit) = (&self.shared.segment.marks()[area / 64], 1 << (area % 64));
            doorbell::leave_news(&marks.news, bit);
            has_chosen |= doorbell::are_chosen(&marks.chosen, bit);
        }
        has_chosen
    }

    /// Publishes one area at the time `now`.
    fn publish_area(&self, published: &Publication, now: u64) {
        let segment = &self.shared.segment;
        let area = published.area as usize;
        let parts = Parts::of(segment, area);
        let (index, slot) = (published.copy as usize, parts.slot);
        if parts.layout.is_logged() {
            if published.whole {
                clear(parts.level0());
                clear(parts.level1());
            } else {
                clear_log(&parts);
            }
            if parts.copies()[index].owes.load(Ordering::Relaxed) != 0 {
                clear(parts.owed(index));
                parts.copies()[index].owes.store(0, Ordering::Relaxed);
            }
            fault_point();
            parts.generations().after_publication(published.version.counter, segment.config().seal_every);
        }
        clear(parts.writers());
        fault_point();
        // Release: pairs with the acquire in `Agent::published`.
        slot.round.confirmed_ns.store(published.timestamp_ns, Ordering::Release);
        parts.reader_copies().publish(published);
        slot.round.kept.store(published.kept, Ordering::Relaxed);
        // Release: pairs with the fence in `Agent::publish_lent`, which finds the round under way that has published this.
        fence(Ordering::Release);
        segment.dirty(area).clear();
        segment.forced(area).clear();
        self.postpone(slot, now);
    }
}

/// Clears bitmap words of an area that is being published.
fn clear(words: &[AtomicU64]) {
    // SAFETY: only the actor publishes; copying is over, and the area's owner is inside the round, or has lent the area and waits for the
    // round before it writes it again.
    unsafe { words::clear(words) }
}

/// Clears both levels of the log where they have bits. Lower words first: a successor finds every lower
/// word that is not clear through the upper bits that are left.
fn clear_log(parts: &Parts<'_>) {
    parts.for_each_logged_run(clear);
    fault_point();
    clear(parts.level1());
}
