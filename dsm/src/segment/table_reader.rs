//! Copies of a segment's tables, read like a file: nothing is mapped, so nothing that others do with the
//! memory, truncating and scribbling included, can stop the reader.
use super::layout::{AreaSlot, Config, Header, HostName, Map, Marks, WorkerRecord};
use crate::error::Error;
use crate::protocol::record::CopyRecord;
use crate::protocol::remote_clocks::HostRecord;
use crate::protocol::round::Seat;
use crate::segment::mapping::Segment;
use crate::segment::tally::Tally;
use rustix::io::{Errno, pread};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// Bytes that are asked for in one call.
const PIECE: usize = 1 << 20;

/// A value of a segment: any bytes are one, and dropping it does nothing.
///
/// # Safety
/// Both must be so.
pub(crate) unsafe trait Plain {}
// SAFETY: atomics, integers, and a pthread mutex in a cell, none of which has invalid bytes or a destructor.
unsafe impl Plain for Header {}
// SAFETY: as for the header.
unsafe impl Plain for HostRecord {}
// SAFETY: as for the header.
unsafe impl Plain for HostName {}
// SAFETY: as for the header.
unsafe impl Plain for Seat {}
// SAFETY: as for the header.
unsafe impl Plain for Tally {}
// SAFETY: as for the header.
unsafe impl Plain for WorkerRecord {}
// SAFETY: as for the header.
unsafe impl Plain for AreaSlot {}
// SAFETY: as for the header.
unsafe impl Plain for CopyRecord {}
// SAFETY: as for the header.
unsafe impl Plain for Marks {}
// SAFETY: an integer.
unsafe impl Plain for u8 {}

/// A segment that is read through its descriptor.
#[derive(Debug)]
pub(crate) struct TableReader {
    fd: OwnedFd,
    pub(crate) map: Map,
    pub(crate) config: Config,
}

impl TableReader {
    /// Looks once at what the segment says of itself; where its tables are is not asked again.
    pub(crate) fn open(fd: OwnedFd) -> Result<TableReader, Error> {
        let (map, config) = Segment::inspect(fd.as_fd())?;
        Ok(TableReader { fd, map, config })
    }

    /// The descriptor.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// A copy of `count` values of a table at `offset`; fewer if the file ends before. Words that change
    /// meanwhile are old or new: the kernel copies them whole, as they are aligned.
    pub(crate) fn table<T: Plain>(&self, offset: u64, count: usize) -> Result<Vec<T>, Error> {
        let mut table: Vec<T> = Vec::with_capacity(count);
        let bytes = count * size_of::<T>();
        let mut done = 0;
        while done < bytes {
            let Some(at) = offset.checked_add(done as u64).filter(|at| i64::try_from(*at).is_ok()) else {
                break;
            };
            let length = (bytes - done).min(PIECE);
            // SAFETY: `table` has room for `bytes` bytes, of which `done` are filled.
            let room = unsafe {
                let start = table.as_mut_ptr().cast::<MaybeUninit<u8>>().add(done);
                std::slice::from_raw_parts_mut(start, length)
            };
            match pread(&self.fd, room, at) {
                Ok(([], _)) => break,
                Ok((read, _)) => done += read.len(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(Error::Os { call: "pread", source: error.into() }),
            }
        }
        // SAFETY: that many values were filled, and any bytes are one.
        unsafe { table.set_len(done / size_of::<T>()) };
        Ok(table)
    }

    /// A copy of the one value at `offset`.
    pub(crate) fn one<T: Plain>(&self, offset: u64) -> Result<Option<T>, Error> {
        Ok(self.table(offset, 1)?.pop())
    }
}
