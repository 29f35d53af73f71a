//! The header of packets of a session.
use super::array;

/// Bytes of a header.
pub(crate) const HEADER: usize = 16;

/// The second of the keys that take turns seals the packet.
pub(crate) const FLAG_KEY_PHASE: u8 = 1;
/// Behind the payload stands an acknowledgement, and behind that its length, in two bytes.
pub(crate) const FLAG_ACK_BEHIND: u8 = 2;

/// The kinds of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A packet of the node.
    Data,
    /// An acknowledgement, which is not acknowledged itself.
    Ack,
    /// Wants an acknowledgement, and means nothing else. Zeros follow, as many as the sender likes.
    Ping,
    /// The sender ends the session.
    Close,
}

impl Kind {
    const ALL: [(u8, Kind); 4] =
        [(0x40, Kind::Data), (0x41, Kind::Ack), (0x42, Kind::Ping), (0x43, Kind::Close)];

    fn code(self) -> u8 {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or(0, |(code, _)| *code)
    }

    /// Whether the receiver acknowledges it (RFC 9002 section 2, ack-eliciting).
    pub(crate) fn asks_for_ack(self) -> bool {
        matches!(self, Kind::Data | Kind::Ping)
    }
}

/// Sixteen bytes in the clear, which the seal covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    /// The number that the receiver gave the session.
    pub(crate) session: u32,
    /// The packet number: never twice in a session and direction.
    pub(crate) number: u64,
}

impl Header {
    pub(crate) fn write(&self, out: &mut [u8]) {
        out[0] = self.kind.code();
        out[1] = self.flags;
        out[2..4].fill(0);
        out[4..8].copy_from_slice(&self.session.to_le_bytes());
        out[8..16].copy_from_slice(&self.number.to_le_bytes());
    }

    /// The header of a packet of a session; none if it is something else.
    pub(crate) fn read(bytes: &[u8]) -> Option<Header> {
        let [code, flags, 0, 0] = array(bytes, 0)? else { return None };
        let (_, kind) = Kind::ALL.into_iter().find(|(known, _)| *known == code)?;
        let known = if kind == Kind::Data { FLAG_KEY_PHASE | FLAG_ACK_BEHIND } else { FLAG_KEY_PHASE };
        if flags & !known != 0 {
            return None;
        }
        let session = u32::from_le_bytes(array(bytes, 4)?);
        let number = u64::from_le_bytes(array(bytes, 8)?);
        Some(Header { kind, flags, session, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(code in 0..4_usize, flags in 0..2_u8, session: u32, number: u64) {
            let header = Header { kind: Kind::ALL[code].1, flags, session, number };
            let mut bytes = [0xff; HEADER];
            header.write(&mut bytes);
            prop_assert_eq!(Header::read(&bytes), Some(header));
            prop_assert_eq!(Header::read(&bytes[..15]), None);
        }

        #[test]
        fn what_is_read_is_written_again(bytes: [u8; HEADER]) {
            if let Some(header) = Header::read(&bytes) {
                let mut again = [0xff; HEADER];
                header.write(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn unknown_kinds_and_flags_are_no_headers() {
        let mut bytes = [0; HEADER];
        Header { kind: Kind::Ack, flags: 0, session: 1, number: 2 }.write(&mut bytes);
        for (at, value) in [(0, 0x44), (0, 1), (1, FLAG_ACK_BEHIND), (1, 4), (2, 1), (3, 1)] {
            let mut bad = bytes;
            bad[at] = value;
            assert_eq!(Header::read(&bad), None, "byte {at} is {value}");
        }
    }
}
