//! The command line of `hectared`.
use super::exit;
use crate::config::{Config, Format, Level};
use crate::logging;
use crate::metrics::Scrapes;
use crate::server::{Server, StartError};
use anyhow::{Context, Result};
use clap::Parser;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing::warn;

/// Makes the jobs of this user on this host, and admits processes to them.
///
/// Runs in the foreground, logs to standard error, loads its configuration again on SIGHUP (all but run_dir and
/// log.format), and stops on SIGTERM or SIGINT; jobs go on among the processes that are in them. Reads the configuration of --config, HECTARE_CONFIG,
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
    /// The level from which on messages go into the log.
    #[arg(long)]
    log_level: Option<Level>,
}

/// Runs the daemon until it is told to stop; says in one line why it could not.
pub fn main_of(options: Options) -> ExitCode {
    let served = serve(options);
    logging::finish();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            logging::say(&format!("hectared: {}", super::output::one_line(&error)));
            let code = match error.downcast_ref() {
                Some(StartError::Running { .. }) => 4,
                Some(StartError::Wire(error)) => exit::code_of_wire(error),
                _ => exit::code_of(&error),
            };
            ExitCode::from(code)
        }
    }
}

impl Options {
    /// The configuration, with these flags on top.
    fn config(&self) -> Result<Config> {
        let file = self.config.clone();
        let mut config = Config::load(file).map_err(|error| super::BadConfig(format!("{error:#}")))?;
        config.check_key().map_err(|error| super::BadConfig(format!("{error:#}")))?;
        config.run_dir = self.run_dir.clone().or(config.run_dir);
        config.metrics.listen = self.metrics_listen.or(config.metrics.listen);
        config.log.format = self.log_format.unwrap_or(config.log.format);
        config.log.level = self.log_level.unwrap_or(config.log.level);
        Ok(config)
    }
}

fn serve(options: Options) -> Result<()> {
    // First: whoever asks for the new configuration while the old one is read is not to end the daemon.
    let hangup = on_signals(&[SIGHUP])?;
    let config = options.config()?;
    logging::start(&config.log).context("starting the log thread")?;
    let stop = on_signals(&[SIGTERM, SIGINT])?;
    let server = Server::start(&config)?;
    let mut scrapes = Scrapes::of(config.run_dir());
    scrapes.set(&config.metrics).context("starting the metrics thread")?;
    let load = move || reload(&options, &config, &mut scrapes);
    Ok(server.reload_with(hangup, load).serve(stop)?)
}

/// A stream that becomes readable when one of these signals comes.
fn on_signals(signals: &[i32]) -> Result<UnixStream> {
    let (ours, handler) = UnixStream::pair().context("socketpair")?;
    ours.set_nonblocking(true).context("fcntl")?;
    for signal in signals {
        let end = handler.try_clone().context("dup")?;
        signal_hook::low_level::pipe::register(*signal, end).context("installing a signal handler")?;
    }
    Ok(ours)
}

/// Loads the configuration again. One that is wrong changes nothing.
fn reload(options: &Options, begun_with: &Config, scrapes: &mut Scrapes) -> Option<Config> {
    let config = match options.config() {
        Ok(config) => config,
        Err(error) => {
            let why = super::output::one_line(&error);
            warn!(why, "the configuration is not loaded again: it is wrong");
            return None;
        }
    };
    for (name, changed) in [
        ("run_dir", config.run_dir() != begun_with.run_dir()),
        ("log.format", config.log.format != begun_with.log.format),
    ] {
        if changed {
            warn!(name, "this setting changes when the daemon is started again");
        }
    }
    logging::set_level(config.log.level);
    if let Err(error) = scrapes.set(&config.metrics) {
        warn!(%error, "the metrics thread cannot be started");
    }
    Some(config)
}
