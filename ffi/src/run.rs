//! `ha_run`: workers in threads of their own.
use crate::job::{JobBody, ha_job};
use crate::status::{Failure, Outcome, enter, ha_status, ha_status::*};
use crate::worker::{ha_worker, with_borrowed};
use std::ffi::{c_int, c_void};

/// The function that each worker of `ha_run` runs; 0 is success. It must not let a C++ exception out.
pub type ha_worker_function =
    Option<unsafe extern "C" fn(worker: *mut ha_worker, argument: *mut c_void) -> c_int>;

/// The caller's pointer, on its way to several threads.
#[derive(Clone, Copy)]
struct Argument(*mut c_void);
// SAFETY: whoever calls `ha_run` says that all workers may have it.
unsafe impl Send for Argument {}
// SAFETY: as above.
unsafe impl Sync for Argument {}

impl Argument {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Runs `function` on `count` new workers, each in its own thread, and waits for all. In a fresh job their ranks are 0 to
/// `count` - 1. None starts before all have joined; a worker leaves when its function returns.
///
/// Pointers: `job` an open job; `argument` whatever the function wants, for all threads at once.
/// Thread: any.
/// Fails: `HA_CALLBACK` if the function of a worker returned a value other than 0; the text has the worker and the value.
/// `HA_LIMIT`, `HA_SYSTEM` if threads cannot be started, `HA_FORKED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ha_run(
    job: *mut ha_job,
    count: usize,
    function: ha_worker_function,
    argument: *mut c_void,
) -> ha_status {
    enter(|| {
        // SAFETY: the header's contract.
        let job = unsafe { JobBody::of(job)? };
        let function = function.ok_or_else(|| Failure::new(HA_NULL, "the function is null"))?;
        let argument = Argument(argument);
        let ends = job.run(count, |worker| {
            let rank = worker.rank();
            // SAFETY: the header's contract: a function for this, and an argument for all threads.
            with_borrowed(worker, |handle| (rank, unsafe { function(handle, argument.get()) }))
        })?;
        let ends = ends.into_iter().collect::<Outcome<Vec<_>>>()?;
        let failed: Vec<String> = ends
            .iter()
            .filter(|(_, code)| *code != 0)
            .map(|(rank, code)| format!("worker {rank} returned {code}"))
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(Failure::new(HA_CALLBACK, failed.join(", "))) }
    })
}
