//! Versions and ages of areas, and waiting for them.
use crate::area::{ha_area, held};
use crate::argument::{present, put, timeout};
use crate::owner::ha_version;
use crate::status::{enter, ha_status};
use crate::worker::{check_place, ha_synced, store};
use std::time::Duration;

/// The version that the worker sees.
///
/// Pointers: `area` an open area; `version` a place for the version.
/// Thread: that of its worker.
/// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_version(area: *const ha_area, version: *mut ha_version) -> ha_status {
    enter(|| {
        present(version, "the place for the version")?;
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let seen = held.area.version(&*held.home.worker()?)?;
        // SAFETY: the header's contract.
        unsafe { put(version, seen.into()) };
        Ok(())
    })
}

/// The newest published version, whether or not the worker can see it yet; 0.0 for an area without reader copies, or
/// that was deleted.
///
/// Pointers: `area` an open area; `version` a place for the version.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_newest_version(area: *const ha_area, version: *mut ha_version) -> ha_status {
    enter(|| {
        present(version, "the place for the version")?;
        // SAFETY: the header's contract.
        unsafe { put(version, held(area)?.area.newest().unwrap_or_default().into()) };
        Ok(())
    })
}

/// When the version that the worker sees was published, in nanoseconds of `CLOCK_MONOTONIC`; 0 if never.
///
/// Pointers: `area` an open area; `timestamp_ns` a place for the time.
/// Thread: that of its worker.
/// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_timestamp(area: *const ha_area, timestamp_ns: *mut u64) -> ha_status {
    enter(|| {
        present(timestamp_ns, "the place for the time")?;
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let time = held.area.timestamp_ns(&*held.home.worker()?)?;
        // SAFETY: the header's contract.
        unsafe { put(timestamp_ns, time) };
        Ok(())
    })
}

/// How stale the visible version may be: the time since it was last known to equal what the owner had written.
///
/// Pointers: `area` an open area; `age_ns` a place for the age.
/// Thread: that of its worker.
/// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_age(area: *const ha_area, age_ns: *mut u64) -> ha_status {
    enter(|| {
        present(age_ns, "the place for the age")?;
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let age = held.area.age(&*held.home.worker()?)?;
        // SAFETY: the header's contract.
        unsafe { put(age_ns, u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)) };
        Ok(())
    })
}

/// The owner's clock (`ha_tick`) when the visible version was published.
///
/// Pointers: `area` an open area; `clock` a place for the clock.
/// Thread: that of its worker.
/// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_clock(area: *const ha_area, clock: *mut u64) -> ha_status {
    enter(|| {
        present(clock, "the place for the clock")?;
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let seen = held.area.clock(&*held.home.worker()?)?;
        // SAFETY: the header's contract.
        unsafe { put(clock, seen) };
        Ok(())
    })
}

/// Elements `first` to `first + count - 1`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ha_range {
    /// The first element.
    pub first: usize,
    /// How many.
    pub count: usize,
}

/// The elements that may have changed after version `since` up to the version that the worker sees, in ascending
/// ranges: possibly more than changed, never less. `count` becomes the number of ranges, also where there is no room
/// for all; ask again then with more room.
///
/// Pointers: `area` an open area; `ranges` writable for `room` ranges, or null if that is 0; `count` a place for the
/// number.
/// Thread: that of its worker.
/// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_changed_since(
    area: *const ha_area,
    since: ha_version,
    ranges: *mut ha_range,
    room: usize,
    count: *mut usize,
) -> ha_status {
    enter(|| {
        present(count, "the place for the count")?;
        if room != 0 {
            present(ranges, "the place for the ranges")?;
        }
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let changed = held.area.changed_since(&*held.home.worker()?, since.into())?;
        for (place, range) in changed.iter().take(room).enumerate() {
            // SAFETY: the header's contract.
            unsafe { put(ranges.add(place), ha_range { first: range.start, count: range.len() }) };
        }
        // SAFETY: the header's contract.
        unsafe { put(count, changed.len()) };
        Ok(())
    })
}

/// Makes a later `ha_area_changed_since` of the next version not see what came before it.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_seal(area: *const ha_area) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        unsafe { held(area)? }.area.seal();
        Ok(())
    })
}

/// Marks the area to be published in the next round, and asks for one. Does not wait. Does nothing to an area without reader copies.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_request_sync(area: *const ha_area) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        unsafe { held(area)? }.area.request_sync();
        Ok(())
    })
}

/// Publishes the area, whoever owns it, now: forces a round, and waits for it. A synchronization point.
///
/// Pointers: `area` an open area; `synced` null, or a place for the outcome, its `size` set.
/// Thread: that of its worker.
/// Fails: `HA_NO_READER_COPY`, `HA_DELETED`, `HA_VIEW_OPEN`, `HA_FORKED`, `HA_BAD_SIZE`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_sync(area: *const ha_area, synced: *mut ha_synced) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        // SAFETY: the header's contract.
        unsafe { check_place(synced)? };
        let done = held.area.sync(&mut *held.home.at_sync_point()?)?;
        // SAFETY: the header's contract.
        unsafe { store(synced, done) }
    })
}

/// Waits until the worker sees version `version` of the area, or a later one; takes part in publications meanwhile, but
/// forces none. A synchronization point.
///
/// Pointers: `area` an open area; `seen` null, or a place for the version that it sees then.
/// Thread: that of its worker.
/// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none), `HA_NO_READER_COPY`, `HA_DELETED`,
/// `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_wait_version(
    area: *const ha_area,
    version: ha_version,
    timeout_ns: u64,
    seen: *mut ha_version,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let mut worker = held.home.at_sync_point()?;
        let now = held.area.wait_for(&mut worker, version.into(), timeout(timeout_ns))?;
        // SAFETY: the header's contract.
        unsafe { put(seen, now.into()) };
        Ok(())
    })
}

/// Waits until what the worker sees is at most `age_ns` nanoseconds old (`ha_area_age`), forcing a publication if it is
/// not. A synchronization point.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
/// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none), `HA_NO_READER_COPY`, `HA_DELETED`,
/// `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_wait_fresh(area: *const ha_area, age_ns: u64, timeout_ns: u64) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let mut worker = held.home.at_sync_point()?;
        Ok(held.area.wait_fresher(&mut worker, Duration::from_nanos(age_ns), timeout(timeout_ns))?)
    })
}

/// Waits until the version that the worker sees was published by its owner no more than `staleness` clocks before this
/// worker's clock: bounded staleness for one area. A synchronization point.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
/// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none), `HA_NO_READER_COPY`, `HA_DELETED`,
/// `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_wait_clock(
    area: *const ha_area,
    staleness: u64,
    timeout_ns: u64,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let mut worker = held.home.at_sync_point()?;
        Ok(held.area.wait_clock(&mut worker, staleness, timeout(timeout_ns))?)
    })
}
