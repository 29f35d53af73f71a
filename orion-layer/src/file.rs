//! Files that are there whole or not at all.
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file that is written beside its place, under a name that ends in `.part`, and renamed when it is complete:
/// an old file of that name stays whole until then, also when this program is killed. Dropped before, it is
/// removed.
#[derive(Debug)]
pub(crate) struct NewFile {
    target: PathBuf,
    written: PathBuf,
    out: BufWriter<File>,
    complete: bool,
}

impl NewFile {
    /// Begins a file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn create(target: &Path) -> Result<NewFile> {
        // Two of a process may write to one place at a time.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut written = target.as_os_str().to_owned();
        written.push(format!(".{}.{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let written = PathBuf::from(written);
        let out = File::create_new(&written).map_err(|source| failed(target, source))?;
        let out = BufWriter::with_capacity(1 << 20, out);
        Ok(NewFile { target: target.into(), written, out, complete: false })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|source| failed(&self.target, source))
    }

    /// Puts the file into its place, on the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finish(mut self) -> Result<()> {
        let finished = self.out.flush().and_then(|()| self.out.get_ref().sync_all()).and_then(|()| {
            std::fs::rename(&self.written, &self.target)?;
            self.complete = true;
            // The new name is on the disk when the directory is.
            let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
        });
        finished.map_err(|source| failed(&self.target, source))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.complete {
            // Whoever drops it has an error that says more than what removing it could.
            let _ = std::fs::remove_file(&self.written);
        }
    }
}

/// An error of the system about a file.
pub(crate) fn failed(path: &Path, source: io::Error) -> Error {
    Error::Io { file: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_file_is_replaced_only_by_a_complete_one() {
        let directory = std::env::temp_dir().join(format!("hectare-file-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("state");
        std::fs::write(&path, "old").unwrap();
        let mut left = NewFile::create(&path).unwrap();
        left.write(b"half").unwrap();
        drop(left);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "a part was left behind");
        let mut new = NewFile::create(&path).unwrap();
        new.write(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        new.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
        // A directory cannot be replaced by a file.
        std::fs::create_dir(directory.join("taken")).unwrap();
        let refused = NewFile::create(&directory.join("taken")).unwrap().finish();
        assert!(matches!(refused, Err(Error::Io { file, .. }) if file.ends_with("taken")));
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 2);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
