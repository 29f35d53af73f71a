//! Directories for the files of a test.
use std::path::PathBuf;

/// A directory that is removed again.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// A new directory; `name` tells tests apart.
    pub fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("hectare-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// A file in it.
    pub fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
