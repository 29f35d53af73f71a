//! Examples run as programs.
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The command that runs example `name`.
pub(crate) fn command(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(program.exists(), "{} is not built: run all tests, or cargo build --examples", program.display());
    Command::new(program)
}

/// The output of example `name`, and its exit code.
pub(crate) fn program(name: &str, args: &[&str]) -> Output {
    command(name).args(args).output().unwrap()
}

/// Example `name`, whose standard output nobody reads, ends by SIGPIPE and says nothing.
pub(crate) fn ends_unheard(name: &str, args: &[&str]) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(name);
    let child = command.args(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGPIPE), "{name} {args:?}: {}, {error}", output.status);
    assert!(error.is_empty(), "{name} {args:?}: {error}");
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
