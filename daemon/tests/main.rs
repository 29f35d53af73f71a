//! The tests of the daemon and of the command line, as one program: what they share is compiled once. Each file is a module.
#![allow(
    clippy::module_inception,
    reason = "the tests of the protocol share a part of that name with its fuzz target"
)]
mod adoption;
mod areas_on_hosts;
mod asked_while_given;
mod c_on_hosts;
mod commands;
mod common;
mod conflicts;
mod crowd;
mod deleted_on_hosts;
#[cfg(feature = "dpdk")]
mod dpdk;
mod factorize;
mod failed_ranks;
mod files_on_hosts;
mod followed;
mod given_by_the_dead;
mod groups_on_hosts;
mod hostile;
mod hosts;
mod incast;
mod killed_in_place;
mod kmeans_on_hosts;
mod lacking_agents;
mod launch;
mod launch_signals;
mod launched;
mod lifecycle;
mod log;
mod loops_on_hosts;
mod matrix_completion;
mod members;
mod metrics;
mod mid_epoch;
mod misfits;
mod observers_on_hosts;
mod output_on_hosts;
mod ownership_on_hosts;
mod peers;
mod place;
mod plan;
mod protocol;
mod ranks;
#[cfg(feature = "rdma")]
mod rdma;
mod restart;
mod run_again;
mod saved_models;
mod service;
mod stalls;
mod strangers;
mod sync_on_hosts;
mod third_host;
mod top;

#[test]
fn every_file_is_a_module() {
    hectare_testing::every_file_is_a_module(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"), &[]);
}
