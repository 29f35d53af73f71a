//! Areas of one Hectare job over several hosts.
//!
//! A [`Node`] keeps the areas, clocks and names of a job consistent over its hosts. It does no I/O, and has no threads and no
//! clock: its driver passes it events, the time and its host's [`Memory`], and carries out the [`Action`]s. Packets travel over
//! links that authenticate them and report what became of each, and that may lose and reorder them. `NET.md` has the protocol.
#![forbid(unsafe_code)]
mod intervals;
mod lines;
mod memory;
mod mutant;
mod node;
mod types;
pub mod wire;

pub use lines::{Lines, Run};
pub use memory::{Arrival, Memory, PinId, Pinned, State};
#[doc(hidden)]
pub use mutant::Mutant;
pub use node::{Action, Config, Counters, Event, Node, Packet, Piece, Placing};
pub use types::{
    AreaId, Cause, Description, ElementType, GroupId, HelloError, HostId, LINE, MAX_MEMBERS, MAX_NAME,
    MIN_PAYLOAD, NameError, PeerFailed, Place, Version,
};
