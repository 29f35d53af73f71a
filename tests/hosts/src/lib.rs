//! Several hosts on one machine, for tests and benches: a network namespace for each, and one for the switch between
//! them. Each host has a device `eth0` with an address in 10.77.0.0/24. All faults are made on the switch, so that no host
//! can tell them from those of a real network.
//!
//! The namespaces go when the [`Network`] is dropped, with the processes in them. A process that was killed leaves its
//! namespaces behind; the next [`Network`] on the machine removes them, as it finds that their maker is gone.
//!
//! It needs root, `ip` and, for faults, `nft` and `tc`. Small kernels lack `netem`, so packets are late and out of order on a
//! second, slow way to a host; or all are, on a network that is made with a delay.
//!
//! ```no_run
//! use hectare_hosts::{Fault, Network, Settings};
//!
//! let mut network = Network::new(2, &Settings::default())?;
//! network.set(&[Fault::Lose { from: 0, to: 1, share: 0.01 }])?;
//! let status = network.command(0, "ip").args(["address", "show", "eth0"]).status()?;
//! assert!(status.success());
//! # Ok::<(), std::io::Error>(())
//! ```
mod fault;
mod late;
mod leftover;
mod network;
mod tool;

pub use fault::Fault;
pub use network::{Network, Settings};
