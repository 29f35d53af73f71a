//! Metrics for Prometheus: the daemon's own counters, and those of its jobs.
//!
//! A thread of its own answers scrapes. To the daemon it is a client like any other. It inspects the memory of
//! jobs by [`hectare_dsm::Monitor`], which reads it like a file: a client that corrupts it only makes the numbers
//! of its own job wrong. Off unless `[metrics] listen` says where to listen.
mod agents;
pub mod counts;
mod exposition;
mod http;
mod listeners;
mod scrape;

use crate::config::Metrics;
use hectare_wire::RunDir;
use http::Http;
use listeners::Listeners;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The thread that answers scrapes, as its daemon sees it.
#[derive(Debug)]
pub struct Scrapes {
    dir: RunDir,
    state: Arc<Mutex<State>>,
    runs: bool,
}

#[derive(Debug)]
struct State {
    wanted: Metrics,
    listeners: Listeners,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scrapes {
    /// Of a daemon of this run directory; answers nothing yet.
    pub fn of(dir: RunDir) -> Scrapes {
        let state = State { wanted: Metrics::default(), listeners: Listeners::new(dir.clone()) };
        Scrapes { dir, state: Arc::new(Mutex::new(state)), runs: false }
    }

    /// Answers scrapes as these settings say, within a second. What cannot be listened at is tried again.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn set(&mut self, wanted: &Metrics) -> std::io::Result<()> {
        lock(&self.state).wanted = wanted.clone();
        if self.runs || (wanted.listen.is_none() && !wanted.socket) {
            return Ok(());
        }
        let mut scraper = scrape::Scraper::new(self.dir.clone(), Instant::now());
        let state = self.state.clone();
        let serve = move || {
            let mut http = Http::default();
            loop {
                let mut now = lock(&state);
                let State { wanted, listeners } = &mut *now;
                listeners.keep(wanted);
                let areas = wanted.areas;
                let fds: Vec<_> = listeners.fds().filter_map(|fd| fd.try_clone_to_owned().ok()).collect();
                drop(now);
                http.turn(fds.iter().map(std::os::fd::AsFd::as_fd), &mut || scraper.scrape(areas));
            }
        };
        std::thread::Builder::new().name("metrics".into()).spawn(serve)?;
        self.runs = true;
        Ok(())
    }
}

/// Leaves no socket behind.
impl Drop for Scrapes {
    fn drop(&mut self) {
        let mut state = lock(&self.state);
        state.wanted = Metrics::default();
        state.listeners.leave();
    }
}
