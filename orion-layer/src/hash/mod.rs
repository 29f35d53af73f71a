//! Hashes and checksums.
mod checksum;
mod words;

pub(crate) use self::checksum::{Checksum, checksum};
pub(crate) use self::words::Words;
