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
        if let Ok(old) = old {
            new.out.get_ref().set_permissions(old.permissions())?;
        }
        Ok(new)
    }

    /// Puts the file into its place, on the disk.
    ///
    /// # Errors
    /// Those of the system: there is no room, the place is a directory's, or the directory may not be read. The old file stays then. If it
    /// is not known that the new name is on the disk, the error says so: the new file is in its place, until the machine stops.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        let Some([part, target]) = &self.places else { return Ok(()) };
        self.out.get_ref().sync_all()?;
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        // While an error leaves the old file as it is.
        let directory = File::open(parent.unwrap_or(Path::new(".")))?;
        fs::rename(part, target)?;
        self.places = None;
        // The new name is on the disk when the directory is. Some file systems cannot be asked for that.
        directory.sync_all().or_else(|error| match error.kind() {
            ErrorKind::InvalidInput | ErrorKind::Unsupported => Ok(()),
            kind => {
                let what = format!("it is in its place, but may be lost if the machine stops now: {error}");
                Err(io::Error::new(kind, what))
            }
        })
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
