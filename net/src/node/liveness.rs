//! Which hosts are alive. A host sends something at regular intervals; one that is silent for the time-out ends the job. The first
//! host decides, by what it hears and by the silences that others report. A host that does not hear the first host cannot learn its
//! decision, and ends the job by itself.
use super::{Action, Cx, Mutant, Node};
use crate::types::{Cause, HostId, PeerFailed};
use crate::wire::Register;

impl Node {
    /// Looks who is silent, among those to whom something happened or whose time has come.
    pub(super) fn watch(&mut self, cx: &mut Cx<'_>) {
        for host in self.peers.touched() {
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
        for host in self.peers.hosts() {
            self.tell(host, Register::Verdict(failed));
        }
        self.end(cx, failed);
    }

    /// The job ends here. What others have to be told of it is still sent.
    pub(super) fn end(&mut self, cx: &mut Cx<'_>, failed: PeerFailed) {
        if self.ended.is_none() {
            self.ended = Some(failed);
            self.peers.touch_all();
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

    /// Sets the timers of those to whom something happened: when they have to be told that this host lives, or what
    /// waits for company, or are silent for too long.
    pub(super) fn rearm(&mut self, now: u64) {
        let (alive_ns, silence_ns, ended) =
            (self.config.alive_ns, self.config.silence_ns, self.ended.is_some());
        self.peers.rearm(self.ready, |peer| {
            let alive = (peer.connected && peer.room > 0).then(|| peer.spoke_ns + alive_ns);
            let silent = (!peer.left && !peer.suspected && !ended).then(|| peer.heard_ns + silence_ns);
            let coalesced = peer.coalesces_until().filter(|at| *at > now);
            alive.into_iter().chain(silent).chain(coalesced).min()
        });
    }
}
