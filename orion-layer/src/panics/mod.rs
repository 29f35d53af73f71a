//! Panics of the program's functions, which become errors, and what a body unwinds with that is no panic.
mod missing;
pub(crate) mod unwound;

pub(crate) use self::missing::Missing;
pub use self::unwound::{IterationMark, begin_iteration};
pub(crate) use self::unwound::{Ruled, merging, merging_at};

use crate::error::{Error, Result};
use crate::site::Site;
use hectare_dsm::Rank;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A panic of a function of the program, by its message: what workers tell each other of it.
#[derive(Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Panicked(String);

/// Runs a function of the program, which has its state to itself: the program gets an error and goes no further.
pub(crate) fn catch<R>(act: impl FnOnce() -> R) -> Result<R, Panicked> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|payload| Panicked(message(&*payload)))
}

/// The message of a panic.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or("no message".into())
}

/// Runs what may call functions of the program; a panic of theirs becomes an error at `key`.
pub(crate) fn caught<R>(
    at: (&str, Rank),
    act: impl FnOnce() -> Result<R>,
    key: impl FnOnce() -> String,
) -> Result<R> {
    // Whatever is left half done is dropped with the error, or poisoned.
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|payload| Err(of_entry(at, &*payload, key())))
}

/// The same where a rule may be at work, in a loop or a call at `site`: a panic within
/// [`merging_at`] is an error of the rule.
pub(crate) fn caught_merging<R>(
    site: Site,
    at: (&str, Rank),
    act: impl FnOnce() -> Result<R>,
    key: impl FnOnce() -> String,
) -> Result<R> {
    unwound::forget();
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|payload| match unwound::rule() {
        Some(Ruled { array, rule, key }) => {
            let (site, message) = (site.to_string(), message(&*payload));
            Err(Error::RulePanicked { site, array, rule, worker: at.1, key: key.into(), message })
        }
        None => Err(of_entry(at, &*payload, key())),
    })
}

fn of_entry((array, worker): (&str, Rank), payload: &(dyn Any + Send), key: String) -> Error {
    let what = format!("a function of the program panicked: {}", message(payload));
    Error::Entry { array: array.into(), worker, key, what }
}
