//! The command line.
use super::training::Run;
use anyhow::{Result, ensure};
use clap::Parser;
use hectare::orion::relax::Consistency;
use std::path::PathBuf;

/// Finds topics in texts by collapsed Gibbs sampling; `--serial` runs the loop that one would write without Hectare.
#[derive(Clone, Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: Run,
    /// A file, whose paragraphs are the documents, or a folder, whose files are. Generated if left out.
    #[arg(long)]
    pub(crate) text: Option<PathBuf>,
    /// Of generated text: documents.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) documents: usize,
    /// Of generated text: different words.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) words: usize,
    /// Of generated text: the mean number of words in a document.
    #[arg(long, default_value_t = 100)]
    pub(crate) length: usize,
    /// Of generated text: the exponent of Zipf's law, by which words have their frequencies.
    #[arg(long, default_value_t = 1.07)]
    pub(crate) exponent: f64,
    /// Words that are rarer than this in a text are left out.
    #[arg(long, default_value_t = 5)]
    pub(crate) min_count: usize,
    /// So many of the most frequent words of a text are left out.
    #[arg(long, default_value_t = 100)]
    pub(crate) skip_top: usize,
    /// Write the tokens to learn from to this file, a line `document word` of numbers each, and end: for other programs.
    #[arg(long)]
    pub(crate) write_tokens: Option<PathBuf>,
    /// Topics.
    #[arg(long, default_value_t = 100)]
    pub(crate) topics: usize,
    /// Passes over the tokens.
    #[arg(long, default_value_t = 50)]
    pub(crate) passes: usize,
    /// Prior of the topics of a document (Dirichlet, symmetric).
    #[arg(long, default_value_t = 0.1)]
    pub(crate) alpha: f32,
    /// Prior of the words of a topic (Dirichlet, symmetric).
    #[arg(long, default_value_t = 0.01)]
    pub(crate) beta: f32,
    /// Where the topics begin, and what is drawn, depends on it.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Of each topic, print so many words; 0 for none.
    #[arg(long, default_value_t = 8)]
    pub(crate) show: usize,
}

impl Options {
    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<()> {
        let most = super::MOST;
        ensure!((1..=most).contains(&self.topics), "--topics {}: 1 to {most}", self.topics);
        ensure!(self.alpha > 0.0 && self.beta > 0.0, "--alpha and --beta have to be above 0");
        ensure!(self.words > 0 && self.documents > 0, "--words and --documents have to be above 0");
        ensure!(self.run.consistency != Some(Consistency::Async), "--consistency async: {}", super::LOSSY);
        ensure!(self.exponent > 0.0 && self.exponent != 1.0, "--exponent {}: above 0, not 1", self.exponent);
        Ok(())
    }
}
