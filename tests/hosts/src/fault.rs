//! Faults of the network, as rules of the switch.
use std::fmt::Write;
use std::net::Ipv4Addr;

/// A fault of the network between two hosts, in one direction.
///
/// A share is of the packets, between 0 and 1, in steps of 1/10,000.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// Nothing arrives.
    Cut {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
    },
    /// Some packets are lost.
    Lose {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
        /// How many.
        share: f64,
    },
    /// Some packets of these sizes are lost, so that others fare better: those of data are large, those that only acknowledge small.
    LoseSizes {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
        /// How many.
        share: f64,
        /// The smallest, in bytes of IP.
        least: u16,
        /// The largest.
        most: u16,
    },
    /// So many packets in a row are lost, of each such number.
    LoseRows {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
        /// How many in a row.
        lost: u32,
        /// Of how many.
        of: u32,
    },
    /// The host's packets have another source, as behind a router that translates addresses; packets to either address arrive at
    /// the host.
    Renumber {
        /// The host.
        host: usize,
        /// Which of its other addresses: there are two.
        to: u8,
    },
    /// Some packets arrive twice.
    Duplicate {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
        /// How many.
        share: f64,
    },
    /// One byte of some UDP packets is another one: the last of the first 24 of the payload. No checksum shows it, as
    /// virtual devices have none.
    Corrupt {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
        /// How many.
        share: f64,
    },
    /// Some packets take a slow way, on which they wait in a queue: they come late, and after others that were sent later.
    Detour {
        /// The sender.
        from: usize,
        /// The receiver.
        to: usize,
        /// How many.
        share: f64,
    },
}

/// The address of a host.
pub(crate) fn address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, u8::try_from(host + 1).expect("fewer than 255 hosts"))
}

/// Another address that a host seems to have.
pub(crate) fn other_address(host: usize, which: u8) -> Ipv4Addr {
    assert!(host < 50 && which < 2, "address {which} of host {host}");
    Ipv4Addr::new(10, 77, 0, 100 + 50 * which + host as u8)
}

/// A condition that holds for a share of the packets.
fn chance(share: f64) -> String {
    assert!((0.0..=1.0).contains(&share), "a share of {share}");
    match (share * 10_000.0).round() as u32 {
        10_000 => String::new(),
        part => format!("numgen random mod 10000 < {part}"),
    }
}

impl Fault {
    fn from(self) -> usize {
        match self {
            Fault::Cut { from, .. }
            | Fault::Lose { from, .. }
            | Fault::LoseSizes { from, .. }
            | Fault::LoseRows { from, .. }
            | Fault::Duplicate { from, .. }
            | Fault::Corrupt { from, .. }
            | Fault::Detour { from, .. } => from,
            Fault::Renumber { host, .. } => host,
        }
    }

    fn rule(self) -> String {
        match self {
            Fault::Cut { to, .. } => format!("ip daddr {} drop", address(to)),
            Fault::Lose { to, share, .. } => format!("ip daddr {} {} drop", address(to), chance(share)),
            Fault::LoseSizes { to, share, least, most, .. } => {
                format!("ip daddr {} ip length {least}-{most} {} drop", address(to), chance(share))
            }
            Fault::LoseRows { to, lost, of, .. } => {
                format!("ip daddr {} numgen inc mod {of} < {lost} drop", address(to))
            }
            Fault::Renumber { host, to } => {
                format!("ip saddr {} ip saddr set {}", address(host), other_address(host, to))
            }
            Fault::Duplicate { to, share, .. } => {
                format!("ip daddr {} {} dup to \"port{to}\"", address(to), chance(share))
            }
            Fault::Detour { to, share, .. } => {
                format!("ip daddr {} {} fwd to \"slow{to}\"", address(to), chance(share))
            }
            // 8 bytes of header, and the bytes before it, in bits.
            Fault::Corrupt { to, share, .. } => {
                format!(
                    "ip daddr {} ip protocol udp {} @th,{},8 set 0xa5",
                    address(to),
                    chance(share),
                    (8 + 23) * 8
                )
            }
        }
    }
}

/// The rules of the switch, for `nft`: they take the place of all former ones at once.
pub(crate) fn rules(hosts: usize, faults: &[Fault]) -> String {
    let mut rules =
        String::from("add table netdev faults\ndelete table netdev faults\ntable netdev faults {\n");
    for host in 0..hosts {
        let of = faults.iter().filter(|fault| fault.from() == host);
        let _ = writeln!(
            rules,
            "chain port{host} {{\ntype filter hook ingress device \"port{host}\" priority 0;"
        );
        // First, so that all else meets a host by its own address.
        for fault in faults {
            if let Fault::Renumber { host, to } = *fault {
                let _ =
                    writeln!(rules, "ip daddr {} ip daddr set {}", other_address(host, to), address(host));
            }
        }
        of.for_each(|fault| {
            let _ = writeln!(rules, "{}", fault.rule());
        });
        rules.push_str("}\n");
    }
    rules.push_str("}\n");
    rules
}
