//! Checks of a descriptor that somebody passed on, before it is mapped.
use super::layout::{Config, Header, LAYOUT_VERSION, MAGIC, Map};
use crate::error::Error;
use crate::segment::mapping::{Segment, failed};
use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::io::pread;
use std::os::fd::BorrowedFd;

impl Segment {
    /// Checks the descriptor of a segment without mapping it. What is in the segment is read once, and what is
    /// returned is what was checked: others may change it at any time.
    pub(crate) fn inspect(fd: BorrowedFd<'_>) -> Result<(Map, Config), Error> {
        let refuse = |what: String| Error::NotASegment { what };
        let size = fstat(fd).map_err(failed("fstat"))?.st_size as u64;
        let fixed = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        let closed = SealFlags::WRITE | SealFlags::FUTURE_WRITE;
        if !fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(fixed) && !seals.intersects(closed)) {
            return Err(refuse(
                "the descriptor is not a memfd that is sealed in size and nothing else".into(),
            ));
        }
        let mut head = vec![0u8; size_of::<Header>()];
        if pread(fd, &mut head[..], 0) != Ok(head.len()) {
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
