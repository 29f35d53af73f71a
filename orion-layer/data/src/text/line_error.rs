//! Errors of single lines.

/// Why a line of a text file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// A column is no index.
    #[error("expected an index (a whole number, not negative), found {found:?}")]
    NotAnIndex {
        /// The column.
        found: String,
    },
    /// An index is above what this machine or the format can count.
    #[error("the index {index} is too large")]
    IndexTooLarge {
        /// The index.
        index: String,
    },
    /// An index is below the first.
    #[error(
        "{what} begin at {first} here, found {found}{}",
        if *what == "features" { " (scikit-learn writes them so with `zero_based=False`)" } else { "" }
    )]
    BeforeFirst {
        /// Of what the index is: `indices` or `features`.
        what: &'static str,
        /// The first index of the file.
        first: usize,
        /// The index.
        found: String,
    },
    /// A column is no number.
    #[error("expected a number, found {found:?}")]
    NotANumber {
        /// The column.
        found: String,
    },
    /// A number is infinite, none at all, or too large for its type.
    #[error("expected a finite {kind}, found {found:?}")]
    NotFinite {
        /// The type.
        kind: &'static str,
        /// The column.
        found: String,
    },
    /// A column is no whole number of its type.
    #[error("expected a whole number from {least} to {greatest}, found {found:?}")]
    NotWhole {
        /// The least number of the type.
        least: i128,
        /// The greatest.
        greatest: i128,
        /// The column.
        found: String,
    },
    /// There are too few or too many columns.
    #[error(
        "expected {} columns{} ({indices} indices and a value), found {found:?}",
        indices + 1,
        if *more { " or more" } else { "" }
    )]
    Columns {
        /// Indices before the value.
        indices: usize,
        /// Whether more columns may follow.
        more: bool,
        /// The beginning of the line.
        found: String,
    },
    /// The header does not name the first column.
    #[error(
        "the first column has no name, as if it were the numbers of the rows, which are not read: write the file without them \
         (pandas: `index=False`), or give the column a name"
    )]
    NoName,
    /// The label of a row of LIBSVM's format is none.
    #[error("label: {source}")]
    Label {
        /// Why.
        source: Box<LineError>,
    },
    /// A column is no feature of LIBSVM's format.
    #[error("expected index:value, found {found:?}")]
    NotAFeature {
        /// The column.
        found: String,
    },
    /// A column is the id of a query.
    #[error("query ids are not supported, found {found:?}")]
    QueryId {
        /// The column.
        found: String,
    },
    /// Features of a row do not ascend.
    #[error("feature {feature} comes after feature {last}")]
    FeatureOrder {
        /// The feature.
        feature: u64,
        /// The one before it.
        last: u64,
    },
    /// The line is not text.
    #[error("byte {byte} of this line is not UTF-8")]
    NotUtf8 {
        /// The first such byte, from 1.
        byte: usize,
    },
    /// The entry cannot be kept.
    #[error(transparent)]
    Entry(#[from] crate::entries::EntriesError),
    /// A parser of one's own refuses the line, for this reason.
    #[error("{0}")]
    Other(String),
}

impl From<String> for LineError {
    fn from(reason: String) -> LineError {
        LineError::Other(reason)
    }
}

impl From<&str> for LineError {
    fn from(reason: &str) -> LineError {
        LineError::Other(reason.into())
    }
}
