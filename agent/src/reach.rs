//! By which link another host's agent is reached, and why.
use hectare_wire::{JobHost, JobHosts, TransportChoice};
use std::fmt;
use std::net::SocketAddr;

/// A link between agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// UDP of the system.
    Udp,
    /// A port of DPDK.
    Dpdk,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Link::Udp => "udp",
            Link::Dpdk => "dpdk",
        })
    }
}

/// The ways to another host's agent: links, each with an address. A session uses one of them from beginning to end. When an attempt to
/// begin one is not answered, the next attempt uses the next way; after the end of a session, the first way is tried first again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    ways: Vec<(Link, SocketAddr)>,
    /// Why these, in this order.
    why: String,
    /// The one that is being tried or in use.
    at: usize,
    /// Whether the first one was tried in vain.
    in_vain: bool,
}

impl Reach {
    /// A peer that is reached by UDP alone, at this address.
    pub fn by_udp(address: SocketAddr, why: impl Into<String>) -> Reach {
        Reach { ways: vec![(Link::Udp, address)], why: why.into(), at: 0, in_vain: false }
    }

    /// The ways to a peer in a job of these hosts. `no_port` says why this agent has no port, if it has none; `on_link`,
    /// whether an address can be reached from the port.
    pub(crate) fn of(
        peer: &JobHost,
        hosts: &JobHosts,
        no_port: Option<&str>,
        on_link: impl Fn(&SocketAddr) -> bool,
    ) -> Reach {
        let by_udp = |why: &str| Reach::by_udp(peer.address, why);
        if let Some(why) = no_port {
            return by_udp(why);
        }
        let Some(there) = peer.port() else { return by_udp("the peer's agent has no DPDK port") };
        let is_alone = hosts.transport == TransportChoice::Dpdk || there == peer.address;
        if !is_alone && !on_link(&there) {
            return by_udp("the DPDK ports of both are not on one link, and there is no gateway");
        }
        let udp = (!is_alone).then_some((Link::Udp, peer.address));
        let why = "both have a DPDK port on one link".to_owned();
        Reach { ways: [(Link::Dpdk, there)].into_iter().chain(udp).collect(), why, at: 0, in_vain: false }
    }

    /// The address at which the peer is reached.
    pub fn address(&self) -> SocketAddr {
        self.ways[self.at].1
    }

    /// The link of the way in use.
    pub fn link(&self) -> Link {
        self.ways[self.at].0
    }

    /// Why this way.
    pub fn why(&self) -> &str {
        match self.in_vain {
            true if self.at > 0 => "it could not be reached by DPDK when the session began",
            _ => &self.why,
        }
    }

    /// Whether there is no way but DPDK.
    pub fn is_dpdk_alone(&self) -> bool {
        self.ways.iter().all(|(link, _)| *link == Link::Dpdk)
    }

    /// Whether there is another way if one fails.
    pub fn has_several_ways(&self) -> bool {
        self.ways.len() > 1
    }

    /// The address at the port, if that is a way.
    pub(crate) fn behind_port(&self) -> Option<SocketAddr> {
        self.ways.iter().find(|(link, _)| *link == Link::Dpdk).map(|(_, address)| *address)
    }

    /// An attempt at this address was not answered: whether another way is tried next.
    pub(crate) fn unanswered(&mut self, address: SocketAddr) -> bool {
        if self.address() != address || self.ways.len() == 1 {
            return false;
        }
        self.at = (self.at + 1) % self.ways.len();
        self.in_vain = true;
        true
    }

    /// A session has begun with a peer at this address.
    pub(crate) fn connected(&mut self, address: SocketAddr) {
        if let Some(at) = self.ways.iter().position(|(_, way)| *way == address) {
            // If the peer called by another way than the first, it had tried the first in vain.
            (self.at, self.in_vain) = (at, at > 0);
        }
    }

    /// A session has ended: whether there are several ways, and it is the first one's turn.
    pub(crate) fn ended(&mut self) -> bool {
        (self.at, self.in_vain) = (0, false);
        self.has_several_ways()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hectare_wire::Cipher;

    fn hosts(transport: TransportChoice) -> JobHosts {
        let host = |number: u8, dpdk: Option<u8>| JobHost {
            name: number.to_string(),
            address: SocketAddr::from(([10, 0, 0, number], 7117)),
            ranks: 1,
            dpdk: dpdk.map(|last| [10, 1, 0, last].into()),
        };
        let hosts = vec![host(1, Some(101)), host(2, Some(102)), host(3, None)];
        let (key_file, cipher) = ("/k".into(), Cipher::default());
        JobHosts { id: [1; 16], index: 0, hosts, key_file, silence_ms: 1000, cipher, transport }
    }

    fn reach(host: usize, transport: TransportChoice, no_port: Option<&str>, on_link: bool) -> Reach {
        let hosts = hosts(transport);
        Reach::of(&hosts.hosts[host], &hosts, no_port, |_| on_link)
    }

    #[test]
    fn a_peer_without_a_port_is_reached_by_udp_and_it_is_said_why() {
        use TransportChoice::Auto;
        for (reach, why) in [
            (reach(2, Auto, None, true), "the peer's agent has no DPDK port"),
            (reach(1, Auto, Some("this agent has none"), true), "this agent has none"),
            (
                reach(1, Auto, None, false),
                "the DPDK ports of both are not on one link, and there is no gateway",
            ),
        ] {
            assert_eq!((reach.link(), reach.address().port(), reach.why()), (Link::Udp, 7117, why));
            assert!(reach.behind_port().is_none() && !reach.is_dpdk_alone());
        }
    }

    #[test]
    fn attempts_take_turns_and_a_session_stays_where_it_began() {
        let mut reach = reach(1, TransportChoice::Auto, None, true);
        let (dpdk, udp) =
            (SocketAddr::from(([10, 1, 0, 102], 7117)), SocketAddr::from(([10, 0, 0, 2], 7117)));
        assert_eq!(
            (reach.link(), reach.address(), reach.why()),
            (Link::Dpdk, dpdk, "both have a DPDK port on one link")
        );
        assert!(!reach.unanswered(udp), "that was another attempt");
        assert!(reach.unanswered(dpdk));
        assert_eq!((reach.link(), reach.address()), (Link::Udp, udp));
        assert!(reach.why().contains("could not be reached by DPDK"));
        assert!(reach.unanswered(udp));
        assert_eq!(reach.link(), Link::Dpdk);
        reach.connected(udp);
        assert_eq!(reach.link(), Link::Udp, "the peer called by UDP");
        assert!(reach.why().contains("could not be reached by DPDK"));
        assert!(reach.ended());
        assert_eq!(reach.link(), Link::Dpdk, "the next session is tried by DPDK first");
        reach.connected(dpdk);
        assert_eq!(reach.why(), "both have a DPDK port on one link");
        assert!(reach.ended(), "whichever way was tried before");
    }

    #[test]
    fn dpdk_alone_has_no_other_way() {
        let mut only = reach(1, TransportChoice::Dpdk, None, false);
        assert!(only.is_dpdk_alone() && !only.unanswered(only.address()));
        assert_eq!(only.link(), Link::Dpdk);
        // Nor has a peer that has no address but its port's.
        let mut hosts = hosts(TransportChoice::Auto);
        hosts.hosts[1].address = hosts.hosts[1].port().unwrap();
        assert!(Reach::of(&hosts.hosts[1], &hosts, None, |_| true).is_dpdk_alone());
    }
}
