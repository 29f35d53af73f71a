//! Draws the charts of the documents; shared by the tests of the documents.
#[path = "../../../examples/training/chart.rs"]
pub mod chart;
pub mod charts;
pub mod markdown;

use std::path::{Path, PathBuf};

/// The project's directory.
pub fn root() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    above.expect("this package is two directories down").to_owned()
}

/// All files of the project whose name ends so, by their paths from its directory, sorted.
pub fn files(end: &str) -> Vec<String> {
    fn walk(root: &Path, below: &Path, end: &str, found: &mut Vec<String>) {
        for entry in
            std::fs::read_dir(root.join(below)).expect("a directory").map(|entry| entry.expect("an entry"))
        {
            let name = entry.file_name().into_string().expect("a name");
            let path = below.join(&name);
            if entry.file_type().expect("a type").is_dir() {
                if name != "target" && name != ".git" {
                    walk(root, &path, end, found);
                }
            } else if name.ends_with(end) {
                found.push(path.to_str().expect("a name").to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), Path::new(""), end, &mut found);
    found.sort();
    found
}

/// A file of the project.
///
/// # Panics
/// When it cannot be read, naming it.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
