//! Running a loop: the body gets blocks of iterations, in the order that the dependences allow.
use crate::area::{Held, held};
use crate::argument::{present, put};
use crate::in_place;
use crate::loop_plan::LoopPlan;
use crate::nest::{HA_LOOP_DIMS, LoopBody, Stage, body, ha_loop};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use hectare_dsm::Worker;
use hectare_dsm::tasks::{EndedRun, TaskRun};
use std::cell::RefMut;
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;

/// A block of iterations, as the body of a loop gets it. Later versions of the library may add fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ha_block {
    /// `sizeof(ha_block)` as the library knows it.
    pub size: usize,
    /// The worker that runs it.
    pub worker: u32,
    /// Variables of the loop.
    pub dims: u32,
    /// The first value of each variable.
    pub first: [i64; HA_LOOP_DIMS],
    /// The value behind the last of each variable.
    pub last: [i64; HA_LOOP_DIMS],
    /// For each area of the loop, in the order of `ha_loop_area`, where its first element lies. The body touches only what was
    /// described, which nothing checks.
    pub areas: *const *mut c_void,
    /// How many areas.
    pub area_count: usize,
}

/// The body of a loop: it runs all iterations of a block, those of an ordered loop in its order, which is the last variable going
/// fastest. 0 is success. It calls no function with the worker or its handles, which give `HA_BUSY`, and lets no C++ exception out.
pub type ha_loop_function =
    Option<unsafe extern "C" fn(block: *const ha_block, argument: *mut c_void) -> c_int>;

impl Stage {
    /// The plan, which is made if there is none.
    fn planned(&mut self) -> Outcome<Rc<LoopPlan>> {
        if let Some(plan) = &self.plan {
            return Ok(plan.clone());
        }
        let plan = LoopPlan::of(&self.nest, self.workers).map_err(|why| self.fail(HA_BAD_PLAN, why.0))?;
        let plan = Rc::new(plan);
        self.plan = Some(plan.clone());
        Ok(plan)
    }
}

/// A loop and its plan, and the areas that it is run over.
struct Ready<'b, 'h> {
    stage: RefMut<'b, Stage>,
    plan: Rc<LoopPlan>,
    areas: Vec<Held<'h>>,
}

impl Ready<'_, '_> {
    fn of(body: &LoopBody) -> Outcome<Ready<'_, '_>> {
        let mut stage = body.stage()?;
        let plan = stage.planned()?;
        // SAFETY: closed handles are recognized.
        let areas = stage.areas.iter().map(|area| unsafe { held(*area) }).collect::<Outcome<Vec<_>>>();
        let areas = areas.map_err(|failure| stage.fail(failure.status, failure.text))?;
        Ok(Ready { stage, plan, areas })
    }
}

/// Runs the loop. All its workers call it, with loops of the same description, and all workers of the job meet in it: it has four
/// barriers (`ha_barrier`). On each, `body` is called for the blocks that are this worker's, as soon as those are done that they
/// depend on, wherever those run. The elements stay where they are; what a block of another host touches next is sent there. Meanwhile the areas belong to nobody, and afterwards to their
/// owners again, who see what all have written. A worker takes part in publications between blocks. A synchronization point.
///
/// Pointers: `loop_` an open loop; `argument` whatever the body wants.
/// Thread: that of its worker.
/// Fails: before any block is run, on all workers if it fails on one (but if `loop_` is no loop of this thread, or its worker has
/// views, or is in a run of rows, which is `HA_BUSY`): `HA_BAD_PLAN` if there is nothing to run, `HA_BAD_ARGUMENT` if the workers have described different loops, `HA_INVALID_AREA`
/// for an area with reader copies that is not sent on demand, or that none of the workers owns, `HA_WORKER_LEFT` if another worker did not begin, `HA_NO_SUCH_WORKER` if it
/// has not joined the job yet (`ha_wait_for_workers`),
/// `HA_BUSY` for an area in another run. Later `HA_CALLBACK`, with loop, worker, value and block, if the body returned a value
/// other than 0; all others get `HA_WORKER_LEFT` then, which names that worker, as they do if one dies: those who wait for its blocks
/// as soon as they do, the others when they have run all of theirs. The areas have what was written up to then. `HA_OK` says that
/// all blocks of all workers have run. `HA_TIMED_OUT` if a worker does not come to a synchronization point for ten seconds;
/// `HA_DELETED`, `HA_VIEW_OPEN`, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_loop_run(
    loop_: *mut ha_loop,
    function: ha_loop_function,
    argument: *mut c_void,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let body = unsafe { body(loop_)? };
        let name = body.stage().map(|stage| stage.nest.name.clone()).unwrap_or_default();
        let named = |failure: Failure| match failure.text.starts_with("loop ") {
            true => failure,
            false => Failure::new(failure.status, format!("loop {name:?}: {}", failure.text)),
        };
        body.home.outside_runs().map_err(named)?;
        let mut worker = body.home.at_sync_point()?;
        // Whatever is wrong here, the others are met.
        let check = || {
            let function = function.ok_or_else(|| Failure::new(HA_NULL, "the body of the loop is null"))?;
            let Ready { stage, plan, areas } = Ready::of(body)?;
            Ok(((stage, plan, function), areas))
        };
        let begin = |worker: &mut Worker, (stage, plan, function): (_, Rc<LoopPlan>, _), areas: &[_]| {
            let run = TaskRun::begin_on_hosts(worker, plan.graph.clone(), areas)?;
            Ok((run, stage, plan, function))
        };
        let check_begun = |(run, ..): &(TaskRun, _, _, _), worker: &Worker| run.check_begun(worker);
        let ((run, stage, plan, function), areas) =
            in_place::begin(&mut worker, check(), begin, check_begun).map_err(named)?;
        let call = |block: &ha_block| {
            // SAFETY: the header's contract: a function for this, and an argument for it.
            unsafe { function(block, argument) }
        };
        let ran = run_blocks(run, &mut worker, (&stage, &plan, &areas), call);
        in_place::end(&mut worker, ran, areas.into_iter()).map_err(named)
    })
}

/// Runs the blocks of this worker, and leaves the run.
fn run_blocks(
    mut run: TaskRun,
    worker: &mut Worker,
    (stage, plan, areas): (&Stage, &LoopPlan, &[Held<'_>]),
    call: impl Fn(&ha_block) -> c_int,
) -> Outcome<EndedRun> {
    let starts = areas.iter().enumerate().map(|(at, area)| area.area.start_in_tasks(&run, at));
    let starts = starts.map(|start| Ok(start?.cast())).collect::<Outcome<Vec<*mut c_void>>>()?;
    let rank = worker.rank();
    for values in &plan.blocks[rank as usize] {
        if !run.is_ready(worker)? {
            run.wait_for_living(worker)?;
        }
        let task = run.next(worker)?;
        if values.iter().any(|(first, last)| first >= last) {
            // Nothing to run: the loop is empty.
            task.end();
            worker.service()?;
            continue;
        }
        let mut block = ha_block {
            size: size_of::<ha_block>(),
            worker: rank,
            dims: values.len() as u32,
            first: [0; HA_LOOP_DIMS],
            last: [0; HA_LOOP_DIMS],
            areas: starts.as_ptr(),
            area_count: starts.len(),
        };
        for (dim, (first, last)) in values.iter().enumerate() {
            (block.first[dim], block.last[dim]) = (*first, *last);
        }
        let code = call(&block);
        if code != 0 {
            // Not done: the run is left, and others who wait for the block learn of that.
            let names =
                stage.nest.dims.iter().zip(values).map(|(dim, (a, b))| format!("{} in {a}..{b}", dim.name));
            let block = names.collect::<Vec<_>>().join(", ");
            let what = format!("the body returned {code} on worker {rank}, of the block {block}");
            return Err(stage.fail(HA_CALLBACK, what));
        }
        task.end();
        worker.service()?;
    }
    Ok(run.end(worker)?)
}

/// Writes what the loop depends on, and how it runs and why, as text of several lines that ends in a zero byte; what does not fit into
/// `room` bytes is left out. `length` becomes the length of the whole text, without the zero byte. Plans the loop, if it was not yet.
///
/// Pointers: `loop_` an open loop; `text` writable for `room` bytes, or null if `room` is 0; `length` a place for the length.
/// Thread: that of its worker.
/// Fails: `HA_BAD_PLAN` for a loop that touches no area.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_loop_explain(
    loop_: *mut ha_loop,
    text: *mut c_char,
    room: usize,
    length: *mut usize,
) -> ha_status {
    enter(|| {
        present(length, "the place for the length")?;
        if room != 0 {
            present(text, "the place for the text")?;
        }
        // SAFETY: the header's contract.
        let plan = unsafe { body(loop_)? }.stage()?.planned()?;
        let bytes = plan.text.as_bytes();
        if let Some(most) = room.checked_sub(1) {
            let count = bytes.len().min(most);
            // SAFETY: the header's contract; `count` is less than `room`, and at most the length of the text.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), text.cast(), count);
                text.add(count).write(0);
            }
        }
        // SAFETY: the header's contract.
        unsafe { put(length, bytes.len()) };
        Ok(())
    })
}
