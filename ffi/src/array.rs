//! Arrays of several writers: an area for each worker, and a master (after the array of the Tasvir paper).
//!
//! A reduction is two barriers. The first publishes what the members wrote, and in an area of each member the ranges
//! that it names. Then the master's owner combines the ranges out of the members' reader copies into the master, and
//! says so in a word of its own; the second barrier publishes that. A member finds in that word whether its reduction
//! was completed.
use crate::area::ha_area_options;
use crate::area::{Right, ha_area, held, open, spec};
use crate::argument::{present, put, text};
use crate::element::{AnyOwned, ha_type_in, with_type};
use crate::handle::{Kind, Pool, Shell};
use crate::reduce::{any_area, ha_operation, ha_operation_in, operation_of, ranks};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*, protect};
use crate::wait::ha_range;
use crate::worker::{Home, ha_worker, home};
use hectare_dsm::{Area, AreaSpec, Number, Owned, Rank, Worker};
use std::cell::{RefCell, RefMut};
use std::ffi::{c_char, c_void};
use std::rc::Rc;
use std::time::Duration;

/// How long members wait for each other's areas to be created.
const CREATION: Duration = Duration::from_secs(30);

/// Where a member's area of ranges has the number of the reduction, and the number of ranges; the ranges follow.
const CALL: usize = 0;
const COUNT: usize = 1;
const RANGES: usize = 2;
/// Instead of a number of ranges: the member's arguments were wrong.
const REFUSED: u64 = u64::MAX;

/// An array that several workers write, each in an area of its own, with a master that they read. For programs whose
/// threads share one vector: each worker works on its own copy, and at the borders of batches, reductions bring what
/// was written into the master, and `ha_array_map` brings what others wrote into the copy.
///
/// One worker, the first member, combines everything. That is the simple way, not the fast one: where each row has
/// one next reader, let it copy the row out of the writer's area; where sums are wanted, see `ha_reducer`.
#[derive(Debug)]
pub struct ha_array {
    _opaque: [u8; 0],
}

struct Array<T: Number> {
    locals: Vec<Area<T>>,
    ranges: Vec<Area<u64>>,
    mine: Owned<u64>,
    master: Area<T>,
    state: Area<u64>,
    /// The first member's right to write the master, and the word that says which reduction it has completed.
    root: Option<(Owned<T>, Owned<u64>)>,
    members: Vec<Rank>,
    call: u64,
    room: usize,
    /// How many members name an element; zero between two reductions.
    counts: Vec<u32>,
}

/// An array of whatever type.
trait AnyArray {
    fn reduce(&mut self, worker: &mut Worker, operation: ha_operation, ranges: &[ha_range]) -> Outcome;
    fn master(&self, worker: &Worker) -> Outcome<*const u8>;
}

impl<T: Number> Array<T> {
    fn new(
        worker: &mut Worker,
        name: &str,
        spec: AreaSpec,
        len: usize,
        members: Vec<Rank>,
        room: usize,
    ) -> Outcome<(Array<T>, Owned<T>)> {
        let bad = |text: String| Err(Failure::new(HA_INVALID_AREA, format!("array {name:?}: {text}")));
        let me = worker.rank();
        if members.iter().filter(|rank| **rank == me).count() != 1 {
            return bad(format!("worker {me} must be among the members {members:?} once"));
        }
        let Some(words) = room.checked_mul(2).and_then(|words| words.checked_add(RANGES)) else {
            return bad(format!("room for {room} ranges"));
        };
        let root = members[0] == me;
        let local = worker.create::<T>(spec, len)?;
        let mine = worker.create::<u64>(format!("{name}/ranges/{me}"), words)?;
        let root = if root {
            let master = worker.create::<T>(format!("{name}/master"), len)?;
            Some((master, worker.create::<u64>(format!("{name}/state"), 2)?))
        } else {
            None
        };
        let master = worker.attach_within(&format!("{name}/master"), CREATION)?;
        let state = worker.attach_within(&format!("{name}/state"), CREATION)?;
        let mut locals = Vec::with_capacity(members.len());
        let mut ranges = Vec::with_capacity(members.len());
        for rank in &members {
            locals.push(worker.attach_within::<T>(&format!("{name}/{rank}"), CREATION)?);
            ranges.push(worker.attach_within::<u64>(&format!("{name}/ranges/{rank}"), CREATION)?);
        }
        if let Some(other) = locals.iter().find(|other| other.len() != len) {
            return bad(format!("{len} elements, but {:?} has {}", other.name(), other.len()));
        }
        let counts = Vec::new();
        Ok((Array { locals, ranges, mine, master, state, root, members, call: 0, room, counts }, local))
    }

    /// The ranges that a member names, if it came to this reduction.
    fn named<'w>(&self, worker: &'w Worker, place: usize) -> Outcome<&'w [[u64; 2]]> {
        let words = self.ranges[place].read(worker)?;
        let rank = self.members[place];
        if words.get(CALL) != Some(&self.call) {
            let text = format!("worker {rank} did not come to reduction {}", self.call);
            return Err(Failure::new(HA_NO_SUCH_WORKER, text));
        }
        let (count, list) = (words[COUNT] as usize, words[RANGES..].as_chunks::<2>().0);
        list.get(..count).ok_or_else(|| {
            Failure::new(
                HA_CALLBACK,
                format!("worker {rank} came to the reduction with arguments that were refused"),
            )
        })
    }

    /// What the first member does between the barriers.
    fn combine(&mut self, worker: &Worker, operation: ha_operation) -> Outcome {
        let Some((mut master, state)) = self.root.take() else { return Ok(()) };
        let done = self.combine_into(worker, operation, &mut master);
        self.root = Some((master, state));
        done
    }

    fn combine_into(&mut self, worker: &Worker, operation: ha_operation, master: &mut Owned<T>) -> Outcome {
        use ha_operation::*;
        let mut guard = master.write(worker)?;
        let every = (0..self.members.len())
            .map(|place| Ok((self.locals[place].read(worker)?, self.named(worker, place)?)));
        let every: Vec<(&[T], &[[u64; 2]])> = every.collect::<Outcome<_>>()?;
        let len = guard.len();
        let bounds = |range: &[u64; 2]| range[0] as usize..(range[0] + range[1]) as usize;
        // Written by the other members, who checked them; but the areas are anybody's to write.
        if every.iter().any(|(_, list)| {
            list.iter().any(|range| range[0].checked_add(range[1]).is_none_or(|end| end > len as u64))
        }) {
            return Err(Failure::new(HA_OUT_OF_RANGE, format!("a range outside an array of {len} elements")));
        }
        if operation == HA_LAST {
            for (local, list) in &every {
                for range in *list {
                    guard.range_mut(bounds(range)).copy_from_slice(&local[bounds(range)]);
                }
            }
            return Ok(());
        }
        // The first who names an element sets it, the others join theirs.
        let mut counts = std::mem::take(&mut self.counts);
        counts.resize(len, 0);
        for (local, list) in &every {
            for range in *list {
                let range = bounds(range);
                let sources = local[range.clone()].iter().zip(&mut counts[range.clone()]);
                for (out, (value, count)) in guard.range_mut(range).iter_mut().zip(sources) {
                    *out = match (*count, operation) {
                        (0, _) => *value,
                        (_, HA_MAX) => out.larger(*value),
                        _ => out.plus(*value),
                    };
                    *count += 1;
                }
            }
        }
        if operation == HA_MEAN {
            for (_, list) in &every {
                for range in *list {
                    let range = bounds(range);
                    for (out, count) in guard.range_mut(range.clone()).iter_mut().zip(&mut counts[range]) {
                        // Once: the next member that names the element finds a 1.
                        *out = out.divided((*count).max(1) as usize);
                        *count = 1;
                    }
                }
            }
        }
        for (_, list) in &every {
            list.iter().for_each(|range| counts[bounds(range)].fill(0));
        }
        self.counts = counts;
        Ok(())
    }
}

impl<T: Number> AnyArray for Array<T> {
    fn reduce(&mut self, worker: &mut Worker, operation: ha_operation, ranges: &[ha_range]) -> Outcome {
        self.call += 1;
        let (call, len) = (self.call, self.master.len());
        let outside =
            ranges.iter().find(|range| range.first.checked_add(range.count).is_none_or(|end| end > len));
        let refused = match outside {
            Some(range) => Err(Failure::new(
                HA_OUT_OF_RANGE,
                format!(
                    "{} elements from {} lie outside an array of {len} elements",
                    range.count, range.first
                ),
            )),
            None if ranges.len() > self.room => {
                let text =
                    format!("{} ranges, but the array was made with room for {}", ranges.len(), self.room);
                Err(Failure::new(HA_LIMIT, text))
            }
            None => Ok(()),
        };
        // Whoever is refused comes to the barriers all the same: the others wait for it.
        {
            let mut words = self.mine.write(worker)?;
            words.set(CALL, call);
            words.set(COUNT, if refused.is_ok() { ranges.len() as u64 } else { REFUSED });
            if refused.is_ok() {
                let list = words.range_mut(RANGES..RANGES + 2 * ranges.len());
                for (place, range) in list.chunks_exact_mut(2).zip(ranges) {
                    place.copy_from_slice(&[range.first as u64, range.count as u64]);
                }
            }
        }
        worker.barrier()?;
        let combined = protect(|| self.combine(worker, operation));
        if let Some((_, state)) = &mut self.root {
            let mut words = state.write(worker)?;
            words.set(0, call);
            words.set(1, u64::from(combined.is_err()));
        }
        worker.barrier()?;
        refused?;
        combined?;
        match self.state.read(worker)? {
            [done, 0] if *done == call => Ok(()),
            [done, _] if *done == call => {
                let text =
                    "the first member could not combine: a member is dead, or came with wrong arguments";
                Err(Failure::new(HA_CALLBACK, text))
            }
            _ => {
                let text =
                    format!("worker {}, the first member, did not complete the reduction", self.members[0]);
                Err(Failure::new(HA_NO_SUCH_WORKER, text))
            }
        }
    }

    fn master(&self, worker: &Worker) -> Outcome<*const u8> {
        Ok(self.master.read(worker)?.as_ptr().cast())
    }
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

/// Makes an array of `len` elements, all zero, of `member_count` workers, each of which calls this with the same
/// arguments and is in the list. It creates the areas `name`/rank and `name`/ranges/rank, and for the first member
/// `name`/master and `name`/state. A synchronization point.
///
/// Pointers: `worker` an open worker; `name` the array's name; `options` null, or what the members' areas are made of,
/// with its `size` set; `members` readable for `member_count` ranks; `max_ranges` is how many ranges a member may name
/// in one reduction, 0 for 4096; `array` a place for the handle.
/// Thread: that of the worker.
/// Fails: `HA_INVALID_AREA` for wrong members or lengths, `HA_TIMED_OUT` if a member does not come within thirty
/// seconds, `HA_VIEW_OPEN`; as `ha_area_create`.
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

/// Brings the master up to date with what the members wrote: each names the ranges of its own area that count, and the
/// operation says what becomes of elements that several name. What nobody names stays as it is; what a member names
/// twice counts twice. Two barriers; every
/// member calls it with the same operation, also with no ranges. A synchronization point.
///
/// Pointers: `array` an open array; `ranges` readable for `count` ranges, or null if that is 0.
/// Thread: that of its worker.
/// Fails: `HA_OUT_OF_RANGE` or `HA_LIMIT` for wrong ranges, after which the others fail with `HA_CALLBACK`;
/// `HA_NO_SUCH_WORKER` if a member is dead; `HA_BAD_ARGUMENT`, `HA_VIEW_OPEN`, `HA_DELETED`, `HA_FORKED`.
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
