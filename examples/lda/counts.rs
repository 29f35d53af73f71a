//! How often topics occur in documents and with words, and what that says of words that were held out.
use super::{Corpus, Sampler};
use hectare::orion::{Context, Result, parallel_for};
use hectare::{DistArray, SparseArray};

/// Rows of counts, one for each document and each word, and those of all.
#[derive(Debug)]
pub(crate) struct Counts<'m> {
    pub(crate) doc_topic: &'m DistArray<i32, 2>,
    pub(crate) word_topic: &'m DistArray<i32, 2>,
    pub(crate) totals: Vec<i32>,
}

/// Words that were held out.
#[derive(Debug)]
pub(crate) struct HeldOut(SparseArray<(), 2>);

impl HeldOut {
    /// Those of the corpus. Collective.
    pub(crate) fn new(w: &mut Context<'_>, corpus: &Corpus) -> Result<HeldOut> {
        let key = |at: usize| {
            let token = corpus.held_out[at];
            ([token.doc as usize, token.word as usize], ())
        };
        let tokens = w.entries([corpus.documents, corpus.words.len()], corpus.held_out.len(), key)?;
        Ok(HeldOut(tokens.named("held_out")))
    }

    /// How many words one would have to guess from, on average, to say one of them. Collective.
    pub(crate) fn perplexity(
        &self,
        w: &mut Context<'_>,
        sampler: &Sampler,
        counts: &Counts<'_>,
    ) -> Result<f64> {
        let HeldOut(held_out) = self;
        let Counts { doc_topic, word_topic, totals } = counts;
        let totals = &totals[..];
        let nats = parallel_for!(w, unordered, read [held_out, doc_topic, word_topic], sum nats: f64;
        for ((d, v), _) in held_out {
            nats += sampler.surprise(doc_topic.row(d), word_topic.row(v), totals);
        })?;
        Ok((nats / held_out.len() as f64).exp())
    }
}
