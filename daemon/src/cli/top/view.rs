//! The picture of a sample: jobs, workers, areas, in tables.
use super::Sort;
use super::peers::PeerSample;
use super::sample::{AreaSample, JobSample, Sample, WorkerSample};
use crate::cli::output::bytes;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Cell, Paragraph, Row, Table};
use std::cmp::Ordering;

/// How the picture is to be.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The order of workers.
    pub sort: Sort,
    /// Whether areas are in the order of their names, not the stalest first.
    pub areas_by_name: bool,
    /// Whether ticks are not shown for now.
    pub paused: bool,
    /// Whether the daemon is gone, and the next one waited for.
    pub absent: bool,
    /// Seconds from sample to sample.
    pub interval_s: f64,
    /// How many lines the list of workers is moved up.
    pub scroll: usize,
}

/// Heads of the tables of jobs, their other hosts, workers and areas.
pub(super) const JOBS: [&str; 9] =
    ["JOB", "MEMBERS", "RANKS", "DIED", "MEMORY", "ROUNDS/s", "BYTES/s", "ABANDONED", "POSTPONED"];
pub(super) const PEERS: [&str; 9] =
    ["JOB", "HOST", "ADDRESS", "STATE", "FOR", "ROUND TRIP", "SENT/s", "RECEIVED/s", "LOST"];
pub(super) const WORKERS: [&str; 9] =
    ["JOB", "RANK", "PID", "STATE", "ROUNDS/s", "BYTES/s", "BEHIND", "LATE", "WAITED FOR"];
pub(super) const AREAS: [&str; 8] = ["JOB", "AREA", "OWNER", "SIZE", "VERSION", "VERSIONS/s", "STATE", "AGE"];

/// In place of an empty table.
pub(super) const NO_JOBS: &str =
    "no jobs: start a program as processes of one by `hectare run -n 2 -- PROGRAM`";

fn rate(rate: Option<f64>) -> String {
    rate.map_or("-".into(), |rate| if rate < 100.0 { format!("{rate:.1}") } else { format!("{rate:.0}") })
}

fn byte_rate(rate: Option<f64>) -> String {
    rate.map_or("-".into(), |rate| format!("{}/s", bytes(rate as u64)))
}

/// A time in the unit that suits it.
fn age(seconds: f64) -> String {
    match seconds {
        s if s < 0.001 => format!("{:.0} us", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

pub(super) fn job_cells(job: &JobSample) -> [String; 9] {
    [
        job.job.clone(),
        job.members.to_string(),
        job.ranks.to_string(),
        job.member_deaths.to_string(),
        bytes(job.resident_bytes),
        rate(job.rounds_per_s),
        byte_rate(job.bytes_per_s),
        job.abandoned.to_string(),
        job.postponed.to_string(),
    ]
}

pub(super) fn peer_cells(job: &str, peer: &PeerSample) -> [String; 9] {
    [
        job.into(),
        peer.host.clone(),
        peer.address.clone(),
        peer.state.into(),
        age(peer.state_s),
        peer.round_trip_s.map_or("-".into(), age),
        byte_rate(peer.sent_per_s),
        byte_rate(peer.received_per_s),
        peer.lost.map_or("-".into(), |share| format!("{:.1} %", 100.0 * share)),
    ]
}

/// The other hosts of all jobs.
pub(super) fn peers(sample: &Sample) -> impl Iterator<Item = (&str, &PeerSample)> {
    sample.jobs.iter().flat_map(|job| job.peers.iter().map(|peer| (job.job.as_str(), peer)))
}

pub(super) fn worker_cells(job: &str, worker: &WorkerSample) -> [String; 9] {
    if let Some(host) = &worker.host {
        let state = match worker.stands_s {
            _ if worker.state == "dead" => format!("dead, on {host}"),
            Some(seconds) => format!("on {host}, whose clock stands for {}", age(seconds)),
            None => format!("on {host}"),
        };
        let [pid, rounds, bytes, behind, late, waited] = std::array::from_fn(|_| "-".to_owned());
        return [job.into(), worker.rank.to_string(), pid, state, rounds, bytes, behind, late, waited];
    }
    [
        job.into(),
        worker.rank.to_string(),
        worker.pid.to_string(),
        worker.state.into(),
        rate(worker.rounds_per_s),
        byte_rate(worker.bytes_per_s),
        worker.behind_rounds.to_string(),
        worker.late.to_string(),
        worker.waited_for.map_or("-".into(), |share| format!("{:.0} %", 100.0 * share)),
    ]
}

pub(super) fn area_cells(job: &str, area: &AreaSample) -> [String; 8] {
    [
        job.into(),
        area.name.clone(),
        area.owner.map_or("-".into(), |rank| rank.to_string()),
        bytes(area.bytes),
        match (area.term, area.version) {
            (Some(term), Some(version)) => format!("{term}.{version}"),
            _ => "-".into(),
        },
        rate(area.versions_per_s),
        if area.dirty { "dirty" } else { "clean" }.into(),
        area.age_s.map_or("-".into(), age),
    ]
}

/// The workers of all jobs in the order that was asked for; the highest first where it is a number of merit.
pub(super) fn sorted(sample: &Sample, sort: Sort) -> Vec<(&str, &WorkerSample)> {
    let of = |job: &'_ JobSample| job.workers.len();
    let mut all = Vec::with_capacity(sample.jobs.iter().map(of).sum());
    for job in &sample.jobs {
        all.extend(job.workers.iter().map(|worker| (job.job.as_str(), worker)));
    }
    let down = |a: Option<f64>, b: Option<f64>| b.partial_cmp(&a).unwrap_or(Ordering::Equal);
    // Stable: jobs and ranks go up among equals.
    all.sort_by(|(_, a), (_, b)| match sort {
        Sort::Rank => Ordering::Equal,
        Sort::Rounds => down(a.rounds_per_s, b.rounds_per_s),
        Sort::Bytes => down(a.bytes_per_s, b.bytes_per_s),
        Sort::Late => b
            .late
            .cmp(&a.late)
            .then(b.behind_rounds.cmp(&a.behind_rounds))
            .then(down(a.waited_for, b.waited_for)),
    });
    all
}

fn areas(sample: &Sample, by_name: bool) -> Vec<(&str, &AreaSample)> {
    let mut all: Vec<(&str, &AreaSample)> = Vec::new();
    for job in &sample.jobs {
        all.extend(job.areas.iter().map(|area| (job.job.as_str(), area)));
    }
    all.sort_by(|(_, a), (_, b)| match by_name {
        true => a.name.cmp(&b.name),
        false => super::sample::staler(a, b),
    });
    all
}

fn table<const N: usize>(head: [&'static str; N], rows: Vec<([String; N], Style)>) -> Table<'static> {
    let mut widths = head.map(str::len);
    for (cells, _) in &rows {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = cell.chars().count().max(*width);
        }
    }
    let rows = rows.into_iter().map(|(cells, style)| Row::new(cells.map(Cell::from)).style(style));
    let head = Row::new(head.map(Cell::from)).style(Style::new().add_modifier(Modifier::BOLD));
    Table::new(rows, widths.map(|width| Constraint::Length(width as u16))).header(head).column_spacing(2)
}

/// Highlights the dead, those who do not come, those who are waited for.
fn style(worker: &WorkerSample) -> Style {
    match worker.state {
        "dead" => Style::new().fg(Color::Red),
        "straggler" => Style::new().fg(Color::Yellow),
        _ if worker.stands_s.is_some() => Style::new().fg(Color::Yellow),
        _ => Style::new(),
    }
}

/// Draws a sample.
pub fn draw(frame: &mut Frame<'_>, sample: &Sample, view: View) {
    let jobs = sample.jobs.iter().map(|job| (job_cells(job), Style::new())).collect::<Vec<_>>();
    let jobs_are_there = !jobs.is_empty();
    let of_peer = |(job, peer): (&str, &PeerSample)| {
        let style = if peer.state == "away" { Style::new().fg(Color::Red) } else { Style::new() };
        (peer_cells(job, peer), style)
    };
    let peers: Vec<_> = peers(sample).map(of_peer).collect();
    let heights = [
        Constraint::Length(1),
        Constraint::Length((jobs.len() as u16).min(6) + 2),
        Constraint::Length(if peers.is_empty() { 0 } else { (peers.len() as u16).min(8) + 2 }),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [title, first, hosts, second, third, foot] = Layout::vertical(heights).areas(frame.area());
    let workers = sorted(sample, view.sort);
    let late = workers
        .iter()
        .filter(|(_, worker)| !matches!(worker.state, "live" | "remote") || worker.stands_s.is_some())
        .count();
    let paused = if view.paused { "   PAUSED" } else { "" };
    let absent = if view.absent { "   NO DAEMON" } else { "" };
    let text = format!(
        "hectare top: {}, {}, {late} not at work, every {:.1} s{paused}{absent}",
        counted(sample.jobs.len(), "job"),
        counted(workers.len(), "worker"),
        view.interval_s
    );
    frame.render_widget(Paragraph::new(Line::from(text)), title);
    frame.render_widget(table(JOBS, jobs), first);
    if !peers.is_empty() {
        frame.render_widget(table(PEERS, peers), hosts);
    }
    let rows = workers.iter().skip(view.scroll.min(workers.len().saturating_sub(1)));
    let rows = rows.map(|(job, worker)| (worker_cells(job, worker), style(worker))).collect();
    frame.render_widget(table(WORKERS, rows), second);
    let rows = areas(sample, view.areas_by_name);
    let rows = rows.into_iter().map(|(job, area)| (area_cells(job, area), Style::new())).collect();
    if jobs_are_there {
        frame.render_widget(table(AREAS, rows), third);
    } else {
        frame.render_widget(Paragraph::new(NO_JOBS), third);
    }
    let order = match view.sort {
        Sort::Rank => "rank",
        Sort::Rounds => "rounds",
        Sort::Bytes => "bytes",
        Sort::Late => "late",
    };
    let keys = format!(
        "q quit  p pause  up/down scroll  workers by {order} (r rank, o rounds, b bytes, l late)  \
         a areas"
    );
    frame.render_widget(Paragraph::new(keys).style(Style::new().add_modifier(Modifier::DIM)), foot);
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
