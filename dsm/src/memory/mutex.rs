//! A mutex in shared memory whose holder may die: a process-shared robust pthread mutex.
use std::cell::UnsafeCell;

/// A process-shared robust mutex at a fixed place in the segment.
///
/// It protects no data of its own: what it guards lies beside it, in atomics, and can be repaired.
#[repr(C)]
pub(crate) struct RobustMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a pthread mutex initialized as process-shared may be used from any thread of any process.
unsafe impl Sync for RobustMutex {}
// SAFETY: as above; it is only ever used in place.
unsafe impl Send for RobustMutex {}

/// How a lock was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    /// The last holder released it.
    Clean,
    /// The last holder died with it: what it guards may need repair.
    OwnerDied,
}

impl RobustMutex {
    /// Initializes the mutex in place.
    ///
    /// # Safety
    /// `this` points to zeroed memory of the segment that nobody else uses yet.
    pub(crate) unsafe fn init(this: *const RobustMutex) {
        // SAFETY: the caller gives exclusive, properly sized memory; attribute calls cannot fail with these
        // constants on Linux.
        unsafe {
            let mut attributes: libc::pthread_mutexattr_t = std::mem::zeroed();
            libc::pthread_mutexattr_init(&mut attributes);
            libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setrobust(&mut attributes, libc::PTHREAD_MUTEX_ROBUST);
            libc::pthread_mutex_init((*this).0.get(), &attributes);
            libc::pthread_mutexattr_destroy(&mut attributes);
        }
    }

    fn outcome(&self, code: libc::c_int) -> Option<Locked> {
        match code {
            0 => Some(Locked::Clean),
            libc::EOWNERDEAD => {
                // SAFETY: the mutex is initialized and this thread holds it.
                unsafe { libc::pthread_mutex_consistent(self.0.get()) };
                Some(Locked::OwnerDied)
            }
            _ => None,
        }
    }

    /// Locks if nobody living holds it.
    pub(crate) fn try_lock(&self) -> Option<Locked> {
        // SAFETY: the mutex was initialized when the segment was made.
        let code = unsafe { libc::pthread_mutex_trylock(self.0.get()) };
        self.outcome(code)
    }

    /// Unlocks; the calling thread holds the lock.
    pub(crate) fn unlock(&self) {
        // SAFETY: the mutex was initialized; a robust mutex refuses an unlock by a thread that is not the
        // holder, so a mistake is an ignored error and not undefined behaviour.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl std::fmt::Debug for RobustMutex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RobustMutex")
    }
}
