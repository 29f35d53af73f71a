//! Things that a worker makes of several areas.
use crate::error::Result;
use hectare_dsm::Worker;

/// The things made, and the rest that belongs to them. If the rest cannot be made, they are given back: no name is left that is in the way
/// of the next attempt.
pub(crate) fn with_rest<M, R>(
    worker: &mut Worker,
    made: M,
    give_back: impl FnOnce(M, &mut Worker) -> Result<()>,
    rest: impl FnOnce(&mut Worker) -> Result<R>,
) -> Result<(M, R)> {
    match rest(worker) {
        Ok(rest) => Ok((made, rest)),
        Err(error) => {
            // The error that came first counts.
            let _ = give_back(made, worker);
            Err(error)
        }
    }
}
