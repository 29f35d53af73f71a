//! At which address the other hosts reach this one.
use super::interface::addresses_of;
use super::message::Prepare;
use crate::config::Config;
use anyhow::{Context, Result, anyhow, bail, ensure};
use hectare_agent::Placer;
use hectare_wire::TransportChoice;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};

/// Where the agent of this host is to be, and a socket that keeps its UDP port until the agent takes it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) address: SocketAddr,
    /// Its address at its port of DPDK, if it has one.
    pub(super) dpdk: Option<Ipv4Addr>,
    pub(super) transport: TransportChoice,
    _kept: UdpSocket,
}

/// The place of this host's agent, by the configuration of its daemon.
///
/// # Errors
/// No such place; a transport that the agent could not use, which would otherwise end the job after its start.
pub(super) fn own_place(prepare: &Prepare, config: &Config) -> Result<Place> {
    let transport = prepare.transport.unwrap_or(config.transport);
    let port = config.port_for(transport)?;
    let dpdk = port.map(|port| port.address);
    let mut address = None;
    let kept = match port {
        Some(port) if transport == TransportChoice::Dpdk => {
            address = Some(port.address);
            // The system does not have the address, but keeps the number.
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, prepare.port))
                .with_context(|| format!("UDP port {} cannot be used here", prepare.port))?
        }
        // A list may have the address of the port: then the system's own is found.
        Some(port) if prepare.address == Some(port.address.into()) => {
            own_socket(&Prepare { address: None, ..prepare.clone() })?
        }
        _ => own_socket(prepare)?,
    };
    let mut own = kept.local_addr().context("getsockname")?;
    if let Some(address) = address {
        own.set_ip(address.into());
    }
    if transport == TransportChoice::Rdma {
        // The agent opens it again.
        let opened = Placer::open(&config.rdma.clone().unwrap_or_default(), own.ip());
        opened.context("its agents are to use RDMA (transport = \"rdma\"), and cannot")?;
    }
    Ok(Place { address: own, dpdk, transport, _kept: kept })
}

/// A socket at the address of this host: that of the list of hosts, that of the interface, or that by which the route to another
/// host leaves. The list may have another address than the interface, which counts for hosts without one; but there must be the
/// interface.
fn own_socket(prepare: &Prepare) -> Result<UdpSocket> {
    let address = match (prepare.address, &prepare.interface) {
        (Some(address), interface) => {
            interface.as_ref().map(|name| addresses_of(name)).transpose()?;
            address
        }
        (None, Some(interface)) => of_interface(interface)?,
        (None, None) => by_route(&prepare.others)?,
    };
    let bound = UdpSocket::bind((address, prepare.port));
    bound.map_err(|error| match error.kind() {
        ErrorKind::AddrNotAvailable => {
            anyhow!("this host does not have the address {address}, which is given for it")
        }
        _ => anyhow!("{} cannot be used here: {error}", SocketAddr::new(address, prepare.port)),
    })
}

/// The first address of an interface that is not for this link alone, one of IPv4 before those of IPv6.
fn of_interface(name: &str) -> Result<IpAddr> {
    let addresses = addresses_of(name)?;
    let best = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
    best.copied().with_context(|| format!("interface {name} has no address"))
}

fn by_route(others: &[String]) -> Result<IpAddr> {
    let Some(other) = others.first() else { return Ok(Ipv4Addr::LOCALHOST.into()) };
    let to = resolve(other)?;
    let any: IpAddr =
        if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).context("a socket")?;
    // Nothing is sent: the system looks up the route.
    socket.connect((to, 9)).with_context(|| format!("there is no route to {other} ({to})"))?;
    let own = socket.local_addr().context("getsockname")?.ip();
    ensure!(
        !own.is_loopback(),
        "the route to {other} ({to}) does not leave this host: name the interface by --interface, or the addresses in \
         the list of hosts"
    );
    Ok(own)
}

/// The address that a name has here.
fn resolve(name: &str) -> Result<IpAddr> {
    let found = (name, 0).to_socket_addrs().with_context(|| format!("{name} is unknown here"))?;
    let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    match found.iter().find(|address| address.is_ipv4()).or(found.first()) {
        Some(address) => Ok(*address),
        None => bail!("{name} has no address"),
    }
}

/// Whether a name means this host.
pub(super) fn is_here(name: &str, address: Option<IpAddr>) -> bool {
    let own = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name == "localhost"
        || name == own.trim()
        || address
            .map_or_else(|| resolve(name), Ok)
            .is_ok_and(|address| UdpSocket::bind((address, 0)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(address: Option<&str>, interface: Option<&str>, others: &[&str]) -> Prepare {
        Prepare {
            run_dir: None,
            address: address.map(|text| text.parse().unwrap()),
            interface: interface.map(str::to_owned),
            others: others.iter().map(|text| (*text).to_owned()).collect(),
            port: 0,
            transport: None,
        }
    }

    #[test]
    fn an_address_comes_from_the_list_the_interface_or_the_route() {
        let of = |prepare: &Prepare| own_socket(prepare).unwrap().local_addr().unwrap().ip().to_string();
        assert_eq!(of(&prepare(Some("127.0.0.2"), Some("lo"), &[])), "127.0.0.2");
        assert_eq!(of(&prepare(None, Some("lo"), &["nowhere.invalid"])), "127.0.0.1");
        assert_eq!(of(&prepare(None, None, &[])), "127.0.0.1");
    }

    #[test]
    fn who_uses_dpdk_alone_is_at_its_port() {
        let port = toml::from_str("device = \"net_tap0\"\naddress = \"203.0.113.7\"").unwrap();
        let config = Config { transport: TransportChoice::Dpdk, dpdk: Some(port), ..Config::default() };
        let own = own_place(&prepare(None, Some("none0"), &["nowhere.invalid"]), &config);
        if !cfg!(feature = "dpdk") {
            let said = format!("{:#}", own.unwrap_err());
            assert!(said.contains("by DPDK alone") && said.contains("built without DPDK"), "{said}");
            return;
        }
        let place = own.unwrap();
        assert_eq!(
            (place.address.ip(), place.dpdk),
            ("203.0.113.7".parse().unwrap(), Some([203, 0, 113, 7].into()))
        );
        let again = Prepare { port: place.address.port(), ..prepare(Some("203.0.113.8"), None, &[]) };
        let said = format!("{:#}", own_place(&again, &config).expect_err("the number is kept"));
        assert!(said.contains(&format!("UDP port {} cannot be used here", again.port)), "{said}");
        drop(place);
        assert_eq!(own_place(&again, &config).unwrap().address.port(), again.port);
    }

    #[test]
    fn a_device_that_is_not_there_is_missed_before_the_start() {
        let prepare =
            Prepare { transport: Some(TransportChoice::Rdma), ..prepare(Some("127.0.0.2"), None, &[]) };
        let device = toml::from_str("device = \"none0\"").unwrap();
        let config = Config { rdma: Some(device), ..Config::default() };
        let said = format!("{:#}", own_place(&prepare, &config).unwrap_err());
        let built = cfg!(feature = "rdma");
        assert!(
            said.contains("its agents are to use RDMA") && said.contains("built without RDMA") != built,
            "{said}"
        );
    }

    #[test]
    fn a_port_is_beside_an_address_of_the_system() {
        let port = toml::from_str("device = \"net_tap0\"\naddress = \"203.0.113.7\"").unwrap();
        let config = Config { dpdk: Some(port), ..Config::default() };
        let dpdk = cfg!(feature = "dpdk").then_some([203, 0, 113, 7].into());
        let place = own_place(&prepare(Some("127.0.0.2"), None, &[]), &config).unwrap();
        assert_eq!((place.address.ip().to_string().as_str(), place.dpdk), ("127.0.0.2", dpdk));
        // The option of a job counts more than the configuration.
        let udp = Prepare { transport: Some(TransportChoice::Udp), ..prepare(Some("127.0.0.2"), None, &[]) };
        assert_eq!(own_place(&udp, &config).unwrap().dpdk, None);
        let none = Prepare { transport: Some(TransportChoice::Dpdk), ..udp };
        let said = format!("{:#}", own_place(&none, &Config::default()).unwrap_err());
        let why = if cfg!(feature = "dpdk") { "there is no [dpdk]" } else { "built without DPDK" };
        assert!(said.contains("transport = \"dpdk\"") && said.contains(why), "{said}");
    }

    #[test]
    fn what_has_no_address_is_named() {
        let fails = |prepare: &Prepare| format!("{:#}", own_socket(prepare).unwrap_err());
        let said = fails(&prepare(Some("203.0.113.7"), None, &[]));
        assert!(said.contains("does not have the address 203.0.113.7,"), "{said}");
        for address in [None, Some("127.0.0.1")] {
            let said = fails(&prepare(address, Some("none0"), &[]));
            assert!(said.contains("there is no interface none0"), "{said}");
        }
        let said = fails(&prepare(None, None, &["nowhere.invalid"]));
        assert!(said.contains("nowhere.invalid is unknown here"), "{said}");
        let said = fails(&prepare(None, None, &["127.0.0.1"]));
        assert!(said.contains("--interface"), "{said}");
    }

    #[test]
    fn this_host_is_known_by_name_and_address() {
        assert!(is_here("localhost", None) && is_here("127.0.0.1", None));
        assert!(is_here("some-name", Some(Ipv4Addr::LOCALHOST.into())));
        assert!(
            !is_here("nowhere.invalid", None) && !is_here("x", Some(Ipv4Addr::new(203, 0, 113, 7).into()))
        );
    }
}
