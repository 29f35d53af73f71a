//! Sentences, and what follows from the words' frequencies: which are kept, which are drawn.
use super::training::text::{Generated, Keep, PLANTED, generate};
use super::{Options, begin, files};
use anyhow::{Context, Result, ensure};
use hectare_data::new_file;
use std::path::Path;

/// Planted words that occur so often ought to be learned.
const OFTEN: usize = 20;
/// Sentences have words of topics up to this far from their own; words of topics more than twice as far apart meet by
/// chance only.
pub(crate) const SPREAD: usize = 4;
/// Longer sentences are cut.
const LONGEST: usize = 1000;

/// Known pairs of words that ought to be similar.
#[derive(Clone, Debug)]
pub(crate) enum Known {
    /// Words that occur often enough to be learned, by planted topic: topics lie on a ring, and the farther apart they are,
    /// the less words of theirs are alike.
    Ring(Vec<Vec<usize>>),
    /// Pairs that ought to be alike.
    Pairs(Vec<[usize; 2]>),
}

/// Sentences of words, by number, and what is known of them.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) words: Vec<String>,
    pub(crate) sentences: Vec<Vec<u32>>,
    pub(crate) known: Known,
    /// The chance to be kept, in parts of 2^32.
    pub(crate) keep: Vec<u64>,
    /// For drawing by the alias method (Walker, 1977): a chance in parts of 2^32, and the word otherwise.
    pub(crate) noise: Vec<(u32, u32)>,
    /// The vectors that training begins with.
    pub(crate) start: Vec<f32>,
}

impl Text {
    /// The text that the options name, or a generated one.
    pub(crate) fn load(o: &Options) -> Result<Text> {
        let (words, documents) = match &o.source.text {
            Some(path) => o.source.read(path, 1, Keep { min_count: o.min_count, skip_top: 0 })?,
            None => generate(Generated {
                documents: o.sentences,
                words: o.words,
                length: o.length,
                exponent: o.exponent,
                topics: 1,
                spread: SPREAD as u64,
            }),
        };
        let sentences: Vec<Vec<u32>> =
            documents.iter().flat_map(|words| words.chunks(LONGEST)).map(<[u32]>::to_vec).collect();
        let mut counts = vec![0usize; words.len()];
        sentences.iter().flatten().for_each(|word| counts[*word as usize] += 1);
        let total: usize = counts.iter().sum();
        let (from, rule) = (o.source.name(), o.source.rule());
        ensure!(total > 0, "{from}: no words are left ({rule}; at least {} times)", o.min_count);
        ensure!(sentences.iter().any(|words| words.len() > 1), "{from}: no sentence has two words");
        let keep = counts.iter().map(|count| {
            let share = *count as f64 / total as f64 / o.sample;
            (((share.sqrt() + 1.0) / share).min(1.0) * 2f64.powi(32)) as u64
        });
        let (keep, noise) = (keep.collect(), alias(&counts));
        let known = match &o.source.text {
            Some(_) => Known::Pairs(plurals(&words)),
            None => {
                let topics = PLANTED.min(words.len());
                let often = |word: &usize| counts[*word] >= OFTEN;
                let of_topic = |topic| (topic..words.len()).step_by(topics).filter(often).collect();
                Known::Ring((0..topics).map(of_topic).collect())
            }
        };
        let start = match &o.load {
            Some(path) => files::begin_with(o, &words, path)?,
            None => begin(o, words.len()),
        };
        Ok(Text { words, sentences, known, keep, noise, start })
    }
}

impl Text {
    /// Writes the words by number, a line for each sentence.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let line = |words: &Vec<u32>| words.iter().map(u32::to_string).collect::<Vec<_>>().join(" ") + "\n";
        let lines: String = self.sentences.iter().map(line).collect();
        new_file::write(path, lines).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Frequencies to the power 3/4 (Mikolov et al., 2013), as a table for the alias method.
fn alias(counts: &[usize]) -> Vec<(u32, u32)> {
    let weights: Vec<f64> = counts.iter().map(|count| (*count as f64).powf(0.75)).collect();
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..shares.len()).partition(|at| shares[*at] < 1.0);
    let mut table: Vec<(u32, u32)> = (0..counts.len() as u32).map(|word| (u32::MAX, word)).collect();
    while let (Some(low), Some(high)) = (small.pop(), large.last().copied()) {
        table[low] = ((shares[low] * 2f64.powi(32)) as u32, high as u32);
        shares[high] -= 1.0 - shares[low];
        if shares[high] < 1.0 {
            large.pop();
            small.push(high);
        }
    }
    table
}

/// Words and their plurals in -s, among the frequent ones.
fn plurals(words: &[String]) -> Vec<[usize; 2]> {
    let frequent = &words[..words.len().min(20_000)];
    let numbers: std::collections::HashMap<&str, usize> =
        frequent.iter().map(String::as_str).zip(0..).collect();
    let pair = |(at, word): (usize, &String)| {
        let plural = *numbers.get(format!("{word}s").as_str())?;
        (word.len() > 2).then_some([at, plural])
    };
    frequent.iter().enumerate().filter_map(pair).collect()
}
