//! Observers: reading without taking part.
use crate::argument::{present, put, text};
use crate::element::{ha_type_in, with_type};
use crate::handle::{Kind, Pool, Shell, check_thread, this_thread};
use crate::job::{JobBody, ha_job};
use crate::owner::ha_version;
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use hectare_dsm::{Job, Number, Observer, Version};
use std::ffi::{c_char, c_void};

/// A reader of areas that is not a worker, for evaluation or monitoring. It delays no read and no write of a worker. While all
/// copies of an area are being read, the area is not published, and barriers and clocks wait for it: with one copy more than there are
/// observers at a time (`copies`), nobody waits.
///
/// The handle belongs to the thread that made it.
#[derive(Debug)]
pub struct ha_observer {
    _opaque: [u8; 0],
}

/// The body of an `ha_observer`.
pub(crate) struct ObserverBody {
    thread: u64,
    job: Job,
    observer: Observer,
}

impl Kind for ObserverBody {
    const MAGIC: u64 = 0x7265_7673_626f_6168;
    const NAME: &'static str = "observer";
    type Hot = u64;
    fn pool() -> &'static Pool {
        static POOL: Pool = Pool::new();
        &POOL
    }
}

/// # Safety
/// As for `Shell::body`.
unsafe fn body<'h>(observer: *mut ha_observer) -> Outcome<&'h ObserverBody> {
    // SAFETY: by the contract above.
    let body = unsafe { Shell::<ObserverBody>::body(observer.cast::<Shell<ObserverBody>>().cast_const())? };
    check_thread(body.thread, ObserverBody::NAME)?;
    Ok(body)
}

/// Registers the calling thread as an observer.
///
/// Pointers: `job` an open job; `observer` a place for the handle.
/// Thread: any; the handle belongs to the calling thread.
/// Fails: `HA_LIMIT`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_observer_open(job: *mut ha_job, observer: *mut *mut ha_observer) -> ha_status {
    enter(|| {
        present(observer, "the place for the observer")?;
        // SAFETY: the header's contract.
        let job = unsafe { JobBody::of(job)? }.clone();
        let made = job.observer()?;
        let shell = Shell::open(ObserverBody { thread: this_thread(), job, observer: made });
        // SAFETY: the header's contract.
        unsafe { put(observer, shell.cast()) };
        Ok(())
    })
}

/// Copies `count` elements of the newest version of an area, from element `first` on, to `to`: one whole version,
/// never a mix.
///
/// Pointers: `observer` an open observer; `name` the area's name; `to` writable for `bytes` bytes, which are `count`
/// elements; `version` null, or a place for the version.
/// Thread: that of the observer.
/// Fails: `HA_NO_SUCH_AREA`, `HA_WRONG_TYPE`, `HA_OUT_OF_RANGE`, `HA_BAD_SIZE`, `HA_NO_READER_COPY`, `HA_LIMIT`,
/// `HA_TIMED_OUT` if a publication of the only copy stands still for ten seconds, `HA_BAD_ARGUMENT`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_observer_load(
    observer: *mut ha_observer,
    name: *const c_char,
    element_type: ha_type_in,
    first: usize,
    count: usize,
    to: *mut c_void,
    bytes: usize,
    version: *mut ha_version,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let (body, name) = unsafe { (body(observer)?, text(name, "the name of the area")?) };
        if count != 0 {
            present(to, "the buffer")?;
        }
        // SAFETY: the header's contract.
        let seen = unsafe { with_type!(element_type, T => load::<T>(body, name, first, count, to, bytes))? };
        // SAFETY: the header's contract.
        unsafe { put(version, seen.into()) };
        Ok(())
    })
}

/// # Safety
/// `to` is writable for `bytes` bytes.
unsafe fn load<T: Number>(
    body: &ObserverBody,
    name: &str,
    first: usize,
    count: usize,
    to: *mut c_void,
    bytes: usize,
) -> Outcome<Version> {
    let area = body.job.attach::<T>(name)?;
    let pinned = body.observer.read(&area)?;
    let end = first.checked_add(count).filter(|end| *end <= pinned.len()).ok_or_else(|| {
        let len = pinned.len();
        let text = format!("{count} elements from {first} lie outside area {name:?} of {len} elements");
        Failure::new(HA_OUT_OF_RANGE, text)
    })?;
    let slice = &pinned[first..end];
    if bytes != size_of_val(slice) {
        let text = format!("a buffer of {bytes} bytes for {count} elements of {} bytes", size_of::<T>());
        return Err(Failure::new(HA_BAD_SIZE, text));
    }
    // SAFETY: `to` is writable for as many bytes, by the contract above and the check.
    unsafe { std::ptr::copy(slice.as_ptr().cast::<u8>(), to.cast::<u8>(), bytes) };
    Ok(pinned.version())
}

/// Closes the handle.
///
/// Pointers: `observer` an open observer, or null, which does nothing.
/// Thread: that of the observer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_observer_close(observer: *mut ha_observer) -> ha_status {
    enter(|| {
        if observer.is_null() {
            return Ok(());
        }
        // SAFETY: the header's contract.
        unsafe { body(observer)? };
        // SAFETY: open, and of this thread.
        drop(unsafe { Shell::close(observer.cast::<Shell<ObserverBody>>()) });
        Ok(())
    })
}
