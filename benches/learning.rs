//! How well loops learn: test error after each pass on any number of workers against the serial loop, and how long it takes
//! to reach a test error.
//!
//! `cargo bench --bench learning [-- --quick] [-- TRAIN TEST]`, with two files of lines `user item rating` (indices from
//! 0), or ratings that are generated. The targets of the second table are for MovieLens-1M.
#[allow(dead_code, reason = "the program's `main` and what only it uses")]
#[path = "../examples/factorize/main.rs"]
mod factorize;

use clap::Parser;
use factorize::training::{Curve, Options};
use hectare::orion::relax::Consistency;

/// Adaptive steps and regularization as chosen on a slice of MovieLens-1M's training data.
const PASSES: usize = 10;

struct Bench {
    quick: bool,
    files: Option<[String; 2]>,
}

impl Bench {
    fn from_args() -> Bench {
        let (mut quick, mut files) = (false, Vec::new());
        for arg in std::env::args().skip(1) {
            match arg.as_str() {
                "--quick" => quick = true,
                "--bench" => {}
                option if option.starts_with("--") => panic!("unknown option {option}; there is --quick"),
                _ => files.push(arg),
            }
        }
        let files = match <[String; 2]>::try_from(files) {
            Ok(files) => Some(files),
            Err(files) if files.is_empty() => None,
            Err(files) => panic!("one file to learn from and one to test with, not {files:?}"),
        };
        Bench { quick, files }
    }

    fn options(&self, workers: usize, seed: usize, more: &[&str]) -> Options {
        let mut args: Vec<String> = ["learning", "--quiet", "--passes"].map(str::to_owned).to_vec();
        args.extend([PASSES.to_string(), "--workers".into(), workers.to_string()]);
        args.extend(["--seed".into(), seed.to_string()]);
        if let Some([train, test]) = &self.files {
            args.extend(["--train".into(), train.clone(), "--test".into(), test.clone()]);
        }
        args.extend(more.iter().map(|more| (*more).to_owned()));
        Options::parse_from(args)
    }
}

fn run(options: &Options, workers: usize) -> Curve {
    match workers {
        0 => factorize::serial(options).expect("a serial run"),
        _ => hectare::run(workers, |w| factorize::train(w, options, Consistency::Serializable))
            .expect("a run")
            .swap_remove(0),
    }
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (squares / (values.len().max(2) - 1) as f64).sqrt())
}

/// Test errors after each pass, over several seeds.
fn errors(bench: &Bench) {
    let (serial_seeds, seeds) = if bench.quick { (4, 2) } else { (10, 5) };
    let curves = |workers: usize, seeds: usize| -> Vec<Vec<f64>> {
        let one =
            |seed| run(&bench.options(workers.max(1), seed, &[]), workers).points().map(|p| p.1).collect();
        (1..=seeds).map(one).collect()
    };
    let serial = curves(0, serial_seeds);
    let parallel: Vec<(usize, Vec<Vec<f64>>)> =
        [1, 2, 4].map(|workers| (workers, curves(workers, seeds))).to_vec();
    println!(
        "test error after each pass: mean of {seeds} seeds against that of {serial_seeds} serial ones; within is the \
         larger of two standard deviations and 0.001"
    );
    println!("pass   serial  within  1 worker             2 workers            4 workers");
    for pass in 0..PASSES {
        let at = |curves: &[Vec<f64>]| curves.iter().map(|curve| curve[pass]).collect::<Vec<f64>>();
        let (mean, deviation) = mean_and_deviation(&at(&serial));
        let within = (2.0 * deviation).max(0.001);
        print!("{:>4}  {mean:.4}  {within:.4}", pass + 1);
        for (_, curves) in &parallel {
            let (ours, _) = mean_and_deviation(&at(curves));
            print!(
                "  {ours:.4} {:+.4} {}",
                ours - mean,
                if (ours - mean).abs() <= within { "ok " } else { "OUT" }
            );
        }
        println!();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Seconds to test errors, beside what LIBMF needs, scaled by the speed of a plain loop.
fn seconds(bench: &Bench) {
    let seeds = if bench.quick { 3 } else { 5 };
    // LIBMF was measured where the plain loop at rank 32 does 53 million updates a second.
    let plain: Vec<f64> = (1..=seeds)
        .map(|seed| {
            let options = bench.options(1, seed, &["--steps", "fixed"]);
            let (time, _) = run(&options, 0).points().last().expect("a pass");
            time / PASSES as f64
        })
        .collect();
    let (_, list, _) =
        factorize::training::load::<2>(&bench.options(1, 1, &[]), factorize::SHAPE, factorize::COUNT)
            .expect("the ratings");
    let speed = list.len() as f64 / median(plain) / 1e6;
    println!("a plain loop with fixed steps: {speed:.1} M updates/s");
    println!("target    1 worker   2 workers  (seconds, planning included; median of {seeds} seeds)");
    let curves = |workers: usize| -> Vec<Curve> {
        (1..=seeds).map(|seed| run(&bench.options(workers, seed, &[]), workers)).collect()
    };
    let (one, two) = (curves(1), curves(2));
    for target in [0.87, 0.855, 0.8463] {
        let reach = |curves: &[Curve]| {
            let first = |curve: &Curve| curve.points().find(|p| p.1 <= target).map_or(f64::INFINITY, |p| p.0);
            median(curves.iter().map(first).collect())
        };
        print!("{target:<8} {:>9.3} {:>11.3}", reach(&one), reach(&two));
        if target == 0.8463 {
            let scaled = |seconds: f64| seconds * 53.0 / speed;
            print!(
                "  LIBMF, scaled: {:.3} and {:.3}; ratios {:.2} and {:.2} (aim 1.0)",
                scaled(0.274),
                scaled(0.149),
                scaled(0.274) / reach(&one),
                scaled(0.149) / reach(&two)
            );
        }
        println!();
    }
}

fn main() {
    let bench = Bench::from_args();
    errors(&bench);
    if bench.files.is_some() {
        seconds(&bench);
    }
}
