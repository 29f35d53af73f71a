//! Metrics for Prometheus: the daemon's own counters, and those of its jobs.
//!
//! A thread of its own answers scrapes. Towards the daemon it is a client like any other, and it looks at the
//! memory of jobs by [`hectare_dsm::Watch`], which reads it like a file: what clients scribble there makes
//! their own job's numbers wrong. Off unless `[metrics] listen` says where to listen.
pub mod counts;
mod exposition;
mod http;
mod scrape;

use crate::config::Metrics;
use anyhow::{Context, Result};
use hectare_wire::RunDir;
use std::net::TcpListener;
use std::time::Instant;

/// Starts the thread that answers scrapes, if the configuration says where.
///
/// # Errors
/// When the address cannot be listened on.
pub fn start(settings: &Metrics, dir: &RunDir) -> Result<()> {
    let Some(address) = settings.listen else { return Ok(()) };
    let listener = TcpListener::bind(address)
        .with_context(|| format!("metrics.listen: {address} cannot be listened on"))?;
    let address = listener.local_addr().context("metrics.listen")?;
    if !address.ip().is_loopback() {
        tracing::warn!(%address, "metrics can be read from other hosts: there is no access control");
    }
    let mut scraper = scrape::Scraper::new(dir.clone(), settings.areas, Instant::now());
    let thread = std::thread::Builder::new().name("metrics".into());
    thread
        .spawn(move || http::serve(&listener, || scraper.scrape()))
        .context("starting the metrics thread")?;
    tracing::info!(%address, "metrics");
    Ok(())
}
