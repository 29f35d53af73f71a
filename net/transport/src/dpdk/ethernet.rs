//! The outermost header of a frame (Ethernet II), and how long a frame must be.
use std::net::Ipv4Addr;

/// A hardware address.
pub(super) type Mac = [u8; 6];
pub(super) const BROADCAST: Mac = [0xff; 6];
/// The length of the header.
pub(super) const ETHERNET: usize = 14;
/// The shortest frame without its checksum.
pub(super) const SHORTEST: usize = 60;

pub(super) const TYPE_ARP: u16 = 0x0806;
pub(super) const TYPE_IP: u16 = 0x0800;

/// Fills a frame up to the shortest length. Its length then.
pub(super) fn pad(frame: &mut [u8], length: usize) -> usize {
    if length < SHORTEST {
        frame[length..SHORTEST].fill(0);
    }
    length.max(SHORTEST)
}

pub(super) fn write_ethernet(frame: &mut [u8], (from, to): (Mac, Mac), kind: u16) {
    frame[0..6].copy_from_slice(&to);
    frame[6..12].copy_from_slice(&from);
    frame[12..14].copy_from_slice(&kind.to_be_bytes());
}

/// Whether an address can be one host's.
pub(super) fn is_host(ip: Ipv4Addr) -> bool {
    !ip.is_unspecified() && !ip.is_multicast() && !ip.is_broadcast() && !ip.is_loopback()
}
