//! Lines that an RDMA device writes into the memory of peers, instead of being sent in packets (`NET.md`, "Placing").
//!
//! [`Placer`] has two implementations: `rdma`, with the feature of that name, and else `none`, which places nothing and tells peers
//! why. So does `rdma` if there is no device.
#[cfg(feature = "rdma")]
mod places;
#[cfg(feature = "rdma")]
mod rdma;
#[cfg(feature = "rdma")]
mod way;
#[cfg(feature = "rdma")]
use rdma as of_feature;
#[cfg(not(feature = "rdma"))]
mod none;
#[cfg(not(feature = "rdma"))]
use none as of_feature;

use hectare_net::{HostId, PinId, Placing};
use serde::{Deserialize, Serialize};

pub use of_feature::Placer;

/// The RDMA device of this host's agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RdmaDevice {
    /// Its name, as `rdma link` lists it; none for that of the agent's address, or else the first.
    pub device: Option<String>,
}

impl RdmaDevice {
    /// Whether there is RDMA in this program.
    pub const IS_BUILT: bool = cfg!(feature = "rdma");
}

/// Why agents cannot use RDMA.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RdmaError {
    /// There is none in this program.
    #[error(
        "this program was built without RDMA: build hectare-daemon with the feature `rdma`, or let agents use UDP"
    )]
    NotBuilt,
    /// The device does not open.
    #[cfg(feature = "rdma")]
    #[error(transparent)]
    Device(#[from] hectare_rdma::Error),
}

/// An event of a placer, for the node.
#[cfg_attr(not(feature = "rdma"), allow(dead_code, reason = "without it nothing is placed"))]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A card, which is to be sent to the placer of a peer.
    Card(HostId, Vec<u8>),
    /// Whether lines can be placed at a peer.
    Places(HostId, bool),
    /// All placements at a peer up to this one are written.
    Wrote(HostId, u64),
    /// All that a peer placed up to the end of this cut is here.
    Placed(HostId, u32),
}

/// Lines that are to be placed at a peer.
#[derive(Debug)]
#[cfg_attr(not(feature = "rdma"), allow(dead_code, reason = "without it nothing is placed"))]
pub(crate) struct Lines {
    pub(crate) id: u64,
    pub(crate) cut: u32,
    pub(crate) pin: PinId,
    pub(crate) lines: Vec<Placing>,
    /// They are the last of the cut: after them, the device writes the peer a word that says so.
    pub(crate) is_last: bool,
}

/// The state of placing at a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Whether lines are placed there.
    pub(crate) is_up: bool,
    /// Why, or why not; empty if nobody asked for it.
    pub(crate) why: String,
}

/// The first byte of a card without a queue pair; the reason follows.
#[cfg_attr(not(feature = "rdma"), allow(dead_code, reason = "without it nobody has one"))]
const NO_PAIR: u8 = 0;
/// The most bytes of a reason.
const REASON: usize = 200;

/// A card that says why there is none.
fn no_card(why: &str) -> Vec<u8> {
    let end = (0..=why.len().min(REASON)).rev().find(|end| why.is_char_boundary(*end)).unwrap_or(0);
    [&[NO_PAIR], &why.as_bytes()[..end]].concat()
}
