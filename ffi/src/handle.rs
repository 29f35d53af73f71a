//! Handles: what the C side's opaque pointers point to.
//!
//! The memory of a handle is never given back to the system and never becomes that of another kind: a closed
//! handle can be told from an open one, as long as its place was not given to a new one. Places are used again
//! in the order in which they were closed, and not before `QUARANTINE` others were.
use crate::status::{Failure, Outcome, ha_status::*};
use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many handles of a kind must have been closed before the place of the first is used again.
const QUARANTINE: usize = 256;

/// The word of a handle that is closed.
const CLOSED: u64 = 0x6465_736f_6c63_6168;

/// A kind of handle.
pub(crate) trait Kind: Sized + 'static {
    /// The first word of an open handle of this kind.
    const MAGIC: u64;
    /// The kind, in words.
    const NAME: &'static str;
    /// The fields behind the first word, which the header's inline functions read.
    type Hot: Default + Copy;
    /// The handles of this kind.
    fn pool() -> &'static Pool;
}

/// The handles of one kind.
#[derive(Debug)]
pub(crate) struct Pool(Mutex<Places>);

#[derive(Debug)]
struct Places {
    /// The closed ones, the first closed first.
    closed: VecDeque<usize>,
    /// All that there ever were: so that leak checkers find the places of handles that nobody closed.
    all: Vec<usize>,
}

impl Pool {
    pub(crate) const fn new() -> Pool {
        Pool(Mutex::new(Places { closed: VecDeque::new(), all: Vec::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The memory of a handle.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Shell<K: Kind> {
    magic: AtomicU64,
    pub(crate) hot: UnsafeCell<K::Hot>,
    body: UnsafeCell<MaybeUninit<K>>,
}

impl<K: Kind> Shell<K> {
    /// Opens a handle.
    pub(crate) fn open(body: K) -> *mut Shell<K> {
        let mut places = K::pool().lock();
        let place = if places.closed.len() > QUARANTINE { places.closed.pop_front() } else { None };
        match place {
            None => {
                let shell = Box::into_raw(Box::new(Shell {
                    magic: AtomicU64::new(K::MAGIC),
                    hot: UnsafeCell::default(),
                    body: UnsafeCell::new(MaybeUninit::new(body)),
                }));
                places.all.push(shell.expose_provenance());
                shell
            }
            Some(place) => {
                let shell = std::ptr::with_exposed_provenance_mut::<Shell<K>>(place);
                // SAFETY: the place was a `Shell<K>` from `Box::into_raw`, is closed, and was taken out of the pool,
                // so nobody else opens it; whoever still has the old handle reads at most the first word.
                unsafe {
                    *(*shell).hot.get() = K::Hot::default();
                    (*(*shell).body.get()).write(body);
                    // Release: the body is written; pairs with the acquire in `check`.
                    (*shell).magic.store(K::MAGIC, Ordering::Release);
                }
                shell
            }
        }
    }

    /// The body of an open handle.
    ///
    /// # Safety
    /// `shell` is null, or points to readable memory of a handle's size; nobody closes it while the result is
    /// used.
    #[inline]
    pub(crate) unsafe fn body<'h>(shell: *const Shell<K>) -> Outcome<&'h K> {
        // SAFETY: by the contract above.
        unsafe { Shell::check(shell)? };
        // SAFETY: the first word is that of an open handle of this kind, whose body is written.
        Ok(unsafe { (*(*shell).body.get()).assume_init_ref() })
    }

    /// # Safety
    /// As for `body`.
    #[inline]
    pub(crate) unsafe fn check(shell: *const Shell<K>) -> Outcome {
        if shell.is_null() {
            return Err(null::<K>());
        }
        // SAFETY: by the contract above; a pointer that is not aligned is no handle.
        // Acquire: pairs with the release in `open`.
        if !shell.is_aligned() || unsafe { (*shell).magic.load(Ordering::Acquire) } != K::MAGIC {
            // SAFETY: as above.
            return Err(unsafe { bad(shell) });
        }
        Ok(())
    }

    /// Closes an open handle and returns its body.
    ///
    /// # Safety
    /// The handle is open, and nobody uses it at the same time.
    pub(crate) unsafe fn close(shell: *mut Shell<K>) -> K {
        // SAFETY: by the contract above. The body is read once: the handle is closed from here on.
        let body = unsafe {
            // Relaxed: who checks it is ordered with who closes by contract, or makes a mistake that this may find.
            (*shell).magic.store(CLOSED, Ordering::Relaxed);
            *(*shell).hot.get() = K::Hot::default();
            (*(*shell).body.get()).assume_init_read()
        };
        K::pool().lock().closed.push_back(shell.expose_provenance());
        body
    }
}

#[cold]
fn null<K: Kind>() -> Failure {
    Failure::new(HA_NULL, format!("the {} handle is null", K::NAME))
}

#[cold]
unsafe fn bad<K: Kind>(shell: *const Shell<K>) -> Failure {
    // SAFETY: the caller's contract; a pointer that is not aligned is not read.
    let closed = shell.is_aligned() && unsafe { (*shell).magic.load(Ordering::Relaxed) } == CLOSED;
    let what = if closed { "was closed before" } else { "is no such handle" };
    Failure::new(HA_BAD_HANDLE, format!("the {} handle {what}", K::NAME))
}

static THREADS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// Unlike the system's numbers, never used again.
    static THREAD: u64 = THREADS.fetch_add(1, Ordering::Relaxed);
}

/// The number of the calling thread, which no other thread ever has; 0 while it is ending.
#[inline]
pub(crate) fn this_thread() -> u64 {
    THREAD.try_with(|number| *number).unwrap_or(0)
}

/// Refuses threads other than `owner`.
#[inline]
pub(crate) fn check_thread(owner: u64, name: &str) -> Outcome {
    if this_thread() == owner {
        return Ok(());
    }
    Err(Failure::new(HA_WRONG_THREAD, format!("the {name} handle belongs to another thread")))
}
