//! A thread that ends while it is a worker or an observer ends its process.
//!
//! Views borrow their worker or observer, and the kernel releases its mutex when its thread ends. A value that is
//! dropped has no views any more. One that was leaked may have: a `&'static` slice that another thread reads or
//! writes. If its thread's end made it dead, others would change what that slice shows. So nobody survives this in
//! the same process.
//!
//! The end of a thread is noticed by a key of thread-specific data. The C library calls the destructors of keys after
//! those of thread-local variables, in Rust and in C++, which may drop a worker (glibc; musl's Rust has keys for
//! both, hence the passes below). It calls them for threads that return, exit and are cancelled; not when the process
//! ends. All this happens before the kernel releases a mutex.
use crate::error::Error;
use crate::memory::fork;
use std::cell::OnceCell;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

/// How often the C library goes through the keys of a thread that ends (glibc, musl). The last time decides: before
/// it, the destructor of another key may end what is open.
const PASSES: u32 = 4;

/// A thread's role in a job, for as long as this exists: a worker or an observer.
#[derive(Debug)]
pub(crate) struct Tenure {
    entry: Rc<Entry>,
    /// The list of this thread, which has the entry.
    list: NonNull<List>,
}

#[derive(Debug)]
struct Entry {
    /// Tells whether this process has forked from the one that the thread belongs to.
    canary: &'static AtomicU32,
    what: OnceCell<String>,
}

/// A thread's roles at this moment: the value of the key.
#[derive(Debug, Default)]
struct List {
    entries: Vec<Rc<Entry>>,
    passes: u32,
}

fn failed(call: &'static str, code: libc::c_int) -> Error {
    Error::Os { call, source: std::io::Error::from_raw_os_error(code) }
}

fn key() -> Result<libc::pthread_key_t, Error> {
    static KEY: OnceLock<Result<libc::pthread_key_t, libc::c_int>> = OnceLock::new();
    let made = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is a place for the key; `thread_ends` takes what `Tenure::begin` stores.
        match unsafe { libc::pthread_key_create(&mut key, Some(thread_ends)) } {
            0 => Ok(key),
            code => Err(code),
        }
    });
    made.map_err(|code| failed("pthread_key_create", code))
}

impl Tenure {
    /// To be called before the thread locks the mutex that it holds for life.
    pub(crate) fn begin(canary: &'static AtomicU32) -> Result<Tenure, Error> {
        let key = key()?;
        // SAFETY: the key was made; its value is null or the list of this thread.
        let known = NonNull::new(unsafe { libc::pthread_getspecific(key) }.cast::<List>());
        let mut list = match known {
            Some(list) => list,
            None => {
                let list = Box::into_raw(Box::<List>::default());
                // SAFETY: the key was made.
                let code = unsafe { libc::pthread_setspecific(key, list.cast_const().cast()) };
                if code != 0 {
                    // SAFETY: just made, and nobody else has it.
                    drop(unsafe { Box::from_raw(list) });
                    return Err(failed("pthread_setspecific", code));
                }
                // SAFETY: from a box.
                unsafe { NonNull::new_unchecked(list) }
            }
        };
        let entry = Rc::new(Entry { canary, what: OnceCell::new() });
        // SAFETY: the list of this thread, which frees it when it is empty; there is no other reference to it.
        unsafe { list.as_mut() }.entries.push(entry.clone());
        Ok(Tenure { entry, list })
    }

    /// Says what the thread is, for the message.
    pub(crate) fn is(self, what: String) -> Tenure {
        let _ = self.entry.what.set(what);
        self
    }
}

impl Drop for Tenure {
    fn drop(&mut self) {
        // SAFETY: a tenure stays on its thread, and a list is not freed while it has entries; there is no other
        // reference to it.
        let list = unsafe { self.list.as_mut() };
        list.entries.retain(|entry| !Rc::ptr_eq(entry, &self.entry));
        // Between two passes over the keys it stays, to be freed in the next.
        if list.entries.is_empty() && list.passes == 0 && clear() {
            // SAFETY: from a box; neither the key nor a tenure has it any more.
            drop(unsafe { Box::from_raw(self.list.as_ptr()) });
        }
    }
}

/// Takes the list from the key.
fn clear() -> bool {
    // SAFETY: the key was made.
    key().is_ok_and(|key| unsafe { libc::pthread_setspecific(key, std::ptr::null()) } == 0)
}

/// Runs in a thread that ends, once per pass as long as the key has a value; the C library has set that to null.
unsafe extern "C" fn thread_ends(value: *mut c_void) {
    let list = value.cast::<List>();
    // SAFETY: what `Tenure::begin` stored on this thread, or this function; there is no other reference to it.
    let (passes, open) = unsafe {
        (*list).passes += 1;
        ((*list).passes, (*list).entries.iter().any(|entry| !fork::is_child(entry.canary)))
    };
    if !open {
        // Tenures that are left were inherited by a fork and are refused everywhere.
        // SAFETY: as above. A list with entries stays, for their tenures.
        if unsafe { (*list).entries.is_empty() } {
            // SAFETY: from a box; neither the key nor a tenure has it any more.
            drop(unsafe { Box::from_raw(list) });
        }
        return;
    }
    // SAFETY: the key was made, or this would not run.
    let again = || key().is_ok_and(|key| unsafe { libc::pthread_setspecific(key, value) } == 0);
    if passes < PASSES && again() {
        return;
    }
    // SAFETY: as above.
    end_process(unsafe { &(*list).entries });
}

fn end_process(entries: &[Rc<Entry>]) -> ! {
    let open = entries.iter().filter(|entry| !fork::is_child(entry.canary));
    let what: Vec<&str> =
        open.map(|entry| entry.what.get().map_or("about to join", String::as_str)).collect();
    let text = format!(
        "hectare: a thread of process {} ended while it was {}. Other threads may still use what was read or \
         written through it, so the process is ended. Let the thread drop its workers and observers before it \
         ends; in C: ha_worker_leave, ha_observer_close.\n",
        std::process::id(),
        what.join(" and "),
    );
    // Not by way of the standard library, whose thread-local variables are gone.
    // SAFETY: the text is readable for its length. The process ends whether or not it can be written.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        libc::abort()
    }
}
