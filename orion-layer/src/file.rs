//! Files that are there whole or not at all, whose errors name them.
use crate::error::{Error, Result};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A [`NewFile`](hectare_data::new_file::NewFile).
#[derive(Debug)]
pub(crate) struct NewFile {
    path: PathBuf,
    file: hectare_data::new_file::NewFile,
}

impl NewFile {
    /// Begins a file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn create(path: &Path) -> Result<NewFile> {
        let file = hectare_data::new_file::NewFile::create(path).map_err(|source| failed(path, source))?;
        Ok(NewFile { path: path.to_owned(), file })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|source| failed(&self.path, source))
    }

    /// Puts the file into its place, on the disk.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn finish(self) -> Result<()> {
        self.file.finish().map_err(|source| failed(&self.path, source))
    }
}

/// An error of the system about a file.
pub(crate) fn failed(path: &Path, source: io::Error) -> Error {
    Error::Io { file: path.display().to_string(), source }
}
