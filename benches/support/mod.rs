//! Shared by the benches: command line, table and JSON, robust statistics, a start gate, plain copies.
#![allow(dead_code)] // each bench uses its own part

pub(crate) mod copy;
pub(crate) mod gate;

use serde::Serialize;
use std::time::Instant;

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Case {
    /// The name of the case, such as `dense/64MiB/2w`.
    pub(crate) case: String,
    /// The median.
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The best of all.
    pub(crate) best: f64,
    /// How good it is against `against`; more is better, except for times, which say so in the case.
    pub(crate) ratio: Option<f64>,
    pub(crate) against: Option<String>,
    /// The ratio that is aimed at.
    pub(crate) target: Option<f64>,
}

/// The command line of a bench and the cases that it collects.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) quick: bool,
    json: Option<String>,
    filter: Option<String>,
    cases: Vec<Case>,
}

impl Report {
    /// Reads `--quick`, `--json FILE` and an optional part of a case's name; ignores what cargo adds.
    pub(crate) fn from_args(title: &str) -> Report {
        let mut report = Report { quick: false, json: None, filter: None, cases: Vec::new() };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => report.quick = true,
                "--json" => report.json = Some(args.next().expect("--json needs a file")),
                "--bench" => {}
                other if other.starts_with("--") => {
                    eprintln!(
                        "unknown option {other}; there are --quick, --json FILE and a part of a case's name"
                    );
                    std::process::exit(2);
                }
                other => report.filter = Some(other.to_owned()),
            }
        }
        println!("{title}");
        println!(
            "{:<34} {:>12} {:>12} {:<10} {:>7} {:>7}  against",
            "case", "median", "best", "unit", "ratio", "target"
        );
        report
    }

    pub(crate) fn wants(&self, case: &str) -> bool {
        self.filter.as_ref().is_none_or(|part| case.contains(part.as_str()))
    }

    pub(crate) fn add(&mut self, case: Case) {
        let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.3}"));
        println!(
            "{:<34} {:>12.3} {:>12.3} {:<10} {:>7} {:>7}  {}",
            case.case,
            case.value,
            case.best,
            case.unit,
            number(case.ratio),
            number(case.target),
            case.against.as_deref().unwrap_or("-")
        );
        self.cases.push(case);
    }

    /// Writes the JSON file if one was asked for.
    pub(crate) fn finish(self) {
        if let Some(file) = self.json {
            let text = serde_json::to_string_pretty(&self.cases).expect("cases are plain data");
            std::fs::write(&file, text).unwrap_or_else(|error| panic!("cannot write {file}: {error}"));
        }
    }
}

/// Times of repetitions, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times(pub(crate) Vec<f64>);

impl Times {
    pub(crate) fn push(&mut self, nanos: f64) {
        self.0.push(nanos);
    }

    pub(crate) fn extend(&mut self, others: Times) {
        self.0.extend(others.0);
    }

    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    pub(crate) fn best(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

/// Runs both sides in alternating blocks and drops the first repetition of each block, so that neither
/// side measures the cache that the other left behind.
pub(crate) fn alternate(
    blocks: usize,
    repeats: usize,
    mut left: impl FnMut() -> f64,
    mut right: impl FnMut() -> f64,
) -> (Times, Times) {
    let (mut a, mut b) = (Times::default(), Times::default());
    for _ in 0..blocks {
        for (side, times) in [(&mut left as &mut dyn FnMut() -> f64, &mut a), (&mut right, &mut b)] {
            side();
            for _ in 0..repeats {
                times.push(side());
            }
        }
    }
    (a, b)
}

/// Nanoseconds that `act` takes.
pub(crate) fn nanos(act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_nanos() as f64
}
