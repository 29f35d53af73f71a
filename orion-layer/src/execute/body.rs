//! Running a body: its panics and refused accesses become errors.
use crate::error::Error;
use crate::view::Refused;
use hectare_dsm::Rank;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; what it unwinds with becomes an error that names loop and worker.
pub(super) fn guarded<R>(
    loop_name: &str,
    worker: Rank,
    body: impl FnOnce() -> Result<R, Error>,
) -> Result<R, Error> {
    // Whatever the body leaves half done lies in arrays, which are poisoned.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(explain(loop_name, worker, payload)))
}

fn explain(loop_name: &str, worker: Rank, payload: Box<dyn Any + Send>) -> Error {
    let payload = match payload.downcast::<Refused>() {
        Ok(refused) => return refused.into_error(loop_name, worker),
        Err(payload) => payload,
    };
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let message = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or("no message".into());
    Error::BodyPanicked { loop_name: loop_name.into(), worker, message }
}
