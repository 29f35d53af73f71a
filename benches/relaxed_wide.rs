//! Sparse logistic regression on data as wide as real files are: non-zeros per second of workers against serial loops.
//!
//! `cargo bench --bench relaxed_wide [-- --quick] [-- --json FILE] [PART OF A CASE]`. Generated: 140,000 rows of 33 of a million
//! features drawn from Zipf's law with exponent 1 (30,000 of 200,000 with `--quick`). `HECTARE_LIBSVM` names a file of examples to
//! use instead. Both sides have the rows in a random order, as the program has those of files. Two workers are compared with two
//! serial loops at once, each over half of the rows with weights of its own. The program puts frequent features first; so the serial
//! loops are timed that way, too.
#[path = "../examples/sparse_lr/main.rs"]
mod sparse_lr;
mod support;

use clap::Parser;
use hectare::orion::relax::{Apply, Consistency};
use sparse_lr::data::{self, Rows};
use sparse_lr::numbering::Numbering;
use sparse_lr::serial::{revised_pass, serial_pass};
use sparse_lr::step::{self, Step};
use sparse_lr::train::Weights;
use sparse_lr::{Options, Rule};
use std::sync::Barrier;
use std::time::Instant;
use support::{Case, Report, Times};

/// Passes before those that are measured: under `Async` a loop tries in them what is faster.
const WARM: usize = 4;
const PASSES: usize = 5;
/// Turns of both sides.
const ROUNDS: usize = 3;

fn options(report: &Report, rule: &str, serve: bool) -> Options {
    let mut args: Vec<String> = ["relaxed_wide", "--quiet", "--rule", rule].map(str::to_owned).to_vec();
    match std::env::var("HECTARE_LIBSVM") {
        Ok(file) => args.extend(["--data".into(), file]),
        Err(_) => {
            let [rows, features] = if report.quick { [30_000, 200_000] } else { [140_000, 1_000_000] };
            let shape = [("--rows", rows), ("--features", features), ("--per-row", 33)];
            args.extend(shape.into_iter().flat_map(|(option, number)| [option.into(), number.to_string()]));
        }
    }
    args.extend(serve.then(|| "--serve".to_owned()));
    Options::parse_from(args)
}

/// Seconds of passes on so many workers, the first [`WARM`] left out.
fn parallel_times(o: &Options, workers: usize, consistency: Consistency) -> Times {
    let all = hectare::run(workers, |w| {
        let data::Examples { train, features, .. } = data::parallel(w, o, None)?;
        let train = train.permute(w, 0, 1)?;
        let numbering = Numbering::of(w, o, &train, features)?;
        let train = numbering.rows(w, train)?;
        let array = w.zeros::<f32, 1>([features + 1])?;
        let mut weights = Weights::new(w, o, &train, array)?;
        let mut times = Times::default();
        for number in 0..WARM + PASSES {
            let step = Step::of(o, number, numbering.intercept(), &[]);
            w.barrier()?;
            let since = Instant::now();
            weights.pass(w, &train, &step, consistency, numbering.clocks(o, workers))?;
            if number >= WARM {
                times.push(since.elapsed().as_secs_f64());
            }
        }
        Ok(times)
    });
    all.expect("a run").swap_remove(0)
}

/// Seconds of passes of so many serial loops at once.
fn serial_times(o: &Options, rows: &Rows, (features, intercept): (usize, usize), loops: usize) -> Times {
    let parts: Vec<Rows> = (0..loops).map(|part| rows.part(part, loops)).collect();
    let rule = step::rule(o, step::squares(&rows.features));
    let gate = Barrier::new(loops);
    let run = |part: &Rows| {
        let (mut weights, mut times) = (vec![0.0f32; features + 1], Times::default());
        let mut states = match o.rule {
            Rule::Sgd => Vec::new(),
            Rule::AdaRevision => vec![Apply::<f32>::initial(&rule); features + 1],
        };
        for number in 0..WARM + PASSES {
            let step = Step::of(o, number, intercept, &[]);
            gate.wait();
            let since = Instant::now();
            std::hint::black_box(match o.rule {
                Rule::Sgd => serial_pass(part, &mut weights, &step),
                Rule::AdaRevision => revised_pass(part, &mut weights, &mut states, rule, &step),
            });
            gate.wait();
            if number >= WARM {
                times.push(since.elapsed().as_secs_f64());
            }
        }
        times
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = parts[1..].iter().map(|part| scope.spawn(|| run(part))).collect();
        let times = run(&parts[0]);
        others.into_iter().for_each(|other| drop(other.join().expect("a serial loop")));
        times
    })
}

fn main() {
    let mut report = Report::from_args("Sparse logistic regression on wide data");
    let data::Examples { train, features, .. } =
        data::load(&options(&report, "sgd", false), None).expect("the examples");
    let rows = train.shuffled();
    let numbering = Numbering::by(&rows.counts(features));
    let numbered = rows.numbered(&numbering);
    let millions = |seconds: f64, workers: usize| rows.features.len() as f64 / seconds / 1e6 / workers as f64;
    let ways = [
        (false, Consistency::Bounded(1), "relaxed"),
        (false, Consistency::Async, "relaxed, Async"),
        (true, Consistency::Bounded(1), "served"),
    ];
    for (rule, (serve, consistency, way)) in
        ["ada-revision", "sgd"].into_iter().flat_map(|rule| ways.map(|way| (rule, way)))
    {
        let o = options(&report, rule, serve);
        // One worker alone has nobody to be asynchronous to.
        for workers in if consistency == Consistency::Async { 2..=2 } else { 1..=2 } {
            let case = format!("wide/{rule}/{workers}w/{way}");
            if !report.wants(&case) {
                continue;
            }
            let [mut serial, mut sorted, mut times] = [(); 3].map(|()| Times::default());
            // In turns, so that what else the machine does meets both.
            for _ in 0..ROUNDS {
                serial.extend(serial_times(&o, &rows, (features, features), workers));
                sorted.extend(serial_times(&o, &numbered, (features, numbering.intercept()), workers));
                times.extend(parallel_times(&o, workers, consistency));
            }
            let loops = if workers == 1 { "loop" } else { "loops" };
            report.add(Case {
                case,
                value: millions(times.median(), workers),
                unit: "M/s/core",
                best: millions(times.best(), workers),
                ratio: Some(serial.median() / times.median()),
                against: Some(format!(
                    "{workers} serial {loops}, {:.1} M/s each; {:.1} with frequent features first, ratio {:.2}",
                    millions(serial.median(), workers),
                    millions(sorted.median(), workers),
                    sorted.median() / times.median()
                )),
                target: Some(if workers == 1 { 0.9 } else { 0.85 }),
            });
        }
    }
    report.finish();
}
