//! `hectared`, the daemon of Hectare on a host, and `hectare`, its command line.
//!
//! The daemon makes jobs, hands out ranks and passes the descriptors of the jobs' memory. It never maps that
//! memory once it is made: nothing that a client writes into it can reach the daemon, and what the command
//! line shows of it, it reads itself. `DAEMON.md` describes the protocol.
pub mod cli;
pub mod config;
pub mod logging;
mod memory;
mod peer;
mod ready;
pub mod registry;
pub mod server;
