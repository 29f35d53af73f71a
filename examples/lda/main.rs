//! Latent Dirichlet allocation (Blei, Ng and Jordan, 2003) by collapsed Gibbs sampling through the loop layer, and its
//! serial twin.
//!
//! `cargo run --release --example lda -- [--workers 2] [--serial] [--text FILE [--lines]] [--lda-c FILE] [--uci FILE]
//! [--save FOLDER] [--help]`
//!
//! Rows of documents stay with a worker, rows of words go around and are exact; the totals of the topics, which every
//! token changes, are a relaxed array: each worker has a copy with its own changes, merged at every hand-over of words and
//! as often as `--every` says.
mod bags;
mod corpus;
mod files;
mod kernel;
mod options;
mod plain;
mod rounds;
#[path = "../training/mod.rs"]
pub(crate) mod training;
pub(crate) use self::corpus::{Corpus, Token};
pub(crate) use self::kernel::{MOST, Sampler, padded};
pub(crate) use self::options::Options;
pub(crate) use self::plain::Plain;
pub(crate) use self::rounds::Rounds;
#[allow(unused_imports)] // for tests
pub(crate) use self::training::Instructions;

use clap::Parser;
use hectare::orion::array::random::Stream;
use hectare::orion::relax::{Consistency, Every};
use hectare::orion::{Context, Error, Result, parallel_for};
use hectare::{DistArray, SparseArray};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use training::{Baseline, Curve};

/// How the totals of the topics may be relaxed, and as a check not at all. All add up the changes of every worker; under
/// [`Consistency::Async`], where of two changes at once one may be lost, totals would drift away from the counts. The
/// default waits at hand-overs only, which keep workers within a step of each other.
pub(crate) const KINDS: [Consistency; 4] =
    [Consistency::UNBOUNDED, Consistency::Bounded(1), Consistency::Bsp, Consistency::Serializable];
/// Merges in a pass, for each worker, beside those at hand-overs.
pub(crate) const MERGES: usize = 16;
const MEASURE: &str = "held-out perplexity";
const ADVICE: &str = "--alpha and --beta are too large or too small for 32 bits";
/// Why [`Consistency::Async`] is refused.
pub(crate) const LOSSY: &str = "async may lose counts of topics, of which two workers change one at once: bsp, bounded:S or unbounded add up all";

/// The value of a token in the loop: its number, and its topic. Only the worker that has the token changes the topic; the
/// atomic makes that possible behind a shared reference, and costs nothing.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Assigned {
    pub(crate) number: u32,
    pub(crate) topic: AtomicU16,
}

/// The topic that token `number` begins with.
fn begin(o: &Options, number: usize) -> u16 {
    Stream::new(o.seed, "begin").below(number as u64, o.topics as u64) as u16
}

/// The random numbers of a pass, by token.
pub(crate) fn numbers(o: &Options, pass: usize) -> Stream {
    Stream::new(o.seed, "draw").child(pass as u64)
}

pub(crate) fn sampler(o: &Options, corpus: &Corpus) -> Sampler {
    Sampler::new(o.topics, corpus.words.len(), o.alpha, o.beta)
}

/// Tokens with their topics, and how often each topic occurs: in documents, with words, in all.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) tokens: SparseArray<Assigned, 2>,
    held_out: SparseArray<(), 2>,
    pub(crate) doc_topic: DistArray<i32, 2>,
    pub(crate) word_topic: DistArray<i32, 2>,
    /// One row, which loops relax.
    pub(crate) totals: DistArray<i32, 2>,
    relax: (Consistency, Every),
    schedule: Rounds,
}

impl Model {
    /// Every token with a random topic. Collective.
    pub(crate) fn new(
        w: &mut Context<'_>,
        o: &Options,
        corpus: &Corpus,
        consistency: Consistency,
    ) -> Result<Model> {
        if consistency == Consistency::Async {
            return Err(Error::Invalid(LOSSY.into()));
        }
        let (docs, words, width) = (corpus.documents, corpus.words.len(), padded(o.topics));
        let key = |token: Token| [token.doc as usize, token.word as usize];
        let tokens = w.entries([docs, words], corpus.train.len(), |number| {
            let topic = begin(o, number).into();
            (key(corpus.train[number]), Assigned { number: number as u32, topic })
        })?;
        let held_out =
            w.entries([docs, words], corpus.held_out.len(), |at| (key(corpus.held_out[at]), ()))?;
        let mut model = Model {
            tokens: tokens.named("tokens"),
            held_out: held_out.named("held_out"),
            doc_topic: w.zeros([docs, width])?.named("doc_topic"),
            word_topic: w.zeros([words, width])?.named("word_topic"),
            totals: w.zeros([1, width])?.named("totals"),
            relax: (consistency, o.run.every(MERGES)),
            schedule: Rounds { rounds: if consistency == Consistency::Serializable { 0 } else { o.rounds } },
        };
        let Model { tokens, doc_topic, word_topic, totals, relax: (consistency, every), .. } = &mut model;
        parallel_for!(w, unordered, read tokens, write [doc_topic, word_topic], relax totals,
            consistency = *consistency, every = *every;
        for ((d, v), token) in tokens {
            let (doc, word, topic) = (doc_topic.row_mut(d), word_topic.row_mut(v), token.topic.load(Relaxed));
            doc[topic as usize] += 1;
            word[topic as usize] += 1;
            totals.add([0, topic as usize], 1);
        })?;
        Ok(model)
    }

    /// Draws every topic anew, once. Collective.
    pub(crate) fn pass(&mut self, w: &mut Context<'_>, sampler: &Sampler, numbers: Stream) -> Result<()> {
        let Model { tokens, doc_topic, word_topic, totals, relax: (consistency, every), schedule, .. } = self;
        parallel_for!(w, unordered, read tokens, write [doc_topic, word_topic], relax totals,
            consistency = *consistency, every = *every, schedule = *schedule;
        for ((d, v), token) in tokens {
            let (doc, word) = (doc_topic.row_mut(d), word_topic.row_mut(v));
            let (old, random) = (token.topic.load(Relaxed), numbers.bits(token.number.into()));
            let new = sampler.draw(doc, word, totals.row(0, &mut []), old.into(), random);
            if new != usize::from(old) {
                totals.add([0, old.into()], -1);
                totals.add([0, new], 1);
                token.topic.store(new as u16, Relaxed);
            }
        })
    }

    /// How many words one would have to guess from, on average, to say a held-out word. Collective.
    pub(crate) fn perplexity(&self, w: &mut Context<'_>, sampler: &Sampler) -> Result<f64> {
        let Model { held_out, doc_topic, word_topic, totals, .. } = self;
        let nats = parallel_for!(w, unordered, read [held_out, doc_topic, word_topic, totals], sum nats: f64;
        for ((d, v), _) in held_out {
            nats += sampler.surprise(doc_topic.row(d), word_topic.row(v), totals.row(0));
        })?;
        Ok((nats / held_out.len() as f64).exp())
    }
}

/// Held-out words are guessed from all.
fn uniform(corpus: &Corpus) -> Baseline {
    let advice = "too few passes (--passes), or too little text for so many topics (--topics)";
    Baseline { loss: corpus.words.len() as f64, of: "guessing among all words", advice }
}

pub(crate) fn train(
    w: &mut Context<'_>,
    o: &Options,
    corpus: &Corpus,
    consistency: Consistency,
) -> Result<Curve> {
    let (sampler, mut model) = (sampler(o, corpus), Model::new(w, o, corpus, consistency)?);
    let mut curve = Curve::of(MEASURE, ADVICE).against(uniform(corpus));
    for pass in 0..o.passes {
        curve.begin();
        model.pass(w, &sampler, numbers(o, pass))?;
        curve.end();
        if !curve.push(&o.run, None, model.perplexity(w, &sampler)?, Some(w))? {
            break;
        }
    }
    let told = w.root(|| {
        let word_topic = model.word_topic.to_vec(w)?;
        show(o, corpus, &word_topic);
        let Some(folder) = &o.save else { return Ok(()) };
        let doc_topic = model.doc_topic.to_vec(w)?;
        files::save(o, corpus, [&doc_topic, &word_topic], folder).map_err(training::invalid)
    });
    w.broadcast(|| told.unwrap_or(Ok(())))?;
    training::explain(w, &o.run)?;
    Ok(curve)
}

/// The same without Hectare, token by token in the given order.
pub(crate) fn serial(
    o: &Options,
    corpus: &Corpus,
    order: &[usize],
    seen: &mut dyn FnMut(&Plain),
) -> Result<Curve> {
    let (sampler, mut model) = (sampler(o, corpus), Plain::new(o, corpus));
    let mut curve = Curve::of(MEASURE, ADVICE).against(uniform(corpus));
    for pass in 0..o.passes {
        curve.begin();
        let numbers = numbers(o, pass);
        for number in order {
            let random = numbers.bits(*number as u64);
            let ([doc, word, totals], topic) = model.rows(corpus.train[*number], *number);
            let old = usize::from(*topic);
            let new = sampler.draw(doc, word, totals, old, random);
            totals[old] -= 1;
            totals[new] += 1;
            *topic = new as u16;
        }
        curve.end();
        seen(&model);
        if !curve.push(&o.run, None, model.perplexity(corpus, &sampler), None)? {
            break;
        }
    }
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
    o.check()?;
    o.save.as_deref().map_or(Ok(()), files::try_folder)?;
    let corpus = Corpus::load(o)?;
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
        let (order, mut last): (Vec<usize>, _) = ((0..tokens).collect(), <[Vec<i32>; 2]>::default());
        let curve = serial(o, &corpus, &order, &mut |model| {
            last.clone_from(&[model.doc_topic.clone(), model.word_topic.clone()]);
        })?;
        let [doc_topic, word_topic] = &last;
        show(o, &corpus, word_topic);
        if let Some(folder) = &o.save {
            files::save(o, &corpus, [doc_topic, word_topic], folder)?;
        }
        Ok(speed(curve))
    };
    let parallel = |workers, kind| {
        let curves = hectare::run(workers, |w| train(w, o, &corpus, kind));
        Ok(speed(curves?.swap_remove(0)))
    };
    o.run.train(&KINDS, twin, parallel)
}

fn main() -> ExitCode {
    training::exit(run(&Options::parse()))
}
