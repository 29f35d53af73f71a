//! Arguments as they come from C: text, sized structs, places for results, timeouts.
use crate::status::{Failure, Outcome, ha_status::*};
use std::ffi::{CStr, c_char};
use std::time::Duration;

/// The text at `text`.
///
/// # Safety
/// `text` is null or a string that ends in a zero byte and does not change during `'t`.
pub(crate) unsafe fn text<'t>(text: *const c_char, what: &str) -> Outcome<&'t str> {
    if text.is_null() {
        return Err(Failure::new(HA_NULL, format!("{what} is null")));
    }
    // SAFETY: by the contract above.
    let bytes = unsafe { CStr::from_ptr(text) };
    bytes.to_str().map_err(|error| Failure::new(HA_BAD_ARGUMENT, format!("{what} is not UTF-8: {error}")))
}

/// Refuses a null pointer to something that must be there.
#[inline]
pub(crate) fn present<T>(pointer: *const T, what: &str) -> Outcome {
    if pointer.is_null() { Err(Failure::new(HA_NULL, format!("{what} is null"))) } else { Ok(()) }
}

/// Stores a result.
///
/// # Safety
/// `place` is null or writable for a `T`.
#[inline]
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: by the contract above; C may have put it anywhere.
        unsafe { place.write_unaligned(value) };
    }
}

/// A struct that grows: its first field says how large the caller's header knows it.
///
/// # Safety
/// `#[repr(C)]`, begins with a `usize` (the size), and any bytes behind it are a value.
pub(crate) unsafe trait Sized0: Copy + Default {
    /// The size in the first version of the header.
    const FIRST: usize;
    /// Its name in C.
    const NAME: &'static str;
}

fn check_size<T: Sized0>(size: usize) -> Outcome {
    // A struct grows field by field; nobody's is a page long.
    if size < T::FIRST || size > 4096 || !size.is_multiple_of(align_of::<T>()) {
        let text = format!(
            "the size field of {} is {size}: set it to sizeof({}), here {}",
            T::NAME,
            T::NAME,
            size_of::<T>()
        );
        return Err(Failure::new(HA_BAD_SIZE, text));
    }
    Ok(())
}

/// Copies a struct that came from a caller whose header may be older or newer. Fields that it does not know are
/// zero; fields that this library does not know have to be.
///
/// # Safety
/// `from` is null, or readable for a `usize`, and for as many bytes as that says.
pub(crate) unsafe fn take_sized<T: Sized0>(from: *const T) -> Outcome<T> {
    let mut value = T::default();
    if from.is_null() {
        return Ok(value);
    }
    // SAFETY: by the contract above.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    check_size::<T>(size)?;
    let known = size.min(size_of::<T>());
    // SAFETY: the caller's struct has `size` bytes, this one has its own size, and any bytes are a value.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut value).cast(), known);
        let rest = std::slice::from_raw_parts(from.cast::<u8>().add(known), size - known);
        if rest.iter().any(|byte| *byte != 0) {
            let text = format!("{} has settings that this library does not know: it is older", T::NAME);
            return Err(Failure::new(HA_BAD_SIZE, text));
        }
    }
    Ok(value)
}

/// Fills a struct of a caller whose header may be older or newer; what this library does not know becomes zero.
///
/// # Safety
/// `to` is null, or readable for a `usize`, and writable for as many bytes as that says.
pub(crate) unsafe fn fill_sized<T: Sized0>(to: *mut T, value: &T) -> Outcome {
    present(to, T::NAME)?;
    // SAFETY: by the contract above.
    let size = unsafe { to.cast::<usize>().read_unaligned() };
    check_size::<T>(size)?;
    // SAFETY: as above.
    unsafe { fill_bytes(to.cast(), size, value) };
    Ok(())
}

/// # Safety
/// `to` is writable for `size` bytes, which is at least a `usize`.
unsafe fn fill_bytes<T: Sized0>(to: *mut u8, size: usize, value: &T) {
    let word = size_of::<usize>();
    let known = size.min(size_of::<T>());
    // SAFETY: the caller's struct has `size` bytes, `value` has its own size. The size field is the caller's.
    unsafe {
        let from = std::ptr::from_ref(value).cast::<u8>();
        std::ptr::copy_nonoverlapping(from.add(word), to.add(word), known - word);
        std::ptr::write_bytes(to.add(known), 0, size - known);
        to.cast::<usize>().write_unaligned(size);
    }
}

/// Fills a list of such structs, each `item` bytes long, up to `room`, and stores how many there are in all.
///
/// # Safety
/// `to` is writable for `room` times `item` bytes, `count` for a number, or null.
pub(crate) unsafe fn fill_list<T: Sized0>(
    to: *mut T,
    item: usize,
    room: usize,
    count: *mut usize,
    values: &[T],
) -> Outcome {
    present(count, "the place for the count")?;
    if room > 0 {
        present(to, T::NAME)?;
        check_size::<T>(item)?;
    }
    for (place, value) in values.iter().take(room).enumerate() {
        // SAFETY: by the contract above.
        unsafe { fill_bytes(to.cast::<u8>().add(place * item), item, value) };
    }
    // SAFETY: by the contract above.
    unsafe { put(count, values.len()) };
    Ok(())
}

/// A timeout in nanoseconds; `u64::MAX` is for ever.
pub(crate) fn timeout(nanoseconds: u64) -> Duration {
    if nanoseconds == u64::MAX { Duration::MAX } else { Duration::from_nanos(nanoseconds) }
}

/// Text in a field of fixed length: cut at a character if it is too long, and filled with zeros.
pub(crate) fn field<const N: usize>(text: &str) -> [c_char; N] {
    let mut end = text.len().min(N - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut out = [0; N];
    for (place, byte) in out.iter_mut().zip(&text.as_bytes()[..end]) {
        *place = *byte as c_char;
    }
    out
}

/// Refuses a place for a struct whose size field is wrong; null passes.
///
/// # Safety
/// `place` is null or readable for a `usize`.
pub(crate) unsafe fn check_place<T: Sized0>(place: *const T) -> Outcome {
    if place.is_null() {
        return Ok(());
    }
    // SAFETY: by the contract above.
    check_size::<T>(unsafe { place.cast::<usize>().read_unaligned() })
}
