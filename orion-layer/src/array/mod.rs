//! Distributed arrays.
pub mod cuts;
pub mod entries;
pub mod grid;

pub mod histogram;
pub mod random;
pub mod text;

pub use self::cuts::{BlockWeights, Cuts};
pub use self::entries::{Entries, EntriesError, Entry};

pub use self::grid::Grid;
pub use self::histogram::Histogram;
