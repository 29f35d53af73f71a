//! The daemon of Hectare on a host.
use clap::Parser;
use hectare_daemon::cli::daemon::{Options, main_of};
use std::process::ExitCode;

fn main() -> ExitCode {
    main_of(Options::parse())
}
