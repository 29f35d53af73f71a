//! Who lives. A host says something at least every so often; one that is silent for the time-out ends the job. The first host
//! decides, by what it hears and by what others say that they do not hear. Who does not hear the first host cannot learn
//! its decision, and ends for itself.
use super::{Action, Cx, Mutant, Node};
use crate::types::{Cause, HostId, PeerFailed};
use crate::wire::Register;

impl Node {
    /// Says that it lives to whom it has said nothing for a while, and looks who is silent.
    pub(super) fn watch(&mut self, cx: &mut Cx<'_>) {
        let hosts: Vec<HostId> = self.peers.keys().copied().collect();
        for host in hosts {
            let peer = self.peers.get_mut(&host).expect("just listed");
            let silent = !peer.left && cx.now.saturating_sub(peer.heard_ns) >= self.config.silence_ns;
            if self.ended.is_some() || peer.suspected == silent {
                continue;
            }
            peer.suspected = silent;
            if self.config.host == HostId::FIRST || self.mutant(Mutant::EveryoneDecides) {
                self.decide(cx, PeerFailed { host, cause: Cause::Silent });
            } else if host == HostId::FIRST {
                self.end(cx, PeerFailed { host, cause: Cause::Silent });
            } else {
                self.tell(HostId::FIRST, Register::Suspect(host, silent));
            }
        }
    }

    /// The first host ends the job.
    pub(super) fn decide(&mut self, cx: &mut Cx<'_>, failed: PeerFailed) {
        if self.ended.is_some() {
            return;
        }
        let hosts: Vec<HostId> = self.peers.keys().copied().collect();
        for host in hosts {
            self.tell(host, Register::Verdict(failed));
        }
        self.end(cx, failed);
    }

    /// The job ends here. What others have to be told of it is still sent.
    pub(super) fn end(&mut self, cx: &mut Cx<'_>, failed: PeerFailed) {
        if self.ended.is_none() {
            self.ended = Some(failed);
            cx.out.push(Action::End(failed));
        }
    }

    pub(super) fn on_suspect(&mut self, cx: &mut Cx<'_>, from: HostId, host: HostId, silent: bool) {
        let has_left = self.peers.get(&host).is_some_and(|peer| peer.left);
        if self.config.host == HostId::FIRST && silent && !has_left && host != HostId::FIRST {
            self.decide(cx, PeerFailed { host, cause: Cause::Unreachable { from } });
        }
    }

    pub(super) fn on_verdict(&mut self, cx: &mut Cx<'_>, from: HostId, failed: PeerFailed) {
        if from == HostId::FIRST || self.mutant(Mutant::EveryoneDecides) {
            self.end(cx, failed);
        } else {
            self.counters.violations += 1;
        }
    }

    /// When somebody has to be told that this host lives, or is silent for too long.
    pub(super) fn next_watch(&self) -> Option<u64> {
        let of = |peer: &super::peer::Peer| {
            let alive = (peer.connected && peer.room > 0).then(|| peer.spoke_ns + self.config.alive_ns);
            let silent = (!peer.left && !peer.suspected && self.ended.is_none())
                .then(|| peer.heard_ns + self.config.silence_ns);
            alive.into_iter().chain(silent).min()
        };
        self.peers.values().filter_map(of).min()
    }
}
