//! `hectare top`: what jobs and their workers do, as it happens.
pub mod keys;
pub mod peers;
pub mod sample;
pub mod screen;
pub mod view;

use super::output::table_text;
use crate::ask::Reconnecting;
use crate::cli::parse::{ArgumentError, seconds};
use crate::logging;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use hectare_wire::{Error, Refusal, RunDir};
use keys::Key;
use sample::{Sample, Sampler};
use screen::{Event, Screen};
use std::io::{ErrorKind, IsTerminal, Write};
use std::time::{Duration, Instant};
use view::View;

/// In between ticks, who is waited for is looked at this often.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Areas of each job that are looked at.
const MOST_AREAS: usize = 4096;
/// The code of a program whose terminal is gone, as if SIGHUP had ended it.
const HUNG_UP: u8 = 128 + 1;

/// The order of workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// By job and rank.
    Rank,
    /// By rounds per second, descending.
    Rounds,
    /// By bytes copied per second, descending.
    Bytes,
    /// Stragglers first: by rounds abandoned because of them, rounds behind, and how often they are waited for.
    Late,
}

/// Options of the display.
///
/// Keys: q quits, p pauses; r, o, b and l put workers in the order of ranks, rounds, bytes, lateness; a puts
/// areas in the order of names or ages; up and down move the list of workers.
#[derive(Debug, Args)]
pub(super) struct Top {
    /// Only this job.
    job: Option<String>,
    /// Seconds between samples.
    #[arg(long, default_value_t = 1.0, value_parser = interval)]
    interval: f64,
    /// The order of workers.
    #[arg(long, value_enum, default_value_t = Sort::Rank)]
    sort: Sort,
    /// Print one JSON object per sample and line.
    #[arg(long)]
    json: bool,
    /// Print one sample, after one interval, and exit.
    #[arg(long)]
    once: bool,
    /// Seconds to wait for a new daemon when this one ends.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    daemon_timeout: Duration,
}

fn interval(text: &str) -> Result<f64, ArgumentError> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.05..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err(ArgumentError::Interval),
    }
}

/// Shows ticks until it is told to stop, the job that was asked for is gone, or the daemon is and none comes after it.
///
/// # Errors
/// No daemon, or one that ends and is not followed in time; no such job; no terminal. The terminal is given back before.
pub(super) fn top(dir: &RunDir, what: &Top) -> Result<u8> {
    let daemon = Reconnecting::open(dir, what.daemon_timeout)?;
    let mut sampler = Sampler::new(dir, daemon, what.job.clone(), MOST_AREAS);
    let first = loop {
        match sampler.sample()? {
            Some(sample) => break sample,
            None => std::thread::sleep(LOOK_EVERY),
        }
    };
    let ended = if what.once || what.json {
        lines(&mut sampler, what, &first).map(|()| 0)
    } else {
        let terminal = std::io::stdout().is_terminal();
        ensure!(terminal, "standard output is not a terminal: use --once or --json");
        pictures(&mut sampler, what, first)
    };
    match ended {
        // It was there when this began: its end is no failure.
        Err(error) if is_gone(&error) => {
            logging::say(&format!("hectare: job {:?} is gone", what.job.as_deref().unwrap_or_default()));
            Ok(0)
        }
        other => other,
    }
}

fn is_gone(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(Error::Refused(Refusal::NoSuchJob { .. })))
}

/// Waits until `until`, and looks who is waited for meanwhile.
fn pause(sampler: &mut Sampler, until: Instant) {
    loop {
        sampler.sample_waits();
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}

/// Prints ticks: text for one, JSON for any number.
fn lines(sampler: &mut Sampler, what: &Top, first: &Sample) -> Result<()> {
    let mut next = Instant::now();
    if what.json && !what.once && !put(&format!("{}\n", serde_json::to_string(first)?))? {
        return Ok(());
    }
    loop {
        next += Duration::from_secs_f64(what.interval);
        pause(sampler, next);
        // Without a daemon, there is nothing to print.
        let Some(sample) = sampler.sample()? else { continue };
        let more = match what.json {
            true => put(&format!("{}\n", serde_json::to_string(&sample)?))?,
            false => put(&text(&sample, what.sort))?,
        };
        if what.once || !more {
            return Ok(());
        }
    }
}

/// Prints; false if the reader has had enough.
fn put(text: &str) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A sample as plain text.
fn text(sample: &Sample, sort: Sort) -> String {
    if sample.jobs.is_empty() {
        return format!("{}\n", view::NO_JOBS);
    }
    let jobs = sample.jobs.iter().map(view::job_cells).collect();
    let workers = view::sorted(sample, sort);
    let workers = workers.into_iter().map(|(job, worker)| view::worker_cells(job, worker)).collect();
    let areas =
        sample.jobs.iter().flat_map(|job| job.areas.iter().map(|area| view::area_cells(&job.job, area)));
    let (jobs, workers) = (table_text(view::JOBS, jobs), table_text(view::WORKERS, workers));
    let areas = table_text(view::AREAS, areas.collect());
    let peers: Vec<_> = view::peers(sample).map(|(job, peer)| view::peer_cells(job, peer)).collect();
    let peers =
        if peers.is_empty() { String::new() } else { format!("{}\n", table_text(view::PEERS, peers)) };
    format!("{jobs}\n{peers}{workers}\n{areas}")
}

fn pictures(sampler: &mut Sampler, what: &Top, first: Sample) -> Result<u8> {
    let mut screen = Screen::enter()?;
    let interval_s = what.interval;
    let (sort, areas_by_name, paused, absent) = (what.sort, false, false, false);
    let mut view = View { sort, areas_by_name, paused, absent, interval_s, scroll: 0 };
    let (mut sample, every) = (first, Duration::from_secs_f64(what.interval));
    let mut next = Instant::now() + every;
    loop {
        let drawn = screen.terminal.draw(|frame| view::draw(frame, &sample, view)).map(|_| ());
        match drawn {
            Err(_) if screen.is_gone() => return Ok(HUNG_UP),
            drawn => drawn?,
        }
        let mut changed = false;
        while !changed {
            let left = next.saturating_duration_since(Instant::now());
            match screen.wait(left.min(LOOK_EVERY))? {
                Event::Signal(signal) => return Ok(u8::try_from(128 + signal).unwrap_or(1)),
                Event::Gone => return Ok(HUNG_UP),
                Event::Keys(keys) => {
                    for key in keys {
                        if is_quit(key) {
                            return Ok(0);
                        }
                        changed |= press(key, &mut view);
                    }
                }
                Event::Resized => changed = true,
                Event::Nothing if !left.is_zero() => sampler.sample_waits(),
                Event::Nothing => (),
            }
            if left.is_zero() {
                let fresh = sampler.sample()?;
                changed |= view.absent != fresh.is_none();
                view.absent = fresh.is_none();
                if let (false, Some(fresh)) = (view.paused, fresh) {
                    sample = fresh;
                    changed = true;
                }
                next = Instant::now() + every;
            }
        }
    }
}

fn is_quit(key: Key) -> bool {
    matches!(key, Key::Char('q') | Key::Escape | Key::Interrupt)
}

/// Does what a key says; true if the picture is to be drawn again.
fn press(key: Key, view: &mut View) -> bool {
    match key {
        Key::Char('p' | ' ') => view.paused = !view.paused,
        Key::Char('r') => view.sort = Sort::Rank,
        Key::Char('o') => view.sort = Sort::Rounds,
        Key::Char('b') => view.sort = Sort::Bytes,
        Key::Char('l') => view.sort = Sort::Late,
        Key::Char('a') => view.areas_by_name = !view.areas_by_name,
        Key::Up => view.scroll = view.scroll.saturating_sub(1),
        Key::Down => view.scroll = view.scroll.saturating_add(1),
        Key::Home => view.scroll = 0,
        _ => return false,
    }
    true
}

#[cfg(test)]
mod pressed {
    use super::*;

    #[test]
    fn keys_do_what_the_last_line_says() {
        let mut view = View {
            sort: Sort::Rank,
            areas_by_name: false,
            paused: false,
            absent: false,
            interval_s: 1.0,
            scroll: 0,
        };
        for (c, sort) in [('o', Sort::Rounds), ('b', Sort::Bytes), ('l', Sort::Late), ('r', Sort::Rank)] {
            assert!(press(Key::Char(c), &mut view));
            assert_eq!(view.sort, sort);
        }
        assert!(press(Key::Char('p'), &mut view) && view.paused);
        assert!(press(Key::Char('a'), &mut view) && view.areas_by_name);
        assert!(press(Key::Down, &mut view) && press(Key::Down, &mut view));
        assert!(press(Key::Up, &mut view));
        assert_eq!(view.scroll, 1);
        assert!(press(Key::Home, &mut view) && view.scroll == 0);
        assert!(!press(Key::Char('x'), &mut view));
        assert!(is_quit(Key::Char('q')) && is_quit(Key::Escape) && is_quit(Key::Interrupt));
        assert!(!is_quit(Key::Char('c')));
    }
}
