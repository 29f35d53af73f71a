//! The command line of `hectared`.
use super::exit;
use crate::config::{Config, Format, Level};
use crate::server::{Server, StartError};
use crate::{logging, metrics};
use anyhow::{Context, Result};
use clap::Parser;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;

/// Makes the jobs of this user on this host, and admits processes to them.
///
/// Runs in the foreground, logs to standard error, and stops on SIGTERM or SIGINT; jobs go on among the
/// processes that are in them. Reads the configuration of --config, HECTARE_CONFIG,
/// ~/.config/hectare/hectared.toml or /etc/hectare/hectared.toml; `hectare config example` prints one.
#[derive(Debug, Parser)]
#[command(name = "hectared", version, after_long_help = exit::help())]
pub struct Options {
    /// The configuration.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Where the socket and the lock are.
    #[arg(long)]
    run_dir: Option<PathBuf>,
    /// Where scrapes for Prometheus are answered, as ADDRESS:PORT.
    #[arg(long)]
    metrics_listen: Option<std::net::SocketAddr>,
    /// How lines of the log look.
    #[arg(long)]
    log_format: Option<Format>,
    /// What goes into the log.
    #[arg(long)]
    log_level: Option<Level>,
}

/// Runs the daemon until it is told to stop; says in one line why it could not.
pub fn main_of(options: Options) -> ExitCode {
    match serve(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hectared: {}", super::output::one_line(&error));
            let code = match error.downcast_ref() {
                Some(StartError::Running { .. }) => 4,
                Some(StartError::Wire(error)) => exit::code_of_wire(error),
                _ => exit::code_of(&error),
            };
            ExitCode::from(code)
        }
    }
}

fn serve(options: Options) -> Result<()> {
    let mut config = Config::load(options.config).map_err(|error| super::BadConfig(format!("{error:#}")))?;
    config.run_dir = options.run_dir.or(config.run_dir);
    config.metrics.listen = options.metrics_listen.or(config.metrics.listen);
    config.log.format = options.log_format.unwrap_or(config.log.format);
    config.log.level = options.log_level.unwrap_or(config.log.level);
    logging::start(&config.log);
    let (stop, signalled) = UnixStream::pair().context("socketpair")?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        let end = signalled.try_clone().context("dup")?;
        signal_hook::low_level::pipe::register(signal, end).context("installing a signal handler")?;
    }
    let server = Server::start(&config)?;
    // The daemon's lock is held here still: the socket is its own.
    let leave_nothing = |_: &_| drop(std::fs::remove_file(config.run_dir().socket()));
    metrics::start(&config.metrics, &config.run_dir()).inspect_err(leave_nothing)?;
    Ok(server.serve(stop)?)
}
