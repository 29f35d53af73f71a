//! Documents as lists of words, from text or generated.
use super::Options;
use super::learned::Learned;
use anyhow::{Context, Result, ensure};
use hectare_data::new_file;
use std::path::Path;

/// Of this many tokens of a document, one is held out.
const HELD_OUT: usize = 10;

/// A word in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) doc: u32,
    pub(crate) word: u32,
}

/// Tokens to learn from, tokens to test with, and the words.
#[derive(Clone, Debug)]
pub(crate) struct Corpus {
    pub(crate) documents: usize,
    pub(crate) words: Vec<String>,
    pub(crate) train: Vec<Token>,
    pub(crate) held_out: Vec<Token>,
    /// The saved model that this run continues, if it does.
    pub(crate) learned: Option<Learned>,
}

impl Corpus {
    /// The documents that the options name, or generated ones.
    pub(crate) fn load(o: &Options) -> Result<Corpus> {
        let (words, documents) = o.documents()?;
        let mut corpus =
            Corpus { documents: documents.len(), words, train: vec![], held_out: vec![], learned: None };
        for (doc, words) in documents.iter().enumerate() {
            for (at, word) in words.iter().enumerate() {
                let token = Token { doc: doc as u32, word: *word };
                let held = at % HELD_OUT == HELD_OUT - 1;
                if held { &mut corpus.held_out } else { &mut corpus.train }.push(token);
            }
        }
        let (from, keep) = (o.origin(), o.keep());
        let kept = format!(
            "at least {} times, not among the {} most frequent: see --min-count, --skip-top",
            keep.min_count, keep.skip_top
        );
        ensure!(!corpus.train.is_empty(), "{from}: no words are left ({}; {kept})", o.source.rule());
        ensure!(!corpus.held_out.is_empty(), "{from}: no document has {HELD_OUT} words ({kept})");
        Ok(corpus)
    }

    /// Writes the tokens to learn from: a line with the numbers of document and word for each.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let lines: String =
            self.train.iter().map(|token| format!("{} {}\n", token.doc, token.word)).collect();
        new_file::write(path, lines).with_context(|| format!("cannot write {}", path.display()))
    }
}
