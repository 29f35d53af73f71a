//! The daemon's counters of its own events. A line of the log says more about each event.
use hectare_wire::Refusal;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The counters of this process's daemon.
#[derive(Debug)]
pub struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    jobs_made: AtomicU64,
    jobs_adopted: AtomicU64,
    members_back: AtomicU64,
    deaths: AtomicU64,
    leaves: AtomicU64,
    log_lines_dropped: AtomicU64,
    /// Rare, so a lock will do.
    refusals: Mutex<BTreeMap<&'static str, u64>>,
    evictions: Mutex<BTreeMap<&'static str, u64>>,
    removals: Mutex<BTreeMap<&'static str, u64>>,
    agents: Mutex<BTreeMap<&'static str, u64>>,
}

/// The counters of this process's daemon.
pub static COUNTS: Counts = Counts::new();

/// Why connections and requests are refused, whether or not it has happened: a counter that is not there
/// before it is needed has no rise.
const REFUSALS: [&str; 16] = [
    "version",
    "malformed",
    "no_such_job",
    "job_exists",
    "job_in_use",
    "invalid_name",
    "quota",
    "rank_taken",
    "unexpected_request",
    "not_created",
    "other_job",
    "not_adopted",
    "other_user",
    "max_clients",
    "max_clients_per_process",
    "accept",
];
const EVICTIONS: [&str; 4] = ["version", "malformed", "descriptors", "takes_no_answer"];
const REMOVALS: [&str; 3] = ["last_member", "request", "nobody_joined"];
const AGENTS: [&str; 2] = ["started_again", "for_good"];

fn add(map: &Mutex<BTreeMap<&'static str, u64>>, cause: &'static str) {
    *map.lock().unwrap_or_else(PoisonError::into_inner).entry(cause).or_default() += 1;
}

fn of(map: &Mutex<BTreeMap<&'static str, u64>>, known: &[&'static str]) -> BTreeMap<&'static str, u64> {
    let mut all: BTreeMap<&'static str, u64> = known.iter().map(|cause| (*cause, 0)).collect();
    let seen = map.lock().unwrap_or_else(PoisonError::into_inner);
    all.extend(seen.iter().map(|(cause, count)| (*cause, *count)));
    all
}

impl Counts {
    const fn new() -> Counts {
        Counts {
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            jobs_made: AtomicU64::new(0),
            jobs_adopted: AtomicU64::new(0),
            members_back: AtomicU64::new(0),
            deaths: AtomicU64::new(0),
            leaves: AtomicU64::new(0),
            log_lines_dropped: AtomicU64::new(0),
            refusals: Mutex::new(BTreeMap::new()),
            evictions: Mutex::new(BTreeMap::new()),
            removals: Mutex::new(BTreeMap::new()),
            agents: Mutex::new(BTreeMap::new()),
        }
    }

    /// Somebody connected.
    pub fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// A request came.
    pub fn requested(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// A job of an earlier daemon was taken on.
    pub fn job_adopted(&self) {
        self.jobs_adopted.fetch_add(1, Ordering::Relaxed);
    }

    /// A member of an earlier daemon came back.
    pub fn member_back(&self) {
        self.members_back.fetch_add(1, Ordering::Relaxed);
    }

    /// A job was made.
    pub fn job_made(&self) {
        self.jobs_made.fetch_add(1, Ordering::Relaxed);
    }

    /// A job was removed: `last_member` left it, on `request`, or `nobody_joined` it in time.
    pub fn job_removed(&self, cause: &'static str) {
        add(&self.removals, cause);
    }

    /// An agent of a job on several hosts has ended: it is `started_again`, or was not to be, `for_good`.
    pub fn agent_ended(&self, what: &'static str) {
        add(&self.agents, what);
    }

    /// A member is gone.
    pub fn member_gone(&self, died: bool) {
        let word = if died { &self.deaths } else { &self.leaves };
        word.fetch_add(1, Ordering::Relaxed);
    }

    /// A request was refused.
    pub fn refused(&self, refusal: &Refusal) {
        add(&self.refusals, refusal.cause());
    }

    /// A connection was refused: of `other_user`, beyond `max_clients` or `max_clients_per_process`, or `accept` failed.
    pub fn refused_connection(&self, cause: &'static str) {
        add(&self.refusals, cause);
    }

    /// A client was given up: what it says is of another `version` or `malformed`, it sends `descriptors` that nobody
    /// asked for, or it `takes_no_answer`.
    pub fn evicted(&self, cause: &'static str) {
        add(&self.evictions, cause);
    }

    /// A line of the log was dropped: nobody reads the log, or it cannot be written.
    pub fn log_line_dropped(&self) {
        self.log_lines_dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Lines of the log that were dropped.
    pub fn log_lines_dropped(&self) -> u64 {
        self.log_lines_dropped.load(Ordering::Relaxed)
    }

    /// Every counter: its name, what it counts, and its values by cause (an empty cause where there is one
    /// value).
    pub(super) fn all(&self) -> Vec<(&'static str, &'static str, BTreeMap<&'static str, u64>)> {
        let one = |word: &AtomicU64| BTreeMap::from([("", word.load(Ordering::Relaxed))]);
        vec![
            ("connections_total", "Connections taken.", one(&self.connections)),
            ("requests_total", "Requests read.", one(&self.requests)),
            ("jobs_made_total", "Jobs made.", one(&self.jobs_made)),
            ("jobs_adopted_total", "Jobs of an earlier daemon taken on.", one(&self.jobs_adopted)),
            ("members_back_total", "Members of an earlier daemon that came back.", one(&self.members_back)),
            (
                "agents_ended_total",
                "Agents of jobs on several hosts that ended, by what followed.",
                of(&self.agents, &AGENTS),
            ),
            ("jobs_removed_total", "Jobs removed, by cause.", of(&self.removals, &REMOVALS)),
            ("member_deaths_total", "Members that died without leaving.", one(&self.deaths)),
            ("member_leaves_total", "Members that left.", one(&self.leaves)),
            ("refusals_total", "Connections and requests refused, by cause.", of(&self.refusals, &REFUSALS)),
            ("evictions_total", "Clients given up, by cause.", of(&self.evictions, &EVICTIONS)),
            (
                "log_lines_dropped_total",
                "Lines of the log that could not be written.",
                one(&self.log_lines_dropped),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_there_before_they_are_needed() {
        let counts = Counts::new();
        let value = |name: &str, cause: &str| {
            let all = counts.all();
            all.iter().find(|(found, ..)| *found == name).and_then(|(.., values)| values.get(cause).copied())
        };
        assert_eq!(value("refusals_total", "quota"), Some(0));
        counts.refused(&Refusal::NoSuchJob { job: "j".into() });
        counts.refused_connection("max_clients");
        counts.evicted("version");
        counts.member_gone(true);
        assert_eq!(value("refusals_total", "no_such_job"), Some(1));
        assert_eq!(value("refusals_total", "max_clients"), Some(1));
        assert_eq!(value("evictions_total", "version"), Some(1));
        assert_eq!((value("member_deaths_total", ""), value("member_leaves_total", "")), (Some(1), Some(0)));
    }
}
