//! Sealing and opening of packets, and the change of keys.
use crate::key::expand;
use crate::wire::header::{FLAG_KEY_PHASE, HEADER, Header};
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf;
use std::fmt;
use twox_hash::XxHash3_64;

/// Bytes of the tag behind a sealed packet.
const TAG: usize = 16;
/// Bytes of the checksum behind one that is not sealed.
const CHECKSUM: usize = 8;

/// How many packets one key seals (RFC 9001 section 6.6: 2^23 for AES-GCM).
pub const KEY_LIMIT: u64 = 1 << 23;

/// How many forged packets a session bears (RFC 9001 section 6.6: 2^52 for AES-GCM; here much less is an attack).
pub(crate) const FORGERY_LIMIT: u64 = 1 << 36;

/// How packets are sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Suite {
    /// AES-128-GCM (RFC 5116), with the packet number as nonce.
    #[default]
    Aes128Gcm,
    /// Not at all, for networks whose every machine is trusted: whoever sees packets can read them, and forge others. Hosts
    /// prove to each other in the handshake that they have the key, and a checksum (XXH3, Collet, 2019; its seed is the
    /// session's own) finds what the network damaged.
    Checksum,
    /// Nothing behind the payload either, so that tests reach all that parses it.
    #[doc(hidden)]
    Bare,
}

impl Suite {
    pub(crate) fn code(self) -> u8 {
        match self {
            Suite::Aes128Gcm => 0,
            Suite::Checksum => 1,
            Suite::Bare => 255,
        }
    }

    /// The suite of a code.
    pub(crate) fn of(code: u8) -> Option<Suite> {
        [Suite::Aes128Gcm, Suite::Checksum, Suite::Bare].into_iter().find(|suite| suite.code() == code)
    }

    /// Bytes behind a packet's payload.
    fn trailer(self) -> usize {
        match self {
            Suite::Aes128Gcm => TAG,
            Suite::Checksum => CHECKSUM,
            Suite::Bare => 0,
        }
    }

    /// Bytes that a packet has beside its payload.
    pub fn overhead(self) -> usize {
        HEADER + self.trailer()
    }
}

/// One key of one direction.
struct Key {
    aead: LessSafeKey,
    /// Combined with the packet number to a nonce (RFC 9001 section 5.3).
    iv: [u8; 12],
    /// From which the next key comes (RFC 9001 section 6.1).
    next: [u8; 32],
    /// The seed of checksums.
    seed: u64,
}

impl Key {
    fn new(secret: &[u8; 32]) -> Key {
        let prk = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret);
        let key: [u8; 16] = expand(&prk, &[b"hectare key"]);
        let unbound = UnboundKey::new(&AES_128_GCM, &key).expect("16 bytes");
        let (iv, next) = (expand(&prk, &[b"hectare iv"]), expand(&prk, &[b"hectare next"]));
        let seed = u64::from_le_bytes(expand(&prk, &[b"hectare checksum"]));
        Key { aead: LessSafeKey::new(unbound), iv, next, seed }
    }

    /// Of a whole packet but for its trailer.
    fn checksum(&self, packet: &[u8]) -> [u8; CHECKSUM] {
        XxHash3_64::oneshot_with_seed(self.seed, packet).to_le_bytes()
    }

    /// No nonce comes twice: a direction's packet numbers do not, nor do its keys.
    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = self.iv;
        for (byte, with) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= with;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Seals what one side sends.
pub(crate) struct Sealer {
    suite: Suite,
    key: Key,
    phase: u8,
    limit: u64,
    sealed: u64,
    /// The first packet under this key: the key is changed only when one since then was acknowledged.
    since: u64,
}

impl Sealer {
    pub(crate) fn new(suite: Suite, secret: &[u8; 32], limit: u64) -> Sealer {
        Sealer { suite, key: Key::new(secret), phase: 0, limit, sealed: 0, since: 0 }
    }

    /// Changes the key if it is time to (RFC 9001 sections 6.1 and 6.6). `number` is that of the next packet, `acknowledged`
    /// the highest that the peer has acknowledged.
    ///
    /// False if nothing may be sealed any more, because the peer acknowledges nothing.
    pub(crate) fn prepare(&mut self, number: u64, acknowledged: Option<u64>) -> bool {
        if self.suite != Suite::Aes128Gcm || self.sealed < self.limit / 2 {
            return true;
        }
        if acknowledged.is_some_and(|highest| highest >= self.since) {
            self.key = Key::new(&self.key.next.clone());
            self.phase ^= FLAG_KEY_PHASE;
            self.sealed = 0;
            self.since = number;
        }
        self.sealed < self.limit
    }

    /// Whether the node's packets may be sealed: the last quarter of a key is for what brings the acknowledgement that lets the
    /// key change.
    pub(crate) fn has_room(&self) -> bool {
        self.suite != Suite::Aes128Gcm || self.sealed < self.limit - self.limit / 4
    }

    /// Seals a packet in place: `packet` has room for header, payload and trailer, and its payload.
    pub(crate) fn seal(&mut self, mut header: Header, packet: &mut [u8]) {
        header.flags |= self.phase;
        header.write(&mut packet[..HEADER]);
        let (packet, trailer) = packet.split_at_mut(packet.len() - self.suite.trailer());
        match self.suite {
            Suite::Aes128Gcm => {
                let (head, payload) = packet.split_at_mut(HEADER);
                let nonce = self.key.nonce(header.number);
                let sealed = self.key.aead.seal_in_place_separate_tag(nonce, Aad::from(&*head), payload);
                trailer.copy_from_slice(sealed.expect("a packet is shorter than 64 GiB").as_ref());
                self.sealed += 1;
            }
            Suite::Checksum => trailer.copy_from_slice(&self.key.checksum(packet)),
            Suite::Bare => {}
        }
    }
}

/// Opens what the other side sends.
pub(crate) struct Opener {
    suite: Suite,
    current: Key,
    phase: u8,
    /// The lowest packet number that was seen under the current key.
    since: u64,
    /// The key before, for packets that were overtaken by the change.
    before: Option<Key>,
    next: Key,
}

impl Opener {
    pub(crate) fn new(suite: Suite, secret: &[u8; 32]) -> Opener {
        let current = Key::new(secret);
        let next = Key::new(&current.next);
        Opener { suite, current, phase: 0, since: 0, before: None, next }
    }

    /// Opens a packet in place, and gives its payload; none if it is not from the peer.
    pub(crate) fn open<'p>(&mut self, header: &Header, packet: &'p mut [u8]) -> Option<&'p mut [u8]> {
        if self.suite == Suite::Checksum {
            let end = packet.len().checked_sub(CHECKSUM)?;
            let (packet, checksum) = packet.split_at_mut(end);
            let is_whole = packet.len() >= HEADER && self.current.checksum(packet) == checksum;
            return if is_whole { Some(&mut packet[HEADER..]) } else { None };
        }
        let (head, sealed) = packet.split_at_mut_checked(HEADER)?;
        if self.suite == Suite::Bare {
            return Some(sealed);
        }
        let changed = header.flags & FLAG_KEY_PHASE != self.phase;
        let is_next = changed && header.number >= self.since;
        let key = match (changed, is_next) {
            (false, _) => &self.current,
            (true, true) => &self.next,
            (true, false) => self.before.as_ref()?,
        };
        let opened = key.aead.open_in_place(key.nonce(header.number), Aad::from(&*head), sealed).ok()?;
        if is_next {
            // RFC 9001 section 6.3: only a packet that opens changes the key.
            let after = Key::new(&self.next.next);
            let current = std::mem::replace(&mut self.next, after);
            self.before = Some(std::mem::replace(&mut self.current, current));
            self.phase ^= FLAG_KEY_PHASE;
            self.since = header.number;
        } else if !changed {
            self.since = self.since.min(header.number);
        }
        Some(opened)
    }
}

/// Never shows a key.
impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer")
            .field("suite", &self.suite)
            .field("sealed", &self.sealed)
            .finish_non_exhaustive()
    }
}

/// Never shows a key.
impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("suite", &self.suite).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::header::Kind;

    fn packet(sealer: &mut Sealer, number: u64) -> (Header, Vec<u8>) {
        let mut bytes = vec![number as u8; 40 + sealer.suite.overhead()];
        sealer.seal(Header { kind: Kind::Data, flags: 0, session: 5, number }, &mut bytes);
        (Header::read(&bytes).unwrap(), bytes)
    }

    #[test]
    fn a_packet_opens_once_sealed_and_not_with_a_bit_changed() {
        for suite in [Suite::Aes128Gcm, Suite::Checksum] {
            let mut sealer = Sealer::new(suite, &[1; 32], KEY_LIMIT);
            let (header, bytes) = packet(&mut sealer, 7);
            let mut opener = Opener::new(suite, &[1; 32]);
            assert_eq!(opener.open(&header, &mut bytes.clone()).unwrap(), [7; 40]);
            assert!(Opener::new(suite, &[2; 32]).open(&header, &mut bytes.clone()).is_none());
            for at in 0..bytes.len() {
                let mut bad = bytes.clone();
                bad[at] ^= 0x80;
                let header = Header::read(&bad).unwrap_or(header);
                assert!(opener.open(&header, &mut bad).is_none(), "byte {at}");
                let mut short = bytes[..at].to_vec();
                assert!(opener.open(&header, &mut short).is_none(), "{at} bytes");
            }
        }
    }

    #[test]
    fn the_key_changes_when_half_used_and_late_packets_still_open() {
        let mut sealer = Sealer::new(Suite::Aes128Gcm, &[1; 32], 8);
        let mut opener = Opener::new(Suite::Aes128Gcm, &[1; 32]);
        let mut late = Vec::new();
        let mut phases = Vec::new();
        for number in 0..40 {
            assert!(sealer.prepare(number, number.checked_sub(1)));
            let (header, mut bytes) = packet(&mut sealer, number);
            phases.push(header.flags);
            if number % 4 == 3 {
                late.push((header, bytes));
            } else {
                assert!(opener.open(&header, &mut bytes).is_some(), "packet {number}");
                for (header, mut bytes) in late.drain(..) {
                    assert!(opener.open(&header, &mut bytes).is_some(), "late packet {}", header.number);
                }
            }
        }
        let changes = phases.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(changes, 9, "{phases:?}");
    }

    #[test]
    fn a_peer_that_acknowledges_nothing_ends_the_sealing_at_the_limit() {
        let mut sealer = Sealer::new(Suite::Aes128Gcm, &[1; 32], 8);
        for number in 0..8 {
            assert!(sealer.prepare(number, None));
            assert_eq!(sealer.has_room(), number < 6, "the last quarter is not for data");
            packet(&mut sealer, number);
        }
        assert!(!sealer.prepare(8, None) && !sealer.has_room());
        assert!(sealer.prepare(8, Some(3)), "an acknowledgement permits the change");
    }
}
