//! Checkpoints: arrays and values in one file, or one of each host, to go on from after a failure, with any number of workers.
//!
//! The file is written beside its place and renamed, so that a crash leaves the old one whole. Data come first,
//! then a table of contents in JSON, its length, its checksum, and a mark: a file that was cut off has no mark.
//! Dense arrays lie there in row-major order, sparse ones, maps and vectors in blocks of entries. Numbers are
//! little-endian; every array and every block has a checksum.
mod collections;
mod contents;
mod fetch;
mod files;
mod restore;
mod save;
mod writers;

pub use self::restore::Checkpoint;
pub use self::save::CheckpointWriter;
