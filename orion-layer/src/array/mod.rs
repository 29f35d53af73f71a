//! Distributed arrays.
pub mod entries;
pub mod histogram;
pub mod random;

pub use self::entries::{Entries, EntriesError, Entry};
pub use self::histogram::Histogram;
