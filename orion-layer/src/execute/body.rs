//! Running a body: its panics and refused accesses become errors.
use crate::error::Error;
use crate::panics;
use crate::panics::Missing;
use crate::panics::unwound::{self, Ruled};
use crate::view::RefusedAccess;
use hectare_dependence::loop_nest::LoopNest;
use hectare_dsm::Rank;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `body`; what it unwinds with becomes an error that names loop and worker.
pub(super) fn guarded<R>(
    nest: &LoopNest,
    worker: Rank,
    body: impl FnOnce() -> Result<R, Error>,
) -> Result<R, Error> {
    unwound::forget();
    // Whatever the body leaves half done lies in arrays, which are poisoned.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(explain(nest, worker, payload)))
}

pub(super) fn explain(nest: &LoopNest, worker: Rank, payload: Box<dyn Any + Send>) -> Error {
    let loop_name = nest.name.clone();
    let index = unwound::iteration();
    let variables = nest.dims.iter().zip(index).map(|(variable, at)| format!("{} = {at}", variable.name));
    let iteration = variables.collect::<Vec<_>>().join(", ");
    let payload = match payload.downcast::<RefusedAccess>() {
        Ok(refused) => return refused.into_error(&loop_name, worker, iteration),
        Err(payload) => payload,
    };
    let payload = match payload.downcast::<Missing>() {
        Ok(missing) => return missing.into_error(loop_name, worker, iteration),
        Err(payload) => payload,
    };
    let message = panics::message(&*payload);
    match unwound::rule() {
        Some(Ruled { array, rule, key }) => {
            Error::RulePanicked { site: loop_name, array, rule, worker, key: key.into(), message }
        }
        None => Error::BodyPanicked { loop_name, worker, message, iteration },
    }
}
