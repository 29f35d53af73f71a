//! Files that are there whole or not at all.
use crate::error::{Error, Result};
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file that is written beside its place, under a name that ends in `.part`, and renamed when it is complete:
/// an old file of that name stays whole until then, also when this program is killed. Dropped before, it is
/// removed. It has the permissions of the old one, and takes the place of what a link leads to. What is no regular file, such as a
/// device or a pipe, is written to as it is.
#[derive(Debug)]
pub(crate) struct NewFile {
    target: PathBuf,
    /// Where it is written until it is complete, unless that is its place.
    written: Option<PathBuf>,
    out: BufWriter<File>,
}

impl NewFile {
    /// Begins a file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn create(target: &Path) -> Result<NewFile> {
        let io = |source| failed(target, source);
        let (target, old) = match std::fs::canonicalize(target) {
            Ok(place) => (place.clone(), Some(std::fs::metadata(place).map_err(io)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (target.to_owned(), None),
            Err(source) => return Err(io(source)),
        };
        if old.as_ref().is_some_and(|old| !old.is_file() && !old.is_dir()) {
            let out = File::options().write(true).open(&target).map_err(io)?;
            return Ok(NewFile { target, written: None, out: buffered(out) });
        }
        // Two of a process may write to one place at a time.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut written = target.as_os_str().to_owned();
        written.push(format!(".{}.{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let written = PathBuf::from(written);
        let out = File::create_new(&written).map_err(io)?;
        let new = NewFile { target, written: Some(written), out: buffered(out) };
        if let Some(old) = old.filter(Metadata::is_file) {
            new.out
                .get_ref()
                .set_permissions(old.permissions())
                .map_err(|source| failed(&new.target, source))?;
        }
        Ok(new)
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
        let put = |this: &mut NewFile| {
            this.out.flush()?;
            let Some(written) = &this.written else { return Ok(()) };
            this.out.get_ref().sync_all()?;
            std::fs::rename(written, &this.target)?;
            this.written = None;
            // The new name is on the disk when the directory is.
            let parent = this.target.parent().filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
        };
        put(&mut self).map_err(|source| failed(&self.target, source))
    }
}

fn buffered(file: File) -> BufWriter<File> {
    BufWriter::with_capacity(1 << 20, file)
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(written) = &self.written {
            // Whoever drops it has an error that says more than what removing it could.
            let _ = std::fs::remove_file(written);
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
    #[test]
    fn links_devices_and_permissions_stay() {
        use std::os::unix::fs::{FileTypeExt, PermissionsExt};
        let directory = std::env::temp_dir().join(format!("hectare-links-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (real, link) = (directory.join("real"), directory.join("link"));
        std::fs::write(&real, "old").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let mut new = NewFile::create(&link).unwrap();
        new.write(b"new").unwrap();
        new.finish().unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read(&real).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        // Of what is no regular file, a pipe stands here for devices.
        let pipe = directory.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut reader = File::options().read(true).write(true).open(&pipe).unwrap();
        let mut new = NewFile::create(&pipe).unwrap();
        new.write(b"new").unwrap();
        new.finish().unwrap();
        let mut read = [0; 3];
        std::io::Read::read_exact(&mut reader, &mut read).unwrap();
        assert_eq!(&read, b"new");
        assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
