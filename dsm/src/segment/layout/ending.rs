//! Why a job on several hosts has ended: written once, by the agent, for all who wait.
use crate::error::Error;
use crate::primitive::{AtomicU32, Ordering};
use std::sync::atomic::AtomicU8;

/// Bytes of the host's name, and of the cause, that are kept.
const HOST: usize = 128;
const CAUSE: usize = 240;

/// Why the job has ended, if it has.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Ending {
    /// Not 0: what follows is written, and stays.
    ended: AtomicU32,
    host_len: AtomicU32,
    cause_len: AtomicU32,
    host: [AtomicU8; HOST],
    cause: [AtomicU8; CAUSE],
}

pub(super) fn write(place: &[AtomicU8], len: &AtomicU32, text: &str) {
    let mut end = text.len().min(place.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    for (byte, value) in place.iter().zip(text.as_bytes()[..end].iter()) {
        byte.store(*value, Ordering::Relaxed);
    }
    // Release: pairs with the acquire in `read`.
    len.store(end as u32, Ordering::Release);
}

pub(super) fn read(place: &[AtomicU8], len: &AtomicU32) -> String {
    // Acquire: pairs with the release in `write`: the text is there that is so long.
    let len = (len.load(Ordering::Acquire) as usize).min(place.len());
    let bytes: Vec<u8> = place[..len].iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Ending {
    /// Ends the job, because of a host. The first reason stays. The caller is the one agent there is.
    pub(crate) fn end(&self, host: &str, cause: &str) {
        if self.ended.load(Ordering::Relaxed) != 0 {
            return;
        }
        write(&self.host, &self.host_len, host);
        write(&self.cause, &self.cause_len, cause);
        // Release: pairs with the acquire in `has_come`.
        self.ended.store(1, Ordering::Release);
    }

    /// Whether the job has ended.
    #[inline]
    pub(crate) fn has_come(&self) -> bool {
        // Acquire: pairs with the release in `end`.
        self.ended.load(Ordering::Acquire) != 0
    }

    /// The error for all who wait, once the job has ended.
    #[cold]
    pub(crate) fn error(&self) -> Error {
        let (host, cause) = (read(&self.host, &self.host_len), read(&self.cause, &self.cause_len));
        Error::PeerFailed { host, cause }
    }
}
