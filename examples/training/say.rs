//! Output of programs whose reader may close the pipe early (`| head -1`).
use signal_hook::consts::SIGPIPE;
use signal_hook::low_level::emulate_default_handler;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// Writes a line to the standard output. If nobody reads that any more, the process ends as other programs of Unix do then:
/// by SIGPIPE, without a word. (`println!` panics instead.)
pub(crate) fn say(line: Arguments<'_>) {
    let mut out = io::stdout().lock();
    let Err(error) = writeln!(out, "{line}").and_then(|()| out.flush()) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        // Comes back only if the signal is not known.
        let _ = emulate_default_handler(SIGPIPE);
    }
    warn(format_args!("error: cannot write to the standard output: {error}"));
    std::process::exit(1);
}

/// Writes a line to the standard error, if somebody reads that.
pub(crate) fn warn(line: Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}
