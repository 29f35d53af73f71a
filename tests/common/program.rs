//! Examples run as programs.
use std::path::Path;
use std::process::{Command, Output};

/// What example `name` says, and its code.
pub(crate) fn program(name: &str, args: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(program.exists(), "{} is not built: run all tests, or cargo build --examples", program.display());
    Command::new(program).args(args).output().unwrap()
}

/// Each of these arguments is refused by example `name`, in one line that has these words, and with code 1.
pub(crate) fn refuses(name: &str, cases: &[(&[&str], &str)]) {
    for (args, says) in cases {
        let output = program(name, args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
        assert!(error.contains(says) && error.lines().count() == 1, "{args:?}: {error}");
    }
}
