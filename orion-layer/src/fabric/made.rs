//! What a worker makes of several areas.
use crate::error::Result;
use hectare_dsm::Worker;

/// What was made, and the rest that belongs to it. If that cannot be made, what was is given back: nothing is left whose name is in the way
/// when it is tried again.
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
