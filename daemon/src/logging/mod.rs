//! Logs to standard error, for people or for machines.
mod sink;

use crate::config::{Format, Level, Log};
pub(crate) use sink::Sink;
use std::sync::{Mutex, OnceLock, PoisonError};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// The log of this process.
struct Running {
    log: Mutex<Log>,
    level: reload::Handle<LevelFilter, Registry>,
    sink: Sink,
}

static RUNNING: OnceLock<Running> = OnceLock::new();

fn filter(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    }
}

/// Sends the events of this process to standard error from now on, by a thread of its own. Does nothing the second
/// time.
///
/// # Errors
/// When the thread cannot be started.
pub fn start(log: &Log) -> std::io::Result<()> {
    let (level, handle) = reload::Layer::new(filter(log.level));
    let sink = Sink::start()?;
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines = fmt::layer().with_writer(sink.clone()).with_target(false).with_ansi(ansi);
    let lines = match log.format {
        Format::Human => lines.boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    if tracing_subscriber::registry().with(level).with(lines).try_init().is_ok() {
        // Set once: only the first call gets here.
        let _ = RUNNING.set(Running { log: Mutex::new(*log), level: handle, sink });
    }
    Ok(())
}

/// Logs at another level from now on.
pub(crate) fn set_level(level: Level) {
    if let Some(running) = RUNNING.get() {
        // It fails only for a subscriber that is gone, and this one stays.
        let _ = running.level.reload(filter(level));
        running.log.lock().unwrap_or_else(PoisonError::into_inner).level = level;
    }
}

/// How this process logs now.
pub(crate) fn running() -> Log {
    let log = RUNNING.get().map(|running| *running.log.lock().unwrap_or_else(PoisonError::into_inner));
    log.unwrap_or_default()
}

/// Waits until what was logged is written, but no longer than a moment: nobody may be reading it.
pub(crate) fn finish() {
    if let Some(running) = RUNNING.get() {
        running.sink.finish();
    }
}

/// Says a line on standard error, beside the log or without one. If it cannot be written, nobody is there to hear it.
pub(crate) fn say(line: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
}
