//! Scores of word vectors, against the serial twin with the same seeds.
use super::paired::Difference;
use super::{Args, WORKERS, word2vec};
use clap::Parser;
use hectare::orion::relax::Consistency;

/// The aim.
const PERCENT: f64 = 2.0;

pub(crate) fn run(args: &Args) {
    let (sentences, passes, seeds) = if args.quick { (4000, 5, 3) } else { (20_000, 3, 5) };
    let seeds = args.seeds.unwrap_or(seeds);
    println!(
        "word2vec, {sentences} sentences, {passes} passes, {seeds} seeds: score (aim: within {PERCENT} % of serial)"
    );
    let mut cases = vec![(0, None, passes), (0, None, passes - 1), (0, None, passes - 2)];
    cases.extend([(1, Some(Consistency::Async), passes)]);
    for workers in WORKERS.into_iter().filter(|workers| *workers > 1) {
        cases.extend([Consistency::Async, Consistency::Bsp].map(|kind| (workers, Some(kind), passes)));
    }
    let mut serial: Vec<f64> = Vec::new();
    for (workers, kind, passes) in cases {
        let run = |seed: u64| {
            let numbers = [sentences as u64, passes, seed].map(|number: u64| number.to_string());
            let sizes = ["--sentences", &numbers[0], "--passes", &numbers[1], "--seed", &numbers[2]];
            let o = word2vec::Options::parse_from(["word2vec", "--quiet"].iter().chain(&sizes));
            let text = word2vec::Text::load(&o).expect("a text");
            let trained = match kind {
                None => word2vec::serial(&o, &text).expect("a serial run"),
                Some(kind) => {
                    let all = hectare::run(workers, |w| word2vec::train(w, &o, &text, kind));
                    all.expect("a run").swap_remove(0)
                }
            };
            word2vec::score(&text, &trained.vectors, word2vec::width(&o)).expect("known words")
        };
        let found: Vec<f64> = (args.first..args.first + seeds).map(run).collect();
        if serial.is_empty() {
            serial.clone_from(&found);
        }
        let pairs: Vec<(f64, f64)> = found.iter().copied().zip(serial.iter().copied()).collect();
        let difference = Difference::of(&pairs);
        let name = match kind {
            None => format!("serial, {passes} passes"),
            Some(kind) => format!("{workers} worker(s), {kind}"),
        };
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        let (off, error, verdict) = (difference.mean, difference.error, difference.verdict(PERCENT));
        println!("{name:<30} {mean:.4}  {off:+.2} ± {error:.2} %  {verdict}");
    }
}
