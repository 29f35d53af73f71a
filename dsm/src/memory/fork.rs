//! Refuses forked children: a page that the kernel wipes in a child tells parent and child apart by one load.
//!
//! The segment itself is `MADV_DONTFORK`, so a child that went on would touch unmapped memory.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

static CANARY: OnceLock<&'static AtomicU32> = OnceLock::new();

/// The word that is 1 in the process that made it and 0 in a forked child.
pub(crate) fn canary() -> &'static AtomicU32 {
    CANARY.get_or_init(|| {
        // SAFETY: a fresh private anonymous page that is never unmapped; a zeroed page holds a valid
        // AtomicU32 at its start.
        let word: &'static AtomicU32 = unsafe {
            let page = libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if page == libc::MAP_FAILED {
                return Box::leak(Box::new(AtomicU32::new(1)));
            }
            // Where the kernel cannot wipe, a child is told by the missing mapping alone.
            libc::madvise(page, 4096, libc::MADV_WIPEONFORK);
            &*page.cast()
        };
        word.store(1, Ordering::Relaxed);
        word
    })
}

/// Whether this process is a forked child of the one that mapped the job.
#[inline]
pub(crate) fn is_child(canary: &AtomicU32) -> bool {
    canary.load(Ordering::Relaxed) == 0
}
