//! Sparse logistic regression under every consistency: non-zeros per second against tight serial loops, and passes and
//! seconds to a test loss.
//!
//! `cargo bench --bench relaxed [-- --quick] [-- --json FILE]`. Examples are generated with RCV1's shape: 100,000 rows of
//! 71 of 47,236 features drawn from Zipf's law with exponent 1 (20,000 rows with `--quick`). `HECTARE_LIBSVM` and
//! `HECTARE_LIBSVM_TEST` name files of examples to use instead.
#[path = "../examples/sparse_lr/main.rs"]
mod sparse_lr;
mod support;

use clap::Parser;
use hectare::orion::relax::{Consistency, Every, Tail};
use sparse_lr::data::{self, Rows};
use sparse_lr::passes::relaxed;
use sparse_lr::serial::serial_pass;
use sparse_lr::step::Step;
use sparse_lr::{CLOCKS, Options, serial, train};
use std::sync::Barrier;
use std::time::Instant;
use support::{Case, Report, Times};

/// The size of steps.
const RATE: f32 = 0.05;
/// Passes before those that are measured: under `Async` a loop tries in them what is faster.
const WARM: usize = 5;
/// Turns of both sides.
const ROUNDS: usize = 3;

fn options(report: &Report, more: &[&str]) -> Options {
    // SGD relaxes the weights, which is what is measured here; the program's default goes through a buffer.
    let mut args: Vec<String> = ["relaxed", "--quiet", "--rule", "sgd"].map(str::to_owned).to_vec();
    match (std::env::var("HECTARE_LIBSVM"), std::env::var("HECTARE_LIBSVM_TEST")) {
        (Ok(file), Ok(test)) => args.extend(["--data".into(), file, "--test".into(), test]),
        _ => args.extend(["--rows".into(), if report.quick { "20000" } else { "100000" }.into()]),
    }
    args.extend(more.iter().map(|more| (*more).to_owned()));
    Options::parse_from(args)
}

/// Seconds of passes on so many workers, the first [`WARM`] left out.
fn parallel_times(o: &Options, workers: usize, consistency: Consistency, passes: usize) -> Times {
    let all = hectare::run(workers, |w| {
        let data::Examples { train, features, .. } = data::parallel(w, o, None)?;
        let mut weights = w.zeros::<f32, 1>([features + 1])?;
        let step = Step::sgd(RATE, features);
        let mut times = Times::default();
        for number in 0..WARM + passes {
            w.barrier()?;
            let since = Instant::now();
            relaxed(
                w,
                &train,
                &mut weights,
                &step,
                consistency,
                (Every::PerPass(CLOCKS * workers), Tail::NONE),
            )?;
            if number >= WARM {
                times.push(since.elapsed().as_secs_f64());
            }
        }
        Ok(times)
    });
    all.expect("a run").swap_remove(0)
}

/// Seconds of passes of so many serial loops at once, each over its part of the rows with weights of its own.
fn serial_times(rows: &Rows, features: usize, loops: usize, passes: usize) -> Times {
    let parts: Vec<Rows> = (0..loops).map(|part| rows.part(part, loops)).collect();
    let gate = Barrier::new(loops);
    let run = |part: &Rows| {
        let (mut weights, mut times) = (vec![0.0f32; features + 1], Times::default());
        let step = Step::sgd(RATE, features);
        for number in 0..WARM + passes {
            gate.wait();
            let since = Instant::now();
            std::hint::black_box(serial_pass(part, &mut weights, &step));
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

fn speeds(report: &mut Report) {
    let o = options(report, &[]);
    let data::Examples { train: rows, features, .. } = data::load(&o, None).expect("the examples");
    let passes = 5;
    let millions = |seconds: f64, workers: usize| rows.features.len() as f64 / seconds / 1e6 / workers as f64;
    let consistencies =
        [Consistency::Bsp, Consistency::Bounded(1), Consistency::UNBOUNDED, Consistency::Async];
    for workers in [1, 2] {
        for consistency in consistencies {
            let name = match consistency {
                Consistency::UNBOUNDED => "Unbounded".into(),
                consistency => format!("{consistency:?}"),
            };
            let case = format!("non-zeros/{workers}w/{name}");
            if !report.wants(&case) {
                continue;
            }
            let (mut serial, mut times) = (Times::default(), Times::default());
            // In turns, so that what else the machine does meets both.
            for _ in 0..ROUNDS {
                serial.extend(serial_times(&rows, features, workers, passes));
                times.extend(parallel_times(&o, workers, consistency, passes));
            }
            let against = {
                let loops = if workers == 1 { "loop" } else { "loops" };
                format!("{workers} serial {loops}, {:.0} M/s each", millions(serial.median(), workers))
            };
            report.add(Case {
                case,
                value: millions(times.median(), workers),
                unit: "M/s/core",
                best: millions(times.best(), workers),
                ratio: Some(serial.median() / times.median()),
                against: Some(against),
                target: Some(if workers == 1 { 0.9 } else { 0.85 }),
            });
        }
    }
}

/// Passes and seconds to the test loss that the serial loop has after six passes, and 2 % more.
fn learning(report: &mut Report) {
    let run = |o: &Options| match o.run.serial {
        true => serial(o).expect("a serial run"),
        false => {
            let consistency = o.run.consistency.expect("one of the cases");
            hectare::run(o.run.workers[0], |w| train(w, o, consistency)).expect("a run").swap_remove(0)
        }
    };
    let first = run(&options(report, &["--serial", "--passes", "6"]));
    let target = (1.02 * first.points().last().expect("passes").1).to_string();
    let mut cases = vec![("serial".to_owned(), vec!["--serial".to_owned()])];
    for workers in ["1", "2", "4"] {
        for consistency in ["bsp", "bounded:1", "unbounded", "async"] {
            let args = ["--workers", workers, "--consistency", consistency].map(str::to_owned);
            cases.push((format!("{workers}w/{consistency}"), args.to_vec()));
        }
    }
    for (name, mut args) in cases {
        let case = format!("to a test loss/{name}");
        if !report.wants(&case) {
            continue;
        }
        args.extend(["--target".into(), target.clone(), "--passes".into(), "30".into()]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let losses = run(&options(report, &args));
        let (passes, last) = (losses.points().count(), losses.points().last().expect("passes"));
        let reached = if last.1 <= target.parse().unwrap_or(0.0) { "reached" } else { "NOT reached" };
        report.add(Case {
            case,
            value: last.0 * 1e3,
            unit: "ms",
            best: last.0 * 1e3,
            ratio: None,
            against: Some(format!("{passes} passes, test loss {:.5} ({reached})", last.1)),
            target: None,
        });
    }
}

fn main() {
    let mut report = Report::from_args("Sparse logistic regression, relaxed");
    speeds(&mut report);
    learning(&mut report);
    report.finish();
}
