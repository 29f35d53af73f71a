//! The planner's request to a program, and the program's answer.
use super::{Link, PassTime};
use serde::{Deserialize, Serialize};

/// The version of the record: another one is not understood.
pub const RECORD_VERSION: u32 = 1;

/// The planner's request, in the environment of a program (`HECTARE_PLAN`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRequest {
    /// The file that the record is written to, by worker 0.
    pub record: String,
    /// Numbers of hosts.
    pub hosts: Vec<usize>,
    /// Workers on each of them.
    pub workers_per_host: usize,
    /// The links between them; those of the job's own hosts, as measured, if it is not said.
    pub link: Option<Link>,
}

/// A program's record of its passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassesRecord {
    /// [`RECORD_VERSION`].
    pub version: u32,
    /// How many workers ran the program.
    pub workers: usize,
    /// On how many hosts.
    pub hosts: usize,
    /// The links of the predictions.
    pub link: Option<Link>,
    /// The loops, in the order in which they were planned.
    pub loops: Vec<LoopRecord>,
}

/// The record of one loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoopRecord {
    /// The place of the loop in the program.
    pub name: String,
    /// Iterations of a pass.
    pub iterations: f64,
    /// How many passes there were.
    pub passes: u64,
    /// The time that each worker spent on iterations in a pass, in nanoseconds.
    pub compute_ns: Vec<f64>,
    /// A pass as the program has seen it, in nanoseconds: a median, without the first if there are more.
    pub measured_ns: f64,
    /// The arrays whose dependences are given up. What their clocks send is not predicted.
    pub relaxed: Vec<String>,
    /// One prediction for each number of hosts; none where a schedule of the loop's own does not fit the workers.
    pub forecasts: Vec<Forecast>,
}

/// A pass on a number of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Forecast {
    /// The hosts.
    pub hosts: usize,
    /// Their workers, all in all.
    pub workers: usize,
    /// The schedule, with the names of the loop's variables.
    pub schedule: String,
    /// Steps of a pass.
    pub steps: usize,
    /// Bytes that the host sends in a pass that sends most.
    pub sent_bytes: f64,
    /// Of these, parts that are handed over.
    pub handed_bytes: f64,
    /// The work of the busiest worker, as a multiple of the mean.
    pub imbalance: f64,
    /// The time.
    pub time: PassTime,
}
