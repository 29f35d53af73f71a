//! Workers on several hosts: who is where, what the links between hosts do, and how long a pass takes there.
//!
//! One model ([`pass_time`]) serves the choice between schedules and the planner, which predicts passes on other numbers of
//! hosts. Tests hold it against a discrete simulation, which knows nothing of it.
mod ahead;
mod record;
mod time;
mod traffic;

pub use self::ahead::Ahead;
pub use self::record::{Forecast, LoopRecord, PassesRecord, PlanRequest, RECORD_VERSION};
pub use self::time::{Bound, PassTime, Work, pass_time};
pub(crate) use self::time::{HAND_OVER_NS, MOVED_PER_NS, PASS_NS};
pub use self::traffic::Traffic;

use serde::{Deserialize, Serialize};

/// Time that a round adds to a datagram's, in nanoseconds (a barrier of two hosts beside a datagram, both measured).
const BARRIER_NS: f64 = 25_000.0;
/// Nanoseconds of a hand-over beside the way from host to host: rounds on both hosts, and their agents.
const HAND_OVER_ROUNDS_NS: f64 = 130_000.0;

/// The share of areas in what is on the wire, in packets of 1500 bytes with their seals and headers.
const PAYLOAD: f64 = 0.87;

/// The links between hosts: measured by the workers of a job, or derived from figures of a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// A barrier of all workers, in nanoseconds.
    pub barrier_ns: f64,
    /// A hand-over of a part to a worker of another host, without its bytes, in nanoseconds.
    pub hand_over_ns: f64,
    /// Bytes that a host sends in a nanosecond, to all others together, while all send.
    pub bytes_per_ns: f64,
}

impl Link {
    /// The figures that follow from those of a network: the time from host to host, in nanoseconds, and the bytes that a host
    /// sends in a nanosecond. What rounds and agents add is what was measured on one machine.
    pub fn of_network(latency_ns: f64, bytes_per_ns: f64) -> Link {
        Link {
            barrier_ns: latency_ns + BARRIER_NS,
            hand_over_ns: latency_ns + HAND_OVER_ROUNDS_NS,
            bytes_per_ns: bytes_per_ns * PAYLOAD,
        }
    }
}

/// The hosts of a program's workers.
#[derive(Clone, Debug, PartialEq)]
pub struct Hosts {
    /// The host of each worker.
    of: Vec<usize>,
    count: usize,
    /// The links between them.
    pub link: Link,
}

impl Hosts {
    /// Workers on the hosts that `of` says, which are counted from 0.
    pub fn new(of: Vec<usize>, link: Link) -> Hosts {
        let count = of.iter().max().map_or(1, |last| last + 1);
        Hosts { of, count, link }
    }

    /// `hosts` hosts with equally many workers, of consecutive ranks.
    pub fn even(hosts: usize, workers: usize, link: Link) -> Hosts {
        let hosts = hosts.max(1);
        Hosts { of: (0..workers).map(|worker| worker * hosts / workers.max(1)).collect(), count: hosts, link }
    }

    /// The same hosts with `workers` workers, spread evenly.
    pub fn spread_over(&self, workers: usize) -> Hosts {
        Hosts::even(self.count, workers, self.link)
    }

    /// How many hosts.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The host of a worker.
    pub fn of(&self, worker: usize) -> usize {
        self.of.get(worker).copied().unwrap_or_default()
    }
}
