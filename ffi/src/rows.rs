//! Runs of plans of rows: what takes the place of a barrier between batches.
use crate::area::{Held, ha_area, held};
use crate::argument::{present, put};
use crate::handle::{Kind, Pool, Shell};
use crate::in_place;
use crate::row_plan::{body as plan_body, ha_row_plan};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use crate::worker::{Home, ha_worker, home};
use hectare_dsm::Worker;
use hectare_dsm::tasks::RowRun;
use std::cell::{RefCell, RefMut};
use std::ffi::c_void;
use std::rc::Rc;

/// A worker's part in a run of an `ha_row_plan` over areas, one for each of its arrays. The workers of a host write them in place,
/// each its rows of the batch; each host has a copy, and what a worker of another host touches next is sent there.
/// `ha_rows_next` takes the place of a barrier between batches.
#[derive(Debug)]
pub struct ha_rows {
    _opaque: [u8; 0],
}

/// The body of an `ha_rows`.
pub(crate) struct RowsBody {
    home: Rc<Home>,
    run: RefCell<RowRun>,
    areas: Vec<*const ha_area>,
}

impl Kind for RowsBody {
    const MAGIC: u64 = 0x7377_6f72_2020_6168;
    const NAME: &'static str = "rows";
    type Hot = u64;
    fn pool() -> &'static Pool {
        static POOL: Pool = Pool::new();
        &POOL
    }
}

impl RowsBody {
    fn run(&self) -> Outcome<RefMut<'_, RowRun>> {
        self.run.try_borrow_mut().map_err(|_| Failure::new(HA_BUSY, "the rows are in the middle of a call"))
    }
}

/// # Safety
/// As for `Shell::body`.
unsafe fn body<'h>(rows: *mut ha_rows) -> Outcome<&'h RowsBody> {
    // SAFETY: by the contract above.
    let body = unsafe { Shell::<RowsBody>::body(rows.cast::<Shell<RowsBody>>().cast_const())? };
    body.home.check_thread("rows")?;
    Ok(body)
}

/// Begins a run of `passes` passes through the plan's batches, without a barrier between them. All workers of the plan call it with
/// the same arguments, and all workers of the job meet in it: it has two barriers (`ha_barrier`). `areas` has an area for each
/// array, that one of the workers owns; its length is a multiple of the array's number of rows. It was created with `on_demand`, or,
/// if all workers are on one host, with `no_copies`. The
/// area is open to the run until `ha_rows_end`: its owner cannot write it meanwhile but by the plan, and who reads it sees what it
/// was before. A worker is in one run at a time. A synchronization point.
///
/// Pointers: `worker` an open worker; `plan` an open plan that was built; `areas` readable for `area_count` open areas of
/// this worker; `rows` a place for the handle.
/// Thread: that of the worker.
/// Fails: on all workers if it fails on one, and nobody begins (but if `worker` is no worker of this thread, has views, or is in a run
/// already, which is `HA_BUSY`).
/// `HA_BAD_PLAN`, `HA_BAD_ARGUMENT` if workers or areas do not fit the
/// plan; `HA_INVALID_AREA` for an area with reader copies that is not sent on demand, or that none of the workers owns; `HA_WORKER_LEFT` if
/// another worker did not begin, `HA_NO_SUCH_WORKER` if it has not joined the job yet (`ha_wait_for_workers`); `HA_BUSY` for an
/// area in another run; `HA_DELETED`, `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_rows_begin(
    worker: *mut ha_worker,
    plan: *const ha_row_plan,
    passes: usize,
    areas: *const *mut ha_area,
    area_count: usize,
    rows: *mut *mut ha_rows,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let home = unsafe { home(worker)? };
        home.outside_runs()?;
        let mut worker = home.at_sync_point()?;
        // Whatever is wrong here, the others are met.
        let check = || {
            present(rows, "the place for the rows")?;
            // SAFETY: the header's contract.
            let plan = unsafe { plan_body(plan)?.built()? };
            if area_count != plan.arrays().len() {
                let arrays = plan.arrays().len();
                return Err(Failure::new(
                    HA_BAD_ARGUMENT,
                    format!("{area_count} areas for a plan of {arrays} arrays"),
                ));
            }
            if area_count != 0 {
                present(areas, "the list of areas")?;
            }
            // SAFETY: the header's contract.
            let areas = (0..area_count).map(|at| unsafe { held(areas.add(at).read_unaligned()) });
            Ok((plan, areas.collect::<Outcome<Vec<_>>>()?))
        };
        let begin = |worker: &mut Worker, plan, in_place: &[_]| RowRun::begin(worker, plan, passes, in_place);
        let (run, areas) = in_place::begin(&mut worker, check(), begin, RowRun::check_begun)?;
        let areas = areas.iter().map(Held::handle).collect();
        let shell = Shell::open(RowsBody { home: home.clone(), run: RefCell::new(run), areas });
        home.adopt(shell);
        home.in_rows.set(true);
        // SAFETY: the header's contract.
        unsafe { put(rows, shell.cast()) };
        Ok(())
    })
}

/// The address of row 0 of an array on this worker's host; the others follow. Valid until `ha_rows_end` or `ha_rows_close`. Between two calls of
/// `ha_rows_next`, the worker touches only the rows that the plan gives it in the batch, which nothing checks.
///
/// Pointers: `rows` open rows; `data` a place for the pointer.
/// Thread: that of its worker.
/// Fails: `HA_OUT_OF_RANGE` for an array that the plan does not have; `HA_INVALID_AREA` if the area is open no more, `HA_DELETED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_rows_data(rows: *mut ha_rows, array: usize, data: *mut *mut c_void) -> ha_status {
    enter(|| {
        present(data, "the place for the pointer")?;
        // SAFETY: the header's contract.
        let body = unsafe { body(rows)? };
        let Some(area) = body.areas.get(array) else {
            return Err(Failure::new(HA_OUT_OF_RANGE, format!("the run has no array {array}")));
        };
        // SAFETY: closed handles are recognized.
        let area = unsafe { held(*area)? };
        let start = area.area.start_of_rows(&*body.run()?, array)?;
        // SAFETY: the header's contract.
        unsafe { put(data, start.cast()) };
        Ok(())
    })
}

/// Ends the batch that the worker is in, if it is in one, and begins the next: waits until those have done theirs who touched its
/// rows before, and takes part in publications meanwhile. To be called before each batch of each pass. A synchronization point.
///
/// Pointers: `rows` open rows.
/// Thread: that of its worker.
/// Fails: `HA_WORKER_LEFT` if a worker that is waited for has died, or has left the run before its end; `HA_OUT_OF_RANGE` after
/// the last batch of the last pass, which has ended then; `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_rows_next(rows: *mut ha_rows) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let body = unsafe { body(rows)? };
        let mut run = body.run()?;
        let mut worker = body.home.at_sync_point()?;
        let begun = run.next(&mut worker).map(|batch| batch.is_some()).map_err(Failure::from);
        match in_place::note(&worker, begun)? {
            true => Ok(()),
            false => Err(Failure::new(HA_OUT_OF_RANGE, "the run of rows has no more batches")),
        }
    })
}

/// Ends the batch that the worker is in, and the run, and closes the handle, also after a failure of `ha_rows_next`. All workers of
/// the job meet in it: it has two barriers (`ha_barrier`). Then the areas belong to their owners again, who see what all have
/// written; it is published like anything that they write. A synchronization point.
///
/// Pointers: `rows` open rows.
/// Thread: that of its worker.
/// Fails: `HA_VIEW_OPEN`, and nothing has ended; `HA_TIMED_OUT` if a worker does not come to a synchronization point for ten seconds,
/// `HA_DELETED`, `HA_FORKED`, after which the areas are claimable. `HA_WORKER_LEFT`, which names a worker that has left early or died,
/// for one that has run all its batches; who ends the run early itself is not told of others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_rows_end(rows: *mut ha_rows) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let home = unsafe { body(rows)? }.home.clone();
        // SAFETY: the header's contract.
        drop(unsafe { body(rows)? }.run()?);
        let mut worker = home.at_sync_point()?;
        let shell = rows.cast::<Shell<RowsBody>>();
        home.disown(shell);
        home.in_rows.set(false);
        // SAFETY: open, of this thread, and not in a call.
        let body = unsafe { Shell::close(shell) };
        let ended = body.run.into_inner().end(&mut worker).map_err(Failure::from);
        // An area whose handle was closed is claimable already.
        // SAFETY: closed handles are recognized.
        let open = body.areas.iter().filter_map(|area| unsafe { held(*area) }.ok());
        in_place::end(&mut worker, ended, open)
    })
}

/// Leaves the run without waiting for anybody, and closes the handle: for a worker that has failed. The batch that it is in is not
/// done, and others that wait for it get `HA_WORKER_LEFT`. The areas that it has opened stay open until they are detached, which
/// makes them claimable.
///
/// Pointers: `rows` open rows, or null, which does nothing.
/// Thread: that of its worker.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_rows_close(rows: *mut ha_rows) -> ha_status {
    enter(|| {
        if rows.is_null() {
            return Ok(());
        }
        // SAFETY: the header's contract.
        let body = unsafe { body(rows)? };
        drop(body.run()?);
        let shell = rows.cast::<Shell<RowsBody>>();
        let home = body.home.clone();
        home.disown(shell);
        home.in_rows.set(false);
        // SAFETY: open, of this thread, and not in a call.
        drop(unsafe { Shell::close(shell) });
        Ok(())
    })
}
