//! The measurements: bytes received within a time, the processor time that they cost, and round trips.
use anyhow::{Result, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Time on processors of some processes, all their threads, user and system.
pub(crate) struct Cpu<'p> {
    processes: &'p [i32],
    nanos: u64,
}

impl Cpu<'_> {
    pub(crate) fn of(processes: &[i32]) -> Cpu<'_> {
        let threads = |process: &i32| {
            std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten()
        };
        let time = |thread: std::fs::DirEntry| {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            text.split(' ').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0)
        };
        Cpu { processes, nanos: processes.iter().flat_map(threads).map(time).sum() }
    }

    /// Nanoseconds since then.
    pub(crate) fn until_now(&self) -> u64 {
        Cpu::of(self.processes).nanos.saturating_sub(self.nanos)
    }
}

/// Bytes within a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) gbits: f64,
    /// Nanoseconds of processors for 1000 bytes, both sides together.
    pub(crate) cpu: f64,
}

impl Flow {
    /// Of a line `end BYTES NANOSECONDS`, for which the processors worked so many nanoseconds.
    pub(crate) fn of_line(line: &str, cpu: u64) -> Flow {
        let mut words = line.split_whitespace().skip(1).map(|word| word.parse::<f64>().expect("a number"));
        let (bytes, nanos) = (words.next().expect("bytes"), words.next().expect("a time"));
        Flow { gbits: bytes * 8.0 / nanos, cpu: cpu as f64 / bytes * 1e3 }
    }
}

/// Figures of a link in one repetition.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) flow: Option<Flow>,
    /// Median and 99th percentile, in microseconds.
    pub(crate) times: Option<(f64, f64)>,
}

/// Of a line `times MEDIAN P99`.
pub(crate) fn times_of(line: &str) -> (f64, f64) {
    let mut words = line.split_whitespace().skip(1).map(|word| word.parse::<f64>().expect("a number"));
    (words.next().expect("a median"), words.next().expect("a percentile"))
}

/// A link with the figures of all rounds, or why it was not measured.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) mtu: u32,
    pub(crate) rounds: Vec<Figures>,
    pub(crate) missing: Option<String>,
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

impl Row {
    fn middle(&self, value: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
        median(self.rounds.iter().filter_map(value).collect())
    }

    pub(crate) fn gbits(&self) -> Option<f64> {
        self.middle(|figures| Some(figures.flow?.gbits))
    }

    pub(crate) fn round_trip(&self) -> Option<f64> {
        self.middle(|figures| Some(figures.times?.0))
    }

    fn p99(&self) -> Option<f64> {
        self.middle(|figures| Some(figures.times?.1))
    }

    fn cpu(&self) -> Option<f64> {
        self.middle(|figures| Some(figures.flow?.cpu).filter(|cpu| cpu.is_finite()))
    }

    pub(crate) fn print(&self) {
        let show =
            |value: Option<f64>, digits: usize| value.map_or("-".into(), |value| format!("{value:.digits$}"));
        let (gbits, cpu) = (show(self.gbits(), 2), show(self.cpu(), 0));
        let (round_trip, p99) = (show(self.round_trip(), 1), show(self.p99(), 1));
        let missing = self.missing.as_deref().unwrap_or_default();
        println!("{:<34} {:>5} {gbits:>8} {cpu:>8} {round_trip:>8} {p99:>8}  {missing}", self.name, self.mtu);
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "link": self.name, "mtu": self.mtu, "goodput_gbit_s": self.gbits(), "cpu_ns_per_1000_bytes": self.cpu(),
            "round_trip_us": self.round_trip(), "round_trip_p99_us": self.p99(), "rounds": self.rounds.len(),
            "all_goodput_gbit_s": self.rounds.iter().filter_map(|round| Some(round.flow?.gbits)).collect::<Vec<_>>(),
            "missing": self.missing,
        })
    }
}

/// A program whose lines are read. It is ended when this is dropped.
pub(crate) struct Talking {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Talking {
    pub(crate) fn start(mut command: Command) -> std::io::Result<Talking> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Ok(Talking { child, lines })
    }

    /// The next line that begins so; else what it said last.
    pub(crate) fn until(&mut self, word: &str) -> Result<String> {
        while let Some(Ok(line)) = self.lines.next() {
            if line.starts_with(word) {
                return Ok(line);
            }
        }
        let mut said = String::new();
        let mut errors = self.child.stderr.take().expect("it is asked once");
        std::io::Read::read_to_string(&mut errors, &mut said)?;
        bail!("{}", said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it ended"))
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The flow from one program to another, which says when a window begins and what came within it.
pub(crate) fn flow(receives: Command, sends: Command) -> Result<Flow> {
    let mut receiver = Talking::start(receives)?;
    receiver.until("ready")?;
    let mut sender = Talking::start(sends)?;
    sender.until("ready")?;
    let processes = [receiver.child.id() as i32, sender.child.id() as i32];
    receiver.until("begin")?;
    let before = Cpu::of(&processes);
    let line = receiver.until("end ")?;
    let cpu = before.until_now();
    Ok(Flow::of_line(&line, cpu))
}

/// The times of one program that asks another one.
pub(crate) fn times(answers: Command, asks: Command) -> Result<(f64, f64)> {
    let mut answerer = Talking::start(answers)?;
    answerer.until("ready")?;
    Ok(times_of(&Talking::start(asks)?.until("times ")?))
}
