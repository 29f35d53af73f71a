//! Entries of sparse data, the files that they come from, and random numbers.
//!
//! Without workers: every function works on what one of them has, or reads one worker's share of a file. It knows how
//! dimensions are cut (`hectare_dependence`), and no array, no shared memory and no other worker.
//!
//! - [`entries`]: lists of entries, each with an index per dimension and a value.
//! - [`grid`]: such a list, placed into the cells of a grid.
//! - [`text`]: entries and rows of text files, in the usual formats; every worker reads its share of the lines.
//! - [`npy`]: the headers of NumPy's files.
//! - [`new_file`]: files that are written whole or not at all.
//! - [`random`]: random numbers that depend on nothing but a seed, a purpose and an index.
#![forbid(unsafe_code)]

pub mod entries;
pub mod grid;
pub mod new_file;
#[cfg(test)]
mod new_file_tests;
pub mod npy;
pub mod random;
pub mod text;
