//! Areas of a job on two hosts: the programs that run there, and what is taken of them.
use crate::measure::{Cpu, Figures, Flow};
use crate::raw::times_line;
use crate::{
    Options,
    common::cluster::{Cluster, Running},
};
use hectare_dsm::wire::Launch;
use hectare_dsm::{AreaSpec, Job, Rank, Result, Version, Worker};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);
const WARM: u64 = 200;

/// Two hosts on which a job can run.
pub(crate) trait Hosts {
    /// Starts it on both.
    fn start(&self, args: &[&str], script: &str) -> Running;
    /// Its agents' processes.
    fn agents(&self) -> Vec<i32>;
    /// Whether nothing of it is left.
    fn are_idle(&self) -> bool;
}

impl Hosts for Cluster {
    fn start(&self, args: &[&str], script: &str) -> Running {
        let list = self.list(1);
        let all: Vec<&str> = ["--hosts", &list, "--timeout", "20"].iter().chain(args).copied().collect();
        Running::start(self.command(&all, script))
    }

    fn agents(&self) -> Vec<i32> {
        (0..2).flat_map(|host| Cluster::agents(self, host)).collect()
    }

    fn are_idle(&self) -> bool {
        self.jobs(0).is_empty() && Cluster::agents(self, 0).is_empty()
    }
}

/// An area that is written all over again and again, and one of 64 bytes there and back.
pub(crate) fn measure(hosts: &impl Hosts, transport: &str, cipher: &str, options: &Options) -> Figures {
    let all = ["--cipher", cipher, "--transport", transport, "--job", "bench"];
    let start = |role: String| hosts.start(&all, &format!("exec {} role {role}", crate::program()));
    let mut run = start(format!("area {} {}", options.area_bytes(), options.area_turns()));
    until(&mut run, "begin");
    let agents = hosts.agents();
    let before = Cpu::of(&agents);
    let line = until(&mut run, "end ");
    let cpu = before.until_now();
    let flow = Flow::of_line(&line, cpu);
    finish(run, hosts);
    let mut run = start(format!("visible {}", options.visible_turns()));
    let times = crate::measure::times_of(&until(&mut run, "times "));
    finish(run, hosts);
    Figures { flow: Some(flow), times: Some(times) }
}

fn until(run: &mut Running, part: &str) -> String {
    loop {
        let line = run.lines(1).remove(0);
        if let Some(at) = line.find(part) {
            return line[at..].to_owned();
        }
    }
}

fn finish(mut run: Running, hosts: &impl Hosts) {
    assert_eq!(run.end(), Some(0), "{}", run.said());
    crate::common::until("the job to go", || hosts.are_idle());
}

fn worker() -> Result<Worker> {
    let launch = Launch::from_environment().expect("what a launcher set").expect("a launcher");
    let mut worker = Job::connect(&launch.job)?.worker()?;
    worker.wait_for_workers(launch.size as usize, LONG)?;
    Ok(worker)
}

/// Nanoseconds of a clock that all processes of this machine share.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The first rank writes an area all over, with the time; the second takes the time when it sees that. What counts is the time from
/// the publication to that, not the time of writing.
pub(crate) fn area(bytes: usize, turns: usize) -> Result<()> {
    let mut worker = worker()?;
    let len = bytes / 8;
    let mut mine = (worker.rank() == 0).then(|| worker.create::<u64>("whole", len)).transpose()?;
    let area = worker.attach_within::<u64>("whole", LONG)?;
    let mut times = Vec::new();
    for turn in 0..=turns as u64 {
        worker.barrier()?;
        // The first time, memory is new on both sides.
        if turn == 1 && worker.rank() == 1 {
            println!("begin");
        }
        if let Some(mine) = &mut mine {
            let elements = &mut mine.write_whole(&worker)?;
            elements.fill(turn + 1);
            elements[0] = now_ns();
        }
        worker.barrier()?;
        let seen = area.read(&worker)?;
        if turn > 0 {
            times.push(now_ns() - seen[0]);
        }
        assert_eq!((seen[1], seen[len - 1]), (turn + 1, turn + 1));
    }
    if worker.rank() == 1 {
        times.sort_unstable();
        println!("end {} {}", bytes * turns, times[times.len() / 2] * turns as u64);
    }
    worker.barrier()
}

/// One writes 64 bytes and asks for a round, the other waits until it sees them, and answers in the same way.
pub(crate) fn visible(turns: u64) -> Result<()> {
    let mut worker = worker()?;
    let (own, other) = (worker.rank(), 1 - worker.rank());
    let name = |rank: Rank| format!("line/{rank}");
    let mut mine = worker.create::<u64>(AreaSpec::new(name(own)), 8)?;
    let theirs = worker.attach_within::<u64>(&name(other), LONG)?;
    let mut times = Vec::new();
    for turn in 0..WARM + turns {
        let since = Instant::now();
        if own == 0 {
            mine.write(&worker)?.fill(turn + 1);
            worker.sync()?;
        }
        while theirs.read(&worker)?[0] <= turn {
            let seen = theirs.version(&worker)?;
            worker.wait_for(&theirs, Version { counter: seen.counter + 1, ..seen }, LONG)?;
        }
        if own == 1 {
            mine.write(&worker)?.fill(turn + 1);
            worker.sync()?;
        }
        if turn >= WARM {
            times.push(since.elapsed());
        }
    }
    worker.barrier()?;
    if own == 0 {
        println!("{}", times_line(times));
    }
    Ok(())
}
