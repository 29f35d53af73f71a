//! Files that are there whole or not at all: what is read as text, or is no array of the loop layer.
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// As many links does the kernel follow.
const LINKS: usize = 40;

/// Writes a file beside its place and renames it when it is complete and on the disk: an old file of that name stays whole
/// until then, and keeps its mode. A link stays, and what it leads to is replaced. What is no regular file (a device, a pipe)
/// is written to.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    write_by(path, |out| out.write_all(bytes.as_ref()))
}

/// The same, written bit by bit.
pub(crate) fn write_by(path: &Path, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let Some(target) = place(path)? else {
        let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        return body(&mut out).and_then(|()| out.flush());
    };
    // Two of a process may write to one place at a time.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut part = target.as_os_str().to_owned();
    part.push(format!(".{}.{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let part = PathBuf::from(part);
    let written = File::create_new(&part).and_then(|file| complete(file, &part, &target, body));
    written.inspect_err(|_| {
        // Whoever gets this error learns more from it than from that of removing.
        let _ = fs::remove_file(&part);
    })
}

fn complete(
    file: File,
    part: &Path,
    target: &Path,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if let Ok(old) = fs::metadata(target) {
        file.set_permissions(old.permissions())?;
    }
    let mut out = BufWriter::new(file);
    body(&mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    fs::rename(part, target)?;
    // The new name is on the disk when the directory is.
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

/// The regular file, there or not, that a path leads to; `None` if it leads to something else.
fn place(path: &Path) -> io::Result<Option<PathBuf>> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
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
