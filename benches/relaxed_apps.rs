//! Applications with relaxed arrays against their serial twins: topics of texts (`lda`) and vectors of words
//! (`word2vec`).
//!
//! `cargo bench --bench relaxed_apps [-- --quick] [--json FILE]`. Two workers are compared with two independent serial
//! runs at once, each on half of the documents: that is what the machine can do.
#![allow(dead_code, clippy::duplicate_mod)] // both examples have the module they share
#[path = "../examples/lda/main.rs"]
mod lda;
mod support;
#[path = "../examples/word2vec/main.rs"]
mod word2vec;

use clap::Parser;
use hectare::orion::relax::Consistency;
use std::time::Instant;
use support::{Case, Report, Times};

/// The speed of other programs on two cores of an EPYC, in millions or thousands (after thinning) a second of one core, medians of
/// three: compare them with what `benches/peers/` measures on the machine at hand.
const TOMOTOPY: f64 = 9.2;
const GENSIM: f64 = 190.0;

/// Adds a case of speeds, given nanoseconds of ours and of theirs, and how much was done in each.
fn add(
    report: &mut Report,
    case: String,
    unit: &'static str,
    work: f64,
    ours: &Times,
    theirs: &Times,
    target: f64,
) {
    let speed = |nanos: f64| work / nanos;
    report.add(Case {
        case,
        value: speed(ours.median()),
        best: speed(ours.best()),
        unit,
        ratio: Some(theirs.median() / ours.median()),
        against: Some(format!("serial twins ({:.2})", speed(theirs.median()))),
        target: Some(target),
    });
}

/// Nanoseconds until `count` threads that do the same have all done it.
fn at_once(count: usize, act: impl Fn() -> f64 + Sync) -> f64 {
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(&act)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a serial run")).collect::<Vec<_>>()
    });
    times.into_iter().fold(0.0, f64::max)
}

/// Seconds of training, as nanoseconds.
fn nanos(curve: &lda::training::Curve) -> f64 {
    curve.points().last().map_or(0.0, |point| point.0 * 1e9)
}

fn topics(report: &mut Report) {
    let (documents, passes, repeats) = if report.quick { (4000, 8, 3) } else { (20_000, 20, 5) };
    for workers in [1usize, 2] {
        let case = format!("lda/100 topics/{workers}w");
        if !report.wants(&case) {
            continue;
        }
        let options = |documents: usize| {
            let numbers = [documents, passes].map(|number| number.to_string());
            lda::Options::parse_from([
                "lda",
                "--quiet",
                "--sampler",
                "gibbs",
                "--documents",
                &numbers[0],
                "--passes",
                &numbers[1],
            ])
        };
        let (o, half) = (options(documents), options(documents / workers));
        let corpus = lda::Corpus::load(&o).expect("a corpus");
        let part = lda::Corpus::load(&half).expect("a corpus");
        let order: Vec<usize> = (0..part.train.len()).collect();
        let (mut ours, mut theirs) = (Times::default(), Times::default());
        for _ in 0..repeats {
            theirs.push(at_once(workers, || {
                nanos(&lda::serial(&half, &part, &order, &mut |_| ()).expect("a serial run"))
            }));
            let curves = hectare::run(workers, |w| lda::train(w, &o, &corpus, lda::KINDS[0])).expect("a run");
            ours.push(nanos(&curves[0]));
        }
        let work = (corpus.train.len() * passes) as f64 * 1e3;
        add(report, case, "M tokens/s", work, &ours, &theirs, 0.85);
        if workers == 1 {
            println!("    against tomotopy's {TOMOTOPY}: {:.2}", work / ours.median() / TOMOTOPY);
        }
    }
}

fn vectors(report: &mut Report) {
    let (sentences, passes, repeats) = if report.quick { (4000, 1, 3) } else { (20_000, 2, 5) };
    for workers in [1usize, 2] {
        let case = format!("word2vec/d 100/{workers}w");
        if !report.wants(&case) {
            continue;
        }
        let options = |sentences: usize| {
            let numbers = [sentences, passes].map(|number: usize| number.to_string());
            let args = ["word2vec", "--quiet", "--sentences", &numbers[0], "--passes", &numbers[1]];
            word2vec::Options::parse_from(args)
        };
        let (o, half) = (options(sentences), options(sentences / workers));
        let text = word2vec::Text::load(&o).expect("a text");
        let part = word2vec::Text::load(&half).expect("a text");
        let (mut ours, mut theirs, mut words) = (Times::default(), Times::default(), 0);
        for _ in 0..repeats {
            // Only training counts, for both.
            theirs.push(at_once(workers, || {
                let trained = word2vec::serial(&half, &part).expect("a serial run");
                trained.curve.points().last().map_or(0.0, |point| point.0 * 1e9)
            }));
            let trained = hectare::run(workers, |w| word2vec::train(w, &o, &text, Consistency::Async))
                .expect("a run")
                .swap_remove(0);
            ours.push(trained.curve.points().last().map_or(0.0, |point| point.0 * 1e9));
            words = trained.words;
        }
        let work = words as f64 * 1e6;
        add(report, case, "k words/s", work, &ours, &theirs, 0.85);
        if workers == 1 {
            println!("    against gensim's {GENSIM}: {:.2}", work / ours.median() / GENSIM);
        }
    }
}

fn main() {
    let since = Instant::now();
    let mut report =
        Report::from_args("relaxed_apps: applications with relaxed arrays against their serial twins");
    topics(&mut report);
    vectors(&mut report);
    report.finish();
    println!("{:.0} s", since.elapsed().as_secs_f64());
}
