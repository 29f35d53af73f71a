//! The daemon of Hectare on a host, and, started by it, the agents of jobs on several hosts.
use clap::Parser;
use hectare_daemon::agent::{WORD, run};
use hectare_daemon::cli::daemon::{Options, main_of};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match &words[..] {
        [_, word, _job] if word == WORD => run(),
        _ => main_of(Options::parse()),
    }
}
