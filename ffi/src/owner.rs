//! Ownership: give, take, claim, lend.
use crate::area::{Right, ha_area, held, open};
use crate::argument::{Sized0, fill_sized, present, put, text, timeout};
use crate::element::{AnyOwned, ha_type_in, with_type};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use crate::worker::{ha_worker, home};
use hectare_dsm::{Claimed, Version};
use std::ffi::c_char;

/// The version of an area: compared by term, then by counter; it only grows.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ha_version {
    /// Rises when ownership is taken over without consent.
    pub term: u64,
    /// Counts publications; 0 is the area as it was created.
    pub counter: u64,
}

impl From<Version> for ha_version {
    fn from(version: Version) -> ha_version {
        ha_version { term: version.term, counter: version.counter }
    }
}

impl From<ha_version> for Version {
    fn from(version: ha_version) -> Version {
        Version { term: version.term, counter: version.counter }
    }
}

/// The loss when an area is claimed from a dead owner. Set `size` to `sizeof(ha_loss)` before the call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ha_loss {
    /// `sizeof(ha_loss)`.
    pub size: usize,
    /// The version that the area was restored to; 0.0 for an area without reader copies.
    pub last_version: ha_version,
    /// How many workers' unpublished writes are lost.
    pub lost_writers: u32,
    /// The first of them.
    pub first_lost_writer: u32,
}

// SAFETY: `repr(C)`, begins with its size, integers.
unsafe impl Sized0 for ha_loss {
    const FIRST: usize = 32;
    const NAME: &'static str = "ha_loss";
}

/// Gives the area to worker `to`: one atomic exchange, no barrier, no copy. Unpublished writes go with it. The handle
/// remains valid, for reading and for `ha_area_take`; the writer pointer does not. To a worker of another host, the area
/// moves in the background.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
/// Fails: `HA_NOT_OWNER` (also when it was given before), `HA_NO_SUCH_WORKER` (it is dead or has left), `HA_INVALID_AREA` (it cannot
/// go to another host), `HA_DELETED`, `HA_FORKED`; the area stays with its owner then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_give(area: *mut ha_area, to: u32) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let worker = held.home.worker()?;
        let owned = written(&held)?;
        owned.give(&worker, to).map_err(|refused| {
            held.set(&worker, Right::Write(refused.1));
            refused.0.into()
        })
    })
}

/// Takes the area out of the handle, to hand it over.
fn written(held: &crate::area::Held<'_>) -> Outcome<Box<dyn AnyOwned>> {
    if !matches!(*held.right()?, Right::Write(_)) {
        return Err(held.not_owned());
    }
    match held.take_right()? {
        Right::Write(owned) => Ok(owned),
        Right::Read | Right::Lend(_) | Right::Open(_) => Err(held.not_owned()),
    }
}

/// Publishes the area, then gives it to worker `to`: nothing can be lost by the death of later owners. A
/// synchronization point.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
/// Fails: as `ha_area_give`, and `HA_TIMED_OUT` if every reader copy is in use for ten seconds, `HA_VIEW_OPEN`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_give_published(area: *mut ha_area, to: u32) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let mut worker = held.home.at_sync_point()?;
        let owned = written(&held)?;
        owned.give_published(&mut worker, to).map_err(|refused| {
            held.set(&worker, Right::Write(refused.1));
            refused.0.into()
        })
    })
}

/// Waits for an area that another worker gives to this one, and takes it; takes part in publications meanwhile. A
/// synchronization point. With a timeout of 0, takes it only if it has been given already, and is not a synchronization
/// point.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
/// Fails: `HA_TIMED_OUT` after `timeout_ns` nanoseconds (`HA_FOREVER` for none), `HA_OWNER_GONE`, `HA_ALREADY_OWNER`,
/// `HA_DELETED`, `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_take(area: *mut ha_area, timeout_ns: u64) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let owned_already = || {
            let text = format!("this worker owns area {:?} already", held.area.name());
            Failure::new(HA_ALREADY_OWNER, text)
        };
        if !matches!(*held.right()?, Right::Read) {
            return Err(owned_already());
        }
        let owned = if timeout_ns == 0 {
            let worker = held.home.worker()?;
            held.area.try_take(&worker)?.ok_or_else(|| {
                if held.area.is_owned_by(&worker) {
                    return owned_already();
                }
                let text = format!("area {:?} is not on its way to this worker", held.area.name());
                Failure::new(HA_TIMED_OUT, text)
            })?
        } else {
            held.area.take(&mut *held.home.at_sync_point()?, timeout(timeout_ns))?
        };
        held.set(&*held.home.worker()?, Right::Write(owned));
        Ok(())
    })
}

/// Takes over an area whose owner is dead or has dropped it. It is restored to the last published version; later writes
/// are lost. A synchronization point.
///
/// Pointers: `worker` an open worker; `name` the area's name; `area` a place for the handle; `loss` null, or a place
/// for the loss, its `size` set.
/// Thread: that of the worker.
/// Fails: `HA_OWNER_ALIVE`, `HA_NO_SUCH_AREA`, `HA_WRONG_TYPE`, `HA_VIEW_OPEN`, `HA_BAD_SIZE`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_claim(
    worker: *mut ha_worker,
    name: *const c_char,
    element_type: ha_type_in,
    area: *mut *mut ha_area,
    loss: *mut ha_loss,
) -> ha_status {
    enter(|| {
        present(area, "the place for the area")?;
        // SAFETY: the header's contract.
        let (home, name) = unsafe {
            crate::argument::check_place(loss.cast_const())?;
            (home(worker)?, text(name, "the name of the area")?)
        };
        let mut worker = home.at_sync_point()?;
        let (owned, what) = with_type!(element_type, T => {
            let Claimed { owned, loss, .. } = worker.claim::<T>(name)?;
            Ok((Box::new(owned) as Box<dyn AnyOwned>, loss))
        })?;
        let reader = owned.area();
        let handle = open(home, &worker, Right::Write(owned), reader);
        // SAFETY: the header's contract.
        unsafe {
            put(area, handle);
            if !loss.is_null() {
                let lost = ha_loss {
                    size: 0,
                    last_version: what.last_version.unwrap_or_default().into(),
                    lost_writers: what.lost_writers.len() as u32,
                    first_lost_writer: what.lost_writers.first().copied().unwrap_or(0),
                };
                fill_sized(loss, &lost)?;
            }
        }
        Ok(())
    })
}

/// Lends the area to all workers for reading: `ha_area_lent_reader` shows them what this worker wrote, in place, with
/// or without reader copies. Nobody writes it until `ha_area_recall`.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
/// Fails: `HA_NOT_OWNER`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_lend(area: *mut ha_area) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        let worker = held.home.worker()?;
        match written(&held)?.lend(&worker) {
            Ok(lent) => {
                held.set(&worker, Right::Lend(lent));
                Ok(())
            }
            Err(refused) => {
                held.set(&worker, Right::Write(refused.1));
                Err(refused.0.into())
            }
        }
    })
}

/// Takes a lent area back for writing: rejects new readers, and waits until current readers have passed a synchronization
/// point. A synchronization point.
///
/// Pointers: `area` an open area.
/// Thread: that of its worker.
/// Fails: `HA_NOT_LENT` if this worker has not lent it, `HA_TIMED_OUT` after ten seconds, `HA_VIEW_OPEN`; after other
/// failures than these, and after `HA_TIMED_OUT`, the area is claimable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_area_recall(area: *mut ha_area) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let held = unsafe { held(area)? };
        if !matches!(*held.right()?, Right::Lend(_)) {
            let text = format!("this worker has not lent area {:?}", held.area.name());
            return Err(Failure::new(HA_NOT_LENT, text));
        }
        let mut worker = held.home.at_sync_point()?;
        if let Right::Lend(lent) = held.take_right()? {
            let owned = lent.recall(&mut worker)?;
            held.set(&worker, Right::Write(owned));
        }
        Ok(())
    })
}
