//! The identity of a file, by which one that others made anew is told from the old one.
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Device and inode of a file, by which it is told from another one of its name.
pub(crate) type Identity = (u64, u64);

/// Which file is at a path.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    std::fs::symlink_metadata(path).ok().map(|about| (about.dev(), about.ino()))
}
