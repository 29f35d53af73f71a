//! Distributed arrays.
pub(crate) mod arg;
mod dense;
pub(crate) mod exchange;
mod make;
mod npy;
mod npy_as;
mod partition;
mod read_table;
mod read_text;
mod save_text;
pub(crate) mod share;
mod shown;
mod sparse;
pub(crate) mod wire;

pub use self::dense::DistArray;
pub use self::npy::NpyElement;
pub use self::npy_as::FromNumber;
pub use self::sparse::{EntriesFamily, LocalEntries, PlacedEntries, SparseArray, Value};
pub use crate::contract::Layout;

#[doc(inline)]
pub use hectare_data::{
    entries::{self, Entries, EntriesError, Entry},
    grid::{self, Grid},
    random, text,
};
#[doc(inline)]
pub use hectare_dependence::{
    cuts::{self, BlockWeights, Cuts},
    histogram::{self, Histogram},
};
