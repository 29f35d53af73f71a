//! Bytes that a loop without relaxed arrays sends from host to host: by its plan, and as agents count them.
use crate::context::Context;
use hectare_dependence::hosts::{Hosts, Link, Traffic};
use hectare_dependence::loop_nest::LoopNest;
use hectare_dependence::placement::Placement;
use hectare_dsm::wire::{AgentConnection, AgentReply, AgentRequest, RunDir};
use serde::Serialize;
use std::time::Duration;

/// How long an agent may take to say what it has counted.
const ANSWER: Duration = Duration::from_secs(3);

/// Bytes that the hosts of a program send each other in a pass of a loop, without what clocks of relaxed arrays add.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BetweenHosts {
    /// How many hosts.
    pub hosts: usize,
    /// Bytes of parts that workers of different hosts hand over.
    pub handed: f64,
    /// Bytes of parts that begin with workers of another host than the last pass left them with.
    pub begun: f64,
    /// Bytes of what workers read in the last pass that was written on another host since this loop read it last: whole parts, the
    /// rows that a loop reads again and again, or those that go from worker to worker in a loop that was inspected.
    pub read: f64,
    /// The same by link.
    pub links: Vec<LinkBytes>,
    /// Latency and rate of the links, measured before the loop was planned.
    pub link: Link,
}

/// The bytes from one host to another in a pass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LinkBytes {
    /// The sender, counted from 0.
    pub from: usize,
    /// The receiver.
    pub to: usize,
    /// Bytes, by the plan.
    pub predicted: f64,
    /// Bytes of datagrams, as this host's agent counted them: the mean of some passes. `None` before the third pass, on workers
    /// that are not the first of their host, and for links between other hosts.
    pub measured: Option<f64>,
}

impl BetweenHosts {
    pub(super) fn of(nest: &LoopNest, placement: &Placement, hosts: &Hosts) -> BetweenHosts {
        let traffic = Traffic::of(nest, placement, hosts);
        let count = hosts.count();
        let sum = |bytes: &[Vec<f64>]| bytes.iter().flatten().sum();
        let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
        let links = pairs.filter(|(from, to)| from != to).map(|(from, to)| LinkBytes {
            from,
            to,
            predicted: traffic.on(from, to),
            measured: None,
        });
        BetweenHosts {
            hosts: count,
            handed: sum(&traffic.handed),
            begun: sum(&traffic.begun),
            read: 0.0,
            links: links.collect(),
            link: hosts.link,
        }
    }

    /// The same with what the last pass read, and what was counted.
    pub(crate) fn with(&self, read: &ReadBytes, counted: &LinkMeter) -> BetweenHosts {
        let mut filled = self.clone();
        for link in &mut filled.links {
            link.predicted += read.on(link.from, link.to);
            link.measured = counted.mean(link.from, link.to);
        }
        // Nothing is not less than nothing.
        filled.read = read.bytes.iter().flatten().fold(0.0, |sum, bytes| sum + bytes);
        filled
    }
}

/// Bytes of what workers of one host read in a pass of what another has.
#[derive(Debug, Default)]
pub(crate) struct ReadBytes {
    /// By array: its version when it was last read.
    versions: Vec<Option<u64>>,
    /// `bytes[from][to]`.
    bytes: Vec<Vec<f64>>,
}

impl ReadBytes {
    /// A pass begins, on so many hosts.
    pub(super) fn begin(&mut self, arrays: usize, hosts: usize) {
        self.versions.resize(arrays, None);
        self.bytes = vec![vec![0.0; hosts]; hosts];
    }

    /// So much is read in a pass: `bytes[from][to]`.
    pub(super) fn set(&mut self, arrays: usize, bytes: &[Vec<u64>]) {
        self.begin(arrays, bytes.len());
        for (all, bytes) in self.bytes.iter_mut().zip(bytes) {
            all.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = *bytes as f64);
        }
    }

    /// Whether an array may have been written since it was last read; from now on it has been read.
    pub(super) fn is_new(&mut self, array: usize, version: u64) -> bool {
        self.versions[array].replace(version) != Some(version)
    }

    /// Host `to` reads so much of host `from`.
    pub(super) fn add(&mut self, from: usize, to: usize, bytes: f64) {
        self.bytes[from][to] += bytes;
    }

    fn on(&self, from: usize, to: usize) -> f64 {
        self.bytes.get(from).and_then(|all| all.get(to)).copied().unwrap_or(0.0)
    }
}

/// Bytes that the agent of this host counted while passes ran.
#[derive(Debug, Default)]
pub(crate) struct LinkMeter {
    here: usize,
    passes: u64,
    /// Sent to each host, and received from it.
    bytes: Vec<(usize, [u64; 2])>,
}

/// Bytes that an agent has counted: to and from each host.
pub(super) type Counted = Vec<(usize, [u64; 2])>;

impl LinkMeter {
    pub(super) fn note(&mut self, here: usize, before: &Counted, after: &Counted) {
        let moved = |host: usize, bytes: &[u64; 2]| {
            let before = before.iter().find(|(other, _)| *other == host)?.1;
            // The counts of a new session start at 0.
            Some([bytes[0].checked_sub(before[0])?, bytes[1].checked_sub(before[1])?])
        };
        let all: Option<Counted> =
            after.iter().map(|(host, bytes)| Some((*host, moved(*host, bytes)?))).collect();
        let Some(all) = all else { return };
        (self.here, self.passes) = (here, self.passes + 1);
        for (host, bytes) in all {
            match self.bytes.iter_mut().find(|(other, _)| *other == host) {
                Some((_, sums)) => sums.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum += bytes),
                None => self.bytes.push((host, bytes)),
            }
        }
    }

    fn mean(&self, from: usize, to: usize) -> Option<f64> {
        let (other, direction) = match self.here {
            here if here == from => (to, 0),
            here if here == to => (from, 1),
            _ => return None,
        };
        let sums = self.bytes.iter().find(|(host, _)| *host == other)?.1;
        Some(sums[direction] as f64 / self.passes as f64)
    }
}

impl Context<'_> {
    /// The counts of this host's agent, if this worker is the first of its host: asking takes a round trip.
    pub(super) fn counted_by_agent(&self) -> Option<Counted> {
        let me = self.rank() as usize;
        if me > 0 && self.fabric.host_of(me - 1) == self.fabric.host_of(me) {
            return None;
        }
        let job = std::env::var("HECTARE_JOB").ok()?;
        let agent = AgentConnection::open(&RunDir::of_user(), &job, Some(ANSWER)).ok()??;
        let Ok(AgentReply::Status(standing)) = agent.ask(&AgentRequest::Status) else { return None };
        let count = |peer: &hectare_dsm::wire::PeerStanding| {
            let session = peer.session.as_ref()?;
            Some((peer.host as usize, [session.sent_bytes, session.received_bytes]))
        };
        standing.peers.iter().map(count).collect()
    }
}
