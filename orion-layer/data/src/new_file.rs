//! Files that are there whole or not at all.
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// As many links does the kernel follow.
const LINKS: usize = 40;

/// A file that is written beside its place, under a name that ends in `.part`, and renamed when it is complete and on the disk
/// ([`NewFile::finish`]): an old file of that name stays whole until then, also when this program is killed. Dropped before, it is
/// removed. It has the permissions of the old one, and takes the place of what a link leads to, there or not. What is no
/// regular file (a device, a pipe, what another program has open) is written to as it is.
///
/// ```
/// use hectare_data::new_file::NewFile;
/// use std::io::Write;
///
/// let path = std::env::temp_dir().join(format!("hectare-new-file-{}", std::process::id()));
/// let mut file = NewFile::create(&path)?;
/// file.write_all(b"half")?;
/// drop(file);
/// assert!(!path.exists());
/// let mut file = NewFile::create(&path)?;
/// file.write_all(b"all of it")?;
/// file.finish()?;
/// assert_eq!(std::fs::read(&path)?, b"all of it");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct NewFile {
    /// Where it is written until it is complete, and its place; none for what is no regular file.
    places: Option<[PathBuf; 2]>,
    out: BufWriter<File>,
}

impl NewFile {
    /// Begins a file.
    ///
    /// # Errors
    /// Those of the system: the directory is not there or may not be written to, links lead to each other.
    pub fn create(path: &Path) -> io::Result<NewFile> {
        let Some(target) = place(path)? else {
            let out = OpenOptions::new().write(true).open(path)?;
            return Ok(NewFile { places: None, out: buffered(out) });
        };
        // Two of a process may write to one place at a time.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut part = target.as_os_str().to_owned();
        part.push(format!(".{}.{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let part = PathBuf::from(part);
        let out = buffered(File::create_new(&part)?);
        let old = fs::metadata(&target);
        let new = NewFile { places: Some([part, target]), out };
        if let Ok(old) = old.as_ref().map(fs::Metadata::permissions) {
            new.out.get_ref().set_permissions(old)?;
        }
        Ok(new)
    }

    /// Puts the file into its place, on the disk.
    ///
    /// # Errors
    /// Those of the system: there is no room, the place is a directory's.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        let Some([part, target]) = &self.places else { return Ok(()) };
        self.out.get_ref().sync_all()?;
        fs::rename(part, target)?;
        // The new name is on the disk when the directory is.
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).to_owned();
        self.places = None;
        File::open(parent)?.sync_all()
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some([part, _]) = &self.places {
            // Whoever drops it has an error that says more than what removing it could.
            let _ = fs::remove_file(part);
        }
    }
}

/// Writes a new file that has these bytes ([`NewFile`]).
///
/// # Errors
/// Those of [`NewFile::create`], of writing and of [`NewFile::finish`].
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_by(path, |file| file.write_all(bytes.as_ref()))
}

/// Writes a new file that has what `body` writes ([`NewFile`]).
///
/// # Errors
/// Those of [`NewFile::create`], of `body` and of [`NewFile::finish`].
pub fn write_by(path: &Path, body: impl FnOnce(&mut NewFile) -> io::Result<()>) -> io::Result<()> {
    let mut file = NewFile::create(path)?;
    body(&mut file)?;
    file.finish()
}

fn buffered(file: File) -> BufWriter<File> {
    BufWriter::with_capacity(1 << 20, file)
}

/// The regular file, there or not, that a path leads to; `None` if it leads to something else. A directory counts as a file here: that
/// it cannot be replaced shows in the end.
fn place(path: &Path) -> io::Result<Option<PathBuf>> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Ok(None);
    }
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        // /dev/stdout is a file that somebody else has open.
        if path.starts_with("/proc") {
            return Ok(None);
        }
        match fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return Ok(Some(path)),
        }
    }
    Err(io::Error::new(ErrorKind::InvalidInput, "too many links, one to the other"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    fn directory(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("hectare-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn an_old_file_is_replaced_only_by_a_complete_one() {
        let directory = directory("new-file");
        let path = directory.join("state");
        fs::write(&path, "old").unwrap();
        let mut left = NewFile::create(&path).unwrap();
        left.write_all(b"half").unwrap();
        drop(left);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "a part was left behind");
        let mut new = NewFile::create(&path).unwrap();
        new.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        new.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        // A directory cannot be replaced by a file.
        fs::create_dir(directory.join("taken")).unwrap();
        NewFile::create(&directory.join("taken")).unwrap().finish().unwrap_err();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 2);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn links_devices_and_permissions_stay() {
        let directory = directory("links");
        let (real, link) = (directory.join("real"), directory.join("link"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real", &link).unwrap();
        write(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        // What a link leads to need not be there yet.
        fs::remove_file(&real).unwrap();
        write(&link, "newer").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"newer");
        symlink("circle", directory.join("circle")).unwrap();
        let refused = write(&directory.join("circle"), "").unwrap_err();
        assert!(refused.to_string().contains("too many links"), "{refused}");
        // Of what is no regular file, a pipe stands here for devices.
        let pipe = directory.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut reader = File::options().read(true).write(true).open(&pipe).unwrap();
        write(&pipe, "new").unwrap();
        let mut read = [0; 3];
        io::Read::read_exact(&mut reader, &mut read).unwrap();
        assert_eq!(&read, b"new");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        let full = write(Path::new("/dev/full"), "nothing").unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        // What somebody has open is written to where it is, and not by another file of its name.
        let opened = File::create(directory.join("opened")).unwrap();
        let at = std::os::fd::AsRawFd::as_raw_fd(&opened);
        write(Path::new(&format!("/proc/self/fd/{at}")), "seen").unwrap();
        assert_eq!((opened.metadata().unwrap().len(), fs::read_dir(&directory).unwrap().count()), (4, 5));
        fs::remove_dir_all(&directory).unwrap();
    }
}
