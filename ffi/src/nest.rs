//! Loops: which iterations there are, and which elements of which areas each of them touches.
use crate::area::{Held, ha_area, held};
use crate::argument::{present, put, text};
use crate::handle::{Kind, Pool, Shell};
use crate::loop_plan::LoopPlan;
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use crate::worker::{Home, ha_worker, home};
use hectare_dependence::loop_nest::{
    Access, Affine, LoopNest, LoopVar, Mode, NamedArray, Order, Space, Subscript,
};
use std::cell::{RefCell, RefMut};
use std::ffi::c_char;
use std::fmt;
use std::rc::Rc;

/// The most variables of a loop.
pub const HA_LOOP_DIMS: usize = 4;

/// A nest of loops over areas that lie in place, which several workers run as if it ran on one: the elements that its body touches are
/// described, the library finds which iterations depend on each other, chooses an order that keeps that, and calls the body for blocks
/// of iterations.
///
/// Every worker makes its own, with the same calls, and all run it together (`ha_loop_run`), any number of times.
#[derive(Debug)]
pub struct ha_loop {
    _opaque: [u8; 0],
}

/// Whether iterations look as if they ran in the order of the loop.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ha_loop_order {
    /// Yes: results have the bits of the serial loop, for every number of workers.
    HA_ORDERED = 1,
    /// As if in some serial order: more can run at once. The results depend on the number of workers if iterations depend on each
    /// other, and are the same in every run with as many.
    HA_UNORDERED = 2,
}

/// An `ha_loop_order` as it comes from C.
pub type ha_loop_order_in = u32;

/// The index of an element in one dimension of an area: `constant` plus each of the loop's variables times its factor. In C, `{-1,
/// {1}}` is i - 1 of a loop over i and j, and `{0, {0, 1}}` is j.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ha_subscript {
    /// The constant term.
    pub constant: i64,
    /// One for each variable, the outermost first; those behind the last variable are 0.
    pub factors: [i64; HA_LOOP_DIMS],
    /// How many indices from there on; 0 stands for one, and `HA_WHOLE` for the whole dimension, whatever the rest says.
    pub count: usize,
}

/// The body of an `ha_loop`.
pub(crate) struct LoopBody {
    pub(crate) home: Rc<Home>,
    pub(crate) stage: RefCell<Stage>,
}

/// The description and the analysis of a loop.
pub(crate) struct Stage {
    pub(crate) nest: LoopNest,
    pub(crate) workers: usize,
    /// The areas, in the order of the arrays of the nest.
    pub(crate) areas: Vec<*const ha_area>,
    /// Made when it is asked for first, after which nothing can be added.
    pub(crate) plan: Option<Rc<LoopPlan>>,
}

impl Kind for LoopBody {
    const MAGIC: u64 = 0x706f_6f6c_2020_6168;
    const NAME: &'static str = "loop";
    type Hot = u64;
    fn pool() -> &'static Pool {
        static POOL: Pool = Pool::new();
        &POOL
    }
}

impl LoopBody {
    pub(crate) fn stage(&self) -> Outcome<RefMut<'_, Stage>> {
        let busy = "the loop is running: this call came from its body";
        self.stage.try_borrow_mut().map_err(|_| Failure::new(HA_BUSY, busy))
    }
}

/// # Safety
/// As for `Shell::body`.
pub(crate) unsafe fn body<'h>(loop_: *const ha_loop) -> Outcome<&'h LoopBody> {
    // SAFETY: by the contract above.
    let body = unsafe { Shell::<LoopBody>::body(loop_.cast::<Shell<LoopBody>>())? };
    body.home.check_thread("loop")?;
    Ok(body)
}

impl Stage {
    /// A failure that names the loop.
    pub(crate) fn fail(&self, status: ha_status, what: impl std::fmt::Display) -> Failure {
        Failure::new(status, format!("loop {:?}: {what}", self.nest.name))
    }

    fn check_unplanned(&self) -> Outcome {
        match self.plan {
            None => Ok(()),
            Some(_) => Err(self.fail(HA_BAD_PLAN, "it is planned: nothing can be added to it")),
        }
    }

    fn array_of(&self, area: &Held<'_>) -> Outcome<usize> {
        let found = self.areas.iter().position(|other| *other == area.handle());
        let missing = || format!("it has no area {:?}: name it with ha_loop_area first", area.area.name());
        found.ok_or_else(|| self.fail(HA_BAD_ARGUMENT, missing()))
    }
}

/// Begins a loop over `dims` variables, the outermost first: variable `d` takes the values from `first[d]` up to `last[d]`, that one
/// left out. Workers 0 to `workers` - 1 run it. `name` stands in errors and explanations.
///
/// Pointers: `worker` an open worker; `name` a string; `first` and `last` readable for `dims` numbers; `loop_` a place for the handle.
/// Thread: that of the worker.
/// Fails: `HA_BAD_ARGUMENT` for no variables or more than `HA_LOOP_DIMS`, bounds beyond 2^40, or no workers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_loop_new(
    worker: *mut ha_worker,
    name: *const c_char,
    order: ha_loop_order_in,
    first: *const i64,
    last: *const i64,
    dims: usize,
    workers: u32,
    loop_: *mut *mut ha_loop,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let (home, name) = unsafe { (home(worker)?, text(name, "the name of the loop")?) };
        let fail = |what: String| Failure::new(HA_BAD_ARGUMENT, format!("loop {name:?}: {what}"));
        if dims == 0 || dims > HA_LOOP_DIMS {
            return Err(fail(format!("{dims} variables: it has 1 to {HA_LOOP_DIMS}")));
        }
        present(first, "the list of first values")?;
        present(last, "the list of last values")?;
        present(loop_, "the place for the loop")?;
        if workers == 0 || workers > u32::from(u16::MAX) {
            return Err(fail(format!("{workers} workers: it has 1 to {}", u16::MAX)));
        }
        let order = match order {
            order if order == ha_loop_order::HA_ORDERED as u32 => Order::Ordered,
            order if order == ha_loop_order::HA_UNORDERED as u32 => Order::Unordered,
            other => return Err(fail(format!("{other} is no ha_loop_order"))),
        };
        const MOST: i64 = 1 << 40;
        let mut variables = Vec::with_capacity(dims);
        for (dim, variable) in ["i", "j", "k", "l"].into_iter().take(dims).enumerate() {
            // SAFETY: the header's contract.
            let bounds = unsafe { (first.add(dim).read_unaligned(), last.add(dim).read_unaligned()) };
            if bounds.0 < -MOST || bounds.1 > MOST || bounds.0 > MOST || bounds.1 < -MOST {
                let (first, last) = bounds;
                let what = format!("{variable} from {first} up to {last} is too far: at most 2^40 from 0");
                return Err(fail(what));
            }
            let bounds = Some((bounds.0, bounds.1.max(bounds.0)));
            variables.push(LoopVar { name: variable.into(), bounds });
        }
        let nest = LoopNest::new(name, order, Space::Dense, variables);
        let stage = Stage { nest, workers: workers as usize, areas: Vec::new(), plan: None };
        let shell = Shell::open(LoopBody { home: home.clone(), stage: RefCell::new(stage) });
        home.adopt(shell);
        // SAFETY: the header's contract.
        unsafe { put(loop_, shell.cast()) };
        Ok(())
    })
}

/// Says that the loop touches an area, whose elements are those of an array with these extents, in row-major order. The area
/// was created by one of the workers, with `on_demand`, or with `no_copies` if all of them are on one host.
///
/// Pointers: `loop_` an open loop; `area` an open area of the same worker, open until the loop is closed; `extents` readable for
/// `dims` numbers.
/// Thread: that of its worker.
/// Fails: `HA_BAD_ARGUMENT` if the area has another number of elements, or is named for the second time; `HA_BAD_PLAN` for a loop
/// that was run or explained.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_loop_area(
    loop_: *mut ha_loop,
    area: *const ha_area,
    extents: *const usize,
    dims: usize,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let (mut stage, area) = unsafe { (body(loop_)?.stage()?, held(area)?) };
        stage.check_unplanned()?;
        present(extents, "the list of extents")?;
        let name = area.area.name();
        if stage.areas.contains(&area.handle()) {
            return Err(stage.fail(HA_BAD_ARGUMENT, format!("area {name:?} is named for the second time")));
        }
        // SAFETY: the header's contract.
        let shape: Vec<usize> =
            (0..dims.min(64)).map(|dim| unsafe { extents.add(dim).read_unaligned() }).collect();
        let len = shape.iter().try_fold(1usize, |all, extent| all.checked_mul(*extent));
        if shape.is_empty() || dims > shape.len() || len != Some(area.area.len()) {
            let what = format!("area {name:?} has {} elements, which are not {shape:?}", area.area.len());
            return Err(stage.fail(HA_BAD_ARGUMENT, what));
        }
        let element_bytes = area.area.element_size();
        let name = name.to_owned();
        stage.nest.arrays.push(NamedArray { name, shape, element_bytes });
        stage.areas.push(area.handle());
        Ok(())
    })
}

/// Adds an access to the description.
///
/// # Safety
/// The header's contract for `ha_loop_read` and others.
unsafe fn add(
    loop_: *mut ha_loop,
    area: *const ha_area,
    mode: Mode,
    subscripts: *const ha_subscript,
    dims: usize,
) -> Outcome {
    // SAFETY: by the contract above.
    let (mut stage, area) = unsafe { (body(loop_)?.stage()?, held(area)?) };
    stage.check_unplanned()?;
    present(subscripts, "the list of subscripts")?;
    let array = stage.array_of(&area)?;
    let NamedArray { name, shape, .. } = &stage.nest.arrays[array];
    if dims != shape.len() {
        let what = format!("{dims} subscripts for area {name:?}, which has {} dimensions", shape.len());
        return Err(stage.fail(HA_BAD_ARGUMENT, what));
    }
    let mut list = Vec::with_capacity(dims);
    for (dim, extent) in shape.iter().enumerate() {
        // SAFETY: by the contract above.
        let one = unsafe { subscripts.add(dim).read_unaligned() };
        let unused = &one.factors[stage.nest.dims.len()..];
        if one.count != usize::MAX && unused.iter().any(|factor| *factor != 0) {
            let what = format!(
                "subscript {dim} of area {name:?} has a factor for a variable that the loop does not have"
            );
            return Err(stage.fail(HA_BAD_ARGUMENT, what));
        }
        list.push(
            subscript(&stage.nest, &one, (name, dim, *extent))
                .map_err(|what| stage.fail(HA_OUT_OF_RANGE, format!("it {mode} {what}")))?,
        );
    }
    let show = |subscript: &Subscript| match subscript {
        Subscript::Index(form) => stage.nest.show(form),
        Subscript::Range(start, end) => format!("{}..{}", stage.nest.show(start), stage.nest.show(end)),
        Subscript::Full | Subscript::Unknown => "..".into(),
    };
    let text = format!("{name}[{}]", list.iter().map(show).collect::<Vec<_>>().join(", "));
    stage.nest.accesses.push(Access { array, subscripts: list, mode, text, line: 0 });
    Ok(())
}

/// An iteration's index outside of an area.
#[derive(Debug)]
struct Outside<'a> {
    area: &'a str,
    index: i128,
    dim: usize,
    extent: usize,
    iteration: String,
}

impl fmt::Display for Outside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outside { area, index, dim, extent, iteration } = self;
        write!(
            f,
            "area {area:?} at index {index} of dimension {dim}, which has {extent}, in iteration {iteration}"
        )
    }
}

/// A subscript of dimension `dim`, which has `extent` indices.
fn subscript<'a>(
    nest: &LoopNest,
    one: &ha_subscript,
    (area, dim, extent): (&'a str, usize, usize),
) -> Result<Subscript, Outside<'a>> {
    if one.count == usize::MAX {
        return Ok(Subscript::Full);
    }
    let count = one.count.max(1);
    let bounds: Vec<(i64, i64)> = nest.dims.iter().filter_map(|variable| variable.bounds).collect();
    if bounds.iter().all(|(first, last)| first < last) {
        for (end, past) in [(0, 0), (1, count as i128 - 1)] {
            // The iteration with the least index, then that with the greatest.
            let at = |(factor, (first, last)): (&i64, &(i64, i64))| {
                if *factor != 0 && (*factor < 0) == (end == 0) { last - 1 } else { *first }
            };
            let iteration: Vec<i64> = one.factors.iter().zip(&bounds).map(at).collect();
            let products = one.factors.iter().zip(&iteration).map(|(f, at)| i128::from(*f) * i128::from(*at));
            let index = i128::from(one.constant) + products.sum::<i128>() + past;
            if index < 0 || index >= extent as i128 {
                let names = nest.dims.iter().zip(&iteration).map(|(dim, at)| format!("{} = {at}", dim.name));
                let iteration = names.collect::<Vec<_>>().join(", ");
                return Err(Outside { area, index, dim, extent, iteration });
            }
        }
    }
    let coefficients = one.factors[..bounds.len()].to_vec();
    let start = Affine { constant: one.constant, coefficients };
    if count == 1 {
        return Ok(Subscript::Index(start));
    }
    // Within the dimension, if there is any iteration at all.
    let end = start.plus(&Affine::constant(count.min(extent) as i64));
    Ok(Subscript::Range(start, end))
}

/// Says that an iteration reads elements of an area: those with these indices, one subscript for each dimension.
///
/// Pointers: `loop_` an open loop; `area` an open area of it; `subscripts` readable for `dims` entries.
/// Thread: that of its worker.
/// Fails: `HA_OUT_OF_RANGE`, with loop, area, index and iteration in `ha_last_error`, for an index that the area does not have;
/// `HA_BAD_ARGUMENT` for an area that was not named, or another number of subscripts; `HA_BAD_PLAN` for a loop that was run or
/// explained.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_loop_read(
    loop_: *mut ha_loop,
    area: *const ha_area,
    subscripts: *const ha_subscript,
    dims: usize,
) -> ha_status {
    // SAFETY: the header's contract.
    enter(|| unsafe { add(loop_, area, Mode::Read, subscripts, dims) })
}

/// Says that an iteration writes elements of an area, and does not read them. As `ha_loop_read`.
///
/// Pointers: `loop_` an open loop; `area` an open area of it; `subscripts` readable for `dims` entries.
/// Thread: that of its worker.
/// Fails: as `ha_loop_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_loop_write(
    loop_: *mut ha_loop,
    area: *const ha_area,
    subscripts: *const ha_subscript,
    dims: usize,
) -> ha_status {
    // SAFETY: the header's contract.
    enter(|| unsafe { add(loop_, area, Mode::Write, subscripts, dims) })
}

/// Says that an iteration may read and write elements of an area. As `ha_loop_read`.
///
/// Pointers: `loop_` an open loop; `area` an open area of it; `subscripts` readable for `dims` entries.
/// Thread: that of its worker.
/// Fails: as `ha_loop_read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_loop_update(
    loop_: *mut ha_loop,
    area: *const ha_area,
    subscripts: *const ha_subscript,
    dims: usize,
) -> ha_status {
    // SAFETY: the header's contract.
    enter(|| unsafe { add(loop_, area, Mode::Update, subscripts, dims) })
}

/// Closes the handle.
///
/// Pointers: `loop_` an open loop, or null, which does nothing.
/// Thread: that of its worker.
/// Fails: `HA_BUSY` in the body of the loop.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_loop_close(loop_: *mut ha_loop) -> ha_status {
    enter(|| {
        if loop_.is_null() {
            return Ok(());
        }
        // SAFETY: the header's contract.
        let body = unsafe { body(loop_)? };
        drop(body.stage()?);
        let shell = loop_.cast::<Shell<LoopBody>>();
        body.home.clone().disown(shell);
        // SAFETY: open, of this thread, and not in a call.
        drop(unsafe { Shell::close(shell) });
        Ok(())
    })
}
