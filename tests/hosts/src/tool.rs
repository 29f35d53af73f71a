//! The system's tools: `ip`, `nft`, `tc`.
use std::io::{Error, Result, Write};
use std::process::{Command, Stdio};

/// Runs a command with this input, which may be empty; the error has what it said.
pub(crate) fn run(command: &mut Command, input: &str) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |what: &str| Error::other(format!("{name}: {what}"));
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| Error::new(error.kind(), format!("{name}: {error}")))?;
    // Who ends without reading it says why.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// `ip` with these words.
pub(crate) fn ip(words: &[&str]) -> Result<String> {
    run(Command::new("ip").args(words), "")
}

/// A command in a namespace.
pub(crate) fn within(namespace: &str, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace]).arg(program);
    command
}
