//! The links of an agent: a socket of the system, a port of DPDK, or both.
use crate::order::Order;
use crate::placer::{Placer, RdmaError};
use crate::reach::Reach;
use hectare_transport::udp::{Udp, interface_mtu};
#[cfg(feature = "dpdk")]
use hectare_transport::{Both, dpdk::Dpdk};
use hectare_wire::TransportChoice;
use std::io;
use std::net::SocketAddr;
use tracing::warn;

/// The largest packet of an interface, if the system does not say.
const MTU: usize = 1500;

/// Open links.
pub(crate) enum Links {
    /// A socket, and why there is no port.
    Udp(Box<Udp>, String),
    /// Both.
    #[cfg(feature = "dpdk")]
    Both(Box<Both<Dpdk>>),
    /// A port, and the socket that keeps its number.
    #[cfg(feature = "dpdk")]
    Dpdk(Box<Dpdk>, std::net::UdpSocket),
}

/// A link that does not open.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoLink {
    #[error("a socket at {at}: {source}")]
    Socket { at: SocketAddr, source: io::Error },
    #[cfg(feature = "dpdk")]
    #[error("its DPDK port at {at} does not open, and transport = \"dpdk\" permits no other link: {source}")]
    Port { at: SocketAddr, source: io::Error },
    #[error("transport = \"rdma\" permits no host without RDMA, and here {0}")]
    Rdma(#[from] RdmaError),
    #[cfg(not(feature = "dpdk"))]
    #[error(transparent)]
    NotBuilt(crate::port::PortError),
}

/// The largest packet of any of the host's interfaces: what the path carries is measured.
fn mtu() -> usize {
    let names = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| name != "lo");
    names.filter_map(|name| interface_mtu(&name).ok()).max().unwrap_or(MTU).max(MTU)
}

fn socket(at: SocketAddr) -> Result<Udp, NoLink> {
    Udp::bind(at, mtu()).map_err(|source| NoLink::Socket { at, source })
}

/// The placer of lines at peers, which does nothing if the agent has no RDMA device.
pub(crate) fn placer(order: &Order) -> Result<Placer, NoLink> {
    let is_demanded = order.hosts.transport == TransportChoice::Rdma;
    let Some(device) = &order.rdma else {
        return Ok(Placer::none(None));
    };
    match Placer::open(device, order.hosts.own().address.ip()) {
        Ok(placer) => Ok(placer),
        Err(error) if is_demanded => Err(error.into()),
        // One configuration may be that of hosts with RDMA and without.
        Err(error) => {
            warn!(%error, "no RDMA");
            Ok(Placer::none(Some(error)))
        }
    }
}

/// Why an agent without a port has none.
fn no_port(order: &Order) -> String {
    match order.hosts.transport {
        TransportChoice::Udp => "this agent uses UDP alone (transport = \"udp\")".into(),
        _ if cfg!(feature = "dpdk") => "this agent has no DPDK port".into(),
        _ => "this agent was built without DPDK".into(),
    }
}

/// Opens the links that an agent is to have, and says how it reaches all hosts by them.
#[cfg(feature = "dpdk")]
pub(crate) fn open(order: &Order) -> Result<(Links, Vec<Reach>), NoLink> {
    let own = order.hosts.own();
    let at = own.address;
    let reaches = |no_port: Option<&str>| {
        let on_link = |there: &SocketAddr| order.dpdk.as_ref().is_some_and(|port| port.reaches(there));
        let of = |host| Reach::of(host, &order.hosts, no_port, on_link);
        order.hosts.hosts.iter().map(of).collect::<Vec<_>>()
    };
    let Some(port) = &order.dpdk else {
        let why = no_port(order);
        let reaches = reaches(Some(&why));
        return Ok((Links::Udp(Box::new(socket(at)?), why), reaches));
    };
    if order.hosts.transport == TransportChoice::Dpdk {
        let failed = |source| NoLink::Port { at, source };
        let number = crate::port::keep(at.port()).map_err(failed)?;
        let dpdk = Box::new(port.open(at.port()).map_err(failed)?);
        return Ok((Links::Dpdk(dpdk, number), reaches(None)));
    }
    let udp = socket(at)?;
    match port.open(at.port()) {
        Ok(dpdk) => {
            let reaches = reaches(None);
            let behind = reaches.iter().filter_map(Reach::behind_port);
            Ok((Links::Both(Box::new(Both::new(udp, dpdk, behind))), reaches))
        }
        Err(error) => {
            let why = format!("this agent's DPDK port does not open: {error}");
            let reaches = reaches(Some(&why));
            Ok((Links::Udp(Box::new(udp), why), reaches))
        }
    }
}

/// Opens the links that an agent is to have, and says how it reaches all hosts by them.
#[cfg(not(feature = "dpdk"))]
pub(crate) fn open(order: &Order) -> Result<(Links, Vec<Reach>), NoLink> {
    if order.dpdk.is_some() || order.hosts.transport == TransportChoice::Dpdk {
        return Err(NoLink::NotBuilt(crate::port::PortError::NotBuilt));
    }
    let why = no_port(order);
    let of = |host| Reach::of(host, &order.hosts, Some(&why), |_| false);
    let reaches = order.hosts.hosts.iter().map(of).collect();
    Ok((Links::Udp(Box::new(socket(order.hosts.own().address)?), why), reaches))
}
