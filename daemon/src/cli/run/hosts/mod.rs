//! `hectare run` on several hosts: one command that is called, and a part of it on each host.
//!
//! The caller starts a part on each host by a remote shell, and on its own host without one. It talks to a part over the standard
//! input and output of the remote shell: so nothing listens on a port, and the remote shell decides who may start processes. The
//! program is started only after all hosts have answered with an address and the same key, and have created their parts of the job.
mod address;
mod conductor;
mod credit;
mod host;
mod interface;
mod launched;
mod meeting;
mod message;
mod options;
mod part;
mod remote;
mod siblings;
mod start;
mod words;

pub(super) use conductor::conduct;
pub(super) use launched::{Joined, join};
pub(super) use options::HostOptions;
pub(super) use part::part;
