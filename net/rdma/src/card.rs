//! The address of a queue pair, as it is sent to the peer.

/// The address of a queue pair. It goes to the peer over a session that proves who sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Card {
    /// Its number.
    pub number: u32,
    /// The number of its first packet.
    pub psn: u32,
    /// The address of its port.
    pub gid: [u8; 16],
    /// The same within an InfiniBand subnet; 0 on Ethernet.
    pub lid: u16,
    /// The MTU of its port, by verbs' number for it.
    pub mtu: u8,
}

impl Card {
    /// How many bytes it takes.
    pub const LEN: usize = 27;

    /// It as bytes, little-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Card::LEN] {
        let mut bytes = [0; Card::LEN];
        bytes[..4].copy_from_slice(&self.number.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.psn.to_le_bytes());
        bytes[8..24].copy_from_slice(&self.gid);
        bytes[24..26].copy_from_slice(&self.lid.to_le_bytes());
        bytes[26] = self.mtu;
        bytes
    }

    /// It from its bytes; none if they cannot be one.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Card> {
        let bytes: &[u8; Card::LEN] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut gid = [0; 16];
        gid.copy_from_slice(&bytes[8..24]);
        let card = Card {
            number: word(0),
            psn: word(4),
            gid,
            lid: u16::from_le_bytes([bytes[24], bytes[25]]),
            mtu: bytes[26],
        };
        ((1..=5).contains(&card.mtu) && card.number < 1 << 24 && card.psn < 1 << 24).then_some(card)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_its_bytes_and_others_are_none() {
        let card = Card { number: 0x12_3456, psn: 0x65_4321, gid: [7; 16], lid: 9, mtu: 3 };
        assert_eq!(Card::from_bytes(&card.to_bytes()), Some(card));
        assert_eq!(Card::from_bytes(&card.to_bytes()[1..]), None);
        for wrong in [Card { mtu: 0, ..card }, Card { mtu: 6, ..card }, Card { number: 1 << 24, ..card }] {
            assert_eq!(Card::from_bytes(&wrong.to_bytes()), None);
        }
    }
}
