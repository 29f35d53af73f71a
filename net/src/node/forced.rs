//! Forced syncs: a worker wants the present state of a group of another host. Its host asks for that in the subscription. The owner's
//! host has a round publish the group, and then answers with the round for which the subscriber has to wait. No times are sent: what
//! was published after the request had arrived is newer than the request, by the clock of the host that asked.
use super::{Cx, Mutant, Node};
use crate::types::{GroupId, HostId};
use crate::wire::{Forced, Register};
use std::collections::{BTreeMap, VecDeque};

/// Who asks for a group of this host, by the numbers of their questions.
#[derive(Debug, Default)]
pub(super) struct Forcing {
    /// Those whom the publication under way answers.
    now: Option<BTreeMap<HostId, u32>>,
    /// Those who asked since.
    next: BTreeMap<HostId, u32>,
}

impl Forcing {
    /// That of a group that has come back while the memory had still to answer: nobody is answered by that.
    pub(super) fn under_way() -> Forcing {
        Forcing { now: Some(BTreeMap::new()), next: BTreeMap::new() }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.now.is_some()
    }

    /// A host asks; whether a publication is to be asked for.
    pub(super) fn ask(&mut self, host: HostId, forced: u32) -> bool {
        match &self.now {
            Some(_) => {
                self.next.insert(host, forced);
                false
            }
            None => {
                self.now = Some(BTreeMap::from([(host, forced)]));
                true
            }
        }
    }

    /// The publication under way is made: whom it answers.
    fn answer(&mut self) -> BTreeMap<HostId, u32> {
        self.now.take().unwrap_or_default()
    }

    /// Begins the next one, if somebody waits for it.
    fn go_on(&mut self) -> bool {
        if self.next.is_empty() {
            return false;
        }
        self.now = Some(std::mem::take(&mut self.next));
        true
    }

    /// A host asks no more, or its agent is another, which counts from 1.
    pub(super) fn forget(&mut self, host: HostId) {
        self.next.remove(&host);
        if let Some(now) = &mut self.now {
            now.remove(&host);
        }
    }
}

/// Requests of this host's workers to a group of another host.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// The number under which the owner's host was asked last.
    last: u32,
    /// Those that are not answered.
    open: VecDeque<Open>,
    /// The answer, for when the round that it names is published here.
    answer: Option<Forced>,
    /// That of the next owner's host, by the rounds of which it counts.
    next: Option<Forced>,
}

#[derive(Debug)]
struct Open {
    /// The number that the memory gave it.
    request: u32,
    /// The number under which the owner's host is asked, and the one under which the last owner's was: its answer is one, too, until
    /// the next owner's host is gone over to.
    question: u32,
    before: Option<u32>,
    made_ns: u64,
}

impl Requests {
    pub(super) fn last(&self) -> u32 {
        self.last
    }

    /// The last one if it is not answered, else 0.
    pub(super) fn last_open(&self) -> u32 {
        self.open.back().map_or(0, |open| open.question)
    }

    pub(super) fn ask(&mut self, request: u32, question: u32, made_ns: u64) {
        self.last = question;
        self.open.push_back(Open { request, question, before: None, made_ns });
    }

    /// Another host is to be asked from now on. It may have been asked before, and have answered: so all that is open gets another number.
    pub(super) fn ask_another(&mut self, question: u32) {
        self.next = None;
        for open in &mut self.open {
            open.before = open.before.or(Some(open.question));
            open.question = question;
        }
        if !self.open.is_empty() {
            self.last = question;
        }
    }

    /// The owner is on another host from now on.
    pub(super) fn go_over(&mut self) {
        self.answer = self.next.take();
        self.open.iter_mut().for_each(|open| open.before = None);
    }

    /// Takes all that are not answered: the last of them, if there are some.
    pub(super) fn take_all(&mut self) -> Option<u32> {
        self.open.drain(..).next_back().map(|open| open.request)
    }

    /// Takes what an answer answers: the last of them, and when that was made.
    pub(super) fn answer(&mut self, question: u32) -> Option<(u32, u64)> {
        let is_answered = |open: &Open| open.before.unwrap_or(open.question) <= question;
        let count = self.open.partition_point(is_answered);
        self.open.drain(..count).next_back().map(|open| (open.request, open.made_ns))
    }
}

impl Node {
    /// The number of the next question to another host, which is that of no other.
    pub(super) fn next_question(&mut self) -> u32 {
        self.last_question += 1;
        self.last_question
    }

    /// A worker of this host wants what a group of another is now.
    pub(super) fn force(&mut self, cx: &mut Cx<'_>, group: GroupId, request: u32) {
        let question = self.next_question();
        let Some(inbound) = self.inbound.get_mut(&group) else {
            return self.ask_there(group, request, question, cx.now);
        };
        inbound.requests.ask(request, question, cx.now);
        self.restate_subscription(group);
    }

    /// The owner's host answers.
    pub(super) fn on_forced(&mut self, cx: &mut Cx<'_>, from: HostId, group: GroupId, forced: Forced) {
        // Where only the epoch is another one, the rounds go on: what has arrived may be the answer, and keeps `go_over` waiting.
        let is_next = self.owner_of(group) != from && self.moves_to(group, from);
        let Some(inbound) = self.inbound.get_mut(&group) else { return };
        // The next owner's host says that nothing is newer than what is here: it knows what has arrived.
        if is_next && forced.round == 0 && inbound.is_read_in_place() {
            if let Some((request, _)) = inbound.requests.answer(forced.forced) {
                cx.memory.answer(group, request, None, false);
            }
        } else if is_next {
            inbound.requests.next = Some(forced);
        } else {
            inbound.requests.answer = Some(forced);
            self.answer_wishes(cx, group);
        }
    }

    /// Answers those whose answer is published here.
    pub(super) fn answer_wishes(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let early = self.mutant(Mutant::EarlyAnswer);
        let Some(inbound) = self.inbound.get_mut(&group) else { return };
        let is_here = |answer: &Forced| early || answer.round <= inbound.round_here();
        let Some(answer) = inbound.requests.answer.filter(is_here) else { return };
        inbound.requests.answer = None;
        // Readers see a state by rounds only when it is published here: to have arrived is not enough.
        let is_published = answer.round <= inbound.round && !inbound.is_read_in_place();
        if let Some((request, asked_ns)) = inbound.requests.answer(answer.forced) {
            let is_all = answer.is_newest && !answer.postponed && (is_published || early);
            cx.memory.answer(group, request, is_all.then_some(asked_ns), answer.postponed);
        }
    }

    /// A round of this host has published what was asked for.
    pub(super) fn forced(&mut self, cx: &mut Cx<'_>, group: GroupId, postponed: bool) {
        // Of what was left, all was published, and its next owner's host is sent it.
        let is_left = self.handovers.is_left(group);
        let postponed = postponed && !is_left;
        let Some(outbound) = self.outbound.get_mut(&group) else { return self.handovers.paid(group) };
        if outbound.showing > 0 {
            outbound.showing -= 1;
            self.stirred.insert(group);
        }
        let mut answers = Vec::new();
        for (host, forced) in outbound.forcing.answer() {
            let lowest = self.peers.get(&host).and_then(|peer| peer.lowest);
            if outbound.is_subscriber(host) {
                let (round, is_newest) = outbound.best_for(host, lowest);
                answers.push((host, Forced { forced, round, is_newest, postponed, is_not_taken: false }));
            }
        }
        if !is_left && outbound.forcing.go_on() {
            cx.memory.force(group);
        }
        for (host, answer) in answers {
            self.tell(host, Register::Forced(group, answer));
        }
    }

    /// Answers those who asked for a group that is sent on demand.
    pub(super) fn answer_asked(&mut self, group: GroupId) {
        let Some(outbound) = self.outbound.get_mut(&group).filter(|outbound| outbound.may_answer_asked())
        else {
            return;
        };
        for (host, answer) in outbound.answer_asked() {
            self.tell(host, Register::Forced(group, answer));
        }
    }
}
