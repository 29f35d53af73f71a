//! Factors in files that others read: a matrix for each dimension of the entries, a row of f32 for each index.
use super::{Options, at_root, data, say};
use anyhow::{Context as _, Result, ensure};
use hectare::orion::{Context, Error};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A matrix for each dimension, [`Options::rank`] numbers for each index.
#[derive(Clone, Debug)]
pub(crate) struct Factors<const N: usize> {
    folder: PathBuf,
    names: [&'static str; N],
    pub(crate) rows: [Vec<f32>; N],
}

/// The first `rank` numbers of each row of `width`; `place` says which row an index of the entries has.
pub(crate) fn cut(o: &Options, rows: &[f32], width: usize, place: impl Fn(u32) -> u32) -> Vec<f32> {
    let count = rows.len() / width;
    let row = |index: usize| &rows[place(index as u32) as usize * width..][..o.rank];
    (0..count).flat_map(row).copied().collect()
}

/// Writes matrices to the folder, which is made. Collective.
pub(crate) fn save<const N: usize>(
    w: &mut Context<'_>,
    folder: &Path,
    o: &Options,
    names: [&str; N],
    rows: &[Vec<f32>; N],
) -> hectare::orion::Result<()> {
    at_root(w, || {
        let made = std::fs::create_dir_all(folder);
        made.with_context(|| format!("cannot make the folder {}", folder.display()))
    })?;
    names.iter().zip(rows).try_for_each(|(name, rows)| {
        w.from_slice([rows.len() / o.rank, o.rank], rows)?.save_npy(w, folder.join(name))
    })
}

/// Writes what the factors that are to be loaded predict: [`Factors::predict`], by the first worker.
pub(crate) fn predict<const N: usize>(
    o: &Options,
    names: [&'static str; N],
    to: &Path,
    product: impl Fn([&[f32]; N]) -> f32 + Sync,
) -> Result<()> {
    hectare::run(1, |w| match Factors::load(w, o, names)? {
        Some(factors) => at_root(w, || factors.predict(o, to, &product)),
        None => Ok(()),
    })?;
    Ok(())
}

impl<const N: usize> Factors<N> {
    /// The matrices of the folder that the options name, if they do. Collective.
    pub(crate) fn load(
        w: &mut Context<'_>,
        o: &Options,
        names: [&'static str; N],
    ) -> hectare::orion::Result<Option<Factors<N>>> {
        let Some(folder) = &o.load else { return Ok(None) };
        let read = |w: &mut Context<'_>, name: &str| {
            let path = folder.join(name);
            let matrix = w.npy_file_as::<f32, 2>(&path)?;
            let [_, rank] = matrix.shape();
            let rows = matrix.to_vec(w)?;
            let what = match rows.iter().all(|x| x.is_finite()) {
                true if rank == o.rank => return Ok(rows),
                true => format!("factors of rank {rank}: say --rank {rank}"),
                false => "a factor is not finite".into(),
            };
            Err(Error::Format { file: path.display().to_string(), what })
        };
        let mut rows = [const { Vec::new() }; N];
        for (rows, name) in rows.iter_mut().zip(names) {
            *rows = read(w, name)?;
        }
        Ok(Some(Factors { folder: folder.clone(), names, rows }))
    }

    fn count(&self, o: &Options, dim: usize) -> usize {
        self.rows[dim].len() / o.rank
    }

    /// Rows of `width` for the indices that entries have in dimension `dim`, zero behind the factors; `place` says which row an
    /// index has.
    pub(crate) fn widened(
        &self,
        o: &Options,
        (dim, extent): (usize, usize),
        width: usize,
        place: impl Fn(u32) -> u32,
    ) -> hectare::orion::Result<Vec<f32>> {
        let found = self.count(o, dim);
        if found != extent {
            let file = self.folder.join(self.names[dim]).display().to_string();
            let what = format!("{found} rows, but the entries to learn from have {extent} indices there");
            return Err(Error::Format { file, what });
        }
        let mut rows = vec![0.0; extent * width];
        for (index, row) in self.rows[dim].chunks_exact(o.rank).enumerate() {
            rows[place(index as u32) as usize * width..][..o.rank].copy_from_slice(row);
        }
        Ok(rows)
    }

    /// Writes the predictions of the entries to test with, a line each, and says how far off they are.
    fn predict(&self, o: &Options, to: &Path, product: impl Fn([&[f32]; N]) -> f32) -> Result<()> {
        let (Some(test), entries) = (&o.test, data::tested::<N>(o)?) else { return Ok(()) };
        let (mut lines, mut squares) = (String::new(), 0.0);
        for (number, entry) in (1..).zip(&entries) {
            for (dim, index) in entry.key.iter().enumerate() {
                let (count, index) = (self.count(o, dim), *index as usize);
                ensure!(
                    index < count,
                    "--test {}: entry {number} has index {index} (from 0), and {} has {count} rows",
                    test.display(),
                    self.folder.join(self.names[dim]).display()
                );
            }
            let row = |dim: usize| &self.rows[dim][entry.key[dim] as usize * o.rank..][..o.rank];
            let predicted = product(std::array::from_fn(row));
            squares += f64::from(entry.value - predicted).powi(2);
            writeln!(lines, "{predicted}")?;
        }
        hectare_data::new_file::write(to, lines).with_context(|| format!("--predict {}", to.display()))?;
        let count = entries.len();
        say(format_args!("{count} predictions: test RMSE {:.4}", (squares / count as f64).sqrt()));
        Ok(())
    }
}
