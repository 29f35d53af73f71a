//! Folders of tests.
use std::path::PathBuf;

/// A folder of one test, which is gone when this is dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// An empty one. `name` tells tests of one process apart.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("hectare-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Folder(path)
    }

    /// The path of a file in it.
    ///
    /// # Panics
    /// If it is no text.
    #[must_use]
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("the temporary folder's name is text").to_owned()
    }

    /// Writes a file in it; its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.at(name);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
