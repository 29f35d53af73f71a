//! The version of the protocol.

/// The version of the protocol. Hosts of two versions refuse each other.
pub const VERSION: u16 = 1;
