//! Groups that their owners' hosts write themselves.
use super::HostMemory;
use crate::judge::Promise;
use hectare_net::{AreaId, GroupId, HostId, LINE, PinId, Place, Run};
use std::rc::Rc;

impl HostMemory {
    /// Bytes of a state, if it is pinned still.
    pub(crate) fn still_pinned(&self, pin: PinId, member: u16) -> Option<Rc<Vec<u8>>> {
        let copy = self.copies().find(|copy| copy.pin == Some(pin))?;
        copy.published.as_ref()?.contents.get(usize::from(member)).cloned()
    }

    pub(super) fn grant_group(&mut self, group: GroupId, to: HostId, members: usize) -> Option<Vec<Place>> {
        if self.written.get(&group).is_some_and(|peer| *peer != to) {
            self.end_writes(group);
        }
        // A device may have no memory for it.
        if self.random.chance(50) || !self.remote.contains_key(&group) {
            return None;
        }
        self.written.insert(group, to);
        Some((0..members).map(|member| Place { address: group.0, key: member as u32 }).collect())
    }

    pub(super) fn announce_lines(&mut self, area: AreaId, run: Run) {
        let Some(remote) = self.remote.get_mut(&area.group) else { return };
        remote.members[usize::from(area.member)].log.extend(run.first..run.first + run.count);
        if remote.arrival.is_some() || !self.written.contains_key(&area.group) {
            self.broke(
                Promise::Contract,
                format!("{area:?} is announced without a grant, or after its commit"),
            );
        }
    }

    /// Nothing that the owner's host was let write comes any more.
    pub(super) fn end_writes(&mut self, group: GroupId) {
        self.shut.extend(self.written.remove(&group));
    }

    /// A peer writes lines, of which it knows that they were announced.
    pub(crate) fn receive_placed(&mut self, from: HostId, to: Place, start: usize, bytes: &[u8]) {
        let group = GroupId(to.address);
        let broke = |what: String| self.judge.borrow_mut().broke(Promise::Contract, what);
        let Some(remote) = self.remote.get_mut(&group) else {
            return broke(format!("{from} writes {group:?}, which is not here"));
        };
        let line = LINE as usize;
        let member = &mut remote.members[to.key as usize];
        let lines = (start / line) as u32..(start + bytes.len()).div_ceil(line) as u32;
        if remote.arrival.is_some() {
            return broke(format!("{from} writes {group:?} after its commit"));
        }
        if let Some(line) = lines.into_iter().find(|line| !member.log.contains(line)) {
            return broke(format!("{from} writes line {line} of {group:?}, which was not announced"));
        }
        member.writer[start..start + bytes.len()].copy_from_slice(bytes);
    }
}
