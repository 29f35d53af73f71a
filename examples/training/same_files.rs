//! Files that each process reads for itself are the same for all.
use super::seen;
use hectare::orion::{Context, Error, Result};
use std::path::PathBuf;

/// Refuses files or folders, of those that are named, of which another host has others. Collective.
pub(crate) fn same_files(w: &mut Context<'_>, files: &[Option<&PathBuf>]) -> Result<()> {
    if w.worker().job().hosts().len() < 2 {
        return Ok(());
    }
    for path in files.iter().flatten() {
        let file = path.display().to_string();
        let here = seen::see(path).map_err(|source| Error::Io { file: file.clone(), source })?;
        let first = w.broadcast(|| Ok(here))?;
        let [is_there, len, hash] = here;
        let rank = if here == first { u64::MAX } else { w.rank().into() };
        let lower = |a: [u64; 4], b: [u64; 4]| if b[0] < a[0] { b } else { a };
        let [rank, other @ ..] = w.all_reduce([rank, is_there, len, hash], lower)?;
        if rank != u64::MAX {
            let what = seen::difference(&w.worker().job(), [(0, first), (rank as u32, other)]);
            return Err(Error::Format { file, what });
        }
    }
    Ok(())
}
