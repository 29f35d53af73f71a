//! The choice of how agents reach each other.
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How an agent reaches the agents of other hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum TransportChoice {
    /// By DPDK where both have a port on one link and the peer answers there, else by UDP of the system.
    #[default]
    Auto,
    /// By UDP of the system.
    Udp,
    /// By DPDK; a peer that is not to be reached by it is an error.
    Dpdk,
}

impl TransportChoice {
    const ALL: [TransportChoice; 3] = [TransportChoice::Auto, TransportChoice::Udp, TransportChoice::Dpdk];

    /// Its name, as it is written in files, flags and answers.
    pub fn name(self) -> &'static str {
        match self {
            TransportChoice::Auto => "auto",
            TransportChoice::Udp => "udp",
            TransportChoice::Dpdk => "dpdk",
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
        found.ok_or(if name == "rdma" { UnknownTransport::Rdma } else { UnknownTransport::Other })
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
pub enum UnknownTransport {
    /// RDMA.
    #[error("Hectare has no RDMA transport: expected auto, udp or dpdk")]
    Rdma,
    /// Anything else.
    #[error("expected auto, udp or dpdk")]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_known_by_its_name() {
        for choice in TransportChoice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        let refused = |name: &str| name.parse::<TransportChoice>().unwrap_err().to_string();
        assert_eq!(refused("rdma"), "Hectare has no RDMA transport: expected auto, udp or dpdk");
        assert_eq!(refused("tcp"), "expected auto, udp or dpdk");
    }
}
