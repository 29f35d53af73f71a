//! Messages as bytes: two bytes of magic, two with the version, and the message in postcard's format.
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of the protocol. Both sides refuse every other one.
pub const VERSION: u16 = 2;

/// The most bytes of a message to a daemon or an agent, and of an answer.
pub const MAX_MESSAGE: usize = 64 << 10;

const MAGIC: [u8; 2] = *b"Hc";

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The bytes do not begin with the header of a message.
    #[error("{len} bytes that do not begin with the header of a message")]
    NotAMessage {
        /// How many bytes there are.
        len: usize,
    },
    /// The message has another version.
    #[error("version {theirs} of the protocol, not {}", VERSION)]
    Version {
        /// The version of the message.
        theirs: u16,
    },
    /// The bytes after the version have no meaning, or do not end where the message does.
    #[error("an invalid body: {what}")]
    Body {
        /// The version that was found.
        what: String,
    },
    /// The message is too long to be sent.
    #[error("a message of {len} bytes, longer than {most}")]
    TooLong {
        /// Its length.
        len: usize,
        /// The longest that is allowed.
        most: usize,
    },
}

/// The bytes of a message to a daemon or an agent.
///
/// ```
/// use hectare_wire::{Request, decode, encode};
/// let bytes = encode(&Request::Ping)?;
/// assert_eq!(decode::<Request>(&bytes)?, Request::Ping);
/// # Ok::<(), hectare_wire::FrameError>(())
/// ```
///
/// # Errors
/// [`FrameError::TooLong`]; [`FrameError::Body`] for values that postcard cannot hold, which messages are not.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, FrameError> {
    encode_within(message, MAX_MESSAGE)
}

/// The same of a message of at most `most` bytes.
///
/// # Errors
/// Those of [`encode`].
pub fn encode_within<T: Serialize>(message: &T, most: usize) -> Result<Vec<u8>, FrameError> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    let bytes =
        postcard::to_extend(message, bytes).map_err(|error| FrameError::Body { what: error.to_string() })?;
    if bytes.len() > most { Err(FrameError::TooLong { len: bytes.len(), most }) } else { Ok(bytes) }
}

/// The message in `bytes`, all of them.
///
/// # Errors
/// [`FrameError`], whatever the bytes are.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FrameError> {
    let [m0, m1, v0, v1, body @ ..] = bytes else {
        return Err(FrameError::NotAMessage { len: bytes.len() });
    };
    if [*m0, *m1] != MAGIC {
        return Err(FrameError::NotAMessage { len: bytes.len() });
    }
    let theirs = u16::from_le_bytes([*v0, *v1]);
    if theirs != VERSION {
        return Err(FrameError::Version { theirs });
    }
    let body_error = |what: String| FrameError::Body { what };
    let (message, rest) = postcard::take_from_bytes(body).map_err(|error| body_error(error.to_string()))?;
    if rest.is_empty() { Ok(message) } else { Err(body_error(format!("{} bytes too many", rest.len()))) }
}
