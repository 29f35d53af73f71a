//! Arrays from text files, and to text.
//!
//! Every worker reads its own [`Share`] of a file: the lines that begin in its part of the bytes. A parser makes
//! an entry of each line; [`whitespace`], [`tsv`], [`csv`], [`movielens`] and [`libsvm`] are ready made.
//!
//! ```
//! use hectare_data::text::{Share, read_entries, whitespace};
//! # let path = std::env::temp_dir().join(format!("hectare-text-{}", std::process::id()));
//! # std::fs::write(&path, "0 4 3.5\n2 1 4\n")?;
//! // The file holds lines such as `0 4 3.5`.
//! let ratings = read_entries(&path, Share::ALL, whitespace::<f32, 2>)?;
//! assert_eq!(ratings.shape(), [3, 5]);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
mod columns;
mod field;
mod found;
mod libsvm;
mod line_error;
mod lines;
mod write;

pub use self::columns::{Columns, Separator, csv, is_unnamed, movielens, tsv, whitespace};
pub use self::field::Field;
pub use self::libsvm::{LabelledRow, libsvm, libsvm_from};
pub use self::line_error::LineError;
pub use self::lines::{Share, for_each_line};
pub use self::write::{write_entries, write_rows};

use crate::entries::Entries;
use std::path::{Path, PathBuf};

/// The result of a parser: an entry, nothing (a header, a comment, an empty line), or what is wrong with
/// the line.
pub type Parsed<T, const N: usize> = Result<Option<([usize; N], T)>, LineError>;

/// Why a text file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The system refused.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// It is a directory, a pipe or a device: its length is not known, so workers cannot share it.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// A line is not as expected.
    #[error("{}:{line}: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// The fault in it, in words.
        source: LineError,
    },
}

/// Reads a share of a file into entries. The shape is the smallest that holds them; make it that of all shares
/// with [`Entries::with_shape`].
///
/// The parser gets each line without its end, and at which byte of the file it begins.
///
/// # Errors
/// [`TextError`]. Indices of 2^32 and more are refused.
pub fn read_entries<T, const N: usize>(
    path: impl AsRef<Path>,
    share: Share,
    parser: impl Fn(&str, usize) -> Parsed<T, N>,
) -> Result<Entries<T, N>, TextError> {
    let mut entries = Entries::new([0; N]).unwrap_or_else(|_| unreachable!("no extent is too large"));
    for_each_line(path.as_ref(), share, |line, offset| {
        if let Some((key, value)) = parser(line, offset)? {
            entries.push_growing(key, value)?;
        }
        Ok(())
    })?;
    // A data set costs its own size: what the list had in reserve to grow is given back.
    entries.shrink_to_fit();
    Ok(entries)
}

/// Reads a share of a file into rows, such as [`libsvm`]'s. The number of a row is its place among the rows of
/// all shares in order: that of the first row here is the sum of the lengths of the shares before.
///
/// # Errors
/// [`TextError`].
pub fn read_rows<T>(
    path: impl AsRef<Path>,
    share: Share,
    parser: impl Fn(&str, usize) -> Result<Option<T>, LineError>,
) -> Result<Vec<T>, TextError> {
    let mut rows = Vec::new();
    for_each_line(path.as_ref(), share, |line, offset| {
        rows.extend(parser(line, offset)?);
        Ok(())
    })?;
    rows.shrink_to_fit();
    Ok(rows)
}

#[cfg(test)]
mod tests;
