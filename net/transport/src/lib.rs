//! How datagrams go from host to host.
//!
//! [`Transport`] is the contract: an unreliable link that one thread owns, with the transport's own buffers lent to whoever
//! writes packets, and whole bursts sent and received. Reliability, order and congestion are not its business. Every
//! transport passes [`conformance`]; [`udp`] sends with segmentation offload and receives with receive offload, `dpdk` (with the
//! feature of that name) is a port without the system's network stack, [`Both`] is UDP with such a port beside it, and [`memory`] is a
//! network in the memory of one process, for tests.
//!
//! [`Idle`] is what a thread does that has nothing to do: it spins, then yields, then sleeps in [`Transport::wait`].
#![forbid(unsafe_code)]
mod both;
pub mod conformance;
mod contract;
#[cfg(feature = "dpdk")]
pub mod dpdk;
mod idle;
pub mod memory;
pub mod udp;
mod wake;

pub use both::Both;
pub use contract::{Facts, Polled, Sending, Transport};
pub use idle::Idle;
pub use wake::Waker;
