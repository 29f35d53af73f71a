//! Why a job ends on all its hosts.
use hectare_net::{Cause, HostId};
use hectare_session::Reason;
use std::fmt;
use std::net::SocketAddr;

/// A host that failed, how that was found, and what the link to it said last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The host.
    pub host: HostId,
    /// Its name; its number if that is not known.
    pub name: String,
    /// The address of its agent; none for this host.
    pub address: Option<SocketAddr>,
    /// How it was found; none if it has no RDMA, which it is to have.
    pub cause: Option<Cause>,
    /// The name of the host that found it, if that is another one.
    pub found_by: Option<String>,
    /// Why there was no session with it.
    pub link: Option<Reason>,
    /// Why it has no RDMA.
    pub no_rdma: Option<String>,
    /// Whether it was to be reached by DPDK alone.
    pub dpdk_alone: bool,
}

impl Failure {
    /// The host, with its address.
    pub(crate) fn host_text(&self) -> String {
        self.address.map_or_else(|| self.name.clone(), |address| format!("{} ({address})", self.name))
    }

    /// The cause, with what the link said.
    pub(crate) fn cause_text(&self) -> String {
        let link = self.link.map(|link| link.to_string());
        let alone = self.dpdk_alone.then(|| "it is to be reached by DPDK alone".to_owned());
        let more: Vec<String> = link.into_iter().chain(alone).collect();
        let by = self.found_by.as_deref();
        let cause = match (self.cause, &self.no_rdma) {
            (Some(Cause::Unreachable { .. }), _) if let Some(by) = by => {
                format!("host {by} heard nothing of it for the time-out")
            }
            (Some(Cause::Refused { why, .. }), _) if let Some(by) = by => {
                format!("host {by} refused it: {why}")
            }
            (Some(cause), _) => cause.to_string(),
            (None, why) => format!(
                "it is to be reached by RDMA (transport = \"rdma\"), and has none: {}",
                why.as_deref().unwrap_or_default()
            ),
        };
        if more.is_empty() { cause } else { format!("{cause} ({})", more.join("; ")) }
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.name)?;
        if let Some(address) = self.address {
            write!(f, " at {address}")?;
        }
        write!(f, " failed: {}", self.cause_text())
    }
}
