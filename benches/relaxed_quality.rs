//! The quality of relaxed applications' models, against their serial twins: held-out perplexity of topics (`lda`) after each pass,
//! the score of word vectors (`word2vec`), passes and seconds of matrix factorization to a test error (`factorize`).
//!
//! `cargo bench --bench relaxed_quality [-- --quick] [-- lda|word2vec|mf ...]` (`--help` for more). Texts are generated; so are ratings,
//! unless `HECTARE_RATINGS` and `HECTARE_RATINGS_TEST` name files of them (lines `user item rating`, indices from 0).
#![allow(dead_code, clippy::duplicate_mod)] // the examples have the module they share
#[path = "../examples/factorize/main.rs"]
mod factorize;
#[path = "../examples/lda/main.rs"]
mod lda;
#[path = "quality/paired.rs"]
mod paired;
#[path = "quality/topics.rs"]
mod topics;
#[path = "quality/vectors.rs"]
mod vectors;
#[path = "../examples/word2vec/main.rs"]
mod word2vec;

use clap::Parser;
use hectare::orion::relax::Consistency;

/// Workers; 0 is the serial twin.
pub(crate) const WORKERS: [usize; 4] = [0, 1, 2, 4];

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn name(workers: usize) -> String {
    match workers {
        0 => "serial".into(),
        1 => "1 worker".into(),
        _ => format!("{workers} workers"),
    }
}

/// Passes and seconds to a test error: that of the serial twin after five passes, and 0.1 % more.
fn factors(quick: bool) {
    let files: Vec<String> = match ["HECTARE_RATINGS", "HECTARE_RATINGS_TEST"].map(std::env::var) {
        [Ok(train), Ok(test)] => vec!["--train".into(), train, "--test".into(), test],
        _ => Vec::new(),
    };
    let seeds = if quick { 2 } else { 5 };
    let options = |seed: u64, more: &[&str]| {
        let mut args: Vec<String> =
            ["mf", "--quiet", "--seed", &seed.to_string()].map(str::to_owned).to_vec();
        args.extend(files.iter().cloned());
        args.extend(more.iter().map(|more| (*more).to_owned()));
        factorize::training::Options::parse_from(args)
    };
    let first = factorize::serial(&options(1, &["--passes", "5"])).expect("a serial run");
    let target = (1.001 * first.points().last().expect("passes").1).to_string();
    println!(
        "mf: passes and seconds to a test RMSE of {:.4}, means of {seeds} seeds",
        target.parse().unwrap_or(0.0)
    );
    let bounded = Consistency::Bounded(1);
    let exact = Consistency::Serializable;
    let mut cases = vec![(0, exact, "adaptive"), (1, exact, "adaptive")];
    for workers in [2, 4] {
        cases.extend(
            [exact, Consistency::Bsp, bounded, Consistency::Async].map(|kind| (workers, kind, "adaptive")),
        );
    }
    cases.extend([(0, exact, "ada-revision"), (4, Consistency::Bsp, "ada-revision")]);
    for (workers, kind, steps) in cases {
        let run = |seed: u64| {
            let o = options(seed, &["--steps", steps, "--target", &target, "--passes", "40"]);
            let curve = match workers {
                0 => factorize::serial(&o).expect("a serial run"),
                _ => hectare::run(workers, |w| factorize::train(w, &o, kind)).expect("a run").swap_remove(0),
            };
            let last = curve.points().last().expect("passes");
            (curve.points().count() as f64, last.0, last.1 <= target.parse().unwrap_or(0.0))
        };
        let runs: Vec<_> = (1..=seeds).map(run).collect();
        let passes = mean(runs.iter().map(|run| run.0));
        let seconds = mean(runs.iter().map(|run| run.1));
        let missed = runs.iter().filter(|run| !run.2).count();
        let note =
            if missed > 0 { format!("  ({missed} of {seeds} did NOT reach it)") } else { String::new() };
        let how = if workers == 0 { String::new() } else { format!(", {kind}") };
        println!("{:<52} {passes:>5.1} {seconds:>8.3} s{note}", format!("{}{how}, {steps}", name(workers)));
    }
}

/// Compares the quality of models with that of their serial twins.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// lda, word2vec, mf; all if none is named.
    names: Vec<String>,
    /// Smaller problems, fewer seeds.
    #[arg(long)]
    quick: bool,
    /// So many seeds.
    #[arg(long)]
    seeds: Option<u64>,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Of `lda`: documents.
    #[arg(long)]
    documents: Option<usize>,
    /// Of `lda`: how the totals are relaxed.
    #[arg(long)]
    consistency: Option<Consistency>,
    /// Of `lda`: append what was measured to this file, and judge all that is in it.
    #[arg(long)]
    save: Option<std::path::PathBuf>,
    /// An argument that cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Args {
    pub(crate) fn topics_kind(&self) -> Consistency {
        self.consistency.unwrap_or(lda::KINDS[0])
    }
}

fn main() {
    let mut args = Args::parse();
    if args.names.is_empty() {
        args.names = ["lda", "word2vec", "mf"].map(str::to_owned).to_vec();
    }
    for name in args.names.clone() {
        let since = std::time::Instant::now();
        match &name[..] {
            "lda" => topics::run(&args),
            "word2vec" => vectors::run(&args),
            "mf" => factors(args.quick),
            _ => panic!("{name}: there are lda, word2vec and mf"),
        }
        println!("({name}: {:.0} s)\n", since.elapsed().as_secs_f64());
    }
}
