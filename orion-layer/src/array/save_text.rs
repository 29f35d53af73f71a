//! Arrays to text files. An old file stays whole until the new one is complete. All calls are collective.
use super::dense::DistArray;
use super::share::share_bytes;
use super::{SparseArray, Value};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::file::{self, NewFile};
use crate::site::Site;
use hectare_data::text::{write_entries, write_rows};
use hectare_dsm::Element;
use std::fmt::Display;
use std::path::Path;

/// Elements whose text is put together at a time.
const BLOCK: usize = 1 << 16;

impl<T: Element + Display, const N: usize> DistArray<T, N> {
    /// Saves the array as text: a line per row of the last dimension, in row-major order, with a space between
    /// elements; an array of one dimension has a line per element. Floats have as many digits as it takes to read
    /// back the same bits. Collective.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("hectare-rows-{}", std::process::id()));
    /// hectare_orion::run(2, |w| w.from_fn([3, 2], |[i, j]| i as f32 / 2.0 - j as f32)?.save_text(w, &path))?;
    /// assert_eq!(std::fs::read_to_string(&path)?, "0 -1\n0.5 -0.5\n1 0\n");
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`], on every worker; [`Error::Poisoned`], [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn save_text(&self, context: &mut Context<'_>, path: impl AsRef<Path>) -> Result<()> {
        let site = Site::here();
        let saved = context.root(|| self.write_text(context, path.as_ref()));
        context.agree_on_same(site, saved.unwrap_or(Ok(())))
    }

    fn write_text(&self, context: &Context<'_>, path: &Path) -> Result<()> {
        let columns = if N == 1 { 1 } else { self.shape()[N - 1] };
        let mut out = NewFile::create(path)?;
        let mut text = Vec::new();
        self.for_each_run(context, |run| {
            for rows in run.chunks(columns.max(1) * (BLOCK / columns.max(1)).max(1)) {
                text.clear();
                write_rows(&mut text, rows, columns).map_err(|source| file::failed(path, source))?;
                out.write(&text)?;
            }
            Ok(())
        })?;
        out.finish()
    }
}

impl<T: Value + Display, const N: usize> SparseArray<T, N> {
    /// Saves the entries as text: lines such as `3 4 0.5`, which [`whitespace`](hectare_data::text::whitespace) reads,
    /// in the order in which the workers have them. The shape is not stored: read with
    /// [`Context::text_file_with_shape`] if it is larger than the entries need. Collective.
    ///
    /// ```
    /// use hectare_orion::array::text::whitespace;
    /// # let path = std::env::temp_dir().join(format!("hectare-entries-{}", std::process::id()));
    /// hectare_orion::run(2, |w| {
    ///     let diagonal = w.entries([9, 9], 3, |k| ([k, k], k as f32 / 10.0))?;
    ///     diagonal.save_text(w, &path)?;
    ///     let again = w.text_file_with_shape(&path, [9, 9], whitespace::<f32, 2>)?;
    ///     assert_eq!(again.to_vec(w)?, diagonal.to_vec(w)?);
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`], on every worker; [`Error::Diverged`], [`Error::WorkerLost`], [`Error::Core`].
    #[track_caller]
    pub fn save_text(&self, context: &mut Context<'_>, path: impl AsRef<Path>) -> Result<()> {
        let (site, path) = (Site::here(), path.as_ref());
        let out = context.root(|| NewFile::create(path)).transpose();
        let mut out = context.agree_on_same(site, out)?;
        let mut text = Vec::new();
        let text = write_entries(&mut text, &self.local()).map(|()| text);
        let text = text.map_err(|source| file::failed(path, source));
        share_bytes(context, site, text, &mut |_, text| out.as_mut().map_or(Ok(()), |out| out.write(text)))?;
        let finished: Result<(), Error> = out.map_or(Ok(()), NewFile::finish);
        context.agree_on_same(site, finished)
    }
}
