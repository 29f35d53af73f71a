//! The report: a line for each fault that was injected, and a file.
use crate::list::Fault;
use crate::promises::Violation;
use crate::stage::Verdict;
use anyhow::{Context, Result};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

#[derive(Clone, Debug, Serialize)]
struct Line {
    fault: u8,
    name: String,
    /// `held`, `skipped`, `broken` or `failed`.
    verdict: &'static str,
    what: String,
    promise: Option<String>,
    seconds: f64,
    /// The longest time in which the survivors went on, in milliseconds.
    survivors_ms: f64,
}

/// The result of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Held,
    /// A promise was broken, or an injection failed.
    Broken,
    /// All promises held, but a fault was never injected.
    Skipped,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    seed: u64,
    #[serde(skip)]
    may_skip: Vec<u8>,
    lines: Vec<Line>,
    /// Versions that the workers of the load saw and that were judged.
    versions_judged: u64,
    held: bool,
}

impl Report {
    pub(crate) fn new(seed: u64, may_skip: &[u8]) -> Report {
        println!("seed {seed}");
        println!("{:>5}  {:<52} {:<8} {:>7} {:>9}  what", "fault", "", "verdict", "s", "survivors");
        Report { seed, may_skip: may_skip.into(), lines: Vec::new(), versions_judged: 0, held: true }
    }

    /// Notes what became of a fault; false if the campaign ends with it.
    pub(crate) fn add(
        &mut self,
        fault: &Fault,
        verdict: Result<Verdict>,
        took: Duration,
        slowest: Duration,
    ) -> bool {
        self.line(fault.number, fault.name, verdict, took, slowest)
    }

    /// Notes what was left at the end.
    pub(crate) fn close(&mut self, closed: Result<()>) {
        let verdict =
            closed.map(|()| Verdict::Held("every process left, the job and the socket are gone".into()));
        self.line(0, "the end", verdict, Duration::ZERO, Duration::ZERO);
    }

    fn line(
        &mut self,
        fault: u8,
        name: &str,
        verdict: Result<Verdict>,
        took: Duration,
        slowest: Duration,
    ) -> bool {
        let (verdict, what, promise) = match verdict {
            Ok(Verdict::Held(what)) => ("held", what, None),
            Ok(Verdict::Skipped(why)) => ("skipped", why, None),
            Err(error) => match error.downcast_ref::<Violation>() {
                Some(Violation { promise, .. }) => {
                    ("broken", format!("{error:#}"), Some(format!("{promise:?}")))
                }
                None => ("failed", format!("{error:#}"), None),
            },
        };
        let survivors =
            if slowest.is_zero() { "-".into() } else { format!("{:.1} ms", slowest.as_secs_f64() * 1e3) };
        println!("{fault:>5}  {name:<52} {verdict:<8} {:>7.1} {survivors:>9}  {what}", took.as_secs_f64());
        let well = matches!(verdict, "held" | "skipped");
        self.held &= well;
        self.lines.push(Line {
            fault,
            name: name.into(),
            verdict,
            what,
            promise,
            seconds: took.as_secs_f64(),
            survivors_ms: slowest.as_secs_f64() * 1e3,
        });
        well
    }

    /// The faults that were skipped each time, though they may not be.
    fn never_injected(&self) -> Vec<u8> {
        let lines_of = |fault: u8| self.lines.iter().filter(move |line| line.fault == fault);
        let mut never: Vec<u8> = self.lines.iter().map(|line| line.fault).collect();
        never.retain(|fault| lines_of(*fault).all(|line| line.verdict == "skipped"));
        never.retain(|fault| !self.may_skip.contains(fault));
        never.sort_unstable();
        never.dedup();
        never
    }

    /// Sums up, writes the file, and says what the campaign comes to.
    pub(crate) fn end(mut self, seen: u64, json: Option<&Path>) -> Result<Outcome> {
        self.versions_judged = seen;
        let count = |verdict: &str| self.lines.iter().filter(|line| line.verdict == verdict).count();
        println!(
            "{} held, {} skipped, {} broken, {} failed; {seen} sightings of versions judged",
            count("held"),
            count("skipped"),
            count("broken"),
            count("failed")
        );
        if !self.held {
            println!("to repeat: --seed {}", self.seed);
        }
        if let Some(path) = json {
            let text = serde_json::to_string_pretty(&self)?;
            std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        if !self.held {
            return Ok(Outcome::Broken);
        }
        let never = self.never_injected();
        if never.is_empty() {
            return Ok(Outcome::Held);
        }
        println!("never injected, for the reasons above: {never:?} (--may-skip allows it)");
        Ok(Outcome::Skipped)
    }
}
