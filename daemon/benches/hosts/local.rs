//! Programs of a job on one host.
use crate::common::cluster::Cluster;
use crate::program;
use hectare_wire::Member;
use std::process::{Child, Stdio};

/// Keeps a job of a host alive.
pub(crate) fn hold(cluster: &Cluster, host: usize, job: &str) -> Member {
    Member::hold(&cluster.dir(host), job).expect("a job")
}

/// Starts this program in a role, as a rank of so many of a host's job.
pub(crate) fn start(
    cluster: &Cluster,
    host: usize,
    job: &str,
    (rank, size): (u32, u32),
    role: &[&str],
) -> Child {
    let mut command = cluster.network.command(host, program());
    command.arg("role").args(role);
    command.env("HECTARE_RUN_DIR", cluster.dir(host).path()).env("HECTARE_JOB", job);
    command.env("HECTARE_RANK", rank.to_string()).env("HECTARE_SIZE", size.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a program")
}
