//! The control page of a member: what the daemon last said about its membership, in memory that outlives the
//! daemon.
//!
//! The daemon writes, by `pwrite`; the member reads, by `pread`. Neither maps it, so that nothing which the
//! other side does with it can hurt. The daemon reads nothing of it, and the member has it for reading only.
use crate::{Error, Result};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use std::os::fd::{AsRawFd, OwnedFd};

/// The size of a control page, in bytes.
pub const PAGE_BYTES: u64 = 4096;

const MAGIC: u64 = u64::from_le_bytes(*b"hectctl1");
/// The words of a page, each of eight bytes, low first.
const WORDS: usize = 5;
const STANDING: usize = 3;

/// The contents of a member's control page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// A number that tells this daemon from the ones before and after.
    pub boot: u64,
    /// The daemon's number of the connection.
    pub client: u64,
    /// The member's state with the daemon.
    pub state: MemberState,
    /// Whether the job stays when its last member has left.
    pub keep: bool,
}

/// A member's state with the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// It is a member.
    Member,
    /// Its job was removed on request. The member keeps the memory.
    Removed,
}

impl MemberState {
    fn word(self) -> u64 {
        match self {
            MemberState::Member => 1,
            MemberState::Removed => 2,
        }
    }
}

impl Page {
    /// Makes a page: the descriptor to write it by, and one to read it by.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn make(self) -> Result<(OwnedFd, OwnedFd)> {
        let os = |call| move |error: rustix::io::Errno| Error::os(call, error);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let page = rustix::fs::memfd_create("hectare-control", flags).map_err(os("memfd_create"))?;
        rustix::fs::ftruncate(&page, PAGE_BYTES).map_err(os("ftruncate"))?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&page, seals).map_err(os("fcntl(F_ADD_SEALS)"))?;
        let words = [MAGIC, self.boot, self.client, self.state.word(), u64::from(self.keep)];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        rustix::io::pwrite(&page, &bytes, 0).map_err(os("pwrite"))?;
        let again = format!("/proc/self/fd/{}", page.as_raw_fd());
        let reader = rustix::fs::open(again, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(os("opening the control page"))?;
        Ok((page, reader))
    }

    /// Writes another state. The byte that differs changes at once for whoever reads.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn set_state(page: &OwnedFd, state: MemberState) -> Result<()> {
        let written = rustix::io::pwrite(page, &state.word().to_le_bytes(), STANDING as u64 * 8);
        written.map(drop).map_err(|error| Error::os("pwrite", error))
    }

    /// The contents of a page, read once; `None` if it is no page.
    ///
    /// ```
    /// use hectare_wire::{Page, MemberState};
    /// let page = Page { boot: 1, client: 7, state: MemberState::Member, keep: true };
    /// let (writer, reader) = page.make()?;
    /// assert_eq!(Page::read(&reader), Some(page));
    /// Page::set_state(&writer, MemberState::Removed)?;
    /// assert_eq!(Page::read(&reader).map(|page| page.state), Some(MemberState::Removed));
    /// # Ok::<(), hectare_wire::Error>(())
    /// ```
    pub fn read(page: &OwnedFd) -> Option<Page> {
        let mut bytes = [0u8; WORDS * 8];
        let got = rustix::io::pread(page, &mut bytes, 0).ok()?;
        if got != bytes.len() {
            return None;
        }
        let mut words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next();
        let (magic, boot, client, state, keep) = (next()?, next()?, next()?, next()?, next()?);
        let state = match state {
            1 => MemberState::Member,
            2 => MemberState::Removed,
            _ => return None,
        };
        (magic == MAGIC && keep <= 1).then_some(Page { boot, client, state, keep: keep == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_page_says_nothing_and_members_cannot_write() {
        let page = Page { boot: 3, client: 1 << 40, state: MemberState::Removed, keep: false };
        let (writer, reader) = page.make().unwrap();
        assert_eq!(Page::read(&reader), Some(page));
        assert!(rustix::io::pwrite(&reader, &[1], 0).is_err());
        assert!(rustix::fs::ftruncate(&writer, 0).is_err());
        for (offset, byte) in [(0, 0), (24, 0), (24, 3), (31, 1), (32, 2)] {
            let (writer, reader) = page.make().unwrap();
            rustix::io::pwrite(&writer, &[byte], offset).unwrap();
            assert_eq!(Page::read(&reader), None, "byte {offset}");
        }
        let empty = rustix::fs::memfd_create("empty", MemfdFlags::CLOEXEC).unwrap();
        assert_eq!(Page::read(&empty), None);
    }
}
