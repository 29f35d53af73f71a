//! The identity of a file, which distinguishes it from a new file at the same path.
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device and inode of a file.
pub(crate) type Identity = (u64, u64);

/// The identity of the file at a path.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    std::fs::symlink_metadata(path).ok().map(|about| (about.dev(), about.ino()))
}
