//! The name of a host in errors: written by the agent, which writes the same each time.
use super::ending::{read, write};
use crate::primitive::AtomicU32;
use std::sync::atomic::AtomicU8;

/// Bytes of a name that are kept.
const NAME: usize = 124;

/// A host's name, with its address; empty before the agent has said it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct HostName {
    len: AtomicU32,
    text: [AtomicU8; NAME],
}

impl HostName {
    pub(crate) fn set(&self, name: &str) {
        write(&self.text, &self.len, name);
    }

    /// The name, or the host's number.
    #[cold]
    pub(crate) fn text(&self, host: usize) -> String {
        let text = read(&self.text, &self.len);
        if text.is_empty() { host.to_string() } else { text }
    }
}
