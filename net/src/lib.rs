//! Areas of one Hectare job over several hosts.
//!
//! So far: the frames that hosts exchange ([`wire`]). `NET.md` has the protocol.
#![forbid(unsafe_code)]
mod lines;
mod types;
pub mod wire;

pub use lines::{Lines, Run};
pub use types::{
    AreaId, Cause, Description, ElementType, GroupId, HelloError, HostId, LINE, MAX_MEMBERS, MAX_NAME,
    MIN_PAYLOAD, NameError, PeerFailed, Version,
};
