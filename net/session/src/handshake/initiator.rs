//! The side that begins: Hello, again with the cookie it gets, and Finish behind the Welcome.
use super::noise::{Handshake, Introduction, Secrets};
use crate::time::Time;
use crate::wire::greeting::{Answer, Hello};
use ring::hmac;
use std::net::SocketAddr;
use std::time::Duration;

/// After how long a greeting without an answer is sent again, at first.
pub(crate) const RESEND: Duration = Duration::from_millis(200);
/// And at most: each time is twice as long as the one before.
pub(crate) const RESEND_MOST: Duration = Duration::from_secs(1);

/// How often a Hello is sent without any answer before a call of the peer's from elsewhere is answered instead.
const IN_VAIN: u32 = 3;

/// A greeting that is sent until it is answered.
#[derive(Debug)]
pub(crate) struct Insisting {
    bytes: Vec<u8>,
    next: Time,
    tries: u32,
}

impl Insisting {
    pub(crate) fn new(bytes: Vec<u8>, now: Time) -> Insisting {
        Insisting { bytes, next: now, tries: 0 }
    }

    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// How often it was sent.
    pub(crate) fn tries(&self) -> u32 {
        self.tries
    }

    /// The packet, if it is time to send it.
    pub(crate) fn due(&self, now: Time) -> Option<&[u8]> {
        (self.next <= now).then_some(&self.bytes)
    }

    pub(crate) fn on_sent(&mut self, now: Time) {
        self.next = now + (RESEND * 2_u32.pow(self.tries.min(8))).min(RESEND_MOST);
        self.tries += 1;
    }
}

/// The outcome of a Welcome.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) peer: Introduction,
    pub(crate) identity: [u8; 32],
    /// The number by which the peer knows the session.
    pub(crate) remote: u32,
    pub(crate) finish: Vec<u8>,
    /// A sample of the round-trip time, if the Hello was sent once since the cookie came.
    pub(crate) sample: Option<Duration>,
}

/// An attempt to reach a peer, until its Welcome.
#[derive(Debug)]
pub(crate) struct Initiator {
    pub(crate) address: SocketAddr,
    /// When the attempt began, or was last reported to be in vain.
    pub(crate) since: Time,
    hello: Hello,
    noise: Handshake,
    has_cookie: bool,
    pub(crate) insisting: Insisting,
    sent: Time,
}

impl Initiator {
    /// An attempt whose first message `hello` has; the key is the cluster's.
    pub(crate) fn new(
        now: Time,
        address: SocketAddr,
        hello: Hello,
        noise: Handshake,
        key: &hmac::Key,
    ) -> Initiator {
        let insisting = Insisting::new(hello.write(key), now);
        Initiator { address, since: now, hello, noise, has_cookie: false, insisting, sent: now }
    }

    pub(crate) fn token(&self) -> [u8; 8] {
        self.hello.token
    }

    pub(crate) fn local(&self) -> u32 {
        self.hello.session
    }

    /// Whether nobody has answered, though the Hello was repeated.
    pub(crate) fn is_in_vain(&self) -> bool {
        !self.has_cookie && self.insisting.tries() >= IN_VAIN
    }

    /// A Hello was sent.
    pub(crate) fn on_sent(&mut self, now: Time) {
        self.insisting.on_sent(now);
        self.sent = now;
    }

    /// The peer wants a cookie: the same Hello goes again with it. A second one is followed only when the first has been
    /// tried in vain, so that a flood of them causes nothing.
    pub(crate) fn on_retry(&mut self, now: Time, cookie: [u8; 16], key: &hmac::Key) {
        if self.has_cookie && self.insisting.tries() < 2 {
            return;
        }
        self.hello.cookie = cookie;
        self.has_cookie = true;
        self.insisting = Insisting::new(self.hello.write(key), now);
    }

    /// Reads a Welcome; none if it is not from who has the key. The attempt is over either way: a handshake cannot go on
    /// behind a message that did not fit, so the caller begins another.
    pub(crate) fn on_welcome(mut self, now: Time, welcome: &Answer) -> Option<(Agreed, Secrets)> {
        let peer = self.noise.read(&welcome.noise).ok()?;
        let identity = self.noise.peer_identity()?;
        let noise = self.noise.write(None);
        let finish = Answer { token: self.hello.token, session: welcome.session, noise }.finish();
        let sample = (self.insisting.tries() == 1).then(|| now.since(self.sent));
        Some((Agreed { peer, identity, remote: welcome.session, finish, sample }, self.noise.secrets()))
    }
}
