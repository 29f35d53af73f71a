//! The command line.
use super::bags::{lda_c, uci};
use super::learned::Training;
use super::rounds::ROUNDS;
use super::training::Run;
use super::training::text::{Documents, Generated, Keep, Source, generate};
use anyhow::{Result, ensure};
use clap::builder::TypedValueParser as _;
use clap::{Parser, ValueEnum};
use hectare::orion::relax::Consistency;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// How topics are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sampling {
    /// By two proposals a pass, each accepted or not (WarpLDA): a pass takes as long for many topics as for few.
    Warp,
    /// By the weights of all topics (collapsed Gibbs sampling): a pass does more, and takes longer.
    Gibbs,
}

impl Sampling {
    /// Its name, if it is not the usual.
    pub(crate) fn said(self) -> Option<&'static str> {
        match self {
            Sampling::Warp => None,
            Sampling::Gibbs => Some("Gibbs sampling"),
        }
    }
}

/// Finds topics in texts; `--serial` runs the loop that one would write without Hectare.
#[derive(Clone, Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) source: Source,
    /// Documents as bags of words, as LDA-C takes them: lines `different-words word:count word:count ...`.
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    pub(crate) lda_c: Option<PathBuf>,
    /// Documents as bags of words, as UCI has them: three lines with the numbers of documents, words and counts, and lines
    /// `document word count`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "lda_c"])]
    pub(crate) uci: Option<PathBuf>,
    /// The words of bags of words, one a line; else they are called by their numbers.
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    pub(crate) vocabulary: Option<PathBuf>,
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
    /// Words that are rarer than this are left out: 5 in a text, 1 in bags of words and with --load.
    #[arg(long)]
    pub(crate) min_count: Option<usize>,
    /// How many of the most frequent words are left out. Default: 100 of a text, none of bags of words and with --load.
    #[arg(long)]
    pub(crate) skip_top: Option<usize>,
    /// Write the tokens to learn from to this file, a line `document word` of numbers each, and end: for other programs.
    #[arg(long)]
    pub(crate) write_tokens: Option<PathBuf>,
    /// Save the topics in this folder: topics.npy, documents.npy, vocabulary.txt, topics.txt and documents.txt to read, and
    /// tokens.npy and training.json to go on from.
    #[arg(long, value_name = "FOLDER", conflicts_with = "all")]
    pub(crate) save: Option<PathBuf>,
    /// Learn no topics, but find the shares of documents of those in this folder, of --save; their --save writes documents.npy
    /// and documents.txt.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["topics", "sampler", "write_tokens"])]
    pub(crate) load: Option<PathBuf>,
    /// With --load: go on learning. Of the documents that the topics were learned from, every token has the topic that it had in
    /// the end; of others, topics are drawn by how probable they make the words. Sampler and topics are those of the folder.
    #[arg(long, requires = "load")]
    pub(crate) go_on: bool,
    /// How topics are drawn.
    #[arg(long, value_enum, default_value_t = Sampling::Warp)]
    pub(crate) sampler: Sampling,
    /// Topics.
    #[arg(long, default_value_t = 100)]
    pub(crate) topics: usize,
    /// Passes over the tokens: 200, or 50 of Gibbs sampling, or 30 with --load.
    #[arg(long)]
    pub(crate) passes: Option<usize>,
    /// Of Gibbs sampling: how often the words of all topics go around the workers in a pass (16). Fewer send less between hosts;
    /// with more, topics form in fewer passes.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..).map(usize::from))]
    pub(crate) rounds: Option<usize>,
    /// Prior of the topics of a document (Dirichlet, symmetric): 0.1, or with --go-on as before.
    #[arg(long)]
    pub(crate) alpha: Option<f32>,
    /// Prior of the words of a topic (Dirichlet, symmetric): 0.01, or with --go-on as before.
    #[arg(long)]
    pub(crate) beta: Option<f32>,
    /// Where the topics begin, and what is drawn, depends on it.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// How many words of each topic are printed; 0 for none.
    #[arg(long, default_value_t = 8)]
    pub(crate) show: usize,
}

impl Options {
    /// The files that are read, those that are named.
    pub(crate) fn files(&self) -> [Option<&PathBuf>; 5] {
        [&self.source.text, &self.lda_c, &self.uci, &self.vocabulary, &self.load].map(Option::as_ref)
    }

    /// The words and documents that the options name, or generated ones.
    pub(crate) fn documents(&self) -> Result<Documents> {
        let (keep, vocabulary) = (self.keep(), self.vocabulary.as_deref());
        match (&self.source.text, &self.lda_c, &self.uci) {
            (Some(path), ..) => self.source.read(path, 3, keep),
            (_, Some(path), _) => lda_c(path, vocabulary, keep),
            (.., Some(path)) => uci(path, vocabulary, keep),
            _ => Ok(generate(Generated {
                documents: self.documents,
                words: self.words,
                length: self.length,
                exponent: self.exponent,
                topics: 3,
                spread: 0,
            })),
        }
    }

    /// Prior of the topics of a document.
    pub(crate) fn alpha(&self) -> f32 {
        self.alpha.unwrap_or(0.1)
    }

    /// Prior of the words of a topic.
    pub(crate) fn beta(&self) -> f32 {
        self.beta.unwrap_or(0.01)
    }

    /// Whether topics are loaded, and stay as they are.
    fn has_topics(&self) -> bool {
        self.load.is_some() && !self.go_on
    }

    /// The same, to go on as was learned before.
    pub(crate) fn going_on(&self, before: &Training) -> Options {
        let mut o = self.clone();
        (o.sampler, o.topics) = (before.sampler, before.topics);
        (o.alpha, o.beta) = (self.alpha.or(Some(before.alpha)), self.beta.or(Some(before.beta)));
        o
    }

    /// Passes over the tokens.
    pub(crate) fn passes(&self) -> usize {
        self.passes.unwrap_or(match (self.has_topics(), self.sampler) {
            (true, _) => 30,
            (false, Sampling::Warp) => 200,
            (false, Sampling::Gibbs) => 50,
        })
    }

    /// How often words go around in a pass of Gibbs sampling.
    pub(crate) fn rounds(&self) -> usize {
        self.rounds.unwrap_or(ROUNDS)
    }

    /// Where documents come from, in messages.
    pub(crate) fn origin(&self) -> String {
        let bags = self.lda_c.as_ref().or(self.uci.as_ref());
        bags.map_or_else(|| self.source.name(), |path| path.display().to_string())
    }

    /// Which words count. Who has made bags of words has left out words before.
    pub(crate) fn keep(&self) -> Keep {
        // The words of the topics were chosen when they were learned.
        let are_chosen = self.lda_c.is_some() || self.uci.is_some() || self.has_topics();
        let [min_count, skip_top] = if are_chosen { [1, 0] } else { [5, 100] };
        Keep { min_count: self.min_count.unwrap_or(min_count), skip_top: self.skip_top.unwrap_or(skip_top) }
    }

    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<()> {
        let most = super::MOST;
        ensure!((1..=most).contains(&self.topics), "--topics {}: 1 to {most}", self.topics);
        ensure!(self.alpha() > 0.0 && self.beta() > 0.0, "--alpha and --beta have to be above 0");
        let is_bag = self.lda_c.is_some() || self.uci.is_some();
        ensure!(is_bag || self.vocabulary.is_none(), "--vocabulary: only with --lda-c or --uci");
        ensure!(self.words > 0 && self.documents > 0, "--words and --documents have to be above 0");
        let is_gibbs = self.sampler == Sampling::Gibbs;
        ensure!(is_gibbs || self.rounds.is_none(), "--rounds: only with --sampler gibbs");
        ensure!(is_gibbs || self.run.every.is_none(), "--every: only with --sampler gibbs");
        ensure!(self.run.consistency != Some(Consistency::Async), "--consistency async: {}", super::LOSSY);
        ensure!(self.exponent > 0.0 && self.exponent != 1.0, "--exponent {}: above 0, not 1", self.exponent);
        Ok(())
    }
}
