//! Refuses forked children: a page that the kernel wipes in a child tells parent and child apart by one load.
//!
//! The segment itself is `MADV_DONTFORK`. Every call refuses a child, but a guard or a pinned copy that it has
//! inherited is a plain slice. So that an access through one goes nowhere, rather than to whatever the child
//! maps next, a handler that runs in the child puts private, empty memory where the segment was.
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

static CANARY: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// A word that is 1 in this process and 0 in children that it forks from now on. A forked child that asks
/// gets one of its own, for what it maps itself.
pub(crate) fn canary() -> &'static AtomicU32 {
    // Acquire: pairs with the release below, after which the word is 1.
    let known = CANARY.load(Ordering::Acquire);
    // SAFETY: either null or a word of a page that is never unmapped.
    if let Some(word) = unsafe { known.as_ref() }
        && !is_child(word)
    {
        return word;
    }
    let fresh = make();
    let (own, old) = (std::ptr::from_ref(fresh).cast_mut(), known);
    // Release: pairs with the loads of others. Acquire: with the release of who was faster.
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

/// A range whose place is kept in forked children. Never freed; used again for another range.
#[derive(Debug)]
struct Kept {
    /// The first address; 0 while the record stands for no range.
    start: AtomicUsize,
    len: AtomicUsize,
    next: AtomicPtr<Kept>,
}

static KEPT: AtomicPtr<Kept> = AtomicPtr::new(std::ptr::null_mut());
/// `start` of a record that is being filled in: no address of a mapping.
const CLAIMED: usize = 1;

fn records() -> impl Iterator<Item = &'static Kept> {
    // Acquire: pairs with the release in `keep_place`.
    let mut at = KEPT.load(Ordering::Acquire);
    std::iter::from_fn(move || {
        // SAFETY: null, or a record that is never freed.
        let record: &'static Kept = unsafe { at.as_ref() }?;
        // Relaxed: does not change any more when the record can be found.
        at = record.next.load(Ordering::Relaxed);
        Some(record)
    })
}

/// Keeps the place of a mapping that children do not inherit: in children forked from now on, the range is
/// private and zero.
pub(crate) fn keep_place(start: *mut u8, len: usize) {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // SAFETY: the handler makes system calls and reads atomics only, as one that runs in the child of a
        // process with threads may. If the system has no memory for it, children go without.
        unsafe { libc::pthread_atfork(None, None, Some(fill_places)) };
    });
    // Acquire: pairs with the release in `give_place_up`.
    let unused = |record: &&Kept| {
        record.start.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
    };
    if let Some(record) = records().find(unused) {
        record.len.store(len, Ordering::Relaxed);
        // Release: the length comes before; pairs with the acquire in `fill_places`.
        record.start.store(start as usize, Ordering::Release);
        return;
    }
    let fresh: &'static Kept = Box::leak(Box::new(Kept {
        start: AtomicUsize::new(start as usize),
        len: AtomicUsize::new(len),
        next: AtomicPtr::new(std::ptr::null_mut()),
    }));
    let mut head = KEPT.load(Ordering::Relaxed);
    loop {
        fresh.next.store(head, Ordering::Relaxed);
        let own = std::ptr::from_ref(fresh).cast_mut();
        // Release: the record comes before; pairs with the acquire in `records`.
        match KEPT.compare_exchange(head, own, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

/// Ends what [`keep_place`] began. To be called before the range is unmapped.
pub(crate) fn give_place_up(start: *mut u8) {
    // Relaxed: the caller kept it. Release: pairs with the acquire in `keep_place`, whose range is another.
    if let Some(record) = records().find(|record| record.start.load(Ordering::Relaxed) == start as usize) {
        record.start.store(0, Ordering::Release);
    }
}

/// Runs in a forked child, before anything else does.
unsafe extern "C" fn fill_places() {
    for record in records() {
        // Acquire: pairs with the release in `keep_place`.
        let start = record.start.load(Ordering::Acquire);
        if start == 0 || start == CLAIMED {
            continue;
        }
        let len = record.len.load(Ordering::Relaxed);
        let put = |protection: libc::c_int| {
            let flags =
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
            // SAFETY: never replaces a mapping; the range is the one that the kernel left out of the child.
            unsafe { libc::mmap(start as *mut _, len, protection, flags, -1, 0) != libc::MAP_FAILED }
        };
        // Where the system counts every private page beforehand, the place is kept and not accessible.
        if !put(libc::PROT_READ | libc::PROT_WRITE) {
            put(libc::PROT_NONE);
        }
    }
}
