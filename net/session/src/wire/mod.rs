//! The packets, byte by byte; `SESSION.md` is the document. Numbers are little-endian.
pub(crate) mod ack;
pub(crate) mod greeting;
pub(crate) mod header;

/// The size of the largest UDP payload that every path must carry (RFC 9000 section 14.1, RFC 8899 section 5.1.2).
pub const BASE_DATAGRAM: usize = 1200;

/// `N` bytes from `at` on, if they are there.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}
