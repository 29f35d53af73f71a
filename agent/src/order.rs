//! The settings that an agent gets at its start.
use crate::placer::RdmaDevice;
use crate::port::DpdkPort;
use hectare_wire::JobHosts;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// An agent's settings at its start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The job's name.
    pub job: String,
    /// Its hosts.
    pub hosts: JobHosts,
    /// The run directory of the daemon: the agent is asked there how it stands.
    pub run_dir: PathBuf,
    /// The port of DPDK that it has beside a socket of the system, or instead; none for none.
    #[serde(default)]
    pub dpdk: Option<DpdkPort>,
    /// The RDMA device by which it moves large cuts beside that; none for none.
    #[serde(default)]
    pub rdma: Option<RdmaDevice>,
    /// Whether agents have failed at their start for so long that the job ends if this one lacks its key or a link.
    #[serde(default)]
    pub is_last_try: bool,
}
