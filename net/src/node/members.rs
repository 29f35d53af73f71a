//! The members of groups that are received: told by the owner's host, given copies in their order, and deleted.
use super::{Action, Cx, Node};
use crate::types::{AreaId, Description, GroupId, HostId, MAX_MEMBERS, NameError};

impl Node {
    /// The owner tells a member of a group: copies are made for the members in their order.
    pub(super) fn on_member(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        area: AreaId,
        description: Option<Description>,
    ) {
        if !self.inbound.contains_key(&area.group) && area.group.home() != self.config.host {
            return;
        }
        if self.is_foreign(area.group, from) {
            return;
        }
        if usize::from(area.member) >= MAX_MEMBERS {
            self.counters.violations += 1;
            return;
        }
        if description.is_none() {
            self.withdraw_name(area);
            return self.lose_member(cx, area);
        }
        self.note_member(area, description);
        self.reserve(cx, area.group);
    }

    /// Notes what the owner's host says of a member; `None`: that it was deleted.
    fn note_member(&mut self, area: AreaId, description: Option<Description>) {
        let Some(inbound) = self.inbound.get_mut(&area.group) else { return };
        let member = usize::from(area.member);
        if inbound.told.len() <= member {
            inbound.told.resize(member + 1, None);
        }
        inbound.told[member] = Some(description);
    }

    /// A member of a group that is received here, if it is, was deleted.
    pub(super) fn lose_member(&mut self, cx: &mut Cx<'_>, area: AreaId) {
        if !self.inbound.contains_key(&area.group) {
            return;
        }
        cx.out.push(Action::Deleted { area });
        self.answer_lookups(cx, area, Err(NameError::Deleted));
        self.note_member(area, None);
        if self.inbound[&area.group].told.iter().all(|told| *told == Some(None)) {
            // That it is to come here was said before it was deleted, and is heard again by every agent.
            self.handovers.expect_no_more(area.group);
            self.detach(cx, area.group);
            return;
        }
        self.reserve(cx, area.group);
    }

    /// Makes copies for the members of a group that were told and have none, in their order.
    pub(super) fn reserve(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let Some(inbound) = self.inbound.get(&group) else { return };
        let before = inbound.have.len();
        let mut refused = None;
        while let Some(inbound) = self.inbound.get_mut(&group)
            && let Some(Some(told)) = inbound.told.get(inbound.have.len())
        {
            let area = AreaId { group, member: inbound.have.len() as u16 };
            // A member that was deleted before has nothing to be received.
            match told.as_ref().map_or(Ok(None), |description| cx.memory.reserve(area, description)) {
                Ok(have) => inbound.have.push(have),
                Err(error) => {
                    refused = Some((area, error));
                    break;
                }
            }
        }
        if self.inbound[&group].have.len() > before {
            self.note_owner(cx, group);
            self.note_ownerless(cx, group);
            self.restate_subscription(group);
            self.answer_attached(cx, group);
        }
        if let Some((area, error)) = refused {
            self.refuse_from(cx, area, error);
        }
    }
}
