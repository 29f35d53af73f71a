//! Held-out perplexity of topics after each pass, against the serial twin.
//!
//! While topics form, in passes 5 to 15, chains that differ in nothing but their random numbers differ by several percent,
//! and so do those that visit tokens in another order. So there are many seeds, runs of the same seed are compared, and
//! the standard error of the difference stands beside it.
use super::paired::{Difference, spread};
use super::{Args, WORKERS, lda};
use clap::Parser;
use std::fmt::Write as _;

/// Perplexities after each pass, of each seed and number of workers.
type Curves = Vec<[Vec<f64>; WORKERS.len()]>;

/// The aim.
const PERCENT: f64 = 1.0;

pub(crate) fn run(args: &Args) {
    let (documents, passes, seeds) = if args.quick { (2000, 20, 4) } else { (4000, 30, 40) };
    let (documents, seeds) = (args.documents.unwrap_or(documents), args.seeds.unwrap_or(seeds));
    let mut curves = saved(args, passes);
    for seed in args.first..args.first + seeds {
        let options = |args: &[&str]| {
            let numbers = [documents as u64, passes as u64, seed].map(|number| number.to_string());
            let all = [
                "lda",
                "--quiet",
                "--sampler",
                "gibbs",
                "--documents",
                &numbers[0],
                "--passes",
                &numbers[1],
                "--seed",
                &numbers[2],
            ];
            lda::Options::parse_from(all.iter().chain(args))
        };
        let o = options(&["--show", "0"]);
        let corpus = lda::Corpus::load(&o).expect("a corpus");
        let order: Vec<usize> = (0..corpus.train.len()).collect();
        let of = WORKERS.map(|workers| -> Vec<f64> {
            let curve = match workers {
                0 => lda::serial(&o, &corpus, &order, &mut |_| ()).expect("a serial run"),
                _ => {
                    let all = hectare::run(workers, |w| lda::train(w, &o, &corpus, args.topics_kind()));
                    all.expect("a run").swap_remove(0)
                }
            };
            curve.points().map(|point| point.1).collect()
        });
        save(args, &of);
        curves.push(of);
    }
    tell(documents, passes, args, &curves);
}

fn tell(documents: usize, passes: usize, args: &Args, curves: &Curves) {
    let (count, kind) = (curves.len(), args.topics_kind());
    println!("lda, {documents} documents, {count} seeds, {kind}: held-out perplexity after each pass");
    println!(
        "pass   serial   seeds' deviation   against serial, and standard error (aim: within {PERCENT} %)"
    );
    let mut verdicts = String::new();
    for pass in 0..passes {
        let serial: Vec<f64> = curves.iter().map(|of| of[0][pass]).collect();
        let (mean, deviation) = spread(&serial);
        print!("{:>4} {mean:>8.1} {:>14.2} %  ", pass + 1, 100.0 * deviation / mean);
        for (at, workers) in WORKERS.iter().enumerate().skip(1) {
            let pairs: Vec<(f64, f64)> = curves.iter().map(|of| (of[at][pass], of[0][pass])).collect();
            let difference = Difference::of(&pairs);
            let verdict = difference.verdict(PERCENT);
            print!(" {workers}w {:+.2} ± {:.2} % {verdict:<18}", difference.mean, difference.error);
            if verdict == "OFF" {
                let _ = write!(verdicts, " pass {} with {workers}w;", pass + 1);
            }
        }
        println!();
    }
    match verdicts.is_empty() {
        true => println!("no pass is off by more than {PERCENT} % beyond two standard errors"),
        false => println!("off by more than {PERCENT} %, beyond two standard errors:{verdicts}"),
    }
}

/// The results that earlier runs have appended to the file, if there is one: so that many seeds may be run in several goes.
fn saved(args: &Args, passes: usize) -> Curves {
    let Some(text) = args.save.as_ref().and_then(|path| std::fs::read_to_string(path).ok()) else {
        return Vec::new();
    };
    let lists: Vec<Vec<f64>> = text
        .lines()
        .map(|line| line.split(' ').map(|number| number.parse().expect("a file of this bench")).collect())
        .collect();
    let (groups, []) = lists.as_chunks::<{ WORKERS.len() }>() else { panic!("the file is cut off") };
    assert!(lists.iter().all(|list| list.len() == passes), "the file is of other passes");
    groups.to_vec()
}

fn save(args: &Args, of: &[Vec<f64>; WORKERS.len()]) {
    use std::io::Write as _;
    let Some(path) = &args.save else { return };
    let mut file =
        std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a file to save in");
    for list in of {
        let numbers: Vec<String> = list.iter().map(f64::to_string).collect();
        writeln!(file, "{}", numbers.join(" ")).expect("writing");
    }
}
