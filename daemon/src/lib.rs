//! `hectared`, the daemon of Hectare on a host, and `hectare`, its command line.
//!
//! The daemon creates jobs, assigns ranks and passes the descriptors of the jobs' memory. It never maps that
//! memory once it is created: for metrics of jobs it is read like a file, so that nothing that a client writes
//! can stop the daemon, and the command line reads it by itself. `DAEMON.md` describes the protocol.
pub mod agent;
mod ask;
pub mod cli;
mod closer;
pub mod config;
pub mod hosts;
mod identity;
pub mod key_file;
mod lines;
pub mod logging;
mod memory;
pub mod metrics;
mod peer;
pub mod registry;
mod sd_notify;
pub mod server;
mod truncated;
