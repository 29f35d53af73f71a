//! The peers, and those among them for which there may be work: so the cost depends on what has happened, not on the number of hosts.
use super::peer::Peer;
use crate::types::HostId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;

/// All other hosts.
#[derive(Debug)]
pub(super) struct Peers {
    all: BTreeMap<HostId, Entry>,
    /// Those that were changed, or may have been, since the last event was dealt with.
    touched: BTreeSet<HostId>,
    timers: BTreeSet<(u64, HostId)>,
}

#[derive(Debug)]
struct Entry {
    peer: Peer,
    /// The one in `timers`.
    timer: Option<u64>,
}

impl Peers {
    pub(super) fn new(peers: BTreeMap<HostId, Peer>) -> Peers {
        let touched = peers.keys().copied().collect();
        let all = peers.into_iter().map(|(host, peer)| (host, Entry { peer, timer: None })).collect();
        Peers { all, touched, timers: BTreeSet::new() }
    }

    pub(super) fn get(&self, host: &HostId) -> Option<&Peer> {
        self.all.get(host).map(|entry| &entry.peer)
    }

    /// A peer that may be changed, after which there may be something to do for it.
    pub(super) fn get_mut(&mut self, host: &HostId) -> Option<&mut Peer> {
        let entry = self.all.get_mut(host)?;
        self.touched.insert(*host);
        Some(&mut entry.peer)
    }

    /// All of them, in order.
    pub(super) fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        self.all.keys().copied().collect::<Vec<_>>().into_iter()
    }

    /// Those for which there may be something to do, in order.
    pub(super) fn touched(&self) -> Vec<HostId> {
        self.touched.iter().copied().collect()
    }

    /// Something changed for all of them.
    pub(super) fn touch_all(&mut self) {
        self.touched.extend(self.all.keys());
    }

    /// There may be something to do for those whose time has come.
    pub(super) fn touch_due(&mut self, now: u64) {
        self.touched.extend(self.timers.range(..=(now, HostId(u16::MAX))).map(|(_, host)| *host));
    }

    /// When the first timer falls due.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Sets the timers of those that were touched; `done` if all else was done for them.
    pub(super) fn rearm(&mut self, done: bool, timer: impl Fn(&Peer) -> Option<u64>) {
        for host in &self.touched {
            let Some(entry) = self.all.get_mut(host) else { continue };
            let next = timer(&entry.peer);
            if next != entry.timer {
                self.timers.extend(next.map(|at| (at, *host)));
                if let Some(before) = std::mem::replace(&mut entry.timer, next) {
                    self.timers.remove(&(before, *host));
                }
            }
        }
        if done {
            self.touched.clear();
        }
    }
}

impl Index<&HostId> for Peers {
    type Output = Peer;

    fn index(&self, host: &HostId) -> &Peer {
        &self.all[host].peer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each peer's timer is when it was last heard.
    fn timer(peer: &Peer) -> Option<u64> {
        (!peer.left).then_some(peer.heard_ns)
    }

    fn peers(count: u16) -> Peers {
        let of = |host: u16| (HostId(host), Peer { heard_ns: u64::from(host), ..Peer::default() });
        let mut peers = Peers::new((0..count).map(of).collect());
        assert_eq!(peers.touched().len(), usize::from(count), "new ones");
        peers.rearm(true, timer);
        peers
    }

    #[test]
    fn only_those_that_were_changed_or_are_due_are_looked_at() {
        let mut peers = peers(300);
        assert!(peers.touched().is_empty());
        peers.get(&HostId(5));
        assert!(peers.touched().is_empty(), "reading changes nothing");
        peers.get_mut(&HostId(7)).unwrap();
        peers.touch_due(2);
        assert_eq!(peers.touched(), [0, 1, 2, 7].map(HostId));
        peers.rearm(false, timer);
        assert_eq!(peers.touched().len(), 4, "not done yet");
        peers.rearm(true, timer);
        assert!(peers.touched().is_empty());
        peers.touch_all();
        assert_eq!(peers.touched().len(), 300);
    }

    #[test]
    fn a_peer_has_one_timer() {
        let mut peers = peers(3);
        assert_eq!(peers.next_due(), Some(0));
        peers.get_mut(&HostId(0)).unwrap().heard_ns = 9;
        peers.get_mut(&HostId(1)).unwrap().left = true;
        peers.rearm(true, timer);
        assert_eq!(peers.timers, BTreeSet::from([(2, HostId(2)), (9, HostId(0))]));
        peers.get_mut(&HostId(2)).unwrap().heard_ns = 10;
        peers.rearm(true, timer);
        assert_eq!(peers.next_due(), Some(9));
    }
}
