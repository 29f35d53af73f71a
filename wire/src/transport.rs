//! The choice of how agents reach each other.
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How an agent reaches the agents of other hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum TransportChoice {
    /// Large cuts by RDMA where both have a device; all else by DPDK where both have a port on one link and the peer answers there, else by UDP of the system.
    #[default]
    Auto,
    /// UDP of the system.
    Udp,
    /// DPDK; a peer that is not to be reached by it is an error.
    Dpdk,
    /// As `Auto`, and large cuts by RDMA; a peer without is an error.
    Rdma,
}

impl TransportChoice {
    const ALL: [TransportChoice; 4] =
        [TransportChoice::Auto, TransportChoice::Udp, TransportChoice::Dpdk, TransportChoice::Rdma];

    /// Its name, as it is written in files, flags and answers.
    pub fn name(self) -> &'static str {
        match self {
            TransportChoice::Auto => "auto",
            TransportChoice::Udp => "udp",
            TransportChoice::Dpdk => "dpdk",
            TransportChoice::Rdma => "rdma",
        }
    }
}

impl fmt::Display for TransportChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<TransportChoice> for String {
    fn from(choice: TransportChoice) -> String {
        choice.name().into()
    }
}

impl FromStr for TransportChoice {
    type Err = UnknownTransport;

    fn from_str(name: &str) -> Result<TransportChoice, UnknownTransport> {
        let found = TransportChoice::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or(UnknownTransport)
    }
}

impl TryFrom<String> for TransportChoice {
    type Error = UnknownTransport;

    fn try_from(name: String) -> Result<TransportChoice, UnknownTransport> {
        name.parse()
    }
}

/// A name that is no [`TransportChoice`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected auto, udp, dpdk or rdma")]
pub struct UnknownTransport;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_known_by_its_name() {
        for choice in TransportChoice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        let refused = |name: &str| name.parse::<TransportChoice>().unwrap_err().to_string();
        assert_eq!(refused("tcp"), "expected auto, udp, dpdk or rdma");
    }
}
