//! Helpers of the programs that run on both hosts.
use hectare_dsm::wire::Launch;
use hectare_dsm::{Job, Rank, Result, Worker};
use std::time::Duration;

/// Long enough for anything that happens at all.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Says a figure, and where the times lie.
pub(crate) fn say(figure: f64, mut times: Vec<Duration>) {
    println!("figure {figure}");
    times.sort();
    let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e6;
    eprintln!("us: 10 % {:.1}, 50 % {:.1}, 90 % {:.1}, 99 % {:.1}", at(0.1), at(0.5), at(0.9), at(0.99));
}

/// The mean of times, in microseconds: hosts that wait for each other by turns make single times long and short.
pub(crate) fn mean_us(times: &[Duration]) -> f64 {
    times.iter().sum::<Duration>().as_secs_f64() * 1e6 / times.len() as f64
}

/// A worker of the job that a launcher named, when all are there, and how many these are.
pub(crate) fn worker() -> Result<(Worker, Rank)> {
    let launch = Launch::from_environment().expect("what a launcher set").expect("a launcher");
    let mut worker = Job::connect(&launch.job)?.worker()?;
    worker.wait_for_workers(launch.size as usize, LONG)?;
    Ok((worker, launch.size))
}

/// Nanoseconds of a clock that all processes of this machine share.
pub(crate) fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
