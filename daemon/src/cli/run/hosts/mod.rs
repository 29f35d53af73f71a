//! `hectare run` on several hosts: one command that is called, and a part of it on each host.
//!
//! The caller starts a part on each host by a remote shell, and on its own host without one. The way to a part is the standard
//! input and output of its remote shell, so nothing listens anywhere, and who may start processes is for the remote shell to
//! say. Nothing is started before all hosts have answered with an address and the same key, and have made their part of the job.
mod address;
mod conductor;
mod interface;
mod launched;
mod meeting;
mod message;
mod options;
mod part;
mod remote;
mod words;

pub(super) use conductor::conduct;
pub(super) use launched::{Joined, join};
pub(super) use options::HostOptions;
pub(super) use part::part;
