//! Areas that their owners on this host have deleted, until all who knew of them have heard so.
//!
//! A clock of this host counts elsewhere when what was deleted before it is gone on all hosts with copies, and its name free in the
//! directory: whoever has passed a barrier may create an area of that name. All these hosts are told (`Deleted`), and answer when they
//! have let it go; the one that created it withdraws the name (`Names`), and answers when the directory has heard so. Areas of that
//! name that this host creates meanwhile are not told to the directory before that.
use super::{Cx, Mutant, Node};
use crate::types::{AreaId, HostId, MAX_MEMBERS};
use crate::wire::Register;
use std::collections::{BTreeMap, BTreeSet};

/// Deletions that are not known everywhere.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    open: BTreeMap<AreaId, Deletion>,
    /// Areas that others have deleted, with who waits until this host has let them go and, if it created them, the directory has heard so.
    asked: BTreeMap<AreaId, HostId>,
}

#[derive(Debug)]
struct Deletion {
    name: String,
    /// The lowest clock of this host's workers when it was deleted.
    clock: u64,
    /// Those who have not answered.
    waits: BTreeSet<HostId>,
}

impl Deletions {
    /// The lowest clock at which an area was deleted of which others have still to hear so.
    fn since(&self) -> Option<u64> {
        self.open.values().map(|deletion| deletion.clock).min()
    }

    /// Whether the directory may still have a name for an area that another host created and that was deleted here.
    pub(super) fn holds(&self, host: HostId, name: &str) -> bool {
        self.open.iter().any(|(area, deletion)| area.group.home() != host && deletion.name == name)
    }
}

impl Node {
    /// An area was deleted here of which these hosts have copies.
    pub(super) fn begin_deletion(&mut self, area: AreaId, name: String, copies: Vec<HostId>) {
        let mut waits = BTreeSet::from_iter(copies);
        waits.insert(area.group.home());
        waits.remove(&self.config.host);
        for &host in &waits {
            self.tell(host, Register::Deleted(area, false));
        }
        self.deletions.open.insert(area, Deletion { name, clock: self.clocks.own(), waits });
        self.settle_deletion(area);
    }

    /// The owner of an area on another host has deleted it.
    pub(super) fn on_deleted(&mut self, cx: &mut Cx<'_>, from: HostId, area: AreaId) {
        let is_here = self.outbound.contains_key(&area.group) && !self.handovers.is_left(area.group);
        if is_here || usize::from(area.member) >= MAX_MEMBERS {
            self.counters.violations += 1;
            return;
        }
        // Whoever it was left to had it before that.
        self.has_gone(cx, area.group);
        self.withdraw_name(area);
        self.lose_member(cx, area);
        self.deletions.asked.insert(area, from);
        self.answer_deletion(area);
    }

    /// A host has let go what was deleted here.
    pub(super) fn on_let_go(&mut self, from: HostId, area: AreaId) {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.outbox.withdraw(&Register::Deleted(area, false));
        }
        if let Some(deletion) = self.deletions.open.get_mut(&area) {
            deletion.waits.remove(&from);
        }
        self.settle_deletion(area);
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
    fn settle_deletion(&mut self, area: AreaId) {
        let Some(deletion) = self.deletions.open.get(&area) else { return };
        let is_there = |host: &HostId| self.peers.get(host).is_some_and(|peer| !peer.left);
        if self.has_to_say_name(area) || deletion.waits.iter().any(is_there) {
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
