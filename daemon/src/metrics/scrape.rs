//! The text of a scrape.
use super::agents::of_agent;
use super::counts::COUNTS;
use super::exposition::{
    Exposition,
    Kind::{Counter, Gauge},
};
use crate::ask::{all_jobs, monitor};
use anyhow::Result;
use hectare_dsm::{AreaSnapshot, Snapshot, Stats, WorkerSnapshot, WorkerState};
use hectare_wire::{Connection, JobLine, RunDir, VERSION};
use std::time::Instant;

/// Answers scrapes: a client of the daemon that it is a thread of.
#[derive(Debug)]
pub(super) struct Scraper {
    dir: RunDir,
    connection: Option<Connection>,
    since: Instant,
    errors: u64,
}

impl Scraper {
    pub(super) fn new(dir: RunDir, since: Instant) -> Scraper {
        Scraper { dir, connection: None, since, errors: 0 }
    }

    /// The metrics as they are now, with at most `areas` areas of each job. Jobs that cannot be read are left out, counted and logged.
    pub(super) fn scrape(&mut self, areas: usize) -> String {
        let begin = Instant::now();
        let mut out = Exposition::default();
        let (release, protocol) = (env!("CARGO_PKG_VERSION"), VERSION.to_string());
        let info = [("release", release), ("protocol", protocol.as_str())];
        out.add(Gauge, "hectare_daemon_info", "The daemon that answers.", &info, 1);
        let age = self.since.elapsed().as_secs_f64();
        out.add(Gauge, "hectare_daemon_age_seconds", "How long the daemon runs.", &[], age);
        for (name, help, values) in COUNTS.all() {
            for (cause, value) in values {
                let cause = [("cause", cause)];
                let labels = if cause[0].1.is_empty() { &[][..] } else { &cause[..] };
                out.add(Counter, &format!("hectare_daemon_{name}"), help, labels, value);
            }
        }
        if let Err(error) = self.jobs(&mut out, areas) {
            tracing::warn!(%error, "a scrape has no jobs");
            self.errors += 1;
            self.connection = None;
        }
        let errors = "Scrapes in which a job, or all jobs, are missing.";
        out.add(Counter, "hectare_scrape_errors_total", errors, &[], self.errors);
        let took = begin.elapsed().as_secs_f64();
        out.add(Gauge, "hectare_scrape_duration_seconds", "How long this scrape took.", &[], took);
        out.text()
    }

    fn jobs(&mut self, out: &mut Exposition, areas: usize) -> Result<()> {
        if self.connection.is_none() {
            self.connection = Some(Connection::open(&self.dir)?);
        }
        let Some(connection) = &self.connection else { return Ok(()) };
        let jobs = all_jobs(connection)?;
        out.add(Gauge, "hectare_daemon_jobs", "Jobs that there are.", &[], jobs.len());
        for line in jobs {
            listed(out, &line);
            // A job may be gone since it was listed.
            match monitor(connection, &line.job).and_then(|monitor| Ok(monitor.snapshot(areas)?)) {
                Ok(snapshot) => seen(out, &line.job, &snapshot),
                Err(error) => {
                    tracing::debug!(job = line.job, %error, "a scrape lacks a job");
                    self.errors += 1;
                }
            }
            if let Err(error) = of_agent(out, &self.dir, &line.job) {
                tracing::debug!(job = line.job, %error, "a scrape lacks an agent");
                self.errors += 1;
            }
        }
        Ok(())
    }
}

/// Metrics of a job that the daemon knows.
fn listed(out: &mut Exposition, line: &JobLine) {
    let job = [("job", line.job.as_str())];
    out.add(Gauge, "hectare_job_members", "Processes that are members.", &job, line.members);
    out.add(Gauge, "hectare_job_ranks", "Ranks handed out.", &job, line.ranks);
    out.add(Gauge, "hectare_job_max_workers", "Ranks that there may be.", &job, line.max_workers);
    out.add(Gauge, "hectare_job_resident_bytes", "Memory that the job takes.", &job, line.resident_bytes);
    out.add(Gauge, "hectare_job_quota_bytes", "Address space for areas.", &job, line.reserve_bytes);
    out.add(Gauge, "hectare_job_age_seconds", "How long the job exists.", &job, line.age_s);
    let help = "Members that died without leaving.";
    out.add(Counter, "hectare_job_member_deaths_total", help, &job, line.deaths);
}

/// Metrics of a job from a snapshot of its memory.
fn seen(out: &mut Exposition, job: &str, snapshot: &Snapshot) {
    stats(out, job, &snapshot.stats);
    let left_out = "Areas that this scrape leaves out (metrics.areas).";
    out.add(Gauge, "hectare_job_areas_omitted", left_out, &[("job", job)], snapshot.areas_omitted);
    for worker in &snapshot.workers {
        of_worker(out, job, worker);
    }
    for area in &snapshot.areas {
        of_area(out, job, area);
    }
}

fn stats(out: &mut Exposition, job: &str, stats: &Stats) {
    let one = [("job", job)];
    let mut count = |name: &str, help: &str, value: u64| {
        out.add(Counter, &format!("hectare_job_{name}_total"), help, &one, value);
    };
    count("rounds", "Rounds that began.", stats.rounds);
    count("abandoned_rounds", "Rounds abandoned because a worker did not come.", stats.abandoned);
    count("late_workers", "Workers left behind by rounds that were abandoned.", stats.late);
    count("published_versions", "Versions published.", stats.published);
    count("copied_chunks", "Pieces of areas copied into reader copies.", stats.chunks);
    count("copied_bytes", "Bytes copied into reader copies.", stats.copied_bytes);
    count("worker_deaths", "Workers seen dead by others.", stats.deaths);
    count("claims", "Areas claimed.", stats.claims);
    count("unlogged_lines", "Lines that check mode found written and not logged.", stats.unlogged_lines);
    let mut causes = |name: &str, help: &str, values: &[(&str, u64)]| {
        for (cause, value) in values {
            let labels = [("job", job), ("cause", cause)];
            out.add(Counter, &format!("hectare_job_{name}_total"), help, &labels, value);
        }
    };
    let postponed = [
        ("pinned", stats.postponed_pinned),
        ("group", stats.postponed_group),
        ("owner_away", stats.postponed_owner),
        ("unscanned", stats.postponed_unscanned),
    ];
    causes("postponed_publications", "Publications postponed, by cause.", &postponed);
    let taken = [
        ("dead_copier", stats.takeovers),
        ("dead_actor", stats.round_takeovers),
        ("stalled_actor", stats.replaced_actors),
    ];
    causes("takeovers", "Work of dead or stalled workers that others took over, by cause.", &taken);
    let evicted = [("stall_kill", stats.kills), ("stall_pin", stats.pinned_copies)];
    causes("evictions", "Workers killed and copies pinned by the stall policy.", &evicted);
    let refused = [
        ("worker", stats.refused_workers),
        ("observer", stats.refused_observers),
        ("pin", stats.refused_pins),
        ("area", stats.refused_areas),
        ("claim", stats.refused_claims),
        ("handover", stats.refused_handovers),
    ];
    causes("refusals", "Requests that the job's memory had no room or no permission for.", &refused);
}

fn of_worker(out: &mut Exposition, job: &str, worker: &WorkerSnapshot) {
    let rank = worker.rank.to_string();
    let labels = [("job", job), ("worker", rank.as_str())];
    for (state, name) in [
        (WorkerState::Live, "live"),
        (WorkerState::Straggler, "straggler"),
        (WorkerState::Changing, "changing"),
        (WorkerState::Dead, "dead"),
    ] {
        let labels = [labels[0], labels[1], ("state", name)];
        let help = "1 for the state that the worker is in.";
        out.add(Gauge, "hectare_worker_state", help, &labels, u8::from(worker.state == state));
    }
    let waited_for = u8::from(worker.waited_for);
    out.add(Gauge, "hectare_worker_waited_for", "1 while a round waits for it.", &labels, waited_for);
    out.add(
        Gauge,
        "hectare_worker_last_round",
        "The last round that it came to.",
        &labels,
        worker.last_round,
    );
    // Workers outside of the clocks have the highest there is.
    if worker.clock != u64::MAX {
        out.add(Gauge, "hectare_worker_clock", "Its clock.", &labels, worker.clock);
    }
    let mut count = |name: &str, help: &str, value: u64| {
        out.add(Counter, &format!("hectare_worker_{name}_total"), help, &labels, value);
    };
    count("rounds", "Rounds completed with it.", worker.rounds);
    count("abandoned_rounds", "Rounds that it waited in until they were abandoned.", worker.abandoned);
    count("late", "Rounds abandoned because of it.", worker.late);
    count("planned_rounds", "Rounds that it planned.", worker.planned);
    count("published_versions", "Versions that it published.", worker.published);
    count("copied_chunks", "Pieces of areas that it copied.", worker.chunks);
    count("copied_bytes", "Bytes that it copied into reader copies.", worker.copied_bytes);
}

fn of_area(out: &mut Exposition, job: &str, area: &AreaSnapshot) {
    let labels = [("job", job), ("area", area.name.as_str())];
    out.add(Gauge, "hectare_area_bytes", "Bytes of one copy.", &labels, area.bytes);
    if let Some(version) = area.version {
        let help = "The counter of the newest published version.";
        out.add(Gauge, "hectare_area_version", help, &labels, version.counter);
        out.add(Gauge, "hectare_area_term", "The term of the newest version.", &labels, version.term);
    }
    if let Some(age) = area.age {
        let help = "Time since a round published it or found nothing to publish.";
        out.add(Gauge, "hectare_area_age_seconds", help, &labels, age.as_secs_f64());
    }
    let help = "1 while its owner has written something that is not published.";
    out.add(Gauge, "hectare_area_dirty", help, &labels, u8::from(area.dirty));
    let owned = u8::from(area.owner.is_some());
    out.add(Gauge, "hectare_area_owned", "0 when it can be claimed.", &labels, owned);
    let help = "Publications postponed: copies pinned, or its group.";
    out.add(Counter, "hectare_area_postponed_publications_total", help, &labels, area.postponed);
}
