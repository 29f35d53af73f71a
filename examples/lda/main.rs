//! Latent Dirichlet allocation (Blei, Ng and Jordan, 2003) through the loop layer, by collapsed Gibbs sampling or as WarpLDA
//! does it, and the serial twins.
//!
//! `cargo run --release --example lda -- [--workers 2] [--serial] [--text FILE [--lines]] [--lda-c FILE] [--uci FILE]
//! [--sampler gibbs --consistency bsp] [--save FOLDER] [--load FOLDER [--go-on]] [--help]`
mod bags;
mod corpus;
mod counts;
mod files;
mod fixed;
mod gibbs;
mod kernel;
mod learned;
mod options;
mod plain;
mod rounds;
mod serial;
#[path = "../training/mod.rs"]
pub(crate) mod training;
pub(crate) mod warp;
pub(crate) use self::corpus::{Corpus, Token};
pub(crate) use self::counts::{Counts, HeldOut};
pub(crate) use self::gibbs::{KINDS, LOSSY, Model};
pub(crate) use self::kernel::{MOST, Sampler, padded};
pub(crate) use self::options::{Options, Sampling};
pub(crate) use self::plain::Plain;
pub(crate) use self::rounds::Rounds;
pub(crate) use self::serial::{serial, serial_warp};
#[allow(unused_imports)] // for tests
pub(crate) use self::training::Instructions;

use anyhow::Context as _;
use clap::Parser;
use hectare::orion::array::random::Stream;
use hectare::orion::relax::Consistency;
use hectare::orion::{Context, Result};
use learned::{Learned, Pair, Training};
use std::process::ExitCode;
use training::{Baseline, Curve};

const MEASURE: &str = "held-out perplexity";
const ADVICE: &str = "--alpha and --beta are too large or too small for 32 bits";

/// The topic that token `number` begins with.
fn begin(o: &Options, number: usize) -> u16 {
    Stream::new(o.seed, "begin").below(number as u64, o.topics as u64) as u16
}

/// The random numbers of a pass, by token.
pub(crate) fn numbers(o: &Options, pass: usize) -> Stream {
    Stream::new(o.seed, "draw").child(pass as u64)
}

pub(crate) fn sampler(o: &Options, corpus: &Corpus) -> Sampler {
    Sampler::new(o.topics, corpus.words.len(), o.alpha(), o.beta())
}

/// Held-out words are guessed from all.
fn uniform(corpus: &Corpus) -> Baseline {
    let advice = "too few passes (--passes), or too little text for so many topics (--topics)";
    Baseline { loss: corpus.words.len() as f64, of: "guessing among all words", advice }
}

/// The state of a sampler, on the workers.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // there is one
enum Chain {
    Gibbs(Model),
    Warp(warp::Model),
}

impl Chain {
    fn pass(&mut self, w: &mut Context<'_>, o: &Options, sampler: &Sampler, pass: usize) -> Result<()> {
        match self {
            Chain::Gibbs(model) => model.pass(w, sampler, numbers(o, pass)),
            Chain::Warp(model) => model.pass(w, warp::numbers(o, pass)),
        }
    }

    fn counts(&mut self, w: &mut Context<'_>) -> Result<Counts<'_>> {
        match self {
            Chain::Gibbs(model) => model.counts(w),
            Chain::Warp(model) => model.counts(w),
        }
    }

    /// The topics of the tokens, by number. Collective.
    fn pairs(&self, w: &mut Context<'_>, corpus: &Corpus) -> Result<Vec<Pair>> {
        match self {
            Chain::Gibbs(model) => model.pairs(w, corpus.train.len()),
            Chain::Warp(model) => model.pairs(w),
        }
    }
}

/// Learns topics: by Gibbs sampling as the consistency says, by WarpLDA in its one way. Collective.
pub(crate) fn train(
    w: &mut Context<'_>,
    o: &Options,
    corpus: &Corpus,
    consistency: Consistency,
) -> Result<Curve> {
    let (sampler, held_out) = (sampler(o, corpus), HeldOut::new(w, corpus)?);
    let mut chain = match o.sampler {
        Sampling::Gibbs => Chain::Gibbs(Model::new(w, o, corpus, consistency)?),
        Sampling::Warp => Chain::Warp(warp::Model::new(w, o, corpus)?),
    };
    let mut curve = Curve::of(MEASURE, ADVICE).against(uniform(corpus)).after(corpus.passes_before());
    for pass in corpus.passes_before()..corpus.passes_before() + o.passes() {
        curve.begin();
        chain.pass(w, o, &sampler, pass)?;
        curve.end();
        let counts = chain.counts(w)?;
        if !curve.push(&o.run, None, held_out.perplexity(w, &sampler, &counts)?, Some(w))? {
            break;
        }
    }
    let pairs = if o.save.is_some() { chain.pairs(w, corpus)? } else { Vec::new() };
    let counts = chain.counts(w)?;
    let found: Option<Result<_>> = w.root(|| Ok([counts.word_topic.to_vec(w)?, counts.doc_topic.to_vec(w)?]));
    training::at_root(w, || {
        let [word_topic, doc_topic] = found.unwrap_or(Ok([Vec::new(), Vec::new()]))?;
        show(o, corpus, &word_topic);
        let Some(folder) = &o.save else { return Ok(()) };
        files::save(o, corpus, [&doc_topic, &word_topic], folder)?;
        learned::save(o, corpus, &pairs, curve.passes(), folder)
    })?;
    training::explain(w, &o.run)?;
    Ok(curve)
}

/// Prints the most frequent words of each topic.
fn show(o: &Options, corpus: &Corpus, word_topic: &[i32]) {
    for topic in (0..o.topics).filter(|_| o.show > 0 && !o.run.quiet) {
        let counts = word_topic.iter().skip(topic).step_by(padded(o.topics));
        let mut words: Vec<(&i32, &String)> = counts.zip(&corpus.words).collect();
        words.sort_by(|a, b| b.0.cmp(a.0));
        let top: Vec<&str> = words.iter().take(o.show).map(|word| word.1.as_str()).collect();
        training::say(format_args!("topic {topic:>3}: {}", top.join(" ")));
    }
}

fn run(o: &Options) -> anyhow::Result<()> {
    let before = match (&o.load, o.go_on) {
        (Some(folder), true) => {
            Some((folder, Training::load(folder).with_context(|| format!("--load {}", folder.display()))?))
        }
        _ => None,
    };
    let o = &before.as_ref().map_or_else(|| o.clone(), |(_, training)| o.going_on(training));
    o.check()?;
    o.save.as_deref().map_or(Ok(()), files::try_folder)?;
    if let (Some(folder), false) = (&o.load, o.go_on) {
        return fixed::run(o, folder);
    }
    let mut corpus = Corpus::load(o)?;
    if let Some((folder, training)) = &before {
        let learned = Learned::load(o, &corpus, training, folder);
        corpus.learned = Some(learned.with_context(|| format!("--load {}", folder.display()))?);
        training::say(format_args!("{}", corpus.said()));
    }
    let (tokens, documents, words) = (corpus.train.len(), corpus.documents, corpus.words.len());
    training::say(format_args!("{tokens} tokens to learn from in {documents} documents, {words} words"));
    if let Some(path) = &o.write_tokens {
        return corpus.write(path);
    }
    let speed = |curve: Curve| {
        let millions = (tokens * curve.points().count()) as f64 / 1e6;
        training::say(format_args!("{:.2} M tokens/s", millions / curve.seconds().max(1e-9)));
        curve
    };
    let twin = || {
        let mut last = None;
        let mut keep = |model: &Plain| last = Some(model.clone());
        let curve = match o.sampler {
            Sampling::Gibbs => serial(o, &corpus, &(0..tokens).collect::<Vec<usize>>(), &mut keep),
            Sampling::Warp => serial_warp(o, &corpus, &mut keep),
        }?;
        let Some(Plain { tokens, doc_topic, word_topic, .. }) = &last else { return Ok(speed(curve)) };
        show(o, &corpus, word_topic);
        if let Some(folder) = &o.save {
            files::save(o, &corpus, [doc_topic, word_topic], folder)?;
            learned::save(o, &corpus, tokens, curve.passes(), folder)?;
        }
        Ok(speed(curve))
    };
    let parallel = |workers, kind| {
        let curves = hectare::run(workers, |w| {
            training::same_files(w, &o.files())?;
            train(w, o, &corpus, kind)
        });
        Ok(speed(curves?.swap_remove(0)))
    };
    match o.sampler {
        Sampling::Gibbs => o.run.by(o.sampler.said()).train(&KINDS, twin, parallel),
        // Results are the same, whatever the number of workers.
        Sampling::Warp => o.run.by(o.sampler.said()).train(&[], twin, parallel),
    }
}

fn main() -> ExitCode {
    training::exit(run(&Options::parse()))
}
