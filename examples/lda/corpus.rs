//! Documents as lists of words, from text or generated.
use super::Options;
use super::training::text::{Generated, Keep, generate, read};
use anyhow::{Context, Result, ensure};
use std::fs;
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
}

impl Corpus {
    /// The text that the options name, or a generated one.
    pub(crate) fn load(o: &Options) -> Result<Corpus> {
        let (words, documents) = match &o.text {
            Some(path) => read(path, Keep { letters: 3, min_count: o.min_count, skip_top: o.skip_top })?,
            None => generate(Generated {
                documents: o.documents,
                words: o.words,
                length: o.length,
                exponent: o.exponent,
                topics: 3,
                spread: 0,
            }),
        };
        let mut corpus = Corpus { documents: documents.len(), words, train: vec![], held_out: vec![] };
        for (doc, words) in documents.iter().enumerate() {
            for (at, word) in words.iter().enumerate() {
                let token = Token { doc: doc as u32, word: *word };
                let held = at % HELD_OUT == HELD_OUT - 1;
                if held { &mut corpus.held_out } else { &mut corpus.train }.push(token);
            }
        }
        let from = o.text.as_ref().map_or("the generated text".into(), |path| path.display().to_string());
        let kept = format!("at least {} times, not among the {} most frequent", o.min_count, o.skip_top);
        ensure!(!corpus.train.is_empty(), "{from}: no words are left (letters only; {kept})");
        ensure!(!corpus.held_out.is_empty(), "{from}: no document has {HELD_OUT} words ({kept})");
        Ok(corpus)
    }

    /// Writes the tokens to learn from: a line with the numbers of document and word for each.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let lines: String =
            self.train.iter().map(|token| format!("{} {}\n", token.doc, token.word)).collect();
        fs::write(path, lines).with_context(|| format!("cannot write {}", path.display()))
    }
}
