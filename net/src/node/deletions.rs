//! Areas that their owners on this host have deleted, until all who knew of them have heard so.
//!
//! A clock of this host counts elsewhere when what was deleted before it is gone there, and its name free in the directory: whoever has
//! passed a barrier may create an area of that name. The name is withdrawn by the host that created the area (`Names`), which is told
//! (`Deleted`), and answers when the directory has heard it. Areas of that name that this host creates meanwhile are not told to the
//! directory before that.
use super::{Cx, Mutant, Node};
use crate::types::{AreaId, HostId};
use crate::wire::{Key, Register};
use std::collections::BTreeMap;

/// Deletions that are not known everywhere.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    open: BTreeMap<AreaId, Deletion>,
    /// Areas that this host created and another one's owner has deleted: which host waits until the directory has heard it.
    asked: BTreeMap<AreaId, HostId>,
}

#[derive(Debug)]
struct Deletion {
    name: String,
    /// The lowest clock of this host's workers when it was deleted.
    clock: u64,
    /// The host that created it has answered.
    is_answered: bool,
}

impl Deletions {
    /// The lowest clock at which an area was deleted of which others have still to hear so.
    pub(super) fn since(&self) -> Option<u64> {
        self.open.values().map(|deletion| deletion.clock).min()
    }

    /// Whether the directory may still have a name for an area that another host created and that was deleted here.
    pub(super) fn holds(&self, host: HostId, name: &str) -> bool {
        self.open.iter().any(|(area, deletion)| area.group.home() != host && deletion.name == name)
    }
}

impl Node {
    /// An area was deleted here, of which others may know.
    pub(super) fn begin_deletion(&mut self, area: AreaId, name: String) {
        let home = area.group.home();
        let deletion = Deletion { name, clock: self.clocks.own(), is_answered: false };
        self.deletions.open.insert(area, deletion);
        if home != self.config.host {
            self.tell(home, Register::Deleted(area, false));
        }
        self.settle_deletion(area);
    }

    /// The owner of an area that this host created has deleted it, or the host that created one has heard that it is deleted here, and
    /// the directory, too (`is_answer`).
    pub(super) fn on_deleted(&mut self, cx: &mut Cx<'_>, from: HostId, area: AreaId, is_answer: bool) {
        let group = area.group;
        if is_answer {
            if let Some(peer) = self.peers.get_mut(&from) {
                peer.outbox.withdraw(&Register::Deleted(area, false));
            }
            if let Some(deletion) = self.deletions.open.get_mut(&area).filter(|_| group.home() == from) {
                deletion.is_answered = true;
            }
            return self.settle_deletion(area);
        }
        let is_here = self.outbound.contains_key(&group) && !self.handovers.is_left(group);
        if group.home() != self.config.host || is_here {
            self.counters.violations += 1;
            return;
        }
        // Whoever it was left to had it before that.
        self.has_gone(cx, group);
        self.withdraw_name(area);
        self.lose_member(cx, area);
        self.deletions.asked.insert(area, from);
        self.answer_deletion(area);
    }

    /// The directory has heard something of a name of this host, or knows nothing of it any more.
    pub(super) fn name_is_heard(&mut self, area: AreaId) {
        self.answer_deletion(area);
        self.settle_deletion(area);
    }

    fn answer_deletion(&mut self, area: AreaId) {
        if let Some(&host) = self.deletions.asked.get(&area)
            && !self.has_to_say_name(area)
        {
            self.deletions.asked.remove(&area);
            self.tell(host, Register::Deleted(area, true));
        }
    }

    /// Looks at all of them again: a host has left, or its agent is another one.
    pub(super) fn settle_deletions(&mut self) {
        let (asked, open) = (self.deletions.asked.keys(), self.deletions.open.keys());
        for area in asked.chain(open).copied().collect::<Vec<_>>() {
            self.name_is_heard(area);
        }
    }

    /// Ends a deletion of which all have heard who knew of the area.
    pub(super) fn settle_deletion(&mut self, area: AreaId) {
        let Some(deletion) = self.deletions.open.get(&area) else { return };
        let home = area.group.home();
        let is_free = match self.peers.get(&home) {
            Some(home) => deletion.is_answered || home.left,
            None => !self.has_to_say_name(area),
        };
        let mut peers = self.peers.hosts().map(|host| &self.peers[&host]);
        if !is_free || peers.any(|peer| !peer.left && peer.outbox.is_unheard(Key::Member(area))) {
            return;
        }
        self.deletions.open.remove(&area);
        self.clocks.stir_all();
        self.state_held_names();
    }

    /// The lowest clock at which this host created or deleted something of which others have still to hear.
    pub(super) fn untold_since(&self) -> Option<u64> {
        let deleted = self.deletions.since().filter(|_| !self.mutant(Mutant::HastyClock));
        self.unnamed_since().into_iter().chain(deleted).min()
    }
}
