//! Plans of rows that change owners in batches.
use crate::argument::{present, put};
use crate::handle::{Kind, Pool, Shell};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use hectare_dsm::tasks::{RowError, RowPlan, Touched};
use std::collections::TryReserveError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A plan of the rows of each array that each worker touches in each of a number of batches. In a batch, a row that one worker writes is
/// touched by no other, which `ha_row_plan_build` checks; from one batch to the next, rows go to other workers, and
/// `ha_rows_next` waits for those alone who had them before.
///
/// A plan belongs to no worker: once it is built, all threads of a program can run it. Each process builds its own, of the
/// same lists.
#[derive(Debug)]
pub struct ha_row_plan {
    _opaque: [u8; 0],
}

/// How a worker accesses rows.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ha_row_access {
    /// It may read them.
    HA_ROWS_READ = 1,
    /// It may read and write them.
    HA_ROWS_WRITE = 2,
}

/// An `ha_row_access` as it comes from C.
pub type ha_row_access_in = u32;

/// The body of an `ha_row_plan`.
#[derive(Debug)]
pub(crate) struct PlanBody(Mutex<Stage>);

#[derive(Debug)]
enum Stage {
    Lists {
        arrays: Vec<usize>,
        batches: usize,
        /// By worker and array.
        touched: Vec<Vec<Touched>>,
    },
    Built(Arc<RowPlan>),
    /// The lists were no plan.
    Failed,
}

impl Kind for PlanBody {
    const MAGIC: u64 = 0x6e61_6c70_776f_6168;
    const NAME: &'static str = "row plan";
    type Hot = u64;
    fn pool() -> &'static Pool {
        static POOL: Pool = Pool::new();
        &POOL
    }
}

impl PlanBody {
    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan, if it was built.
    pub(crate) fn built(&self) -> Outcome<Arc<RowPlan>> {
        match &*self.lock() {
            Stage::Built(plan) => Ok(plan.clone()),
            _ => Err(Failure::new(HA_BAD_PLAN, "the row plan has not been built: call ha_row_plan_build")),
        }
    }
}

impl From<RowError> for Failure {
    fn from(error: RowError) -> Failure {
        let status = match &error {
            RowError::NoMemory { .. } => HA_OUT_OF_MEMORY,
            _ => HA_BAD_PLAN,
        };
        Failure::new(status, error.to_string())
    }
}

/// Lists that a plan has at most, for each worker one of each array: what is beyond is a mistake, and takes a hundred megabytes
/// before it has rows.
const MOST_LISTS: usize = 1 << 20;

fn check_size(rows: &[usize], batches: usize, workers: usize) -> Outcome {
    RowPlan::check_size(rows, batches, workers).map_err(|error| {
        let most = rows.iter().max().map(|most| format!(", up to {most} rows")).unwrap_or_default();
        Failure::new(HA_BAD_PLAN, format!("{batches} batches{most}, {workers} workers: {error}"))
    })
}

fn no_memory(error: TryReserveError) -> Failure {
    Failure::new(HA_OUT_OF_MEMORY, format!("no memory for the rows of a plan: {error}"))
}

/// # Safety
/// As for `Shell::body`.
pub(crate) unsafe fn body<'h>(plan: *const ha_row_plan) -> Outcome<&'h PlanBody> {
    // SAFETY: by the contract above.
    unsafe { Shell::<PlanBody>::body(plan.cast::<Shell<PlanBody>>()) }
}

/// Begins a plan for workers 0 to `workers - 1`, of `batches` batches, over `array_count` arrays, of which array
/// `a` has `rows[a]` rows.
///
/// Pointers: `rows` readable for `array_count` numbers; `plan` a place for the handle.
/// Thread: any.
/// Fails: `HA_BAD_PLAN` for no worker or array, for more than 65535 workers, 16777215 batches or 4294967295 rows in an array, and
/// if `workers` times `array_count` is more than 1048576; `HA_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_row_plan_new(
    rows: *const usize,
    array_count: usize,
    batches: usize,
    workers: u32,
    plan: *mut *mut ha_row_plan,
) -> ha_status {
    enter(|| {
        present(plan, "the place for the plan")?;
        present(rows, "the list of numbers of rows")?;
        let workers = workers as usize;
        if workers == 0 || array_count == 0 {
            let text = format!(
                "a row plan of {workers} workers over {array_count} arrays: it needs one of each at least"
            );
            return Err(Failure::new(HA_BAD_PLAN, text));
        }
        check_size(&[], batches, workers)?;
        if array_count > MOST_LISTS / workers {
            let text = format!(
                "a row plan of {workers} workers over {array_count} arrays: one has at most {MOST_LISTS} divided by the \
                 workers"
            );
            return Err(Failure::new(HA_BAD_PLAN, text));
        }
        // SAFETY: the header's contract.
        let arrays: Vec<_> = (0..array_count).map(|at| unsafe { rows.add(at).read_unaligned() }).collect();
        check_size(&arrays, batches, workers)?;
        let touched = vec![vec![Touched::default(); array_count]; workers];
        let stage = Stage::Lists { arrays, batches, touched };
        // SAFETY: the header's contract.
        unsafe { put(plan, Shell::open(PlanBody(Mutex::new(stage))).cast()) };
        Ok(())
    })
}

/// Says that a worker touches these rows of an array in a batch. For each worker, array and access, batches come in
/// their order; a batch may be added to, and a row may come several times.
///
/// Pointers: `plan` an open plan that was not built; `rows` readable for `count` numbers, each `stride` bytes behind the one
/// before, so that they may be fields of structs (0 for numbers that follow each other; else 4 at least).
/// Thread: any, one at a time.
/// Fails: `HA_OUT_OF_RANGE` for a worker, array or batch that the plan does not have, or a batch before the last; `HA_BAD_ARGUMENT`
/// for a stride in which no number fits; `HA_BAD_PLAN` for a plan that was built; `HA_OUT_OF_MEMORY`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_row_plan_add(
    plan: *mut ha_row_plan,
    worker: u32,
    array: usize,
    batch: usize,
    access: ha_row_access_in,
    rows: *const u32,
    count: usize,
    stride: usize,
) -> ha_status {
    enter(|| {
        if count != 0 {
            present(rows, "the list of rows")?;
        }
        // SAFETY: the header's contract.
        let mut stage = unsafe { body(plan)? }.lock();
        let Stage::Lists { batches, touched, .. } = &mut *stage else {
            return Err(Failure::new(HA_BAD_PLAN, "the row plan is built: nothing can be added to it"));
        };
        let out = |what: String| Failure::new(HA_OUT_OF_RANGE, format!("the row plan has no {what}"));
        if batch >= *batches {
            return Err(out(format!("batch {batch}: it has {batches}")));
        }
        let lists = touched.get_mut(worker as usize).ok_or_else(|| out(format!("worker {worker}")))?;
        let touched = lists.get_mut(array).ok_or_else(|| out(format!("array {array}")))?;
        let list = match access {
            access if access == ha_row_access::HA_ROWS_READ as u32 => &mut touched.reads,
            access if access == ha_row_access::HA_ROWS_WRITE as u32 => &mut touched.writes,
            other => return Err(Failure::new(HA_BAD_ARGUMENT, format!("{other} is no ha_row_access"))),
        };
        let stride = if stride == 0 { size_of::<u32>() } else { stride };
        if stride < size_of::<u32>() {
            let text = format!(
                "rows {stride} bytes apart: each has 4 bytes, so that they are 4 apart at least (0 for numbers that follow \
                 each other)"
            );
            return Err(Failure::new(HA_BAD_ARGUMENT, text));
        }
        list.try_reserve(batch, count).map_err(no_memory)?;
        // SAFETY: the header's contract.
        let numbers = (0..count).map(|at| unsafe { rows.byte_add(at * stride).read_unaligned() });
        if !list.add(batch, numbers) {
            let text = format!("rows of worker {worker} for batch {batch} come after those of a later batch");
            return Err(Failure::new(HA_OUT_OF_RANGE, text));
        }
        Ok(())
    })
}

/// Checks the plan, and finds who waits for whom: linear in the lengths of the lists.
///
/// Pointers: `plan` an open plan.
/// Thread: any, one at a time.
/// Fails: `HA_BAD_PLAN`, with array, row, batch and both workers in `ha_last_error`, when two workers touch a row in one batch and
/// one of them writes it, or when an array does not have a row; also for a plan that was built; `HA_OUT_OF_MEMORY`. The plan is of
/// no use then but to be closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_row_plan_build(plan: *mut ha_row_plan) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let mut stage = unsafe { body(plan)? }.lock();
        match std::mem::replace(&mut *stage, Stage::Failed) {
            Stage::Lists { arrays, batches, touched } => {
                *stage = Stage::Built(Arc::new(RowPlan::new(arrays, batches, touched)?));
                Ok(())
            }
            Stage::Built(plan) => {
                *stage = Stage::Built(plan);
                Err(Failure::new(HA_BAD_PLAN, "the row plan was built before"))
            }
            Stage::Failed => Err(Failure::new(HA_BAD_PLAN, "the row plan could not be built before")),
        }
    })
}

/// Closes the handle. Runs that have begun go on.
///
/// Pointers: `plan` an open plan that no other thread uses at the time, or null, which does nothing.
/// Thread: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_row_plan_close(plan: *mut ha_row_plan) -> ha_status {
    enter(|| {
        if plan.is_null() {
            return Ok(());
        }
        // SAFETY: the header's contract.
        unsafe {
            body(plan)?;
            drop(Shell::close(plan.cast::<Shell<PlanBody>>()));
        }
        Ok(())
    })
}
