//! Panics of the program's functions, which become errors.
use crate::error::{Error, Result};
use hectare_dsm::Rank;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a panic said.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or("no message".into())
}

/// Runs what may call functions of the program; a panic of theirs becomes an error at `key`.
pub(crate) fn caught<R>(
    (array, worker): (&str, Rank),
    act: impl FnOnce() -> Result<R>,
    key: impl FnOnce() -> String,
) -> Result<R> {
    // Whatever is left half done is dropped with the error, or poisoned.
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|payload| {
        let what = format!("a function of the program panicked: {}", message(&*payload));
        Err(Error::Entry { array: array.into(), worker, key: key(), what })
    })
}
