//! The command line of Hectare.
use clap::Parser;
use hectare_daemon::cli::{Options, main_of};
use std::process::ExitCode;

fn main() -> ExitCode {
    main_of(Options::parse())
}
