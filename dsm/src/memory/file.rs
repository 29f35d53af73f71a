//! Small files of the kernel, read in as few system calls as can be.
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use std::io;
use std::path::Path;

/// More than most of them have.
const USUAL: usize = 8 << 10;

/// The text of a file. Unlike [`std::fs::read_to_string`], which asks for the size, that these files do not know, and then begins with
/// a few bytes.
///
/// # Errors
/// When it cannot be opened or read, or is no UTF-8.
pub(super) fn read(path: &Path) -> io::Result<String> {
    let file = retry_on_intr(|| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()))?;
    let mut bytes = Vec::with_capacity(USUAL);
    loop {
        if bytes.len() == bytes.capacity() {
            bytes.reserve(USUAL);
        }
        if retry_on_intr(|| rustix::io::read(&file, rustix::buffer::spare_capacity(&mut bytes)))? == 0 {
            break;
        }
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn files_of_any_length_are_read_whole() {
        let path = std::env::temp_dir().join(format!("hectare-file-{}", std::process::id()));
        for len in [0, 1, 8191, 8192, 8193, 100_000] {
            let text: String = ('a'..='z').cycle().take(len).collect();
            std::fs::write(&path, &text).unwrap();
            assert_eq!(read(&path).unwrap(), text);
        }
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        assert!(read("/proc/self/mountinfo".as_ref()).unwrap().ends_with('\n'));
    }
}
