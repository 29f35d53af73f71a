//! Internal sync: rounds among the workers of one host. `SYNC.md` has the protocol.
pub(crate) mod abandon;
pub(crate) mod claim;
#[cfg(not(loom))]
pub(crate) mod clock;
#[cfg(not(loom))]
pub(crate) mod copying;
#[cfg(not(loom))]
pub(crate) mod division;
#[cfg(all(test, not(loom)))]
mod large_numbers;
pub(crate) mod lock;
#[cfg(all(test, loom))]
mod models;
pub(crate) mod pin;
#[cfg(not(loom))]
pub(crate) mod plan;
#[cfg(not(loom))]
pub(crate) mod publish;
pub(crate) mod record;
pub(crate) mod round;
#[cfg(not(loom))]
pub(crate) mod runtime;
#[cfg(all(test, not(loom)))]
mod steps;
#[cfg(not(loom))]
pub(crate) mod tally;
#[cfg(not(loom))]
pub(crate) mod wait;
pub(crate) mod word;
