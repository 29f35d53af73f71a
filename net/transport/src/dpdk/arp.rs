//! Which hardware address an IPv4 address has: questions and answers (RFC 826).
use super::ethernet::{self, BROADCAST, ETHERNET, Mac, TYPE_ARP, is_host};
use std::net::Ipv4Addr;

/// The bytes after the Ethernet header.
const LENGTH: usize = 28;
/// Ethernet, IPv4, and the lengths of their addresses.
const KINDS: [u8; 6] = [0, 1, 8, 0, 6, 4];
const QUESTION: u16 = 1;
const ANSWER: u16 = 2;

/// A question or an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arp {
    pub(super) is_question: bool,
    /// Who says so.
    pub(super) from: (Mac, Ipv4Addr),
    /// Who is asked, or told.
    pub(super) to: (Mac, Ipv4Addr),
}

impl Arp {
    /// Who has `ip`?
    pub(super) fn question(from: (Mac, Ipv4Addr), ip: Ipv4Addr) -> Arp {
        Arp { is_question: true, from, to: ([0; 6], ip) }
    }

    /// The answer to this question, of whom it asks for.
    pub(super) fn answer(&self, mac: Mac) -> Arp {
        Arp { is_question: false, from: (mac, self.to.1), to: self.from }
    }

    /// Reads the part behind the Ethernet header; `None` if it speaks of other networks or of what no host can be.
    pub(super) fn read(bytes: &[u8]) -> Option<Arp> {
        let bytes = bytes.get(..LENGTH)?;
        let mac = |at: usize| -> Mac { bytes[at..at + 6].try_into().expect("six bytes") };
        let ip = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
        let is_question = match u16::from_be_bytes([bytes[6], bytes[7]]) {
            QUESTION => true,
            ANSWER => false,
            _ => return None,
        };
        let (from, to) = ((mac(8), ip(14)), (mac(18), ip(24)));
        // The lowest bit of the first byte: an address of a group. And who has no address yet asks from 0.0.0.0.
        let is_sane = bytes[..6] == KINDS && from.0[0] & 1 == 0 && from.0 != [0; 6] && is_host(from.1);
        is_sane.then_some(Arp { is_question, from, to })
    }

    /// Writes it as a frame; its length.
    pub(super) fn write(&self, frame: &mut [u8]) -> usize {
        let to = if self.is_question { BROADCAST } else { self.to.0 };
        ethernet::write_ethernet(frame, (self.from.0, to), TYPE_ARP);
        let bytes = &mut frame[ETHERNET..ETHERNET + LENGTH];
        bytes[..6].copy_from_slice(&KINDS);
        bytes[6..8].copy_from_slice(&(if self.is_question { QUESTION } else { ANSWER }).to_be_bytes());
        bytes[8..14].copy_from_slice(&self.from.0);
        bytes[14..18].copy_from_slice(&self.from.1.octets());
        bytes[18..24].copy_from_slice(&self.to.0);
        bytes[24..28].copy_from_slice(&self.to.1.octets());
        ethernet::pad(frame, ETHERNET + LENGTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: (Mac, Ipv4Addr) = ([2, 0, 0, 0, 0, 1], Ipv4Addr::new(10, 0, 0, 1));
    const PEER: (Mac, Ipv4Addr) = ([2, 0, 0, 0, 0, 2], Ipv4Addr::new(10, 0, 0, 2));

    fn frame(arp: &Arp) -> Vec<u8> {
        let mut frame = vec![0xee; 100];
        let length = arp.write(&mut frame);
        assert_eq!(length, ethernet::SHORTEST);
        frame.truncate(length);
        frame
    }

    #[test]
    fn a_question_is_answered() {
        let question = Arp::question(PEER, ME.1);
        let asked = frame(&question);
        assert_eq!(asked[..6], BROADCAST);
        assert_eq!(Arp::read(&asked[ETHERNET..]), Some(question));
        let answer = question.answer(ME.0);
        let told = frame(&answer);
        assert_eq!(told[..6], PEER.0);
        assert_eq!(Arp::read(&told[ETHERNET..]), Some(Arp { is_question: false, from: ME, to: PEER }));
    }

    #[test]
    fn nonsense_is_not_believed() {
        let good = frame(&Arp::question(PEER, ME.1));
        let with = |at: usize, byte: u8| {
            let mut frame = good.clone();
            frame[ETHERNET + at] = byte;
            Arp::read(&frame[ETHERNET..])
        };
        for (at, byte) in [(1, 6), (2, 0x86), (4, 8), (5, 16), (7, 3), (8, 3), (14, 224), (14, 127)] {
            assert_eq!(with(at, byte), None, "byte {at}");
        }
        for length in 0..LENGTH {
            assert_eq!(Arp::read(&good[ETHERNET..][..length]), None);
        }
        assert_eq!(
            Arp::read(&frame(&Arp::question((PEER.0, Ipv4Addr::UNSPECIFIED), ME.1))[ETHERNET..]),
            None
        );
    }
}
