//! Distributed arrays.
pub(crate) mod arg;
mod dense;
pub(crate) mod exchange;
mod make;
mod noted;
mod npy;
mod npy_as;
mod partition;
mod read_table;
mod read_text;
mod same_file;
mod save_text;
pub(crate) mod share;
mod shown;
mod sparse;
mod value;
pub(crate) mod wire;

pub use self::dense::DistArray;
pub use self::npy::NpyElement;
pub use self::npy_as::FromNumber;
pub(crate) use self::sparse::withdraw_left;
pub use self::sparse::{LocalEntries, SparseArray};
pub use self::value::Value;
pub use crate::contract::Layout;

#[doc(inline)]
pub use hectare_data::{entries::Entry, random};
#[doc(inline)]
pub use hectare_dependence::histogram::Histogram;

pub(crate) use hectare_data::entries::Entries;

/// Parsers of lines, for [`Context::text_file`](crate::Context::text_file) and its like.
pub mod text {
    #[doc(inline)]
    pub use hectare_data::text::{
        Columns, Field, LabelledRow, LineError, Parsed, Separator, csv, libsvm, libsvm_from, movielens, tsv,
        whitespace,
    };
}
