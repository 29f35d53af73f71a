//! The lines of a meeting: JSON behind its HMAC.
use super::GREETING;
use anyhow::Result;
use ring::hmac;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufRead, Read, Write};
use std::net::TcpStream;

/// The longest line: 256 hosts with long names.
const LONGEST: u64 = 128 << 10;

/// Why a line is not what was waited for.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotHeard {
    #[error("the connection ended in the middle")]
    Ended,
    #[error("it speaks another protocol")]
    Stranger,
    #[error("it has another cluster key: `hectare key check` shows each host's")]
    Key,
    #[error("it said nothing in time")]
    Silent,
    #[error("reading from it: {0}")]
    Io(std::io::Error),
    #[error("what it says has no meaning: {0}")]
    Json(serde_json::Error),
}

impl NotHeard {
    /// Whether whoever it was need not be a host of the job.
    pub(super) fn may_be_anybody(&self) -> bool {
        !matches!(self, NotHeard::Json(_))
    }
}

impl From<std::io::Error> for NotHeard {
    fn from(error: std::io::Error) -> NotHeard {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => NotHeard::Silent,
            ErrorKind::InvalidData => NotHeard::Stranger,
            _ => NotHeard::Io(error),
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn from_hex(text: &str) -> Option<[u8; 32]> {
    let byte = |at: usize| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..32).map(byte).collect();
    bytes?.try_into().ok().filter(|_| text.len() == 64)
}

/// The random bytes of a meeting place's first line; `None` if it is no such line.
pub(super) fn nonce_of(greeting: &str) -> Option<[u8; 32]> {
    from_hex(greeting.strip_prefix(GREETING)?.trim())
}

/// The input of an HMAC: who speaks of what, the nonce that it answers, and the text.
fn said(what: &str, nonce: &[u8; 32], text: &str) -> Vec<u8> {
    [what.as_bytes(), b"\0", nonce, text.as_bytes()].concat()
}

/// Writes a line: `what` tells apart who speaks, and of what.
pub(super) fn send(
    to: &mut TcpStream,
    key: &hmac::Key,
    what: &str,
    nonce: &[u8; 32],
    value: &impl Serialize,
) -> Result<()> {
    let text = serde_json::to_string(value)?;
    let tag = hmac::sign(key, &said(what, nonce, &text));
    Ok(to.write_all(format!("{} {text}\n", hex(tag.as_ref())).as_bytes())?)
}

/// Reads a line of text.
pub(super) fn line(from: &mut impl BufRead) -> Result<String, NotHeard> {
    let mut line = String::new();
    let read = from.take(LONGEST).read_line(&mut line)?;
    match line.ends_with('\n') {
        true => Ok(line.trim_end().to_owned()),
        false if read as u64 == LONGEST => Err(NotHeard::Stranger),
        false => Err(NotHeard::Ended),
    }
}

/// Reads a line that [`send`] has written.
pub(super) fn receive<T: DeserializeOwned>(
    from: &mut impl BufRead,
    key: &hmac::Key,
    what: &str,
    nonce: &[u8; 32],
) -> Result<T, NotHeard> {
    let line = line(from)?;
    let (tag, text) = line.split_once(' ').ok_or(NotHeard::Stranger)?;
    let tag = from_hex(tag).ok_or(NotHeard::Stranger)?;
    let verified = hmac::verify(key, &said(what, nonce, text), &tag);
    verified.map_err(|_| NotHeard::Key)?;
    serde_json::from_str(text).map_err(NotHeard::Json)
}
