//! Distributed arrays.
mod dense;
pub mod entries;
pub(crate) mod exchange;
pub mod grid;
pub(crate) mod layout;
mod make;
mod npy;
mod partition;
pub mod random;
mod read_table;
mod read_text;
mod save_text;
pub(crate) mod share;
mod shown;
mod sparse;
pub mod text;
pub(crate) mod transfer;
pub(crate) mod wire;

pub use self::dense::DistArray;
pub use self::entries::{Entries, EntriesError, Entry};
pub use self::grid::Grid;
pub use self::layout::Layout;
pub use self::npy::NpyElement;
pub use self::sparse::{LocalEntries, PlacedEntries, Slices, SparseArray, Value};

#[doc(inline)]
pub use hectare_dependence::{
    cuts::{self, BlockWeights, Cuts},
    histogram::{self, Histogram},
};
