//! The addresses of a network interface, as the kernel lists them (rtnetlink(7)).
use anyhow::{Context, Result, bail};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice};
use std::io::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// The scope of addresses that mean something on one link alone.
const RT_SCOPE_LINK: u8 = 253;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// The lengths of `nlmsghdr`, `ifaddrmsg` and `rtattr`.
const HEADER: usize = 16;
const ABOUT: usize = 8;
const ATTRIBUTE: usize = 4;

/// The addresses of an interface by which others reach it, in the kernel's order; those of the loopback as well.
pub(super) fn addresses_of(name: &str) -> Result<Vec<IpAddr>> {
    let failed =
        |what: &'static str| move |error: rustix::io::Errno| Error::other(format!("{what}: {error}"));
    let kind = SocketFlags::CLOEXEC;
    // Of the protocols of netlink, the first is the one for addresses and routes.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, kind, None)
        .map_err(failed("netlink"))?;
    let udp = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context("a socket")?;
    let index = netdevice::name_to_index(&udp, name).ok();
    let index = index.with_context(|| format!("there is no interface {name}"))?;
    let mut request = Vec::new();
    request.extend(((HEADER + ABOUT) as u32).to_ne_bytes());
    request.extend(RTM_GETADDR.to_ne_bytes());
    request.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    request.extend([0; 8]);
    request.extend([0; ABOUT]);
    rustix::net::send(&socket, &request, SendFlags::empty()).map_err(failed("netlink"))?;
    let mut found = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let (length, _) =
            rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty()).map_err(failed("netlink"))?;
        if length == 0 || read(&buffer[..length], index, &mut found)? {
            return Ok(found);
        }
    }
}

/// Reads a datagram of the kernel's; whether it was the last.
fn read(mut datagram: &[u8], index: u32, found: &mut Vec<IpAddr>) -> Result<bool> {
    while datagram.len() >= HEADER {
        let length = u32_at(datagram, 0) as usize;
        let Some(message) = datagram.get(HEADER..length) else {
            bail!("netlink: a message of {length} bytes")
        };
        match u16_at(datagram, 4) {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => bail!("netlink: the kernel refuses to list addresses"),
            RTM_NEWADDR if message.len() >= ABOUT => {
                let (family, scope) = (message[0], message[3]);
                if u32_at(message, 4) == index && scope != RT_SCOPE_LINK {
                    found.extend(address(family, &message[ABOUT..]));
                }
            }
            _ => {}
        }
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The own address of these attributes: `IFA_LOCAL`, which only differs from `IFA_ADDRESS` where the link has two ends.
fn address(family: u8, mut attributes: &[u8]) -> Option<IpAddr> {
    let mut other = None;
    while attributes.len() >= ATTRIBUTE {
        let length = usize::from(u16_at(attributes, 0));
        let value = attributes.get(ATTRIBUTE..length)?;
        let address = match family {
            AF_INET => <[u8; 4]>::try_from(value).ok().map(|bytes| IpAddr::from(Ipv4Addr::from(bytes))),
            AF_INET6 => <[u8; 16]>::try_from(value).ok().map(|bytes| IpAddr::from(Ipv6Addr::from(bytes))),
            _ => None,
        };
        match u16_at(attributes, 2) {
            IFA_LOCAL => return address,
            IFA_ADDRESS => other = address,
            _ => {}
        }
        attributes = attributes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    other
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::{addresses_of, read};
    use proptest::prelude::*;

    #[test]
    fn the_loopback_has_its_address() {
        assert!(addresses_of("lo").unwrap().contains(&"127.0.0.1".parse().unwrap()));
        assert!(addresses_of("none0").unwrap_err().to_string().contains("there is no interface none0"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..80), length in 0u32..80) {
            let mut bytes = bytes;
            if bytes.len() > 6 {
                bytes[..4].copy_from_slice(&length.to_ne_bytes());
                bytes[4..6].copy_from_slice(&20u16.to_ne_bytes());
            }
            let _ = read(&bytes, 1, &mut Vec::new());
        }
    }
}
