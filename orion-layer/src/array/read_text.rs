//! Sparse arrays from text files, of which every worker parses its share. All calls are collective.
use super::{SparseArray, Value};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::file;
use crate::site::Site;
use hectare_data::entries::Entries;
use hectare_data::entries::EntriesError;
use hectare_data::text::{LineError, Parsed, Share, TextError, read_entries, read_rows};
use std::path::Path;

impl From<TextError> for Error {
    fn from(error: TextError) -> Error {
        match error {
            TextError::Read { path, source } => file::failed(&path, source),
            TextError::NotAFile { path } => {
                Error::Format { file: path.display().to_string(), what: "not a regular file".into() }
            }
            TextError::Line { path, line, source } => {
                Error::Parse { file: path.display().to_string(), line, what: source.to_string() }
            }
        }
    }
}

impl Context<'_> {
    /// A sparse array of the lines of a text file: `parser` makes a key and a value of each line, or passes it
    /// over. [`movielens`](hectare_data::text::movielens), [`csv`](hectare_data::text::csv), [`tsv`](hectare_data::text::tsv) and
    /// [`whitespace`](hectare_data::text::whitespace) are ready made; a closure gets the line without its end, and the
    /// byte of the file at which it begins. Every worker parses its share. The shape is the largest index plus
    /// one in each dimension. Collective.
    ///
    /// ```
    /// use hectare_orion::SparseArray;
    /// use hectare_orion::array::text::movielens;
    /// # let path = std::env::temp_dir().join(format!("hectare-movielens-{}", std::process::id()));
    /// # std::fs::write(&path, "1::1193::5::978300760\n1::661::3::978302109\n6::14::4::978301968\n")?;
    /// hectare_orion::run(2, |w| {
    ///     // Lines such as `1::1193::5::978300760`.
    ///     let ratings = w.text_file(&path, movielens)?;
    ///     assert_eq!((ratings.len(), ratings.shape()), (3, [6, 1193]));
    ///     // Lines of another kind.
    ///     let liked: SparseArray<bool, 1> = w.text_file(&path, |line, _| {
    ///         let mut columns = line.split("::").skip(1);
    ///         let (Some(film), Some(stars)) = (columns.next(), columns.next()) else { return Ok(None) };
    ///         let film = film.parse::<usize>().map_err(|error| format!("film {film:?}: {error}"))?;
    ///         Ok(Some(([film], stars >= "4")))
    ///     })?;
    ///     assert_eq!(liked.shape(), [1194]);
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Parse`] with file and line of the first line that is not as the parser expects, [`Error::Io`] or
    /// [`Error::Format`] if the file cannot be read: the same error on every worker. [`Error::Diverged`],
    /// [`Error::WorkerLost`].
    #[track_caller]
    pub fn text_file<T: Value, const N: usize>(
        &mut self,
        path: impl AsRef<Path>,
        parser: impl Fn(&str, usize) -> Parsed<T, N>,
    ) -> Result<SparseArray<T, N>> {
        self.read_share(Site::here(), path.as_ref(), |path, share| read_entries(path, share, parser))
    }

    /// [`Context::text_file`] with a given shape, so that two files make arrays of the same shape, such as
    /// ratings to learn from and ratings to test with. Collective.
    ///
    /// # Errors
    /// Those of [`Context::text_file`]; a key outside of the shape is an [`Error::Parse`] with its line.
    #[track_caller]
    pub fn text_file_with_shape<T: Value, const N: usize>(
        &mut self,
        path: impl AsRef<Path>,
        shape: [usize; N],
        parser: impl Fn(&str, usize) -> Parsed<T, N>,
    ) -> Result<SparseArray<T, N>> {
        let inside = |line: &str, offset| match parser(line, offset)? {
            Some((key, _)) if (0..N).any(|dim| key[dim] >= shape[dim]) => {
                Err(EntriesError::OutOfShape { key: key.to_vec(), shape: shape.to_vec() }.into())
            }
            parsed => Ok(parsed),
        };
        let site = Site::here();
        let read = |path: &Path, share| {
            let entries = read_entries(path, share, inside)?;
            let whole = entries.with_shape(shape).map_err(|error| Error::Format {
                file: path.display().to_string(),
                what: error.to_string(),
            })?;
            Ok::<_, Error>(whole)
        };
        self.read_share(site, path.as_ref(), read)
    }

    /// A data set of the rows of a text file, as an array of one dimension: row `i` of the file is entry `i`,
    /// of any serde type. `parser` makes a value of each line (`Ok(Some(value))`), passes it over (`Ok(None)`: it is no
    /// row, and gets no number), or says what is wrong with it (`Err(text)`); it gets the line without its end, and the
    /// byte of the file at which it begins. [`libsvm`](hectare_data::text::libsvm) is a ready-made one. Every worker parses its
    /// share. Collective.
    ///
    /// ```
    /// use hectare_orion::array::text::libsvm;
    /// # let path = std::env::temp_dir().join(format!("hectare-libsvm-{}", std::process::id()));
    /// # std::fs::write(&path, "+1 1:0.5 7:1\n-1 2:1\n")?;
    /// hectare_orion::run(2, |w| {
    ///     let rows = w.text_rows(&path, libsvm)?;
    ///     assert_eq!(rows.shape(), [2]);
    ///     rows.for_each_local(|[row], example| assert!(row == 0 || example.label == -1.0));
    ///     // Lines of another kind: how many features a row has, unless it is a comment.
    ///     let counts = w.text_rows(&path, |line, _| match line.split(' ').count() {
    ///         _ if line.starts_with('#') => Ok(None),
    ///         0 | 1 => Err(format!("expected a label and features, found {line:?}").into()),
    ///         columns => Ok(Some(columns as u32 - 1)),
    ///     })?;
    ///     assert_eq!(counts.to_vec(w)?[0].value, 2);
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Context::text_file`].
    #[track_caller]
    pub fn text_rows<T: Value>(
        &mut self,
        path: impl AsRef<Path>,
        parser: impl Fn(&str, usize) -> Result<Option<T>, LineError>,
    ) -> Result<SparseArray<T, 1>> {
        let (site, path) = (Site::here(), path.as_ref());
        let rows = self.of_share(site, path, |path, share| read_rows(path, share, parser))?;
        let (me, mut first, mut total) = (self.rank(), 0, 0u64);
        self.exchange_values(site, &(rows.len() as u64), |rank, rows: u64| {
            first += if rank < me { rows } else { 0 };
            total += rows;
            Ok(())
        })?;
        let mine = Entries::from_rows(first as usize, rows).map_err(|error| Error::Format {
            file: path.display().to_string(),
            what: format!("{total} rows: {error}"),
        });
        let mine = self.agree_on_same(site, mine)?;
        SparseArray::make(self, site, mine)
    }

    fn read_share<T: Value, const N: usize, E: Into<Error>>(
        &mut self,
        site: Site,
        path: &Path,
        read: impl FnOnce(&Path, Share) -> Result<Entries<T, N>, E>,
    ) -> Result<SparseArray<T, N>> {
        let mine = self.of_share(site, path, read)?;
        SparseArray::make(self, site, mine)
    }

    /// The result of `read` for this worker's share of the file, if no worker has an error. Collective.
    pub(super) fn of_share<R, E: Into<Error>>(
        &mut self,
        site: Site,
        path: &Path,
        read: impl FnOnce(&Path, Share) -> Result<R, E>,
    ) -> Result<R> {
        let share = Share { part: self.rank() as usize, of: self.size() };
        let read = read(path, share).map_err(Into::into);
        let is_same = self.see_same_file(site, path)?;
        self.agree_on_same(site, read.and_then(|read| is_same.map(|()| read)))
    }
}
