//! Where pipelines begin: entries of sparse arrays, lines of text files.
use super::{Pipeline, RejectDuplicates, Stage};
use crate::array::{LocalEntries, Value};
use crate::context::Context;
use crate::error::{Error, Result};
use hectare_data::text::{LineError, Share, TextError, for_each_line};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// The entries that a worker has of a sparse array.
#[derive(Debug)]
pub struct FromEntries<'a, T, const N: usize>(&'a LocalEntries<T, N>);

impl<T: Value, const N: usize> LocalEntries<T, N> {
    /// A pipeline over the entries of the array ([`Pipeline`]). Values are references at first.
    pub fn lazy(&self) -> Pipeline<FromEntries<'_, T, N>, RejectDuplicates> {
        Pipeline::new(FromEntries(self), RejectDuplicates)
    }
}

impl<'a, T: Value, const N: usize> Stage for FromEntries<'a, T, N> {
    type Origin = [u32; N];
    type Key = [usize; N];
    type Value = &'a T;

    fn drive(
        self,
        at: &Cell<Option<[u32; N]>>,
        mut sink: impl FnMut([u32; N], [usize; N], &'a T) -> Result<()>,
    ) -> Result<()> {
        self.0.iter().try_for_each(|entry| {
            at.set(Some(entry.key));
            sink(entry.key, entry.key.map(|index| index as usize), &entry.value)
        })
    }

    fn name(&self) -> String {
        self.0.name.clone()
    }

    fn shape(&self) -> Option<Vec<usize>> {
        Some(self.0.shape.to_vec())
    }
}

/// The entries that a parser makes of a worker's share of the lines of a file.
pub struct FromLines<F> {
    path: PathBuf,
    share: Share,
    parser: F,
}

impl<F> std::fmt::Debug for FromLines<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FromLines")
            .field("path", &self.path)
            .field("share", &self.share)
            .finish_non_exhaustive()
    }
}

impl Context<'_> {
    /// A pipeline over the lines of a text file ([`Pipeline`]): `parser` gets each line without its end, the byte of the
    /// file at which it begins, and a function that it calls with every entry that it makes of the line, as many as
    /// there are. The file is read when the pipeline is run, by each worker its share, in blocks; no line is kept.
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("hectare-lazy-{}", std::process::id()));
    /// # std::fs::write(&path, "the cat\nsat on the mat\n")?;
    /// hectare_orion::run(2, |w| {
    ///     // Words by their length and the place of their line, as a file of two lines has them.
    ///     let words = w
    ///         .lazy_text(&path, |line, _byte, emit| {
    ///             line.split(' ').for_each(|word| emit(word.len(), word.to_owned()));
    ///             Ok(())
    ///         })
    ///         .group_by(|length, _word| [*length])
    ///         .materialize(w)?;
    ///     assert_eq!(words.to_vec(w)?[1].value, ["the", "cat", "sat", "the", "mat"]);
    ///     Ok(())
    /// })?;
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When it is run: [`Error::Parse`] with file and line if the parser says what is wrong with a line, [`Error::Io`] or
    /// [`Error::Format`] if the file cannot be read.
    pub fn lazy_text<K, V, F>(
        &self,
        path: impl AsRef<Path>,
        parser: F,
    ) -> Pipeline<FromLines<Emitter<F, K, V>>, RejectDuplicates>
    where
        F: FnMut(&str, usize, &mut dyn FnMut(K, V)) -> Result<(), LineError>,
    {
        let share = Share { part: self.rank() as usize, of: self.size() };
        let parser = Emitter(parser, std::marker::PhantomData);
        Pipeline::new(FromLines { path: path.as_ref().to_owned(), share, parser }, RejectDuplicates)
    }
}

/// A parser that emits entries of these types.
#[derive(Debug)]
pub struct Emitter<F, K, V>(F, std::marker::PhantomData<fn() -> (K, V)>);

impl<K, V, F> Stage for FromLines<Emitter<F, K, V>>
where
    F: FnMut(&str, usize, &mut dyn FnMut(K, V)) -> Result<(), LineError>,
{
    type Origin = u64;
    type Key = K;
    type Value = V;

    fn drive(self, at: &Cell<Option<u64>>, mut sink: impl FnMut(u64, K, V) -> Result<()>) -> Result<()> {
        let FromLines { path, share, parser: Emitter(mut parser, _) } = self;
        let mut sunk = Ok(());
        let read = for_each_line(&path, share, |line, offset| {
            let origin = offset as u64;
            at.set(Some(origin));
            parser(line, offset, &mut |key, value| {
                if sunk.is_ok() {
                    sunk = sink(origin, key, value);
                }
            })?;
            // Ends the reading; what is said of the line is not looked at.
            if sunk.is_ok() { Ok(()) } else { Err(String::new().into()) }
        });
        sunk?;
        read.map_err(|error: TextError| Error::from(error))
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn shape(&self) -> Option<Vec<usize>> {
        None
    }
}
