//! Reading: pointers to the visible version, checked views, copies.
use crate::area::{Held, ha_area, held};
use crate::argument::{present, put};
use crate::log::{check_buffer, outside};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use std::ffi::c_void;

/// The version that was the newest at the worker's last synchronization point: one whole version, never a mix. Valid, and
/// unchanged, until the worker's next synchronization point.
///
/// Pointers: `area` an open area; `data` a place for the pointer, which is aligned to 64 bytes.
/// Thread: that of its worker; others may read through the pointer as long as it is valid.
/// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_reader(area: *const ha_area, data: *mut *const c_void) -> ha_status {
    enter(|| {
        present(data, "the place for the pointer")?;
        // SAFETY: the header's contract.
        unsafe { put(data, visible(&held(area)?)?.cast()) };
        Ok(())
    })
}

fn visible(held: &Held<'_>) -> Outcome<*const u8> {
    Ok(held.area.read(&*held.home.worker()?)?)
}

/// The area as its owner wrote it before lending it (`ha_area_lend`), in place, on the owner's host. Valid until the worker's next
/// synchronization point.
///
/// Pointers: `area` an open area; `data` a place for the pointer.
/// Thread: that of its worker; others may read through the pointer as long as it is valid.
/// Fails: `HA_NOT_LENT`, on other hosts always, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_lent_reader(area: *const ha_area, data: *mut *const c_void) -> ha_status {
    enter(|| {
        present(data, "the place for the pointer")?;
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let pointer = held.area.read_lent(&*held.home.worker()?)?;
        // SAFETY: the header's contract.
        unsafe { put(data, pointer.cast()) };
        Ok(())
    })
}

/// A view of some elements of an area. While it is open, its worker cannot pass a synchronization point: such calls fail
/// with `HA_VIEW_OPEN`. So its elements cannot change.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ha_view {
    /// The first element.
    pub data: *const c_void,
    /// Elements.
    pub count: usize,
    /// The area.
    pub area: *const ha_area,
    /// Tells whether the view is open.
    pub stamp: u64,
}

/// Opens a view of `count` elements of the visible version, from element `first` on.
///
/// Pointers: `area` an open area; `view` a place for the view.
/// Thread: that of its worker.
/// Fails: `HA_OUT_OF_RANGE`, `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_view_open(
    area: *const ha_area,
    first: usize,
    count: usize,
    view: *mut ha_view,
) -> ha_status {
    enter(|| {
        present(view, "the place for the view")?;
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        if first.checked_add(count).is_none_or(|end| end > held.area.len()) {
            return Err(outside(&held, first, count));
        }
        let start = visible(&held)?.wrapping_add(first * held.area.element_size());
        let home = &held.home;
        home.views.set(home.views.get() + 1);
        let stamp = home.syncs.get() + 1;
        // SAFETY: the header's contract.
        unsafe { put(view, ha_view { data: start.cast(), count, area, stamp }) };
        Ok(())
    })
}

/// Closes a view.
///
/// Pointers: `view` a view that `ha_view_open` made.
/// Thread: that of its worker.
/// Fails: `HA_BAD_HANDLE` if it is not open (closed before, or its worker has left).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_view_close(view: *mut ha_view) -> ha_status {
    enter(|| {
        present(view, "the view")?;
        // SAFETY: the header's contract.
        let seen = unsafe { view.read_unaligned() };
        let closed = || Failure::new(HA_BAD_HANDLE, "the view is not open");
        if seen.stamp == 0 {
            return Err(closed());
        }
        // SAFETY: the header's contract.
        let home = &unsafe { held(seen.area)? }.home;
        // No synchronization point comes between the opening and the closing.
        if seen.stamp != home.syncs.get() + 1 || home.views.get() == 0 {
            return Err(closed());
        }
        home.views.set(home.views.get() - 1);
        let nothing = ha_view { data: std::ptr::null(), count: 0, area: std::ptr::null(), stamp: 0 };
        // SAFETY: the header's contract.
        unsafe { put(view, nothing) };
        Ok(())
    })
}

/// Copies `count` elements of the visible version, from element `first` on, to `to`.
///
/// Pointers: `area` an open area; `to` writable for `bytes` bytes, which are `count` elements.
/// Thread: that of its worker.
/// Fails: `HA_OUT_OF_RANGE`, `HA_BAD_SIZE` if `bytes` is not the size of `count` elements, `HA_NO_READER_COPY`,
/// `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_load(
    area: *const ha_area,
    first: usize,
    count: usize,
    to: *mut c_void,
    bytes: usize,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let size = check_buffer(&held, first, count, to, bytes)?;
        let from = visible(&held)?;
        // SAFETY: the range lies in the copy that the worker sees, which nobody writes before its next synchronization
        // point; `to` is writable by the header's contract.
        unsafe { std::ptr::copy(from.add(first * size), to.cast::<u8>(), bytes) };
        Ok(())
    })
}
