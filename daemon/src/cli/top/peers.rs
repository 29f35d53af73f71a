//! The other hosts of jobs, as the agents on this host see them.
use crate::ask::standing_of;
use hectare_wire::{AgentConnection, PeerStanding, RunDir};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long an agent may take to answer: a picture waits for it.
const ANSWER: Duration = Duration::from_millis(200);

/// Another host of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerSample {
    /// Its name.
    pub host: String,
    /// Where it is.
    pub address: String,
    /// `connected`, `silent` (nothing was heard of it for some seconds) or `away`.
    pub state: &'static str,
    /// For how many seconds.
    pub state_s: f64,
    /// The smoothed round-trip time in seconds; `None` without a session, as all that follows.
    pub round_trip_s: Option<f64>,
    /// Bytes sent each second. Rates are `None` in the first sample of a session.
    pub sent_per_s: Option<f64>,
    /// Bytes received each second.
    pub received_per_s: Option<f64>,
    /// Packets taken for lost, of those sent since the last sample, from 0 to 1.
    pub lost: Option<f64>,
}

/// The agents of the jobs that are watched.
#[derive(Debug)]
pub(super) struct Agents {
    dir: RunDir,
    /// The last report of each, and its time.
    last: BTreeMap<String, (Instant, Vec<PeerStanding>)>,
}

impl Agents {
    pub(super) fn new(dir: &RunDir) -> Agents {
        Agents { dir: dir.clone(), last: BTreeMap::new() }
    }

    /// The peers of a job: none if it is on this host alone, or its agent does not answer.
    pub(super) fn peers(&mut self, job: &str, now: Instant) -> Vec<PeerSample> {
        let agent = AgentConnection::open(&self.dir, job, Some(ANSWER)).ok().flatten();
        let Some(standing) = agent.and_then(|agent| standing_of(&agent).ok()) else {
            self.last.remove(job);
            return Vec::new();
        };
        let before = self.last.get(job);
        let samples = standing.peers.iter().map(|peer| {
            let then = before.and_then(|(then, peers)| {
                let seconds = now.duration_since(*then).as_secs_f64();
                Some((seconds, peers.iter().find(|before| before.host == peer.host)?))
            });
            sample(peer, then)
        });
        let samples = samples.collect();
        self.last.insert(job.to_owned(), (now, standing.peers));
        samples
    }

    /// Forgets all jobs but these.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.last.retain(|job, _| is_there(job));
    }
}

/// The displayed values of a peer; `then` is its earlier report, if any, and the age of that in seconds.
pub(super) fn sample(peer: &PeerStanding, then: Option<(f64, &PeerStanding)>) -> PeerSample {
    let session = peer.session.as_ref();
    // The counters of a session start at its beginning.
    let then = then.and_then(|(seconds, then)| Some((seconds, then.session.as_ref()?, then.sessions)));
    let then = then.filter(|(seconds, _, sessions)| *seconds > 0.0 && *sessions == peer.sessions);
    let pair = session.zip(then);
    let rate = |of: fn(&hectare_wire::SessionStanding) -> u64| {
        pair.map(|(session, (seconds, then, _))| of(session).saturating_sub(of(then)) as f64 / seconds)
    };
    PeerSample {
        host: peer.name.clone(),
        address: peer.address.to_string(),
        state: crate::cli::peers::state(peer).0,
        state_s: peer.since_ms as f64 / 1e3,
        round_trip_s: session.map(|session| session.round_trip_ns as f64 / 1e9),
        sent_per_s: rate(|session| session.sent_bytes),
        received_per_s: rate(|session| session.received_bytes),
        lost: rate(|session| session.lost)
            .zip(rate(|session| session.sent))
            .map(|(lost, sent)| if sent > 0.0 { (lost / sent).min(1.0) } else { 0.0 }),
    }
}
