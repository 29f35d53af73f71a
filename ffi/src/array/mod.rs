//! Arrays of several writers: an area for each worker, and a master (after the array of the Tasvir paper).
mod members;

use self::members::{AnyArray, Array};
use crate::area::ha_area_options;
use crate::area::{Right, ha_area, held, open, spec};
use crate::argument::{present, put, text};
use crate::element::{AnyOwned, ha_type_in, with_type};
use crate::handle::{Kind, Pool, Shell};
use crate::reduce::{any_area, ha_operation_in, operation_of, ranks};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use crate::wait::ha_range;
use crate::worker::{Home, ha_worker, home};
use std::cell::{RefCell, RefMut};
use std::ffi::{c_char, c_void};
use std::rc::Rc;

/// An array that several workers write, each in its own area, with a master copy that they read. For programs whose
/// threads share one vector: each worker works on its own copy; between batches, reductions merge the written elements
/// into the master, and `ha_array_map` copies what others wrote back into the worker's copy.
///
/// One worker, the first member, combines everything. That is simple, not fast: if each row has a single next reader, let
/// it copy the row from the writer's area; for sums, see `ha_reducer`.
#[derive(Debug)]
pub struct ha_array {
    _opaque: [u8; 0],
}

/// The body of an `ha_array`.
pub(crate) struct ArrayBody {
    home: Rc<Home>,
    /// This member's area: a handle of its own.
    local: *mut ha_area,
    array: RefCell<Box<dyn AnyArray>>,
}

impl Kind for ArrayBody {
    const MAGIC: u64 = 0x2079_6172_7261_6168;
    const NAME: &'static str = "array";
    type Hot = u64;
    fn pool() -> &'static Pool {
        static POOL: Pool = Pool::new();
        &POOL
    }
}

impl ArrayBody {
    fn get(&self) -> Outcome<RefMut<'_, Box<dyn AnyArray>>> {
        self.array
            .try_borrow_mut()
            .map_err(|_| Failure::new(HA_BUSY, "the array is in the middle of another call"))
    }
}

/// # Safety
/// As for `Shell::body`.
unsafe fn body<'h>(array: *mut ha_array) -> Outcome<&'h ArrayBody> {
    // SAFETY: by the contract above.
    let body = unsafe { Shell::<ArrayBody>::body(array.cast::<Shell<ArrayBody>>().cast_const())? };
    body.home.check_thread("array")?;
    Ok(body)
}

/// Creates an array of `len` elements, all zero, of `member_count` workers, each of which must be in the list and call
/// this with the same arguments. It creates the areas `name`/rank and `name`/ranges/rank, and for the first member
/// `name`/master and `name`/state. A synchronization point.
///
/// Pointers: `worker` an open worker; `name` the array's name; `options` null, or the options of the members' areas,
/// with its `size` set; `members` readable for `member_count` ranks; `max_ranges` is how many ranges a member may name
/// in one reduction, 0 for 4096; `array` a place for the handle.
/// Thread: that of the worker.
/// Fails: `HA_INVALID_AREA` for wrong members or lengths, `HA_TIMED_OUT` if a member does not come within thirty seconds,
/// `HA_VIEW_OPEN`; as `ha_area_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_array_create(
    worker: *mut ha_worker,
    name: *const c_char,
    element_type: ha_type_in,
    len: usize,
    options: *const ha_area_options,
    members: *const u32,
    member_count: usize,
    max_ranges: usize,
    array: *mut *mut ha_array,
) -> ha_status {
    enter(|| {
        present(array, "the place for the array")?;
        // SAFETY: the header's contract.
        let (home, name, members) =
            unsafe { (home(worker)?, text(name, "the name of the array")?, ranks(members, member_count)?) };
        let mut worker = home.at_sync_point()?;
        // SAFETY: the header's contract.
        let spec = unsafe { spec(&format!("{name}/{}", worker.rank()), options)? };
        let room = if max_ranges == 0 { 4096 } else { max_ranges };
        let (made, local, reader) = with_type!(element_type, T => {
            let (made, local) = Array::<T>::new(&mut worker, name, spec, len, members, room)?;
            let reader = any_area(&local.area());
            Ok((Box::new(made) as Box<dyn AnyArray>, Box::new(local) as Box<dyn AnyOwned>, reader))
        })?;
        let local = open(home, &worker, Right::Write(local), reader);
        let shell = Shell::open(ArrayBody { home: home.clone(), local, array: RefCell::new(made) });
        home.adopt(shell);
        // SAFETY: the header's contract.
        unsafe { put(array, shell.cast()) };
        Ok(())
    })
}

/// The worker's own area of the array, to write (`ha_area_writer`) and to log. The handle is the array's: do not
/// detach it.
///
/// Pointers: `array` an open array; `local` a place for the handle.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_array_local(array: *mut ha_array, local: *mut *mut ha_area) -> ha_status {
    enter(|| {
        present(local, "the place for the area")?;
        // SAFETY: the header's contract.
        unsafe { put(local, body(array)?.local) };
        Ok(())
    })
}

/// The master, as the worker sees it. Valid until its next synchronization point.
///
/// Pointers: `array` an open array; `data` a place for the pointer.
/// Thread: that of its worker; others may read through the pointer as long as it is valid.
/// Fails: `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_array_master(array: *mut ha_array, data: *mut *const c_void) -> ha_status {
    enter(|| {
        present(data, "the place for the pointer")?;
        // SAFETY: the header's contract.
        let body = unsafe { body(array)? };
        let pointer = body.get()?.master(&*body.home.worker()?)?;
        // SAFETY: the header's contract.
        unsafe { put(data, pointer.cast()) };
        Ok(())
    })
}

/// Ends a batch: the same as `ha_barrier` of the array's worker.
///
/// Pointers: `array` an open array.
/// Thread: that of its worker.
/// Fails: `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_array_barrier(array: *mut ha_array) -> ha_status {
    // SAFETY: the header's contract.
    enter(|| Ok(unsafe { body(array)? }.home.at_sync_point()?.barrier()?))
}

/// Ranges from C.
///
/// # Safety
/// `ranges` is readable for `count` ranges, or null.
unsafe fn list_of(ranges: *const ha_range, count: usize) -> Outcome<Vec<ha_range>> {
    if count != 0 {
        present(ranges, "the list of ranges")?;
    }
    // SAFETY: by the contract above.
    Ok((0..count).map(|place| unsafe { ranges.add(place).read_unaligned() }).collect())
}

/// Merges the members' writes into the master: each member lists ranges of its own area, and the operation combines
/// elements that several members list. Elements that nobody lists stay unchanged; an element that a member lists twice
/// counts twice. Two barriers; every member must call it with the same operation, even with no ranges. A synchronization
/// point.
///
/// Pointers: `array` an open array; `ranges` readable for `count` ranges, or null if that is 0.
/// Thread: that of its worker.
/// Fails: `HA_OUT_OF_RANGE` or `HA_LIMIT` for wrong ranges, after which the others fail with `HA_CALLBACK`;
/// `HA_NO_SUCH_WORKER` if a member is dead; `HA_BAD_ARGUMENT` for no operation, and on all members whose operation or list of members
/// is not that of another one; `HA_VIEW_OPEN`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_array_reduce(
    array: *mut ha_array,
    operation: ha_operation_in,
    ranges: *const ha_range,
    count: usize,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let (body, list) = unsafe { (body(array)?, list_of(ranges, count)?) };
        let operation = operation_of(operation)?;
        let mut array = body.get()?;
        let mut worker = body.home.at_sync_point()?;
        array.reduce(&mut worker, operation, &list)
    })
}

/// Copies ranges of the master, as the worker sees it, into the worker's own area, and logs them there.
///
/// Pointers: `array` an open array; `ranges` readable for `count` ranges, or null if that is 0.
/// Thread: that of its worker.
/// Fails: `HA_OUT_OF_RANGE` (nothing is copied then), `HA_NOT_OWNER`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_array_map(
    array: *mut ha_array,
    ranges: *const ha_range,
    count: usize,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let (body, list) = unsafe { (body(array)?, list_of(ranges, count)?) };
        // SAFETY: the array's own handle, which closes with it; one that the program detached is recognized.
        let held = unsafe { held(body.local)? };
        let (len, size) = (held.area.len(), held.area.element_size());
        let outside = |range: &&ha_range| range.first.checked_add(range.count).is_none_or(|end| end > len);
        if let Some(range) = list.iter().find(outside) {
            return Err(crate::log::outside(&held, range.first, range.count));
        }
        let from = body.get()?.master(&*body.home.worker()?)?;
        let worker = body.home.worker()?;
        let mut owned = held.owned()?;
        let to = owned.pointer(&worker)?;
        for range in list {
            owned.log(&worker, range.first..range.first + range.count)?;
            let at = range.first * size;
            // SAFETY: both have `len` elements; the master's copy is not written before the worker's next
            // synchronization point, the worker's area by nobody else, and they are different areas.
            unsafe { std::ptr::copy_nonoverlapping(from.add(at), to.add(at), range.count * size) };
        }
        Ok(())
    })
}

/// Closes the handle, and that of the worker's own area, which becomes claimable, as the master does if this is the
/// first member.
///
/// Pointers: `array` an open array, or null, which does nothing.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_array_close(array: *mut ha_array) -> ha_status {
    enter(|| {
        if array.is_null() {
            return Ok(());
        }
        // SAFETY: the header's contract.
        let body = unsafe { body(array)? };
        drop(body.get()?);
        // SAFETY: the array's own handle; one that the program detached is recognized.
        if let Ok(held) = unsafe { held(body.local) } {
            crate::area::close(held);
        }
        let shell = array.cast::<Shell<ArrayBody>>();
        body.home.clone().disown(shell);
        // SAFETY: open, of this thread, and not running.
        drop(unsafe { Shell::close(shell) });
        Ok(())
    })
}
