//! Acknowledgement, loss, and how much may be on the way (RFC 9002, RFC 9438, RFC 9406, RFC 8899). One rule per file.
pub(crate) mod congestion;
pub(crate) mod lossy;
pub(crate) mod mtu;
pub(crate) mod pacing;
pub(crate) mod queue;
pub(crate) mod received;
pub(crate) mod reordering;
pub(crate) mod rtt;
pub(crate) mod sent;
pub(crate) mod slow_start;
