//! Settings of a port, and the checks of them before DPDK is asked.
use super::ethernet::{ETHERNET, is_host};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

/// The smallest MTU of IPv4, and the largest of Ethernet cards in use.
const MTUS: std::ops::RangeInclusive<usize> = 576..=9600;
/// The room that net_af_packet needs in a frame beside the packet: its own header, and the Ethernet header with a VLAN tag.
const FRAME_HEADERS: usize = 128;
/// Bytes of a buffer beside the packet: the Ethernet header, two VLAN tags, the checksum.
const BUFFER_HEADERS: usize = ETHERNET + 8 + 4;
const PAGE: usize = 4096;

/// A port of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The device as DPDK names it: the PCI address of a card or virtual function (`0000:01:00.1`), or a virtual device
    /// (`net_af_packet0,iface=eth1`, the name of which is new in this process).
    pub device: String,
    /// The arguments of DPDK's environment; `None` for those with which most devices work
    /// ([`hectare_dpdk::default_arguments`]). All ports of a process have the same.
    pub arguments: Option<Vec<String>>,
    /// The address and UDP port of this transport. The host's own network stack must not have the address: both would answer.
    pub address: SocketAddrV4,
    /// How many bits of an address are those of the link: 24 for 255.255.255.0.
    pub prefix: u8,
    /// The router for addresses that are not on the link.
    pub gateway: Option<Ipv4Addr>,
    /// The MTU of the link.
    pub mtu: usize,
}

impl Settings {
    /// A port at an address on a link of 24 bits and with MTU 1500.
    pub fn new(device: impl Into<String>, address: SocketAddrV4) -> Settings {
        Settings { device: device.into(), arguments: None, address, prefix: 24, gateway: None, mtu: 1500 }
    }

    /// Whether packets go to an address from here: to one on the link, or by the gateway.
    pub fn reaches(&self, ip: Ipv4Addr) -> bool {
        self.next_hop(ip).is_some()
    }

    /// The host of the link that a packet to `ip` is given to: itself, or the gateway. `None` if there is no way.
    pub(super) fn next_hop(&self, ip: Ipv4Addr) -> Option<Ipv4Addr> {
        if self.is_on_link(ip) {
            self.is_peer(ip).then_some(ip)
        } else {
            self.gateway.filter(|_| is_host(ip))
        }
    }

    /// Whether an address is one of the link's.
    pub(super) fn is_on_link(&self, ip: Ipv4Addr) -> bool {
        (ip.to_bits() ^ self.address.ip().to_bits()) & self.mask() == 0
    }

    /// Whether an address can be another host of the link.
    fn is_peer(&self, ip: Ipv4Addr) -> bool {
        // The first and last address of a link of more than two are the link's own.
        let host = ip.to_bits() & !self.mask();
        is_host(ip) && ip != *self.address.ip() && (self.prefix > 30 || (host != 0 && host != !self.mask()))
    }

    fn mask(&self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0)
    }

    /// Checks what can be checked without DPDK: addresses, the MTU, the geometry of net_af_packet.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) with what is wrong.
    pub fn check(&self) -> io::Result<()> {
        self.checked().map(drop)
    }

    /// Checks the settings; the device with all its arguments, and what the port is opened with.
    pub(super) fn checked(&self) -> io::Result<(String, hectare_dpdk::Settings)> {
        let Settings { address, gateway, prefix, mtu, device, .. } = self;
        if *prefix > 32 {
            return invalid(format!("a prefix of {prefix} bits: an IPv4 address has 32"));
        }
        if !is_host(*address.ip()) || address.port() == 0 {
            return invalid(format!("the address {address} is not a host's address with a port"));
        }
        if let Some(gateway) = gateway
            && !(self.is_on_link(*gateway) && self.is_peer(*gateway))
        {
            return invalid(format!("the gateway {gateway} is not another host in {address}/{prefix}"));
        }
        if !MTUS.contains(mtu) {
            return invalid(format!("MTU {mtu}: it is {} to {}", MTUS.start(), MTUS.end()));
        }
        if device.is_empty() {
            return invalid("no device: name a PCI address, or net_af_packet0,iface=NAME".into());
        }
        let settings = hectare_dpdk::Settings {
            mtu: u16::try_from(*mtu).ok(),
            room: (mtu + BUFFER_HEADERS) as u32,
            ..hectare_dpdk::Settings::default()
        };
        if !device.starts_with("net_af_packet") {
            return Ok((device.clone(), settings));
        }
        let (device, frame) = self.with_geometry()?;
        // Its MTU is the interface's, and `ip link` sets it.
        Ok((device, hectare_dpdk::Settings { mtu: None, room: frame as u32, ..settings }))
    }

    /// A device of net_af_packet with frames and blocks that fit the MTU, and the size of a frame. With others it is silent: it cuts
    /// packets, or never sends.
    fn with_geometry(&self) -> io::Result<(String, usize)> {
        let Settings { device, mtu, .. } = self;
        let argument = |name: &str| {
            let value = device.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            value.map(|value| {
                value
                    .parse::<usize>()
                    .or_else(|_| invalid(format!("`{device}`: {name}={value} is no number")))
            })
        };
        if !device.split(',').any(|part| part.strip_prefix("iface=").is_some_and(|name| !name.is_empty())) {
            return invalid(format!("`{device}`: it needs an interface, `net_af_packet0,iface=NAME`"));
        }
        let frame = argument("framesz").transpose()?;
        let block = argument("blocksz").transpose()?;
        let frame_size = frame.unwrap_or_else(|| (mtu + FRAME_HEADERS).next_multiple_of(1024));
        if frame_size < mtu + FRAME_HEADERS || !frame_size.is_multiple_of(16) {
            return invalid(format!(
                "`{device}`: framesz={frame_size} does not hold packets of MTU {mtu}; it is a multiple of 16 and at least {}",
                mtu + FRAME_HEADERS
            ));
        }
        let block_size = block.unwrap_or(frame_size.next_multiple_of(1024) * 4);
        if !block_size.is_multiple_of(frame_size) || !block_size.is_multiple_of(PAGE) {
            return invalid(format!(
                "`{device}`: blocksz={block_size} is no multiple of framesz={frame_size} and of {PAGE}; \
                 leave both out, and they are chosen"
            ));
        }
        let mut whole = device.clone();
        for (is_given, name, value) in [
            (frame.is_some(), "framesz", frame_size),
            (block.is_some(), "blocksz", block_size),
            (argument("framecnt").is_some(), "framecnt", 512),
        ] {
            if !is_given {
                whole += &format!(",{name}={value}");
            }
        }
        Ok((whole, frame_size))
    }
}

fn invalid<T>(why: String) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(device: &str) -> Settings {
        Settings::new(device, "10.0.0.1:7000".parse().unwrap())
    }

    fn refusal(settings: &Settings) -> String {
        settings.checked().unwrap_err().to_string()
    }

    #[test]
    fn geometry_is_chosen_for_the_mtu() {
        let checked = |mtu| Settings { mtu, ..settings("net_af_packet0,iface=eth1") }.checked().unwrap();
        let (device, port) = checked(1500);
        assert_eq!(device, "net_af_packet0,iface=eth1,framesz=2048,blocksz=8192,framecnt=512");
        assert_eq!((port.mtu, port.room), (None, 2048));
        let (device, port) = checked(9000);
        assert_eq!(device, "net_af_packet0,iface=eth1,framesz=9216,blocksz=36864,framecnt=512");
        assert_eq!((port.mtu, port.room), (None, 9216));
        let (device, port) = settings("0000:01:00.1").checked().unwrap();
        assert_eq!((device.as_str(), port.mtu), ("0000:01:00.1", Some(1500)));
    }

    #[test]
    fn geometry_that_would_hang_or_cut_is_refused() {
        let with = |more: &str| refusal(&settings(&format!("net_af_packet0,iface=eth1,{more}")));
        assert!(with("framesz=1024").contains("does not hold packets of MTU 1500"));
        assert!(with("framesz=2048,blocksz=4000").contains("no multiple of framesz=2048"));
        assert!(with("framesz=3072,blocksz=6144").contains("4096"));
        assert!(with("framesz=big").contains("framesz=big is no number"));
        assert!(refusal(&settings("net_af_packet0")).contains("iface=NAME"));
    }

    #[test]
    fn wrong_settings_are_named() {
        let good = settings("net_tap0");
        assert!(refusal(&Settings { mtu: 200, ..good.clone() }).contains("MTU 200"));
        assert!(refusal(&Settings { mtu: 65000, ..good.clone() }).contains("MTU 65000"));
        assert!(refusal(&Settings { prefix: 33, ..good.clone() }).contains("33 bits"));
        assert!(refusal(&Settings { device: String::new(), ..good.clone() }).contains("no device"));
        let address = "0.0.0.0:7000".parse().unwrap();
        assert!(refusal(&Settings { address, ..good.clone() }).contains("0.0.0.0:7000"));
        let gateway = Some(Ipv4Addr::new(10, 0, 1, 1));
        assert!(refusal(&Settings { gateway, ..good }).contains("the gateway 10.0.1.1"));
    }

    #[test]
    fn packets_go_to_the_peer_or_the_gateway() {
        let far = Ipv4Addr::new(192, 168, 1, 1);
        let mut settings = settings("net_tap0");
        let hop = |settings: &Settings, ip: [u8; 4]| settings.next_hop(ip.into());
        assert_eq!(hop(&settings, [10, 0, 0, 2]), Some([10, 0, 0, 2].into()));
        assert_eq!(settings.next_hop(far), None);
        let gateway = Ipv4Addr::new(10, 0, 0, 254);
        settings.gateway = Some(gateway);
        assert_eq!(settings.next_hop(far), Some(gateway));
        for nobody in [[10, 0, 0, 0], [10, 0, 0, 255], [10, 0, 0, 1], [224, 0, 0, 1], [255; 4], [0; 4]] {
            assert_eq!(hop(&settings, nobody), None, "{nobody:?}");
        }
        settings.prefix = 0;
        assert_eq!(settings.next_hop(far), Some(far), "everybody is on the link");
        settings.prefix = 31;
        assert_eq!(hop(&settings, [10, 0, 0, 0]), Some([10, 0, 0, 0].into()), "a link of two");
    }
}
