//! Cuts that arrive before they may begin, since an earlier one is not published yet, or this host's clocks are too low. Their packets
//! are kept until then.
use super::arrivals::{Inbound, Phase};
use super::waiting_cut::{HELD_LINES, Held};
use super::{Cx, Mutant, Node};
use crate::intervals::Intervals;
use crate::types::{GroupId, HostId, LINE};
use crate::wire::{Cut, Data, Frame, decode, encode};

/// The most bytes of the frames of a cut that is kept: the lines, once more if they come again in other pieces, and headers.
const HELD_BYTES: usize = 3 * (HELD_LINES * LINE) as usize;

impl Inbound {
    /// Whether a cut waits here to begin.
    pub(super) fn holds(&self, from: HostId, cut: u64) -> bool {
        self.held.iter().any(|held| held.from == from && held.cut.cut == cut)
    }

    /// Of the cuts that wait for earlier ones, and of those that are ahead of the clocks here, the newest counts: it has the lines of those
    /// before it. None does that is older than one that has begun.
    fn prune_held(&mut self, may_publish: u64) {
        let last_cut = self.last_cut;
        let newest = |held: &[Held], is_ahead: bool| {
            let such = held.iter().filter(|held| (held.cut.label > may_publish) == is_ahead);
            such.map(|held| held.cut.cut).max()
        };
        let newest = [newest(&self.held, false), newest(&self.held, true)];
        self.held.retain(|held| held.cut.cut > last_cut && newest.contains(&Some(held.cut.cut)));
    }
}

impl Node {
    /// Whether a cut cannot begin yet, and can be kept.
    pub(super) fn is_to_be_held(&self, inbound: &Inbound, cut: &Cut) -> bool {
        if self.is_blind_to_labels() {
            return false;
        }
        let is_ahead = cut.label > self.clocks.may_publish() && !self.mutant(Mutant::HastyAhead);
        let waits = matches!(inbound.phase, Phase::Arrived { .. }) || is_ahead;
        waits && cut.total <= HELD_LINES && !cut.placed
    }

    /// Keeps a cut until it may begin.
    pub(super) fn hold(&mut self, cx: &Cx<'_>, from: HostId, cut: Cut) {
        let (group, may_publish) = (cut.group, self.clocks.may_publish());
        let inbound = self.inbound.get_mut(&group).expect("it is received");
        let (frames, came) = (Vec::new(), Intervals::default());
        self.under_way.insert((from, cut.cut), group);
        inbound.held.push(Held { from, cut, frames, came, since_ns: cx.now });
        inbound.prune_held(may_publish);
        self.counters.cuts_held += 1;
        self.holding.insert(group);
        self.retain_under_way(group, self.cut_received(group));
    }

    /// Keeps lines of a cut that is held. Whether it is.
    pub(super) fn hold_lines(&mut self, from: HostId, data: &Data<'_>) -> bool {
        let Some(&group) = self.under_way.get(&(from, data.cut)) else { return false };
        let little_room = self.mutant(Mutant::LittleRoom);
        let Some(inbound) = self.inbound.get_mut(&group) else { return false };
        let is_it = |held: &&mut Held| held.from == from && held.cut.cut == data.cut;
        let Some(held) = inbound.held.iter_mut().find(is_it) else { return false };
        let count: u64 = data.runs().map(|run| u64::from(run.count)).sum();
        let range = data.position..data.position.saturating_add(count);
        if range.end > held.cut.total || data.bytes.len() as u64 > count * LINE {
            self.counters.violations += 1;
        } else if !held.came.contains(&range) {
            // Not of every cut: who finds no room again and again makes no progress.
            let is_little = little_room && data.cut % 2 == 1;
            let room = if is_little { (held.cut.total * LINE / 2) as usize } else { HELD_BYTES };
            if held.frames.len() >= room {
                self.give_held_up(group, data.cut);
                return true;
            }
            encode(&Frame::Data(data.clone()), &mut held.frames);
            held.came.insert(range);
        }
        true
    }

    /// Lines of a held cut came that there is no room for, in too many pieces: they will not come again. Its sender hears that it has ended,
    /// and with it all before it, and sends anew.
    fn give_held_up(&mut self, group: GroupId, cut: u64) {
        let inbound = self.inbound.get_mut(&group).expect("it is held");
        inbound.held.retain(|held| held.cut.cut > cut);
        inbound.last_cut = inbound.last_cut.max(cut);
        self.counters.cuts_refused += 1;
        // The cut that has arrived is published before its sender is told.
        if !matches!(inbound.phase, Phase::Arrived { .. }) {
            inbound.phase = Phase::Idle;
            inbound.ended_cut = inbound.last_cut;
            self.restate_subscription(group);
        }
        self.retain_under_way(group, self.cut_received(group));
    }

    /// Nothing of a group is under way any more, but the cuts that are held.
    pub(super) fn end_under_way(&mut self, group: GroupId) {
        self.retain_under_way(group, None);
    }

    /// Of a group, only these cuts are under way: the one that is received, and those that are held.
    fn retain_under_way(&mut self, group: GroupId, received: Option<u64>) {
        let inbound = self.inbound.get(&group);
        self.under_way.retain(|(from, cut), other| {
            let is_held = inbound.is_some_and(|inbound| inbound.holds(*from, *cut));
            *other != group || is_held || received == Some(*cut)
        });
    }

    fn cut_received(&self, group: GroupId) -> Option<u64> {
        match &self.inbound.get(&group)?.phase {
            Phase::Receiving(receiving) => Some(receiving.cut.cut),
            _ => None,
        }
    }

    /// Drops what is held of a group.
    pub(super) fn drop_held(&mut self, group: GroupId) {
        if let Some(inbound) = self.inbound.get_mut(&group) {
            inbound.held.clear();
        }
        self.holding.remove(&group);
        self.end_under_way(group);
    }

    /// Begins the cuts that were held and may begin now.
    pub(super) fn begin_held(&mut self, cx: &mut Cx<'_>) {
        if self.holding.is_empty() {
            return;
        }
        for group in self.holding.clone() {
            while let Some(held) = self.take_held(group) {
                let age_ns = held.cut.age_ns.saturating_add(cx.now.saturating_sub(held.since_ns));
                self.on_cut(cx, held.from, Cut { age_ns, ..held.cut });
                for frame in decode(&held.frames).expect("it was decoded before") {
                    if let Frame::Data(data) = frame {
                        self.on_data(cx, held.from, &data);
                    }
                }
            }
            if self.inbound.get(&group).is_none_or(|inbound| inbound.held.is_empty()) {
                self.holding.remove(&group);
            }
        }
    }

    /// The newest cut of a group that may begin.
    fn take_held(&mut self, group: GroupId) -> Option<Held> {
        let may_publish = self.clocks.may_publish();
        let inbound = self.inbound.get_mut(&group)?;
        inbound.prune_held(may_publish);
        if matches!(inbound.phase, Phase::Arrived { .. }) {
            return None;
        }
        let index = inbound.held.iter().position(|held| held.cut.label <= may_publish)?;
        let held = inbound.held.remove(index);
        self.retain_under_way(group, self.cut_received(group));
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Config;

    const GROUP: GroupId = GroupId(1 << 48);
    const OWNER: HostId = HostId(1);

    fn cut(cut: u64, label: u64, total: u64) -> Cut {
        Cut {
            cut,
            group: GROUP,
            base: 1,
            round: cut,
            label,
            age_ns: 0,
            total,
            placed: false,
            versions: Vec::new(),
        }
    }

    /// A node that holds cuts of these numbers and labels, with this lowest clock; the last cut that has begun.
    fn holding(cuts: &[(u64, u64)], lowest: u64, last_cut: u64) -> Node {
        let mut node = Node::new(Config::new(7, HostId(0), 2, 1, 1), 0);
        let mut inbound = node.new_inbound(0);
        inbound.last_cut = last_cut;
        node.inbound.insert(GROUP, inbound);
        node.local_clocks(0, lowest);
        let frames = (Vec::new(), Intervals::default());
        for &(number, label) in cuts {
            let (frames, came) = frames.clone();
            node.under_way.insert((OWNER, number), GROUP);
            let held = Held { from: OWNER, cut: cut(number, label, 4), frames, came, since_ns: 0 };
            node.inbound.get_mut(&GROUP).expect("just made").held.push(held);
        }
        node
    }

    #[test]
    fn the_newest_that_may_begin_does() {
        let next = |mut node: Node| node.take_held(GROUP).map(|held| held.cut.cut);
        assert_eq!(next(holding(&[(3, 5), (4, 6)], 4, 2)), Some(3), "the other one is ahead");
        assert_eq!(next(holding(&[(3, 5), (4, 6)], 5, 2)), Some(4), "which has the lines of the one before");
        assert_eq!(next(holding(&[(3, 6), (4, 6)], 4, 2)), None);
        assert_eq!(next(holding(&[(3, 5)], 4, 3)), None, "a later one has begun");
        let mut busy = holding(&[(3, 5)], 4, 2);
        let phase = Phase::Arrived { cut: 2, round: 2, versions: Vec::new(), refused: false };
        busy.inbound.get_mut(&GROUP).expect("it is there").phase = phase;
        assert_eq!(next(busy), None);
    }

    #[test]
    fn one_of_each_kind_is_kept() {
        let mut node = holding(&[(3, 5), (4, 5), (5, 6), (6, 6)], 4, 2);
        let inbound = node.inbound.get_mut(&GROUP).expect("it is there");
        inbound.prune_held(5);
        let kept: Vec<u64> = inbound.held.iter().map(|held| held.cut.cut).collect();
        assert_eq!(kept, [4, 6]);
        node.end_under_way(GROUP);
        assert_eq!(node.under_way.keys().map(|(_, cut)| *cut).collect::<Vec<_>>(), [4, 6]);
        node.drop_held(GROUP);
        assert!(node.under_way.is_empty());
    }

    #[test]
    fn what_is_too_long_or_may_begin_is_not_held() {
        let node = holding(&[], 4, 2);
        let is_held = |cut: &Cut| node.is_to_be_held(&node.inbound[&GROUP], cut);
        assert!(is_held(&cut(3, 6, HELD_LINES)));
        assert!(!is_held(&cut(3, 6, HELD_LINES + 1)));
        assert!(!is_held(&Cut { placed: true, ..cut(3, 6, 4) }));
        assert!(!is_held(&cut(3, 5, 4)));
    }
}
