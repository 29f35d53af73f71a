//! The agent of a job on a host: it stands in, in the job's memory, for the workers of all other hosts.
//!
//! It joins four things that know nothing of each other: the job's memory ([`hectare_dsm::agent::Agent`]), the protocol between
//! hosts ([`hectare_net::Node`]), sessions ([`hectare_session::Endpoint`]) and datagrams ([`hectare_transport::Transport`]). What is
//! written in an area on one host is read on the others: whole versions, in order, by programs that do not know of it.
//!
//! - [`SegmentMemory`] is the memory as the node sees it. Whatever the next agent has to know stands in the segment: an agent may end
//!   at any step.
//! - [`Relay`] is all of the agent but the thread, the socket and the clock. Tests run several in one thread, over links that lose
//!   datagrams.
//! - [`serve`] is its thread, [`main_of`] its process.
//!
//! Not here yet: claims between hosts.
#![forbid(unsafe_code)]
mod failure;
mod force_requests;
mod forcing;
mod limiter;
mod links;
mod local;
mod mark;
mod memory;
mod names;
mod note;
mod order;
mod own;
mod placer;
mod port;
mod process;
mod reach;
mod received;
mod relay;
mod serve;
mod standing;
mod thrown;
mod trace;
mod window;

pub use failure::Failure;
pub use limiter::Limiter;
pub use mark::JobMark;
pub use memory::SegmentMemory;
pub use order::Order;
pub use placer::{Placer, RdmaDevice, RdmaError};
pub use port::{DpdkPort, PortError};
pub use process::main_of;
pub use reach::{Link, Reach};
pub use relay::{Peer, Relay, Setup};
pub use serve::serve;
pub use window::Questions;
