//! Registered memory.
use crate::device::{Allocated, Domain};
use crate::error::Error;
use crate::ffi::{ACCESS_LOCAL_WRITE, ACCESS_REMOTE_WRITE, RawRegion};
use crate::library::code;
use hectare_dsm::agent::{ExposedCopy, ExposedWriter};
use std::fmt;
use std::ptr::NonNull;
use std::rc::Rc;

/// A range where a peer may write: what it is told of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The address of the first byte.
    pub address: u64,
    /// The key.
    pub key: u32,
}

/// The owner of a region's memory, which keeps it alive.
enum Kept {
    Writer { _writer: ExposedWriter },
    Copy { _copy: ExposedCopy },
    Own(Own),
}

/// Memory of its own.
struct Own(NonNull<[u64]>);

impl Own {
    fn zeroed(len: usize) -> Own {
        let all = vec![0_u64; len.div_ceil(8).max(1)].into_boxed_slice();
        Own(NonNull::from(Box::leak(all)))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: it was a box, and nothing has it but this.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Memory that is registered with a device, for as long as this lives.
pub struct Region {
    domain: Rc<Allocated>,
    raw: NonNull<RawRegion>,
    pub(crate) start: u64,
    len: usize,
    /// Last: it outlives the registration.
    kept: Kept,
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region").field("start", &self.start).field("len", &self.len).finish()
    }
}

impl Region {
    /// The writer copy of an area whose owner is elsewhere: the owner's host may write it.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn of_writer(domain: &Domain, writer: ExposedWriter) -> Result<Region, Error> {
        let (start, len) = (writer.start(), writer.len());
        Region::register(
            domain,
            start,
            len,
            ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE,
            Kept::Writer { _writer: writer },
        )
    }

    /// A published copy, from which is sent. No peer may read or write it.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn of_copy(domain: &Domain, copy: ExposedCopy) -> Result<Region, Error> {
        let (start, len) = (copy.start(), copy.len());
        Region::register(domain, start, len, 0, Kept::Copy { _copy: copy })
    }

    /// Memory of its own, of zeros, that the peer may write.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn own(domain: &Domain, len: usize) -> Result<Region, Error> {
        let own = Own::zeroed(len);
        let start = own.0.cast();
        Region::register(domain, start, len, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE, Kept::Own(own))
    }

    fn register(
        domain: &Domain,
        start: NonNull<u8>,
        len: usize,
        access: i32,
        kept: Kept,
    ) -> Result<Region, Error> {
        let library = domain.0.device.library;
        // SAFETY: the domain is there, and `kept` keeps the memory where it is for longer than the registration lasts. Bytes that a
        // device writes are never looked at through a reference while it may: of a writer copy, `ExposedWriter` promises that, and
        // those of `own` are read bytewise and volatile.
        let raw = unsafe { (library.reg_mr)(domain.0.raw.as_ptr(), start.as_ptr().cast(), len, access) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(Error::Memory { bytes: len, limit: lockable(), code: code() });
        };
        let start = start.as_ptr() as u64;
        Ok(Region { domain: domain.0.clone(), raw, start, len, kept })
    }

    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address and key that allow a peer to write it. The key of a published copy allows nothing.
    #[must_use]
    pub fn place(&self) -> Place {
        // SAFETY: it is registered.
        Place { address: self.start, key: unsafe { self.raw.as_ref() }.remote_key }
    }

    pub(crate) fn local_key(&self) -> u32 {
        // SAFETY: it is registered.
        unsafe { self.raw.as_ref() }.local_key
    }

    pub(crate) fn is_of(&self, domain: &Rc<Allocated>) -> bool {
        Rc::ptr_eq(&self.domain, domain)
    }

    /// Bytes of a region of its own, as they are now.
    ///
    /// # Panics
    /// If it is not of its own, or is shorter.
    #[must_use]
    pub fn read(&self, from: usize, len: usize) -> Vec<u8> {
        let start = self.own_bytes(from, len);
        // SAFETY: the bytes are the region's, and volatile accesses of single bytes bear a device that writes meanwhile.
        (0..len).map(|at| unsafe { start.add(at).read_volatile() }).collect()
    }

    /// Writes bytes of a region of its own.
    ///
    /// # Panics
    /// If it is not of its own, or is shorter.
    pub fn write(&mut self, from: usize, bytes: &[u8]) {
        let start = self.own_bytes(from, bytes.len());
        for (at, byte) in bytes.iter().enumerate() {
            // SAFETY: as in `read`.
            unsafe { start.add(at).write_volatile(*byte) };
        }
    }

    fn own_bytes(&self, from: usize, len: usize) -> *mut u8 {
        let Kept::Own(own) = &self.kept else { panic!("the memory of an area") };
        assert!(
            from.checked_add(len).is_some_and(|end| end <= self.len),
            "{len} bytes at {from} of {}",
            self.len
        );
        own.0.cast::<u8>().as_ptr().wrapping_add(from)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: it is registered, and no request that is under way uses it: `Pair` keeps those.
        let failed = unsafe { (self.domain.device.library.dereg_mr)(self.raw.as_ptr()) };
        assert_eq!(
            failed, 0,
            "a device keeps memory registered, into which a peer may write: the agent has to end"
        );
    }
}

/// How many bytes this process may lock; none for any number.
fn lockable() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is writable.
    let done = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    (done == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}
