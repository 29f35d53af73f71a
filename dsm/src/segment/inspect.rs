//! Checks of a descriptor that somebody passed on, before it is mapped.
use super::layout::{Config, Header, LAYOUT_VERSION, MAGIC, Map};
use crate::error::Error;
use crate::segment::mapping::{Segment, last_os_error};
use std::os::fd::{AsRawFd, BorrowedFd};

impl Segment {
    /// Checks the descriptor of a segment without mapping it. What is in the segment is read once, and what is
    /// returned is what was checked: others may change it at any time.
    pub(crate) fn inspect(fd: BorrowedFd<'_>) -> Result<(Map, Config), Error> {
        let refuse = |what: String| Error::NotASegment { what };
        // SAFETY: zero is a valid stat, which the call then fills; plain system calls.
        let (size, seals) = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            if libc::fstat(fd.as_raw_fd(), &mut stat) != 0 {
                return Err(last_os_error("fstat"));
            }
            (stat.st_size as u64, libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS))
        };
        let (fixed, closed) = (
            libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL,
            libc::F_SEAL_WRITE | libc::F_SEAL_FUTURE_WRITE,
        );
        if seals < 0 || seals & fixed != fixed || seals & closed != 0 {
            return Err(refuse(
                "the descriptor is not a memfd that is sealed in size and nothing else".into(),
            ));
        }
        let mut head = vec![0u8; size_of::<Header>()];
        // SAFETY: `head` is writable for its length.
        let got = unsafe { libc::pread(fd.as_raw_fd(), head.as_mut_ptr().cast(), head.len(), 0) };
        if got != head.len() as isize {
            return Err(refuse(format!("{size} bytes are too few for a header")));
        }
        let at = |offset: usize, len: usize| &head[offset..offset + len];
        let magic: u64 = bytemuck::pod_read_unaligned(at(std::mem::offset_of!(Header, magic), 8));
        let version: u32 = bytemuck::pod_read_unaligned(at(std::mem::offset_of!(Header, layout_version), 4));
        if magic != MAGIC {
            return Err(refuse(format!("it begins with {magic:#018x}, not with the magic of a job")));
        }
        if version != LAYOUT_VERSION {
            return Err(Error::LayoutVersion { found: version, expected: LAYOUT_VERSION });
        }
        let config: Config =
            bytemuck::pod_read_unaligned(at(std::mem::offset_of!(Header, config), size_of::<Config>()));
        let stored: Map =
            bytemuck::pod_read_unaligned(at(std::mem::offset_of!(Header, map), size_of::<Map>()));
        match Map::of(&config) {
            Some(map) if map == stored && map.end == size => Ok((map, config)),
            _ => Err(refuse("its tables do not fit its configuration and size".into())),
        }
    }
}
