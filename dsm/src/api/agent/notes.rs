//! Notes of agents for those after them, and areas that are hidden until their data has come.
use super::Agent;
use crate::engine::directory::AreaId;
use crate::engine::refusal::Refusal;
use crate::protocol::conflict::Conflict;
use crate::protocol::index::hash;
use crate::segment::layout::AreaSlot;
use std::sync::atomic::Ordering;

impl Agent {
    fn slot_of(&self, area: AreaId) -> Option<&AreaSlot> {
        self.desk.shared.segment.areas().get(area.index as usize).filter(|slot| area.is_live(slot))
    }

    /// The agent's note on an area: three words that stay as long as the area does, and mean nothing here. Zeros at first; `None`
    /// if it was deleted.
    pub fn note(&self, area: AreaId) -> Option<[u64; 3]> {
        // Relaxed: written by this thread, or by an agent before it, whose death the kernel told.
        let slot = self.slot_of(area)?;
        Some([0, 1, 2].map(|place: usize| slot.agent.note[place].load(Ordering::Relaxed)))
    }

    /// Notes something of an area. It is no more than three words: an agent that dies in between has written some of them, the
    /// first ones first.
    pub fn set_note(&self, area: AreaId, note: [u64; 3]) {
        // In use, so that the slot is no other area's meanwhile.
        if self.desk.hold(area).is_ok() {
            let place = &self.desk.shared.segment.areas()[area.index as usize].agent.note;
            place.iter().zip(note).for_each(|(place, word)| {
                place.store(word, Ordering::Relaxed);
                crate::primitive::fault_point();
            });
            self.desk.release(area);
        }
    }

    /// Says why no area of this name can be had: workers that attach to it get this as an error.
    pub fn refuse(&self, name: &str, refusal: &Refusal) {
        self.desk.shared.segment.header().agent.answers.tell(refusal.to_words(hash(name)));
    }

    /// Tells the owner of an area of this host another host's objection, by its next synchronization point. If there are more than
    /// the owner has room for, a later [`Agent::look`] tells the rest.
    pub fn tell_conflict(&self, area: AreaId, conflict: Conflict) {
        if !self.has_told(area, conflict) {
            self.untold.borrow_mut().push((area, conflict));
        }
    }

    /// Says what the owners of areas had no room for.
    pub(super) fn tell_untold(&self) {
        self.untold.borrow_mut().retain(|(area, conflict)| !self.has_told(*area, *conflict));
    }

    fn has_told(&self, area: AreaId, conflict: Conflict) -> bool {
        // In use, so that the slot is no other area's meanwhile.
        if self.desk.hold(area).is_err() {
            return true;
        }
        let segment = &self.desk.shared.segment;
        let has_told = segment.areas()[area.index as usize]
            .agent
            .conflicts
            .tell(conflict, &segment.header().agent.conflicts);
        self.desk.release(area);
        has_told
    }

    /// A number that no agent of this job on this host drew before, from 1 on.
    pub fn draw(&self) -> u64 {
        // Relaxed: there is one agent.
        self.desk.shared.segment.header().agent.drawn.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Lets an area be found that was created hidden ([`Agent::create_hidden`]).
    pub fn show(&self, area: AreaId) {
        if self.desk.hold(area).is_ok() {
            // Release: pairs with the acquire in `find_shown`: whoever finds it finds what was published before.
            self.desk.shared.segment.areas()[area.index as usize].agent.hidden.store(0, Ordering::Release);
            self.desk.release(area);
        }
    }

    /// Whether an area is hidden.
    pub fn is_hidden(&self, area: AreaId) -> bool {
        self.slot_of(area).is_some_and(|slot| slot.agent.hidden.load(Ordering::Relaxed) != 0)
    }

    /// Whether an area of another host may be received into: nothing is handed over of it, or what was is published, and the
    /// round that did is past.
    pub fn may_receive(&self, area: AreaId) -> bool {
        if self.desk.hold(area).is_err() {
            return false;
        }
        let may = self.desk.may_receive(area);
        self.desk.release(area);
        may
    }
}
