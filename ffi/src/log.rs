//! Writing: pointers to the writer copy, and the log.
use crate::area::{Held, ha_area, held};
use crate::argument::{present, put};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use std::ffi::c_void;

/// The elements of the area, for writing: what the owner last wrote, published or not. Valid as long as the worker
/// owns the area and nobody deletes it, also across synchronization points; write through it only between them, and
/// log what you write (`ha_log`), unless the area is tracked automatically.
///
/// Pointers: `area` an open area; `data` a place for the pointer, which is aligned to 64 bytes.
/// Thread: that of its worker.
/// Fails: `HA_NOT_OWNER`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_writer(area: *mut ha_area, data: *mut *mut c_void) -> ha_status {
    enter(|| {
        present(data, "the place for the pointer")?;
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let worker = held.home.worker()?;
        let pointer = held.owned()?.pointer(&worker)?;
        // SAFETY: the header's contract.
        unsafe { put(data, pointer.cast()) };
        Ok(())
    })
}

fn log(held: Held<'_>, first: usize, count: usize) -> Outcome {
    let end = first.checked_add(count).ok_or_else(|| outside(&held, first, count))?;
    let worker = held.home.worker()?;
    Ok(held.owned()?.log(&worker, first..end)?)
}

#[cold]
pub(crate) fn outside(held: &Held<'_>, first: usize, count: usize) -> Failure {
    let (name, len) = (held.area.name(), held.area.len());
    Failure::new(
        HA_OUT_OF_RANGE,
        format!("{count} elements from {first} lie outside area {name:?} of {len} elements"),
    )
}

/// The slow path of `ha_log`, for a range that is not logged already.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_log_slow(area: *mut ha_area, first: usize, count: usize) -> ha_status {
    // SAFETY: the header's contract.
    enter(|| log(unsafe { held(area)? }, first, count))
}

/// The slow path of `ha_log_rows`, for rows that are not logged already.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_log_rows_slow(area: *mut ha_area, first_row: usize, rows: usize) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let end = first_row.checked_add(rows).ok_or_else(|| outside(&held, first_row, rows))?;
        let worker = held.home.worker()?;
        held.owned()?.log_rows(&worker, first_row..end)?;
        Ok(())
    })
}

/// Logs the whole area: all of it is copied at the next publication.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
/// Fails: `HA_NOT_OWNER`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_log_all(area: *mut ha_area) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        log(held, 0, held.area.len())
    })
}

/// Copies `count` elements from `from` into the area, from element `first` on, and logs them.
///
/// Pointers: `area` an open area; `from` readable for `bytes` bytes, which are `count` elements.
/// Thread: that of its worker.
/// Fails: `HA_OUT_OF_RANGE`, `HA_BAD_SIZE` if `bytes` is not the size of `count` elements, `HA_NOT_OWNER`, `HA_DELETED`,
/// `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_store(
    area: *mut ha_area,
    first: usize,
    count: usize,
    from: *const c_void,
    bytes: usize,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let size = check_buffer(&held, first, count, from, bytes)?;
        log(held, first, count)?;
        let worker = held.home.worker()?;
        let to = held.owned()?.pointer(&worker)?;
        // SAFETY: the range lies in the writer copy, which this worker owns and nobody else writes; `from` is readable
        // by the header's contract. It may be a part of the area itself.
        unsafe { std::ptr::copy(from.cast::<u8>(), to.add(first * size), bytes) };
        Ok(())
    })
}

/// Refuses a range that is not in the area, and a buffer that does not have its size; returns an element's.
pub(crate) fn check_buffer(
    held: &Held<'_>,
    first: usize,
    count: usize,
    buffer: *const c_void,
    bytes: usize,
) -> Outcome<usize> {
    let size = held.area.element_size();
    if first.checked_add(count).is_none_or(|end| end > held.area.len()) {
        return Err(outside(held, first, count));
    }
    if bytes != count * size {
        let text = format!("a buffer of {bytes} bytes for {count} elements of {size} bytes");
        return Err(Failure::new(HA_BAD_SIZE, text));
    }
    if count != 0 {
        present(buffer, "the buffer")?;
    }
    Ok(size)
}
