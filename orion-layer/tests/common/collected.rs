//! Collective questions after a collection has failed.
use hectare_orion::{Context, Error, Result};

/// How many areas the job has.
pub fn areas(w: &mut Context<'_>) -> Result<usize> {
    w.barrier()?;
    let count = w.worker().job().areas()?.len();
    w.barrier()?;
    Ok(count)
}

/// All have the same error, and it contains `parts`.
pub fn same(error: &Error, w: &mut Context<'_>, parts: &[&str]) -> Result<()> {
    let text = error.to_string();
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    w.agree(text).map(drop)
}
