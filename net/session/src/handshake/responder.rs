//! The side that answers: what is kept between a Hello with a good cookie and its Finish.
use super::noise::{Handshake, Introduction};
use crate::time::Time;
use std::net::SocketAddr;
use std::time::Duration;

/// The most handshakes that are half done. A host that is flooded forgets the oldest.
pub(crate) const MAX_HALF_OPEN: usize = 256;
/// After how long a half-done one is forgotten.
const EXPIRES: Duration = Duration::from_secs(5);

/// A handshake that waits for its Finish.
#[derive(Debug)]
pub(crate) struct HalfOpen {
    pub(crate) from: SocketAddr,
    pub(crate) token: [u8; 8],
    /// This side's number of the session, and the other's.
    pub(crate) local: u32,
    pub(crate) remote: u32,
    pub(crate) peer: Introduction,
    pub(crate) noise: Handshake,
    pub(crate) welcome: Vec<u8>,
    pub(crate) begun: Time,
    /// How often the Welcome was sent.
    pub(crate) welcomes: u32,
}

/// The handshakes that are half done, oldest first.
#[derive(Debug, Default)]
pub(crate) struct HalfOpens {
    waiting: Vec<HalfOpen>,
}

impl HalfOpens {
    /// The one that this Hello began already, if any.
    pub(crate) fn of_hello(&mut self, from: SocketAddr, token: [u8; 8]) -> Option<&mut HalfOpen> {
        self.waiting.iter_mut().find(|half| half.from == from && half.token == token)
    }

    /// Takes out the one that a Finish belongs to.
    pub(crate) fn take(&mut self, from: SocketAddr, local: u32, token: [u8; 8]) -> Option<HalfOpen> {
        let at = self.waiting.iter().position(|h| h.local == local && h.token == token && h.from == from)?;
        Some(self.waiting.remove(at))
    }

    pub(crate) fn uses(&self, local: u32) -> bool {
        self.waiting.iter().any(|half| half.local == local)
    }

    /// Adds one; how many were forgotten for it (1 or 0).
    pub(crate) fn add(&mut self, half: HalfOpen) -> u64 {
        let full = self.waiting.len() >= MAX_HALF_OPEN;
        if full {
            self.waiting.remove(0);
        }
        self.waiting.push(half);
        u64::from(full)
    }

    /// Forgets the one that this Hello began.
    pub(crate) fn forget(&mut self, from: SocketAddr, token: [u8; 8]) {
        self.waiting.retain(|half| half.from != from || half.token != token);
    }

    pub(crate) fn expire(&mut self, now: Time) {
        self.waiting.retain(|half| now < half.begun + EXPIRES);
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.waiting.first().map(|half| half.begun + EXPIRES)
    }
}
