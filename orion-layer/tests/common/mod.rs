//! What several tests use.
use std::path::PathBuf;

/// A directory that is removed again.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// A new directory; `name` tells tests apart.
    pub(crate) fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("hectare-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// A file in it.
    #[allow(dead_code)]
    pub(crate) fn file(&self, name: &str, content: &str) -> PathBuf {
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
