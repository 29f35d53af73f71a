//! Settings of an endpoint.
use crate::cipher::{KEY_LIMIT, Suite};
use crate::key::{ClusterKey, JobId};
use std::fmt;
use std::time::Duration;

/// The number of a host in a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.0)
    }
}

/// The identity of an endpoint, and its limits.
#[derive(Debug, Clone)]
pub struct Config {
    /// This host.
    pub host: HostId,
    /// The boot epoch: higher at each start of this host's agent in the job. A peer that has seen a higher one refuses.
    pub boot: u64,
    /// The job.
    pub job: JobId,
    /// The cluster's key.
    pub key: ClusterKey,
    /// This host's static secret: 32 random bytes, by which peers know it again.
    pub identity: Identity,
    /// How packets are sealed; the same on all hosts.
    pub suite: Suite,
    /// The largest UDP payload that the own interface carries, in bytes. The path is measured.
    pub max_datagram: usize,
    /// After how long without an answer an attempt to connect is reported to be in vain. It goes on all the same.
    pub connect_timeout: Duration,
    /// After how long without a sign of life a peer is given up.
    pub idle_timeout: Duration,
    /// After how long without a packet that is acknowledged one is sent for that alone.
    pub keep_alive: Duration,
    /// How many packets one key seals.
    pub key_limit: u64,
}

impl Config {
    /// The settings of a host in a job: sealed, an interface of MTU 1500, a peer is given up after 5 s.
    pub fn new(host: HostId, boot: u64, job: JobId, key: ClusterKey, identity: [u8; 32]) -> Config {
        Config {
            host,
            boot,
            job,
            key,
            identity: Identity(identity),
            suite: Suite::default(),
            max_datagram: 1472,
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(1),
            key_limit: KEY_LIMIT,
        }
    }
}

/// A static secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity(pub [u8; 32]);

impl Identity {
    /// The public key, which peers see and may be told to expect.
    pub fn public_key(&self) -> [u8; 32] {
        crate::handshake::noise::public_key(&self.0)
    }
}

/// Never shows the secret.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}
