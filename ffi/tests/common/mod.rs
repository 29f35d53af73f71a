//! Building the library, and C and C++ programs against it.
#![allow(dead_code, reason = "not every test uses all of it")]
use hectare_testing::{is_current, skip};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The crate's directory.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The directory with libhectare.so and libhectare.a, built once.
pub(crate) fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // Tests lie in target/PROFILE/deps.
        let test = std::env::current_exe().expect("the test's own path");
        let profile = test.parent().and_then(Path::parent).expect("a target directory").to_owned();
        if !is_current(&profile.join("libhectare.a"), &["ffi", "dsm", "wire"]) {
            build_with_cargo(&profile, &["-p", "hectare-ffi", "--lib"]);
        }
        profile
    })
}

/// Has cargo build something in `profile`, the directory of a profile.
pub(crate) fn build_with_cargo(profile: &Path, what: &[&str]) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg("build").args(what).arg("--manifest-path").arg(root().join("Cargo.toml"));
    cargo.arg("--target-dir").arg(profile.parent().expect("a target directory"));
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    run(&mut cargo);
}

/// Whether a program is there; a test that it is not for is skipped.
pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
    if !found {
        skip(program, "it does not run");
    }
    found
}

/// Runs a command; panics with all that it printed if it fails.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Output {
    let out = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        out.status.success(),
        "{command:?} failed with {}\n{}{}",
        out.status,
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
    out
}

/// Warnings that programs and the header have to be free of.
pub(crate) const WARNINGS: [&str; 6] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"];

/// A compiler with the warnings, the standard and the header's directory.
pub(crate) fn compiler(program: &str, standard: &str) -> Command {
    let mut command = Command::new(program);
    command.arg(format!("-std={standard}")).args(WARNINGS).arg("-I").arg(root().join("include"));
    command
}

/// Compiles a test program and links it with libhectare.so as cargo builds it; returns the program.
#[track_caller]
pub(crate) fn build(mut compiler: Command, source: &str, directory: &Path) -> PathBuf {
    let program = directory.join(Path::new(source).file_stem().expect("a name"));
    let library = library();
    compiler.arg("-g").arg(root().join("tests/c").join(source)).arg("-o").arg(&program);
    compiler.arg("-L").arg(library).arg("-lhectare").arg("-pthread");
    compiler.arg(format!("-Wl,-rpath,{}", library.display()));
    run(&mut compiler);
    program
}

/// A command without the variables of a launcher, in which the programs look for a daemon that is not there.
pub(crate) fn program(path: impl AsRef<OsStr>, directory: &Path) -> Command {
    let mut command = Command::new(path);
    command.env_remove("HECTARE_JOB").env("HECTARE_RUN_DIR", directory.join("no-daemon"));
    command
}
