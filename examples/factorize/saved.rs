//! Factors in files that others read.
use super::Options;
use anyhow::{Context as _, Result};
use hectare::orion::Context;
use std::path::Path;

/// The factors of rows and of columns, by their numbers in the files, [`Options::rank`] each.
pub(crate) type Factors = [Vec<f32>; 2];

/// The first `rank` numbers of each row of `width`; `place` says which row an index of the entries has.
pub(super) fn cut(o: &Options, rows: &[f32], width: usize, place: impl Fn(u32) -> u32) -> Vec<f32> {
    let count = rows.len() / width;
    let row = |index: usize| &rows[place(index as u32) as usize * width..][..o.rank];
    (0..count).flat_map(row).copied().collect()
}

/// Writes both to a folder.
pub(super) fn save(folder: &Path, o: &Options, factors: &Factors) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let write = |w: &mut Context<'_>, name: &str, rows: &[f32]| {
        w.from_slice([rows.len() / o.rank, o.rank], rows)?.save_npy(w, folder.join(name))
    };
    hectare::run(1, |w| {
        write(w, "rows.npy", &factors[0])?;
        write(w, "columns.npy", &factors[1])
    })?;
    Ok(())
}
