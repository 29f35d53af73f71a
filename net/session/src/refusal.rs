//! Why a host does not speak with another.
use crate::version::VERSION;

/// Why there is no session. Both sides get it: one by a packet, the other with a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The other side speaks another version of the protocol.
    #[error(
        "it speaks version {theirs} of the protocol between hosts, this host version {ours}: install one release of \
         Hectare on all hosts"
    )]
    Version {
        /// The other side's version.
        theirs: u16,
        /// This side's.
        ours: u16,
    },
    /// The other side belongs to another cluster.
    #[error("it belongs to another cluster: the key files of the two hosts name different clusters")]
    Cluster,
    /// The other side has another key.
    #[error("it has another key: copy the same key file to all hosts of the cluster")]
    Key,
    /// The other side is there for another job.
    #[error("it serves another job on that port")]
    Job,
    /// One side seals its packets, and the other does not.
    #[error("one of the two hosts runs without encryption, the other does not: set the same on both")]
    Suite,
    /// The other side is not the host that was asked for.
    #[error("host {is} answers at the address of host {asked}: two hosts were given one address")]
    Host {
        /// The host that was asked for.
        asked: u16,
        /// The host that is there.
        is: u16,
    },
    /// A newer start of the same host has been seen.
    #[error(
        "a later start of this host is known already: an old agent still runs, or two hosts have one number"
    )]
    Boot,
    /// The other side showed another static key than the one it is known by.
    #[error("it shows another static key than the one that was configured for it")]
    Identity,
}

impl Refusal {
    /// Its cause, in a word: that of the counters.
    pub fn cause(self) -> &'static str {
        match self {
            Refusal::Version { .. } => "version",
            Refusal::Cluster => "cluster",
            Refusal::Key => "key",
            Refusal::Job => "job",
            Refusal::Suite => "suite",
            Refusal::Host { .. } => "host",
            Refusal::Boot => "boot",
            Refusal::Identity => "identity",
        }
    }

    /// The code in a packet, and what goes with it.
    pub(crate) fn code(self) -> (u8, u32) {
        match self {
            Refusal::Version { .. } => (1, 0),
            Refusal::Cluster => (2, 0),
            Refusal::Key => (3, 0),
            Refusal::Job => (4, 0),
            Refusal::Suite => (5, 0),
            Refusal::Host { asked, is } => (6, u32::from(asked) << 16 | u32::from(is)),
            Refusal::Boot => (7, 0),
            Refusal::Identity => (8, 0),
        }
    }

    /// The refusal with a code, from a side that speaks `version`.
    pub(crate) fn from_code(code: u8, detail: u32, version: u16) -> Option<Refusal> {
        Some(match code {
            1 => Refusal::Version { theirs: version, ours: VERSION },
            2 => Refusal::Cluster,
            3 => Refusal::Key,
            4 => Refusal::Job,
            5 => Refusal::Suite,
            6 => Refusal::Host { asked: (detail >> 16) as u16, is: detail as u16 },
            7 => Refusal::Boot,
            8 => Refusal::Identity,
            _ => return None,
        })
    }
}
