//! Events of an endpoint.
use crate::config::HostId;
use crate::refusal::Refusal;
use std::net::SocketAddr;

/// Something that happened on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A session with a peer begins. Nothing that was sent in an earlier one arrives any more.
    Connected {
        /// The peer.
        peer: HostId,
        /// Its boot epoch: another one if it was restarted.
        boot: u64,
        /// Its static public key.
        identity: [u8; 32],
    },
    /// There is no session with the peer (any more). The endpoint goes on trying if it knows an address.
    Disconnected {
        /// The peer.
        peer: HostId,
        /// Why.
        reason: Reason,
    },
    /// A packet arrived, and was handed to the peer's node.
    Acked {
        /// The peer.
        peer: HostId,
        /// The packet.
        id: u64,
    },
    /// A packet is taken for lost. It may still arrive.
    Lost {
        /// The peer.
        peer: HostId,
        /// The packet.
        id: u64,
    },
    /// Something may be sent: comes at the beginning of a session, and after [`SendError::Blocked`].
    Writable {
        /// The peer.
        peer: HostId,
        /// How many bytes may be sent now, headers included.
        bytes: u64,
    },
    /// The largest payload of a packet changed: it grows when the path was measured, and falls when the path swallows large
    /// packets.
    MaxPayload {
        /// The peer.
        peer: HostId,
        /// The payload, in bytes.
        bytes: usize,
    },
    /// Somebody who called was refused.
    Refused {
        /// The address of the caller.
        from: SocketAddr,
        /// Why.
        why: Refusal,
    },
}

/// Why there is no session with a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Nobody answers at its address.
    #[error(
        "nobody answers at {address}: no agent runs there, a firewall drops UDP, or the network carries no IP packets of \
         1228 bytes (1248 with IPv6)"
    )]
    NoAnswer {
        /// The address.
        address: SocketAddr,
    },
    /// It, or this host, refused.
    #[error("{address} and this host do not fit: {why}")]
    Refused {
        /// The address.
        address: SocketAddr,
        /// Why.
        why: Refusal,
    },
    /// The path does not carry packets of the least size any more; smaller ones arrive.
    #[error(
        "IP packets of 1228 bytes (1248 with IPv6) do not reach {address} any more, and smaller ones do: see the MTU of interfaces \
         and tunnels on the way"
    )]
    Narrow {
        /// The address.
        address: SocketAddr,
    },
    /// Nothing was heard of it for the idle time-out.
    #[error("nothing was heard of it for too long: it, or the network, is down")]
    TimedOut,
    /// It ended the session.
    #[error("it ended the session")]
    Closed,
    /// It was restarted.
    #[error("its agent was restarted")]
    Restarted,
    /// It began another session, because it had given this one up.
    #[error("it began another session")]
    Replaced,
    /// It acknowledged what was never sent, or let packets be forged without end.
    #[error("it broke the protocol")]
    Broken,
}

/// A packet of a peer.
#[derive(Debug, PartialEq, Eq)]
pub struct Received<'d> {
    /// The peer.
    pub peer: HostId,
    /// The payload that its node gave, in place in the datagram.
    pub payload: &'d [u8],
}

/// Why a packet was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no session: wait for [`Event::Connected`].
    #[error("there is no session with the peer")]
    NotConnected,
    /// Congestion control or pacing says no: wait for [`Event::Writable`].
    #[error("nothing may be sent now")]
    Blocked,
    /// The batch takes no such packet: send it, and begin another.
    #[error("the batch is full, or of packets of another size or to another host")]
    OtherBatch,
    /// The packet is larger than the path carries: cut it at [`Event::MaxPayload`].
    #[error("the packet is larger than {max} bytes, the most that the path carries")]
    TooLarge {
        /// The largest payload now, in bytes.
        max: usize,
    },
}
