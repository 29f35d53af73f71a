//! Refuses forked children: a page that the kernel wipes in a child tells parent and child apart by one load.
//!
//! The segment itself is `MADV_DONTFORK`, so a child that went on would touch unmapped memory.
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

static CANARY: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// A word that is 1 in this process and 0 in children that it forks from now on. A forked child that asks
/// gets one of its own, for what it maps itself.
pub(crate) fn canary() -> &'static AtomicU32 {
    let known = CANARY.load(Ordering::Acquire);
    // SAFETY: either null or a word of a page that is never unmapped.
    if let Some(word) = unsafe { known.as_ref() }
        && !is_child(word)
    {
        return word;
    }
    let fresh = make();
    let (own, old) = (std::ptr::from_ref(fresh).cast_mut(), known);
    match CANARY.compare_exchange(old, own, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => fresh,
        // SAFETY: somebody else's, made in the same way; this thread's page is left unused.
        Err(theirs) => unsafe { &*theirs },
    }
}

fn make() -> &'static AtomicU32 {
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
}

/// Whether this process is a forked child of the one that mapped the job.
#[inline]
pub(crate) fn is_child(canary: &AtomicU32) -> bool {
    canary.load(Ordering::Relaxed) == 0
}
