//! Frames: Ethernet, IPv4 and UDP. What comes from the wire is checked here, by safe code, before anybody else sees it.
use super::arp::Arp;
use super::ethernet::{BROADCAST, ETHERNET, Mac, TYPE_ARP, TYPE_IP, is_host, pad, write_ethernet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::Range;

/// The headers of a frame's datagram.
pub(super) const HEADERS: usize = ETHERNET + IP + UDP;
const IP: usize = 20;
const UDP: usize = 8;
const PROTOCOL_UDP: u8 = 17;
/// "This transport understands marks of congestion" (ECT(0)), and the mark.
const CAPABLE: u8 = 0b10;
const CONGESTED: u8 = 0b11;
/// No fragments, as path MTU discovery wants it: with it the identification means nothing (RFC 6864).
const DO_NOT_FRAGMENT: u16 = 0x4000;
const HOPS: u8 = 64;

/// The kind of a frame, to this transport.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A datagram for its address; where the payload lies.
    Datagram {
        from: SocketAddrV4,
        congested: bool,
        at: Range<usize>,
    },
    Arp(Arp),
    /// For somebody else, or of a protocol that is not spoken here.
    Foreign,
    /// For this transport, but broken.
    Broken,
}

/// Writes the headers of a frame with `payload` behind them; the length of the frame.
pub(super) fn write(
    frame: &mut [u8],
    macs: (Mac, Mac),
    from: SocketAddrV4,
    to: SocketAddrV4,
    payload: &[u8],
) -> usize {
    let length = HEADERS + payload.len();
    write_ethernet(frame, macs, TYPE_IP);
    let ip = &mut frame[ETHERNET..ETHERNET + IP];
    ip[0] = 0x45;
    ip[1] = CAPABLE;
    ip[2..4].copy_from_slice(&of_16(IP + UDP + payload.len()));
    ip[4..6].fill(0);
    ip[6..8].copy_from_slice(&DO_NOT_FRAGMENT.to_be_bytes());
    ip[8] = HOPS;
    ip[9] = PROTOCOL_UDP;
    ip[10..12].fill(0);
    ip[12..16].copy_from_slice(&from.ip().octets());
    ip[16..20].copy_from_slice(&to.ip().octets());
    let checksum = !sum(ip);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    let udp = &mut frame[ETHERNET + IP..HEADERS];
    udp[0..2].copy_from_slice(&from.port().to_be_bytes());
    udp[2..4].copy_from_slice(&to.port().to_be_bytes());
    udp[4..6].copy_from_slice(&of_16(UDP + payload.len()));
    // None, which IPv4 permits: sessions check every byte by themselves, and better.
    udp[6..8].fill(0);
    frame[HEADERS..length].copy_from_slice(payload);
    pad(frame, length)
}

/// The kind of a frame, to who has this hardware address and this address.
pub(super) fn read(frame: &[u8], mac: Mac, address: SocketAddrV4) -> Kind {
    let Some((ethernet, rest)) = frame.split_at_checked(ETHERNET) else { return Kind::Broken };
    let is_mine = ethernet[0..6] == mac;
    match u16::from_be_bytes([ethernet[12], ethernet[13]]) {
        TYPE_ARP if is_mine || ethernet[0..6] == BROADCAST => {
            Arp::read(rest).map_or(Kind::Foreign, Kind::Arp)
        }
        TYPE_IP if is_mine => read_ip(rest, address),
        _ => Kind::Foreign,
    }
}

fn read_ip(packet: &[u8], address: SocketAddrV4) -> Kind {
    let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    if packet.len() < IP || packet[0] >> 4 != 4 {
        return Kind::Broken;
    }
    let header = usize::from(packet[0] & 0xf) * 4;
    let total = usize::from(word(2));
    if header < IP || total < header || packet.len() < total || sum(&packet[..header]) != 0xffff {
        return Kind::Broken;
    }
    let ip = |at: usize| Ipv4Addr::new(packet[at], packet[at + 1], packet[at + 2], packet[at + 3]);
    // Fragments are of others: datagrams of peers are sent whole.
    if ip(16) != *address.ip() || packet[9] != PROTOCOL_UDP || word(6) & 0x3fff != 0 {
        return Kind::Foreign;
    }
    if total < header + UDP {
        return Kind::Broken;
    }
    if word(header + 2) != address.port() {
        return Kind::Foreign;
    }
    // Its checksum is not looked at: what a host's own stack puts on a virtual device has none yet.
    let (from, length) = (SocketAddrV4::new(ip(12), word(header)), usize::from(word(header + 4)));
    if length <= UDP || header + length > total || !is_host(*from.ip()) || from.port() == 0 {
        return Kind::Broken;
    }
    let at = ETHERNET + header + UDP..ETHERNET + header + length;
    Kind::Datagram { from, congested: packet[1] & 0b11 == CONGESTED, at }
}

fn of_16(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("a datagram's length was checked").to_be_bytes()
}

/// The sum of 16-bit words in ones' complement (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let mut total: u32 = words.sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::super::ethernet::SHORTEST;
    use super::*;

    const ME: Mac = [2, 0, 0, 0, 0, 1];
    const PEER: Mac = [2, 0, 0, 0, 0, 2];

    fn here() -> SocketAddrV4 {
        "10.0.0.1:7000".parse().unwrap()
    }

    fn peer() -> SocketAddrV4 {
        "10.0.0.2:7001".parse().unwrap()
    }

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0xee; 2000];
        let length = write(&mut frame, (PEER, ME), peer(), here(), payload);
        frame.truncate(length);
        frame
    }

    /// The frame with another byte, and with the header's checksum made right again.
    fn changed(at: usize, byte: u8) -> Vec<u8> {
        let mut frame = frame(&[1; 100]);
        frame[at] = byte;
        frame[24..26].fill(0);
        let checksum = !sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    #[test]
    fn what_is_written_is_read() {
        for length in [1, 17, 18, 19, 1472] {
            let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let frame = frame(&payload);
            assert_eq!(frame.len(), (HEADERS + length).max(SHORTEST));
            let Kind::Datagram { from, congested, at } = read(&frame, ME, here()) else {
                panic!("{length} bytes are a datagram")
            };
            assert_eq!((from, congested, &frame[at]), (peer(), false, &payload[..]));
        }
    }

    /// The header of RFC 1071's kind that is in every textbook.
    #[test]
    fn the_checksum_is_that_of_others() {
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01,
            0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(!sum(&header), 0xb861);
    }

    #[test]
    fn the_mark_of_congestion_is_read() {
        let Kind::Datagram { congested, .. } = read(&changed(15, CONGESTED), ME, here()) else { panic!() };
        assert!(congested);
    }

    #[test]
    fn frames_of_others_are_foreign() {
        let other_port = SocketAddrV4::new(*here().ip(), 1);
        let other_host = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 7000);
        assert_eq!(read(&frame(&[1]), PEER, here()), Kind::Foreign, "for another card");
        assert_eq!(read(&frame(&[1]), ME, other_port), Kind::Foreign);
        assert_eq!(read(&frame(&[1]), ME, other_host), Kind::Foreign);
        assert_eq!(read(&changed(12, 0x86), ME, here()), Kind::Foreign, "another protocol");
        assert_eq!(read(&changed(23, 6), ME, here()), Kind::Foreign, "TCP");
        assert_eq!(read(&changed(20, 0x20), ME, here()), Kind::Foreign, "the first fragment");
        assert_eq!(read(&changed(21, 1), ME, here()), Kind::Foreign, "a later fragment");
    }

    #[test]
    fn broken_headers_are_found() {
        for (at, byte, what) in [
            (14, 0x65, "version 6"),
            (14, 0x44, "a header of 16 bytes"),
            (14, 0x4f, "a header of 60 bytes"),
            (16, 0xff, "longer than the frame"),
            (17, 10, "shorter than its header"),
            (17, 24, "no room for UDP"),
            (38, 0xff, "a datagram longer than its packet"),
            (39, 8, "a datagram without bytes"),
            (26, 224, "from a group"),
            (26, 127, "from the sender's own host"),
        ] {
            assert_eq!(read(&changed(at, byte), ME, here()), Kind::Broken, "{what}");
        }
        let mut flipped = frame(&[1; 100]);
        flipped[22] ^= 1;
        assert_eq!(read(&flipped, ME, here()), Kind::Broken, "a wrong checksum");
        let mut nobody = frame(&[1; 100]);
        nobody[34..36].fill(0);
        assert_eq!(read(&nobody, ME, here()), Kind::Broken, "from port 0");
    }

    /// Every cut and every single changed byte is judged, and what is taken for a datagram lies in the frame.
    #[test]
    fn nothing_from_the_wire_is_too_much() {
        let whole = frame(&[7; 60]);
        for length in 0..whole.len() {
            if let Kind::Datagram { .. } = read(&whole[..length], ME, here()) {
                panic!("a datagram in {length} of {} bytes", whole.len());
            }
        }
        for at in 0..HEADERS {
            for byte in 0..=255 {
                for frame in [changed(at, byte), {
                    let mut frame = whole.clone();
                    frame[at] = byte;
                    frame
                }] {
                    if let Kind::Datagram { at, .. } = read(&frame, ME, here()) {
                        assert!(at.start >= HEADERS && at.start < at.end && at.end <= frame.len(), "{at:?}");
                    }
                }
            }
        }
    }
}
