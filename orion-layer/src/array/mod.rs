//! Distributed arrays.
mod dense;
pub(crate) mod layout;
mod make;
mod partition;
mod transfer;

pub use self::dense::DistArray;
pub use self::layout::Layout;
