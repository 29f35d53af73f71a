//! The tests that cross threads and processes, as one program: what they share is compiled once. Each file is a module.
#![allow(clippy::duplicate_mod, reason = "several examples have the same part")]
#![allow(clippy::module_inception, reason = "the tests of an example have its name")]
mod agents;
mod answers;
mod areas;
mod arrivals;
mod bad_input;
mod baselines;
mod cgroup;
mod closed_output;
mod collections;
mod common;
mod copies_for_hosts;
mod death;
mod directory;
mod factorize;
mod failing;
mod force_requests;
mod fork;
mod gbt;
mod given_by_the_dead;
mod handles;
mod interrupted;
mod killed_arrivals;
mod kmeans;
mod labels;
mod lasso;
mod layers;
mod lda;
mod leftovers;
mod lending;
mod local_areas;
mod log_model;
mod loops;
mod many_areas;
mod membership;
mod observers;
mod on_demand;
mod orderings;
mod outliving;
mod ownership;
mod parallel_for;
mod pinned;
mod process_limits;
mod processes;
mod reduce;
mod relaxed_loops;
mod remote_workers;
mod resumed;
mod rounds;
mod siblings;
mod sparse_lr;
mod staleness;
mod stalls;
mod standstill;
mod stragglers;
mod tensor;
mod unchanged;
mod whole_file;
mod word2vec;
mod write_log;

#[test]
fn every_file_is_a_module() {
    hectare_testing::every_file_is_a_module(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"), &[]);
}
