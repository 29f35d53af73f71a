//! Logs to standard error, for people or for machines.
use crate::config::{Format, Level, Log};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

/// Sends the events of this process to standard error from now on. Does nothing the second time.
pub fn start(log: &Log) {
    let level = match log.level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    };
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let common = fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false).with_ansi(ansi);
    let _ = match log.format {
        Format::Human => common.try_init(),
        Format::Json => common.json().flatten_event(true).try_init(),
    };
}
