//! Aggregation: one result out of the areas of many writers.
use crate::area::{ha_area, held};
use crate::argument::{present, put, text};
use crate::element::{AnyArea, ha_type_in, with_type};
use crate::handle::{Kind, Pool, Shell};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*, protect};
use crate::wait::ha_range;
use crate::worker::{Home, ha_worker, home};
use hectare_dsm::{Area, Error, Number, Rank, Reducer, Worker};
use std::cell::{RefCell, RefMut};
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;

/// How values of several areas are combined.
///
/// Integers wrap on overflow; a NaN in any input makes the result NaN. Inputs are combined in order, so results have the
/// same bits for any number of workers.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ha_operation {
    /// The sum.
    HA_SUM = 1,
    /// The mean; integers round toward zero.
    HA_MEAN = 2,
    /// The maximum; NaN if any input is NaN.
    HA_MAX = 3,
    /// In a reducer: the value of the input that changed the element since the last run; of several, the last in the
    /// order of inputs. In an array: the value of the last member that names the element.
    HA_LAST = 4,
}

/// An `ha_operation` as it comes from C.
pub type ha_operation_in = u32;

#[cold]
pub(crate) fn no_operation(number: u32) -> Failure {
    Failure::new(HA_BAD_ARGUMENT, format!("{number} is no ha_operation"))
}

/// Combines areas of equal length into one result, cooperatively: each member reduces its share of the elements into its
/// own area.
#[derive(Debug)]
pub struct ha_reducer {
    _opaque: [u8; 0],
}

/// A custom reduction: fills `out`, which holds elements `first` to `first + count - 1` of the result (of the last run,
/// before), from the same elements of all inputs, in their order. 0 is success. It may not use the worker (`HA_BUSY`),
/// and must not let a C++ exception out.
pub type ha_combine_function = Option<
    unsafe extern "C" fn(
        out: *mut c_void,
        inputs: *const *const c_void,
        input_count: usize,
        first: usize,
        count: usize,
        argument: *mut c_void,
    ) -> c_int,
>;

/// The reduction to run.
enum Run {
    Operation(ha_operation),
    Function(
        unsafe extern "C" fn(*mut c_void, *const *const c_void, usize, usize, usize, *mut c_void) -> c_int,
        *mut c_void,
    ),
}

/// A reducer of whatever type.
trait AnyReducer {
    fn run(&mut self, worker: &mut Worker, run: Run) -> Outcome;
    fn len(&self) -> usize;
    fn element_size(&self) -> usize;
    fn share(&self) -> ha_range;
    /// # Safety
    /// `to` is writable for the whole result.
    unsafe fn copy_to(&self, worker: &Worker, to: *mut u8) -> Result<(), Error>;
}

impl<T: Number> AnyReducer for Reducer<T> {
    fn run(&mut self, worker: &mut Worker, run: Run) -> Outcome {
        let (function, argument) = match run {
            Run::Operation(ha_operation::HA_SUM) => return Ok(self.sum(worker)?),
            Run::Operation(ha_operation::HA_MEAN) => return Ok(self.mean(worker)?),
            Run::Operation(ha_operation::HA_MAX) => return Ok(self.max(worker)?),
            Run::Operation(ha_operation::HA_LAST) => return Ok(self.last_writer(worker)?),
            Run::Function(function, argument) => (function, argument),
        };
        let first = self.range().start;
        let mut code = 0;
        self.with(worker, |out, inputs| {
            let pointers: Vec<*const c_void> = inputs.iter().map(|input| input.as_ptr().cast()).collect();
            // SAFETY: the header's contract: a function for this. What it is given is valid while it runs.
            code = unsafe {
                function(
                    out.as_mut_ptr().cast(),
                    pointers.as_ptr(),
                    pointers.len(),
                    first,
                    out.len(),
                    argument,
                )
            };
        })?;
        match code {
            0 => Ok(()),
            code => Err(Failure::new(HA_CALLBACK, format!("the reducer's function returned {code}"))),
        }
    }

    fn len(&self) -> usize {
        Reducer::len(self)
    }

    fn element_size(&self) -> usize {
        size_of::<T>()
    }

    fn share(&self) -> ha_range {
        let range = self.range();
        ha_range { first: range.start, count: range.len() }
    }

    unsafe fn copy_to(&self, worker: &Worker, to: *mut u8) -> Result<(), Error> {
        for (start, slice) in self.slices(worker)? {
            // SAFETY: the slices are the parts of the result, and `to` has room for all of it, aligned or not.
            unsafe {
                let bytes = size_of_val(slice);
                std::ptr::copy_nonoverlapping(
                    slice.as_ptr().cast::<u8>(),
                    to.add(start * size_of::<T>()),
                    bytes,
                );
            }
        }
        Ok(())
    }
}

/// The body of an `ha_reducer`.
pub(crate) struct ReducerBody {
    home: Rc<Home>,
    reducer: RefCell<Box<dyn AnyReducer>>,
}

impl Kind for ReducerBody {
    const MAGIC: u64 = 0x6563_7564_6572_6168;
    const NAME: &'static str = "reducer";
    type Hot = u64;
    fn pool() -> &'static Pool {
        static POOL: Pool = Pool::new();
        &POOL
    }
}

/// # Safety
/// As for `Shell::body`.
unsafe fn body<'h>(reducer: *mut ha_reducer) -> Outcome<&'h ReducerBody> {
    // SAFETY: by the contract above.
    let body = unsafe { Shell::<ReducerBody>::body(reducer.cast::<Shell<ReducerBody>>().cast_const())? };
    body.home.check_thread("reducer")?;
    Ok(body)
}

impl ReducerBody {
    fn get(&self) -> Outcome<RefMut<'_, Box<dyn AnyReducer>>> {
        let text = "the reducer is running: this call came from its function";
        self.reducer.try_borrow_mut().map_err(|_| Failure::new(HA_BUSY, text))
    }
}

/// Areas of one type, out of handles of this thread.
///
/// # Safety
/// `areas` is readable for `count` handles, each as for `Shell::body`.
unsafe fn inputs<T: Number>(areas: *const *const ha_area, count: usize) -> Outcome<Vec<Area<T>>> {
    (0..count)
        .map(|place| {
            // SAFETY: by the contract above.
            let held = unsafe { held(areas.add(place).read_unaligned())? };
            held.area.any().downcast_ref::<Area<T>>().cloned().ok_or_else(|| {
                let name = held.area.name();
                Failure::new(HA_WRONG_TYPE, format!("input {place}, area {name:?}, has another element type"))
            })
        })
        .collect()
}

/// A reducer of this type.
///
/// # Safety
/// As for `inputs`.
unsafe fn one<T: Number>(
    worker: &mut Worker,
    name: &str,
    members: &[Rank],
    areas: *const *const ha_area,
    count: usize,
) -> Outcome<Box<dyn AnyReducer>> {
    // SAFETY: by the contract above.
    let areas = unsafe { inputs::<T>(areas, count)? };
    Ok(Box::new(Reducer::new(worker, name, members, areas)?))
}

/// Numbers from C.
///
/// # Safety
/// `list` is readable for `count` numbers, or null.
pub(crate) unsafe fn ranks(list: *const u32, count: usize) -> Outcome<Vec<Rank>> {
    if count > 1 << 20 {
        return Err(Failure::new(HA_BAD_ARGUMENT, format!("{count} members")));
    }
    if count != 0 {
        present(list, "the list of members")?;
    }
    // SAFETY: by the contract above.
    Ok((0..count).map(|place| unsafe { list.add(place).read_unaligned() }).collect())
}

/// Creates a reducer of `member_count` workers, each of which must be in the list and call this with the same arguments.
/// It creates the area `name`/rank for the worker's share. A synchronization point.
///
/// Pointers: `worker` an open worker; `name` the reducer's name; `members` readable for `member_count` ranks; `inputs`
/// readable for `input_count` open areas of this worker, all of `element_type` and of the same length; `reducer` a
/// place for the handle.
/// Thread: that of the worker.
/// Fails: `HA_INVALID_AREA` for wrong members or lengths, `HA_WRONG_TYPE`, `HA_TIMED_OUT` if a member does not come
/// within thirty seconds, `HA_VIEW_OPEN`; as `ha_area_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_reducer_create(
    worker: *mut ha_worker,
    name: *const c_char,
    element_type: ha_type_in,
    members: *const u32,
    member_count: usize,
    inputs: *const *const ha_area,
    input_count: usize,
    reducer: *mut *mut ha_reducer,
) -> ha_status {
    enter(|| {
        present(reducer, "the place for the reducer")?;
        if input_count != 0 {
            present(inputs, "the list of inputs")?;
        }
        // SAFETY: the header's contract.
        let (home, name, members) =
            unsafe { (home(worker)?, text(name, "the name of the reducer")?, ranks(members, member_count)?) };
        let mut worker = home.at_sync_point()?;
        // SAFETY: the header's contract.
        let one = unsafe {
            with_type!(element_type, T => one::<T>(&mut worker, name, &members, inputs, input_count))?
        };
        drop(worker);
        let shell = Shell::open(ReducerBody { home: home.clone(), reducer: RefCell::new(one) });
        home.adopt(shell);
        // SAFETY: the header's contract.
        unsafe { put(reducer, shell.cast()) };
        Ok(())
    })
}

/// Runs the reduction: two barriers (`ha_barrier`), one that publishes the inputs, one that publishes the result. Every
/// member calls it with the same operation. A synchronization point.
///
/// Pointers: `reducer` an open reducer.
/// Thread: that of its worker.
/// Fails: `HA_BAD_ARGUMENT`, `HA_NO_SUCH_WORKER` if a member died before it published its share, `HA_VIEW_OPEN`,
/// `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_reducer_run(reducer: *mut ha_reducer, operation: ha_operation_in) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let body = unsafe { body(reducer)? };
        body.run(Run::Operation(operation_of(operation)?))
    })
}

pub(crate) fn operation_of(number: u32) -> Outcome<ha_operation> {
    use ha_operation::*;
    [HA_SUM, HA_MEAN, HA_MAX, HA_LAST]
        .into_iter()
        .find(|operation| *operation as u32 == number)
        .ok_or_else(|| no_operation(number))
}

impl ReducerBody {
    fn run(&self, run: Run) -> Outcome {
        let mut reducer = self.get()?;
        let mut worker = self.home.at_sync_point()?;
        protect(|| reducer.run(&mut worker, run))
    }
}

/// `ha_reducer_run` with a function of the program's own.
///
/// Pointers: `reducer` an open reducer; `argument` whatever the function wants.
/// Thread: that of its worker.
/// Fails: as `ha_reducer_run`; `HA_CALLBACK` if the function returned a value other than 0, after the reduction has completed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_reducer_run_with(
    reducer: *mut ha_reducer,
    function: ha_combine_function,
    argument: *mut c_void,
) -> ha_status {
    enter(|| {
        let function = function.ok_or_else(|| Failure::new(HA_NULL, "the function is null"))?;
        // SAFETY: the header's contract.
        unsafe { body(reducer)? }.run(Run::Function(function, argument))
    })
}

/// Copies the whole result to `to`.
///
/// Pointers: `reducer` an open reducer; `to` writable for `bytes` bytes, which is the size of the result.
/// Thread: that of its worker.
/// Fails: `HA_BAD_SIZE`, `HA_DELETED`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_reducer_load(
    reducer: *mut ha_reducer,
    to: *mut c_void,
    bytes: usize,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let body = unsafe { body(reducer)? };
        let reducer = body.get()?;
        if bytes != reducer.len() * reducer.element_size() {
            let (len, size) = (reducer.len(), reducer.element_size());
            let text = format!("a buffer of {bytes} bytes for {len} elements of {size} bytes");
            return Err(Failure::new(HA_BAD_SIZE, text));
        }
        if bytes != 0 {
            present(to, "the buffer")?;
        }
        // SAFETY: the header's contract; the size was just checked.
        unsafe { reducer.copy_to(&*body.home.worker()?, to.cast())? };
        Ok(())
    })
}

/// The elements of this member's share of the result.
///
/// Pointers: `reducer` an open reducer; `share` a place for the range.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_reducer_share(reducer: *mut ha_reducer, share: *mut ha_range) -> ha_status {
    enter(|| {
        present(share, "the place for the range")?;
        // SAFETY: the header's contract.
        unsafe { put(share, body(reducer)?.get()?.share()) };
        Ok(())
    })
}

/// Closes the handle.
///
/// Pointers: `reducer` an open reducer, or null, which does nothing.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_reducer_close(reducer: *mut ha_reducer) -> ha_status {
    enter(|| {
        if reducer.is_null() {
            return Ok(());
        }
        // SAFETY: the header's contract.
        let body = unsafe { body(reducer)? };
        drop(body.get()?);
        let shell = reducer.cast::<Shell<ReducerBody>>();
        body.home.clone().disown(shell);
        // SAFETY: open, of this thread, and not running.
        drop(unsafe { Shell::close(shell) });
        Ok(())
    })
}

/// The areas' side of an array's element type.
pub(crate) fn any_area<T: Number>(area: &Area<T>) -> Box<dyn AnyArea> {
    Box::new(area.clone())
}
