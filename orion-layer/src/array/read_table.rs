//! Dense arrays from text files of rows of numbers, of which every worker parses its share.
use super::dense::DistArray;
use crate::context::Context;
use crate::contract::Layout;
use crate::error::Result;
use crate::site::Site;
use hectare_data::text::{Field, LineError, Separator, Share, TextError, for_each_line};
use hectare_dsm::{Element, Rank};
use std::path::Path;

impl Context<'_> {
    /// A dense array of the rows of a text file: one line per row, its elements between `separator`s, equally
    /// many in each. [`DistArray::save_text`] and NumPy's `savetxt` write such files. Empty lines and lines that
    /// begin with `#` are passed over. Collective.
    ///
    /// ```
    /// use hectare_orion::array::text::Separator;
    /// # let path = std::env::temp_dir().join(format!("hectare-table-{}", std::process::id()));
    /// hectare_orion::run(2, |w| {
    ///     let a = w.from_fn([5, 3], |[i, j]| i as f32 / (j + 1) as f32)?;
    ///     a.save_text(w, &path)?;
    ///     let b = w.text_array::<f32>(&path, Separator::Whitespace)?;
    ///     assert_eq!((b.shape(), b.to_vec(w)?), ([5, 3], a.to_vec(w)?));
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path).ok();
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parse`](crate::Error::Parse) with file, line and column of the first that is no number, or of a line that has
    /// more or fewer than the first row: the same error on every worker. Those of [`Context::text_file`] and
    /// [`Context::zeros`].
    #[track_caller]
    pub fn text_array<T: Element + Field>(
        &mut self,
        path: impl AsRef<Path>,
        separator: Separator,
    ) -> Result<DistArray<T, 2>> {
        let (site, path) = (Site::here(), path.as_ref());
        let columns = first_row(path, separator);
        let read = |path: &Path, share| read_rows::<T>(path, share, separator, columns);
        let mine = self.of_share(site, path, read)?;
        let mut bounds = vec![0];
        self.exchange_values(site, &((mine.len() / columns.max(1)) as u64), |_, rows: u64| {
            bounds.push(bounds[bounds.len() - 1] + rows as usize);
            Ok(())
        })?;
        // Every worker keeps what it has parsed.
        let owners = (0..self.size()).map(|rank| rank as Rank).collect();
        let shape = [bounds[self.size()], columns];
        let layout = Layout { dim: 0, bounds, owners };
        DistArray::make_as(self, site, shape, layout, |_, _, data| {
            data.copy_from_slice(&mine);
            Ok(())
        })
    }
}

fn has_elements(line: &str) -> bool {
    !line.trim_ascii().is_empty() && !line.starts_with('#')
}

/// Calls `act` with each column of a line.
fn for_each_column<E>(
    line: &str,
    separator: Separator,
    act: impl FnMut(&str) -> Result<(), E>,
) -> Result<(), E> {
    match separator {
        Separator::Whitespace => line.split_ascii_whitespace().try_for_each(act),
        Separator::Text(text) => line.split(text).map(str::trim_ascii).try_for_each(act),
    }
}

fn count(line: &str, separator: Separator) -> usize {
    let mut columns = 0;
    let counted: Result<(), std::convert::Infallible> = for_each_column(line, separator, |_| {
        columns += 1;
        Ok(())
    });
    counted.map_or(0, |()| columns)
}

/// How many elements the first row of the file has; 0 if there is none, or if the file cannot be read, which is
/// said when the shares are.
fn first_row(path: &Path, separator: Separator) -> usize {
    let mut columns = 0;
    let found = for_each_line(path, Share::ALL, |line, _| {
        columns = if has_elements(line) { count(line, separator) } else { 0 };
        // An error ends the reading.
        if columns > 0 { Err(String::new().into()) } else { Ok(()) }
    });
    found.map_or(columns, |()| 0)
}

fn read_rows<T: Field>(
    path: &Path,
    share: Share,
    separator: Separator,
    columns: usize,
) -> Result<Vec<T>, TextError> {
    let mut elements = Vec::new();
    for_each_line(path, share, |line, _| {
        if !has_elements(line) {
            return Ok(());
        }
        let found = count(line, separator);
        if found != columns {
            return Err(format!("expected {columns} elements, as in the first row, found {found}").into());
        }
        let mut number = 0;
        for_each_column(line, separator, |column| {
            number += 1;
            elements.push(T::parse(column).map_err(|error| format!("column {number}: {error}"))?);
            Ok::<(), LineError>(())
        })
    })?;
    Ok(elements)
}
