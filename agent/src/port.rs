//! The DPDK port of a host's agents, which they use instead of the system's UDP.
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

/// Why agents cannot use a port of DPDK.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// There is no DPDK in this program.
    #[error(
        "this program was built without DPDK: build hectare-daemon with the feature `dpdk`, or let agents use UDP"
    )]
    NotBuilt,
    /// No machine has such a processor.
    #[error("core {core}: there are {most} at most")]
    Core {
        /// The number.
        core: usize,
        /// How many numbers there are.
        most: usize,
    },
    /// The device, an address or the MTU is refused.
    #[error(transparent)]
    Settings(#[from] std::io::Error),
}

/// A port of DPDK on this host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DpdkPort {
    /// The device as DPDK names it: the PCI address of a card or virtual function, or a virtual device
    /// (`net_af_packet0,iface=eth1`).
    pub device: String,
    /// The address of agents, which the host's own network stack must not have.
    pub address: Ipv4Addr,
    /// How many bits of an address are those of the link.
    #[serde(default = "prefix")]
    pub prefix: u8,
    /// The router for addresses that are not on the link.
    #[serde(default)]
    pub gateway: Option<Ipv4Addr>,
    /// The MTU of the link.
    #[serde(default = "mtu")]
    pub mtu: usize,
    /// The arguments of DPDK's environment; none for those with which most devices work.
    #[serde(default)]
    pub eal: Option<Vec<String>>,
    /// The processor on which the agent's thread runs; none for any.
    #[serde(default)]
    pub core: Option<usize>,
}

fn prefix() -> u8 {
    24
}

fn mtu() -> usize {
    1500
}

impl DpdkPort {
    /// Whether there is DPDK in this program.
    pub const IS_BUILT: bool = cfg!(feature = "dpdk");

    /// Checks what can be checked without DPDK.
    ///
    /// # Errors
    /// A [`PortError`]; without the feature `dpdk` always.
    #[cfg(not(feature = "dpdk"))]
    pub fn check(&self) -> Result<(), PortError> {
        Err(PortError::NotBuilt)
    }
}

#[cfg(feature = "dpdk")]
mod open {
    use super::{DpdkPort, PortError};
    use hectare_transport::dpdk::{Dpdk, Settings};
    use rustix::thread::{CpuSet, sched_setaffinity};
    use std::io;
    use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

    impl DpdkPort {
        /// Checks what can be checked without DPDK.
        ///
        /// # Errors
        /// A [`PortError`]; without the feature `dpdk` always.
        pub fn check(&self) -> Result<(), PortError> {
            match self.core {
                Some(core) if core >= CpuSet::MAX_CPU => Err(PortError::Core { core, most: CpuSet::MAX_CPU }),
                _ => Ok(self.settings(1).check()?),
            }
        }

        fn settings(&self, port: u16) -> Settings {
            let DpdkPort { device, address, prefix, gateway, mtu, eal, core: _ } = self.clone();
            let address = SocketAddrV4::new(address, port);
            Settings { device, arguments: eal, address, prefix, gateway, mtu }
        }

        /// The addresses that can be reached from the port, on the link or through the gateway.
        pub(crate) fn reaches(&self, at: &SocketAddr) -> bool {
            matches!(at, SocketAddr::V4(at) if self.settings(1).reaches(*at.ip()))
        }

        /// Opens the port, and has this thread run where it is to.
        pub(crate) fn open(&self, number: u16) -> io::Result<Dpdk> {
            let dpdk = Dpdk::open(&self.settings(number))?;
            if let Some(core) = self.core {
                let mut set = CpuSet::new();
                set.set(core);
                let failed =
                    |error| io::Error::other(format!("the agent cannot run on core {core}: {error}"));
                sched_setaffinity(None, &set).map_err(failed)?;
            }
            Ok(dpdk)
        }
    }

    /// Keeps a number of UDP, which no other program of this host gets: agents of a host have one address at its port, and each a
    /// number of its own, of which the system has the list.
    pub(crate) fn keep(number: u16) -> io::Result<UdpSocket> {
        UdpSocket::bind((Ipv4Addr::UNSPECIFIED, number))
            .map_err(|error| io::Error::other(format!("UDP port {number}: {error}")))
    }
}
#[cfg(feature = "dpdk")]
pub(crate) use open::keep;
