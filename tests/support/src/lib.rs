//! Shared by the tests of all crates: skips that are seen, programs that are built once, random numbers, limits of
//! memory.
//!
//! A test that lacks what it needs (rights, a tool, a file that is not part of the project) calls [`skip`] and
//! returns. Three variables say what becomes of that:
//!
//! - `HECTARE_SKIPS=FILE` appends a line to a file: the test, what is missing, and why.
//! - `HECTARE_NO_SKIP=1` makes it a failure.
//! - `HECTARE_MAY_SKIP=a,b` names what may be missing all the same.
mod cgroup;
mod folder;
mod random;

pub use cgroup::MemoryGroup;
pub use folder::Folder;
pub use random::Random;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Notes that the test of this thread cannot run here; the caller returns.
///
/// `missing` is a short name of what the test lacks, by which `HECTARE_MAY_SKIP` allows it; `why` is what the system said.
///
/// # Panics
/// If `HECTARE_NO_SKIP` is set and `HECTARE_MAY_SKIP` does not name `missing`, or if `HECTARE_SKIPS` cannot be written.
#[track_caller]
pub fn skip(missing: &str, why: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    let line = format!("{test}: skipped, no {missing}: {why}");
    println!("{line}");
    if let Some(path) = std::env::var_os("HECTARE_SKIPS") {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        // One write: tests of several processes share the file.
        file.and_then(|mut file| file.write_all(format!("{}\n", line.replace('\n', " ")).as_bytes()))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    let strict = std::env::var_os("HECTARE_NO_SKIP").is_some_and(|value| !value.is_empty() && value != "0");
    let allowed = std::env::var("HECTARE_MAY_SKIP").unwrap_or_default();
    assert!(!strict || allowed.split(',').any(|name| name == missing), "{line} (HECTARE_NO_SKIP is set)");
}

/// Whether a built file is newer than every source in these directories of the workspace (`dsm`, `ffi`, ...), their
/// manifests included, their tests left out.
///
/// Tests that need a program of another crate ask this before they call cargo: `cargo test --workspace` has built it,
/// and with other features than a build of that crate alone, which would replace it under the tests that use it.
pub fn is_current(built: &Path, crates: &[&str]) -> bool {
    let modified = |path: &Path| std::fs::metadata(path).and_then(|about| about.modified()).ok();
    let Some(built) = modified(built) else { return false };
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("two directories down");
    let newest = crates.iter().filter_map(|name| newest(&workspace.join(name))).max();
    newest.is_some_and(|newest| newest < built)
}

/// A program that several tests build alike, each in a process of its own: the first one builds it, the others wait for it.
///
/// It lies in `program`, whose directory has to be there, and is built again if one of `sources` or the test program is newer.
/// `build` is given the path to build it at.
///
/// # Panics
/// If a file cannot be locked, found or renamed.
pub fn built_once(program: &Path, sources: &[PathBuf], build: impl FnOnce(&Path)) {
    let modified = |path: &Path| {
        let about = std::fs::metadata(path).and_then(|about| about.modified());
        about.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let lock = File::create(program.with_extension("lock")).expect("a file to lock");
    lock.lock().expect("a lock");
    let test = std::env::current_exe().expect("the test's own path");
    let newest = sources.iter().map(|path| modified(path)).max().max(Some(modified(&test)));
    if program.exists() && Some(modified(program)) > newest {
        return;
    }
    // Whoever is ended meanwhile leaves no half of it.
    let new = program.with_extension("new");
    build(&new);
    std::fs::rename(&new, program).expect("the program where it is to be");
}

/// Each Rust file of a directory of tests is a module of the `main.rs` in it, but for `others`, which are programs of their
/// own: one that is not would never run.
///
/// # Panics
/// If one is not, naming it, or if there are no files.
pub fn every_file_is_a_module(directory: &str, others: &[&str]) {
    let main = std::fs::read_to_string(Path::new(directory).join("main.rs")).expect("main.rs");
    let files = std::fs::read_dir(directory).expect("the tests' directory");
    let names = files.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let names: Vec<String> = names
        .filter(|name| name.ends_with(".rs") && name != "main.rs" && !others.contains(&name.as_str()))
        .collect();
    assert!(!names.is_empty(), "no tests in {directory}");
    for name in names {
        let line = format!("mod {};", name.trim_end_matches(".rs"));
        assert!(main.lines().any(|other| other == line), "{name} never runs: main.rs lacks `{line}`");
    }
}

/// When the newest Rust file or manifest below a directory was changed, but for `target` and `tests`.
fn newest(directory: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(directory).ok()?.filter_map(Result::ok);
    entries
        .filter_map(|entry| {
            let (path, about) = (entry.path(), entry.metadata().ok()?);
            if about.is_dir() {
                // Tests are no part of a program.
                let is_part = ["target", "tests"].iter().all(|name| entry.file_name() != *name);
                return is_part.then(|| newest(&path)).flatten();
            }
            let counts = path.extension().is_some_and(|extension| extension == "rs" || extension == "toml");
            counts.then(|| about.modified().ok()).flatten()
        })
        .max()
}

/// The processor and how many of it, for the head of a bench's table.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{} ({count} processors)", model.map_or("an unknown processor", |(_, model)| model))
}
