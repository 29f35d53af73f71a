//! Which areas a worker owns: what the worker alone needs to know, in its own memory.
//!
//! An area that was given may be taken without writing its ownership word: the recipient is a single thread,
//! and records here that it has taken it. The set also keeps the worker's handle of each area that it ever
//! owned, so that an area that goes back and forth costs no atomic reference counts.
use crate::engine::area_core::AreaCore;
use crate::engine::directory::AreaId;
use crate::engine::runtime::Local;
use crate::error::Rank;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// A worker's handle of an area, shared by those of its values that own the area in turn.
#[derive(Debug)]
pub(crate) struct Hand {
    pub(crate) core: Arc<AreaCore>,
    /// The worker's; its set forgets the hands when the worker leaves.
    pub(crate) local: Rc<Local>,
    pub(crate) rank: Rank,
}

#[derive(Debug, Default)]
pub(crate) struct OwnedSet {
    inner: RefCell<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By area slot.
    slots: Vec<Entry>,
    /// A bit for each area that the worker owns and that has reader copies, as in `Marks`.
    published: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    hand: Option<Rc<Hand>>,
    /// The epoch under which the worker owns the area; 0: it does not.
    epoch: u64,
}

impl Entry {
    fn is_of(&self, id: AreaId) -> bool {
        self.hand.as_ref().is_some_and(|hand| hand.core.id == id)
    }
}

#[cold]
fn grow(slots: &mut Vec<Entry>, published: &mut Vec<u64>, index: usize) {
    slots.resize_with(index + 1, Entry::default);
    published.resize(index / 64 + 1, 0);
}

impl Entry {
    #[cold]
    fn take_hand(&mut self, local: &Rc<Local>, rank: Rank, core: &Arc<AreaCore>) -> Rc<Hand> {
        let hand = Hand { core: core.clone(), local: local.clone(), rank };
        self.hand.insert(Rc::new(hand)).clone()
    }
}

impl OwnedSet {
    /// The worker of this `local` owns the area from now on; `None` if it has taken it under this epoch already.
    #[inline(always)]
    pub(crate) fn begin(local: &Rc<Local>, rank: Rank, core: &Arc<AreaCore>, epoch: u64) -> Option<Rc<Hand>> {
        let Inner { slots, published } = &mut *local.owned.inner.borrow_mut();
        let index = core.id.index as usize;
        if index >= slots.len() {
            grow(slots, published, index);
        }
        let entry = &mut slots[index];
        let known = entry.hand.as_ref().filter(|hand| hand.core.id == core.id);
        if entry.epoch == epoch && known.is_some() {
            return None;
        }
        entry.epoch = epoch;
        let bit = u64::from(core.layout.copies != 0) << (index % 64);
        published[index / 64] = published[index / 64] & !(1 << (index % 64)) | bit;
        local.heard.owns_more(&core.shared.segment.header().agent.conflicts, &core.slot.agent.conflicts);
        Some(match known {
            Some(known) => known.clone(),
            None => entry.take_hand(local, rank, core),
        })
    }

    /// Forgets the handles, and with them the areas: the worker leaves and takes nothing any more.
    pub(crate) fn clear(&self) {
        self.inner.take();
    }

    /// The worker no longer owns the area under this epoch.
    #[inline(always)]
    pub(crate) fn end(&self, id: AreaId, epoch: u64) {
        let Inner { slots, published } = &mut *self.inner.borrow_mut();
        let Some(entry) = slots.get_mut(id.index as usize) else { return };
        if entry.epoch != epoch || !entry.is_of(id) {
            return;
        }
        entry.epoch = 0;
        published[id.index as usize / 64] &= !(1 << (id.index % 64));
    }

    /// Whether the worker owns the area under this epoch.
    pub(crate) fn has(&self, id: AreaId, epoch: u64) -> bool {
        let inner = self.inner.borrow();
        inner.slots.get(id.index as usize).is_some_and(|entry| entry.epoch == epoch && entry.is_of(id))
    }

    /// Visits the areas that the worker owns.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(&AreaCore)) {
        let inner = self.inner.borrow();
        let owned = inner.slots.iter().filter(|entry| entry.epoch != 0);
        owned.filter_map(|entry| entry.hand.as_ref()).for_each(|hand| visit(&hand.core));
    }

    /// Visits the areas that the worker owns and that rounds may publish, 64 at a time: the number of the word, and a bit
    /// for each.
    pub(crate) fn for_each_word(&self, mut visit: impl FnMut(usize, u64)) {
        let inner = self.inner.borrow();
        let words = inner.published.iter().copied().enumerate().filter(|(_, owned)| *owned != 0);
        words.for_each(|(word, owned)| visit(word, owned));
    }
}
