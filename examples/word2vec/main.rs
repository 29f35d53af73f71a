//! Vectors of words by skip-gram with negative sampling (Mikolov et al., 2013) through the loop layer, and the serial
//! twin.
//!
//! `cargo run --release --example word2vec -- [--workers 2] [--serial] [--text FILE [--lines]]
//! [--load FILE] [--save FILE] [--help]`
//!
//! Which rows a sentence changes is known only when it is read, so no order keeps all dependences but the serial one.
//! They are given up: workers read and write the rows of one pair of matrices at once, number by number (or, with
//! `--consistency`, rows of copies whose changes are added up at clocks).
mod files;
mod kernel;
mod options;
mod quality;
mod text;
#[path = "../training/mod.rs"]
pub(crate) mod training;
use self::files::save;
#[allow(unused_imports)] // for tests
pub(crate) use self::files::{Vectors, read};
pub(crate) use self::kernel::{Learner, begin, width};
pub(crate) use self::options::Options;
pub(crate) use self::quality::{nearest, score};
pub(crate) use self::text::Text;

use clap::Parser;
use hectare::orion::relax::Consistency;
use hectare::orion::{Context, Result, parallel_for};
use std::f64::consts::LN_2;
use std::process::ExitCode;
use training::{Baseline, Curve};

/// Who relaxes both matrices may do it in these ways.
const KINDS: [Consistency; 3] = [Consistency::Async, Consistency::Bsp, Consistency::Bounded(1)];

/// Of copies: clocks in a pass, for each worker, times the workers. Changes of all workers are added up, and with long
/// clocks and many workers steps overshoot: with four workers and 16 clocks vectors diverge.
const CLOCKS: usize = 16;
const MEASURE: &str = "training loss";
const ADVICE: &str = "steps were too long; try a smaller --rate, or more clocks (--every per-pass:128)";
/// Products of zero.
const UNTRAINED: Baseline =
    Baseline { loss: LN_2, of: "a model whose products are all zero", advice: ADVICE };

/// The vectors, the curve, and the words that were learned from.
#[derive(Clone, Debug)]
pub(crate) struct Trained {
    pub(crate) vectors: Vec<f32>,
    pub(crate) curve: Curve,
    pub(crate) words: u64,
}

pub(crate) fn train(
    w: &mut Context<'_>,
    o: &Options,
    text: &Text,
    consistency: Consistency,
) -> Result<Trained> {
    let learner = Learner::new(o, text);
    let (count, words, width) = (text.sentences.len(), text.words.len(), learner.width);
    let sentences = w.entries([count], count, |number| ([number], ()))?.named("sentences");
    let start = &text.start;
    let mut input = w.from_fn([words, width], |[i, k]| start[i * width + k])?.named("input");
    let mut output = w.zeros::<f32, 2>([words, width])?.named("output");
    let (mut curve, mut all) = (Curve::of(MEASURE, ADVICE).against(UNTRAINED), 0);
    for pass in 0..o.passes {
        curve.begin();
        let (learned, products, nats) = parallel_for!(w, unordered, read sentences, relax [input, output],
            consistency = consistency, every = o.run.every(CLOCKS * w.size()), sum learned: u64, sum products: u64, sum nats: f64;
        for (number, _) in sentences {
            let mut row = vec![0.0; width];
            let mut sentence = learner.sentence(pass, number);
            while sentence.advance() {
                for (word, row) in sentence.targets() {
                    output.read_row(word, row);
                }
                for at in 0..sentence.near() {
                    let word = sentence.near_word(at);
                    nats += input.update_row(word, &mut row, |row| sentence.step(row));
                }
                for (word, row) in sentence.targets() {
                    output.write_row(word, row);
                }
            }
            learned += sentence.len();
            products += sentence.products();
        })?;
        curve.end();
        all += learned;
        let vectors = input.to_vec(w)?;
        if !tell(o, &mut curve, (nats, products), text, Some(w), &vectors)? {
            break;
        }
    }
    training::explain(w, &o.run)?;
    let saved = w.root(|| input.to_vec(w).and_then(|vectors| keep(o, text, &vectors)));
    w.broadcast(|| saved.unwrap_or(Ok(())))?;
    Ok(Trained { vectors: input.to_vec(w)?, curve, words: all })
}

/// The same without Hectare.
pub(crate) fn serial(o: &Options, text: &Text) -> Result<Trained> {
    let learner = Learner::new(o, text);
    let (words, width) = (text.words.len(), learner.width);
    let (mut input, mut output) = (text.start.clone(), vec![0.0f32; words * width]);
    let (mut curve, mut all) = (Curve::of(MEASURE, ADVICE).against(UNTRAINED), 0);
    for pass in 0..o.passes {
        curve.begin();
        let (mut nats, mut products) = (0.0, 0);
        for number in 0..text.sentences.len() {
            let (mut own, mut sentence) = (0.0, learner.sentence(pass, number));
            while sentence.advance() {
                for (word, row) in sentence.targets() {
                    row.copy_from_slice(&output[word * width..][..width]);
                }
                for at in 0..sentence.near() {
                    let word = sentence.near_word(at);
                    own += sentence.step(&mut input[word * width..][..width]);
                }
                for (word, row) in sentence.targets() {
                    output[word * width..][..width].copy_from_slice(row);
                }
            }
            nats += own;
            all += sentence.len();
            products += sentence.products();
        }
        curve.end();
        if !tell(o, &mut curve, (nats, products), text, None, &input)? {
            break;
        }
    }
    keep(o, text, &input)?;
    Ok(Trained { vectors: input, curve, words: all })
}

/// Saves the vectors, if that is wanted.
fn keep(o: &Options, text: &Text, vectors: &[f32]) -> Result<()> {
    match &o.save {
        Some(path) => save(o, &text.words, vectors, path).map_err(training::invalid),
        None => Ok(()),
    }
}

/// After a pass: the mean loss, and the quality of the vectors; false when training may stop.
fn tell(
    o: &Options,
    curve: &mut Curve,
    (nats, products): (f64, u64),
    text: &Text,
    w: Option<&mut Context<'_>>,
    vectors: &[f32],
) -> Result<bool> {
    // The kernel looks losses up in a table, which has one for products that are not numbers, too.
    let is_sound = vectors.iter().all(|number| number.is_finite());
    let loss = if is_sound { nats / products.max(1) as f64 } else { f64::NAN };
    let speaks = w.as_ref().is_none_or(|w| w.rank() == 0);
    let goes_on = curve.push(&o.run, None, loss, w)?;
    if let Some(score) = (speaks && !o.run.quiet).then(|| score(text, vectors, width(o))).flatten() {
        training::say(format_args!("          score {score:.4}"));
    }
    Ok(goes_on)
}

fn run(o: &Options) -> anyhow::Result<()> {
    o.check()?;
    o.save.as_deref().map_or(Ok(()), |path| training::try_to_write("--save", path))?;
    let text = Text::load(o)?;
    let count: usize = text.sentences.iter().map(Vec::len).sum();
    training::say(format_args!(
        "{count} words in {} sentences, {} different ones",
        text.sentences.len(),
        text.words.len()
    ));
    if let Some(path) = &o.write_text {
        return text.write(path);
    }
    let tell_all = |trained: Trained| {
        for word in
            [20, 50, 100, 200, 400].into_iter().filter(|word| *word < text.words.len() && !o.run.quiet)
        {
            let like = nearest(&text, &trained.vectors, width(o), word, 8);
            training::say(format_args!("like {}: {}", text.words[word], like.join(" ")));
        }
        if let Some(score) = score(&text, &trained.vectors, width(o)) {
            training::say(format_args!("score {score:.4}"));
        }
        let (seconds, passes) = (trained.curve.seconds().max(1e-9), trained.curve.points().count());
        let [all, thinned] =
            [(count * passes) as f64, trained.words as f64].map(|words| words / seconds / 1e3);
        training::say(format_args!("{all:.0} thousand words/s, {thinned:.0} after thinning"));
        trained.curve
    };
    let parallel = |workers, consistency| {
        let all = hectare::run(workers, |w| {
            training::same_files(w, &[o.source.text.as_ref(), o.load.as_ref()])?;
            train(w, o, &text, consistency)
        });
        Ok(tell_all(all?.swap_remove(0)))
    };
    o.run.train(&KINDS, || Ok(tell_all(serial(o, &text)?)), parallel)
}

fn main() -> ExitCode {
    training::exit(run(&Options::parse()))
}
