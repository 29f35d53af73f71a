//! The command line.
use super::training::Run;
use super::training::text::Source;
use anyhow::{Result, ensure};
use clap::Parser;
use std::path::PathBuf;

/// Learns vectors of words by skip-gram with negative sampling; `--serial` runs the loop that one would write without
/// Hectare.
#[derive(Clone, Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) source: Source,
    /// Of generated text: sentences.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) sentences: usize,
    /// Of generated text: different words.
    #[arg(long, default_value_t = 10_000)]
    pub(crate) words: usize,
    /// Of generated text: the mean number of words in a sentence.
    #[arg(long, default_value_t = 50)]
    pub(crate) length: usize,
    /// Of generated text: the exponent of Zipf's law, by which words have their frequencies.
    #[arg(long, default_value_t = 1.07)]
    pub(crate) exponent: f64,
    /// Write the sentences to this file, a line of words by number each, and end: for other programs.
    #[arg(long)]
    pub(crate) write_text: Option<PathBuf>,
    /// Begin with the vectors in this file, of --save, word2vec.c or gensim: binary if the name ends in .bin, else text.
    #[arg(long, value_name = "FILE")]
    pub(crate) load: Option<PathBuf>,
    /// Save the vectors here, in word2vec's text format, or in its binary one if the name ends in .bin.
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) save: Option<PathBuf>,
    /// Words that are rarer than this in a text are left out.
    #[arg(long, default_value_t = 5)]
    pub(crate) min_count: usize,
    /// Numbers in a vector.
    #[arg(long, default_value_t = 100)]
    pub(crate) dimension: usize,
    /// Words on either side that count as near, at most.
    #[arg(long, default_value_t = 5)]
    pub(crate) window: usize,
    /// Words that are drawn at random, to be told from the near ones.
    #[arg(long, default_value_t = 5)]
    pub(crate) negative: usize,
    /// Words that are more frequent than this share of the text are thinned out.
    #[arg(long, default_value_t = 1e-3)]
    pub(crate) sample: f64,
    /// The size of a step at first; it falls to a 250th.
    #[arg(long, default_value_t = 0.025)]
    pub(crate) rate: f32,
    /// Passes over the text.
    #[arg(long, default_value_t = 5)]
    pub(crate) passes: usize,
    /// Where vectors begin, and what is drawn, depends on it.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

impl Options {
    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<()> {
        let counts = [
            ("--words", self.words),
            ("--dimension", self.dimension),
            ("--window", self.window),
            ("--negative", self.negative),
        ];
        for (name, value) in counts {
            ensure!((1..=1 << 20).contains(&value), "{name} {value}: 1 to {}", 1 << 20);
        }
        for (name, value) in [("--sample", self.sample), ("--rate", self.rate.into())] {
            ensure!(value > 0.0 && value.is_finite(), "{name} {value}: a finite number above 0");
        }
        ensure!(self.exponent > 0.0 && self.exponent != 1.0, "--exponent {}: above 0, not 1", self.exponent);
        Ok(())
    }
}
