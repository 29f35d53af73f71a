//! Questions for a group that was left and is not taken yet: the next owner's host is asked whether it has not taken the group. Then
//! what was left is the newest, and is the answer (`net/NET.md`, Questions meanwhile).
use super::giving::Passed;
use super::{Cx, Mutant, Node};
use crate::types::{GroupId, HostId};

impl Node {
    /// A worker wants what a group is now that was left.
    pub(super) fn ask_there(&mut self, group: GroupId, request: u32, question: u32, now_ns: u64) {
        if let Some(departed) = self.handovers.departed_mut(group) {
            departed.inbound.requests.ask(request, question, now_ns);
            self.subscribe_there(group);
        }
    }

    /// Another host asks for a group on demand that was left. What is here is what it wants if the next owner's host has not taken the
    /// group by now.
    pub(super) fn pass_question(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId, forced: u32) {
        let question = self.next_question();
        // It is not answered before that, whatever is known of an earlier one.
        if let Some(subscriber) = self.subscriber(group, host) {
            subscriber.asked = None;
        }
        if let Some(departed) = self.handovers.departed_mut(group) {
            departed.asked.insert(host, Passed { forced, question });
            self.subscribe_there(group);
        }
        if self.mutant(Mutant::Unconfirmed) {
            self.not_taken(cx, group, question);
        }
    }

    /// The next owner's host had not taken a group that was left to it when it was asked under this number: nothing is newer than what
    /// was left.
    pub(super) fn not_taken(&mut self, cx: &mut Cx<'_>, group: GroupId, question: u32) {
        let Some(departed) = self.handovers.departed_mut(group) else { return };
        if let Some((request, asked_ns)) = departed.inbound.requests.answer(question) {
            cx.memory.answer(group, request, Some(asked_ns), false);
        }
        let is_answered = |passed: &Passed| passed.question <= question;
        let answered: Vec<_> = departed.asked.extract_if(.., |_, passed| is_answered(passed)).collect();
        for (host, passed) in answered {
            if let Some(subscriber) = self.subscriber(group, host) {
                subscriber.asked = Some(passed.forced);
            }
        }
        self.stirred.insert(group);
    }
}
