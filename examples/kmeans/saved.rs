//! Centers and clusters in files.
use super::{Centers, Options, Trained, rows};
use hectare::orion::array::NpyElement;
use hectare::orion::{Context, Error, Result};
use std::fmt::Display;
use std::path::Path;

/// Centers of an earlier run, for points of `columns` columns. Collective.
pub(super) fn load(w: &mut Context<'_>, path: &Path, columns: usize) -> Result<Centers> {
    let centers = rows(w, path)?;
    let [_, found] = centers.shape();
    if found != columns {
        let what = format!("centers of {found} numbers, but the points have {columns}");
        return Err(Error::Format { file: path.display().to_string(), what });
    }
    Ok(Centers::of(columns, &centers.to_vec(w)?))
}

/// Saves what the options ask for. Collective.
pub(super) fn save(w: &mut Context<'_>, o: &Options, trained: &Trained) -> Result<()> {
    let Trained { centers, labels, .. } = trained;
    if let Some(path) = &o.save {
        write(w, path, [centers.len(), centers.columns()], centers.rows())?;
    }
    match &o.labels {
        Some(path) => write(w, path, [labels.len()], labels),
        None => Ok(()),
    }
}

fn write<T: NpyElement + Display, const N: usize>(
    w: &mut Context<'_>,
    path: &Path,
    shape: [usize; N],
    numbers: &[T],
) -> Result<()> {
    let array = w.from_slice(shape, numbers)?;
    match path.extension().is_some_and(|extension| extension == "txt") {
        true => array.save_text(w, path),
        false => array.save_npy(w, path),
    }
}
