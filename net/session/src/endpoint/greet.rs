//! The handshakes: what a greeting leads to.
use super::peer::{Peer, Pending, refused};
use super::{Endpoint, TIME_LIMIT, YIELDS};
use crate::cipher::Suite;
use crate::config::HostId;
use crate::event::Event;
use crate::handshake::initiator::{Initiator, Insisting};
use crate::handshake::noise::{Handshake, Introduction};
use crate::handshake::responder::HalfOpen;
use crate::link::{Link, Party};
use crate::refusal::Refusal;
use crate::time::Time;
use crate::version::VERSION;
use crate::wire::greeting::{self, Answer, Hello, NoHello, Opening, Sort};
use std::net::SocketAddr;

/// How often a Welcome is repeated.
const MAX_WELCOMES: u32 = 16;
/// The most refusals that wait to be told.
const MAX_REFUSALS: usize = 64;

impl Endpoint {
    /// The first message to `host`.
    pub(super) fn begin(&mut self, now: Time, host: HostId, address: SocketAddr) -> Initiator {
        let introduction = Introduction { from: self.config.host.0, to: host.0, boot: self.config.boot };
        let mut noise = self.handshake(true);
        let hello = Hello {
            suite: self.config.suite.code(),
            token: self.random.bytes(),
            cluster: self.terms.cluster,
            job: self.job_tag,
            session: self.new_session(),
            cookie: [0; 16],
            noise: noise.write(Some(introduction)),
        };
        Initiator::new(now, address, hello, noise, &self.hello_key)
    }

    fn handshake(&mut self, initiates: bool) -> Handshake {
        Handshake::new(initiates, &self.terms, &self.job_key, &self.config.identity.0, &mut self.random)
    }

    /// Takes a packet that belongs to no session.
    pub(super) fn greeting(&mut self, now: Time, from: SocketAddr, opening: Opening, bytes: &[u8]) {
        match opening.sort {
            // Only a Hello is refused: an answer to an answer would go to and fro.
            Sort::Hello if opening.version != VERSION => {
                let why = Refusal::Version { theirs: opening.version, ours: VERSION };
                self.refuse(from, opening.token, why);
            }
            Sort::Refusal => self.refusal(now, from, opening, bytes),
            _ if opening.version != VERSION => self.counters.malformed += 1,
            Sort::Hello => self.hello(now, from, opening, bytes),
            Sort::Retry => {
                let key = &self.hello_key;
                let attempts = self.peers.values_mut().filter_map(|peer| peer.attempt.as_mut());
                // Whoever knows the token got the Hello, wherever its answer seems to come from.
                let mut waiting = attempts.filter(|a| a.token() == opening.token);
                match (waiting.next(), greeting::read_retry(bytes)) {
                    (Some(attempt), Some(cookie)) => attempt.on_retry(now, cookie, key),
                    _ => self.counters.malformed += 1,
                }
            }
            Sort::Welcome => self.welcome(now, from, opening, bytes),
            Sort::Finish => self.finish(now, from, bytes),
        }
    }

    /// Says to `to` why there will be no session. The answer is shorter than any greeting.
    fn refuse(&mut self, to: SocketAddr, token: [u8; 8], why: Refusal) {
        self.counters.refused(why);
        self.answer(to, greeting::refusal(token, why));
        self.tell_refused(to, why);
    }

    fn tell_refused(&mut self, from: SocketAddr, why: Refusal) {
        if self.refusals_waiting < MAX_REFUSALS {
            self.refusals_waiting += 1;
            self.events.push_back(Event::Refused { from, why });
        }
    }

    /// The checks come in the order of their cost, and nothing is kept before the cookie.
    fn hello(&mut self, now: Time, from: SocketAddr, opening: Opening, bytes: &[u8]) {
        let token = opening.token;
        let hello = match Hello::read(bytes, self.terms.cluster, &self.hello_key) {
            Ok(hello) => hello,
            Err(NoHello::Malformed) => return self.counters.malformed += 1,
            Err(NoHello::OtherCluster) => return self.refuse(from, token, Refusal::Cluster),
            Err(NoHello::WrongKey) => return self.refuse(from, token, Refusal::Key),
        };
        if hello.job != self.job_tag {
            return self.refuse(from, token, Refusal::Job);
        }
        if Suite::of(hello.suite) != Some(self.config.suite) {
            return self.refuse(from, token, Refusal::Suite);
        }
        if !self.cookies.is_good(now, from, token, hello.cookie) {
            self.counters.cookies += 1;
            let cookie = self.cookies.make(now, from, token);
            return self.answer(from, greeting::retry(token, cookie));
        }
        if let Some(half) = self.half_open.of_hello(from, token) {
            if half.welcomes < MAX_WELCOMES {
                half.welcomes += 1;
                let welcome = half.welcome.clone();
                self.answer(from, welcome);
            }
            return;
        }
        let mut noise = self.handshake(false);
        let Ok(peer) = noise.read(&hello.noise) else { return self.counters.forged += 1 };
        let me = self.config.host.0;
        if peer.to != me || peer.from == me {
            return self.refuse(from, token, Refusal::Host { asked: peer.to, is: me });
        }
        let known = self.peers.entry(HostId(peer.from)).or_default();
        if known.boot.is_some_and(|boot| peer.boot < boot) {
            return self.refuse(from, token, Refusal::Boot);
        }
        if let Some(attempt) = &known.attempt {
            // Both call: the call of the lower number is answered. But where nobody answers that, the peer has moved.
            if me < peer.from && (attempt.address == from || !attempt.is_in_vain()) {
                return self.counters.crossed += 1;
            }
            known.attempt = None;
            known.attempt_at = now + YIELDS;
        }
        let local = self.new_session();
        let introduction = Introduction { from: me, to: peer.from, boot: self.config.boot };
        let answer = Answer { token, session: local, noise: noise.write(Some(introduction)) };
        let welcome = answer.welcome();
        self.answer(from, welcome.clone());
        let remote = hello.session;
        let half = HalfOpen { from, token, local, remote, peer, noise, welcome, begun: now, welcomes: 1 };
        self.counters.half_open_forgotten += self.half_open.add(half);
    }

    fn welcome(&mut self, now: Time, from: SocketAddr, opening: Opening, bytes: &[u8]) {
        // The peer may have moved: what it says is good wherever it is, and the session is with the address that it has now.
        let is_it = |attempt: &Initiator| attempt.token() == opening.token;
        let found = self.peers.iter_mut().find(|(_, peer)| peer.attempt.as_ref().is_some_and(is_it));
        let (Some((&host, peer)), Some(answer)) = (found, Answer::read(bytes)) else {
            return self.counters.malformed += 1;
        };
        let Some(attempt) = peer.attempt.take() else { return };
        let local = attempt.local();
        let Some((agreed, secrets)) = attempt.on_welcome(now, &answer) else {
            peer.attempt_at = now;
            return self.counters.forged += 1;
        };
        let me = self.config.host.0;
        let why = if agreed.peer.from != host.0 || agreed.peer.to != me {
            Some(Refusal::Host { asked: host.0, is: agreed.peer.from })
        } else if peer.boot.is_some_and(|boot| agreed.peer.boot < boot) {
            Some(Refusal::Boot)
        } else if peer.expected.is_some_and(|expected| expected != agreed.identity) {
            Some(Refusal::Identity)
        } else {
            None
        };
        if let Some(why) = why {
            peer.attempt_at = now + TIME_LIMIT;
            self.events.push_back(refused(host, from, why));
            self.counters.refused(why);
            return self.answer(from, greeting::refusal(opening.token, why));
        }
        let party = Party { host, boot: agreed.peer.boot, identity: agreed.identity, address: from };
        let keys = (&secrets.initiator, &secrets.responder);
        let link = Link::new(now, &self.config, party, (local, agreed.remote), keys, agreed.sample);
        self.sessions.insert(local, host);
        let pending = Pending { token: opening.token, link, finish: Insisting::new(agreed.finish, now) };
        if let Some(before) = peer.pending.replace(pending) {
            self.sessions.remove(&before.link.local);
        }
    }

    fn finish(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) {
        let Some(answer) = Answer::read(bytes) else { return self.counters.malformed += 1 };
        let Some(mut half) = self.half_open.take(from, answer.session, answer.token) else {
            // A repeated Finish: what should have told its sender was lost.
            let host = self.sessions.get(&answer.session).copied();
            let link = host.and_then(|host| self.peers.get_mut(&host)?.link.as_mut());
            match link.filter(|link| link.local == answer.session && link.party.address == from) {
                Some(link) if !link.has_heard() => link.ping(),
                Some(_) => {}
                None => self.counters.unknown_session += 1,
            }
            return;
        };
        let host = HostId(half.peer.from);
        let (Ok(()), Some(identity)) = (half.noise.read_last(&answer.noise), half.noise.peer_identity())
        else {
            return self.counters.forged += 1;
        };
        let peer = self.peers.entry(host).or_default();
        let why = if peer.boot.is_some_and(|boot| half.peer.boot < boot) {
            Some(Refusal::Boot)
        } else if peer.expected.is_some_and(|expected| expected != identity) {
            Some(Refusal::Identity)
        } else {
            None
        };
        if let Some(why) = why {
            return self.refuse(from, answer.token, why);
        }
        if let Some(pending) = peer.pending.take() {
            self.sessions.remove(&pending.link.local);
        }
        // The Welcome went once: between it and its Finish lies a round trip.
        let sample = (half.welcomes == 1).then(|| now.since(half.begun));
        let secrets = half.noise.secrets();
        let party = Party { host, boot: half.peer.boot, identity, address: from };
        let keys = (&secrets.responder, &secrets.initiator);
        let mut link = Link::new(now, &self.config, party, (half.local, half.remote), keys, sample);
        // Shows the initiator that this side has the keys.
        link.ping();
        self.sessions.insert(half.local, host);
        if let Some(before) = peer.establish(now, link, &mut self.events) {
            self.sessions.remove(&before);
        }
    }

    /// A Refusal counts if it repeats the token of a greeting that went to its sender.
    fn refusal(&mut self, now: Time, from: SocketAddr, opening: Opening, bytes: &[u8]) {
        let Some(why) = greeting::read_refusal(bytes) else { return self.counters.malformed += 1 };
        let is_it = |attempt: &Initiator| attempt.token() == opening.token && attempt.address == from;
        let is_finishing = |p: &Pending| p.token == opening.token && p.link.party.address == from;
        let is_asked =
            |p: &Peer| p.attempt.as_ref().is_some_and(is_it) || p.pending.as_ref().is_some_and(is_finishing);
        if let Some((&host, peer)) = self.peers.iter_mut().find(|(_, peer)| is_asked(peer)) {
            peer.attempt = None;
            if let Some(pending) = peer.pending.take() {
                self.sessions.remove(&pending.link.local);
            }
            peer.attempt_at = now + TIME_LIMIT;
            self.counters.refused_by_peer += 1;
            return self.events.push_back(refused(host, from, why));
        }
        if self.half_open.of_hello(from, opening.token).is_some() {
            self.half_open.forget(from, opening.token);
            self.counters.refused_by_peer += 1;
            return self.tell_refused(from, why);
        }
        self.counters.malformed += 1;
    }
}
