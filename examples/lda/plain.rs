//! The model in plain memory, for the serial twin.
use super::learned::Pair;
use super::{Corpus, Options, Sampler, Token, padded};

/// Counts as in the parallel model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    width: usize,
    pub(crate) tokens: Vec<Pair>,
    pub(crate) doc_topic: Vec<i32>,
    pub(crate) word_topic: Vec<i32>,
    pub(crate) totals: Vec<i32>,
}

impl Plain {
    /// Every token with the topic that it begins with.
    pub(crate) fn new(o: &Options, corpus: &Corpus) -> Plain {
        Plain::of(o, corpus, (0..corpus.train.len()).map(|number| corpus.begin(o, number)).collect())
    }

    /// Every token, by number, with these topics, and those proposed.
    pub(crate) fn of(o: &Options, corpus: &Corpus, tokens: Vec<Pair>) -> Plain {
        let width = padded(o.topics);
        let mut model = Plain {
            width,
            tokens,
            doc_topic: vec![0; corpus.documents * width],
            word_topic: vec![0; corpus.words.len() * width],
            totals: vec![0; width],
        };
        for (number, token) in corpus.train.iter().enumerate() {
            let (rows, pair) = model.rows(*token, number);
            rows.into_iter().for_each(|row| row[usize::from(pair[0])] += 1);
        }
        model
    }

    /// The rows of counts of a token, and its topics.
    #[inline(always)]
    pub(crate) fn rows(&mut self, token: Token, number: usize) -> ([&mut [i32]; 3], &mut Pair) {
        let doc = &mut self.doc_topic[token.doc as usize * self.width..][..self.width];
        let word = &mut self.word_topic[token.word as usize * self.width..][..self.width];
        ([doc, word, &mut self.totals], &mut self.tokens[number])
    }

    /// Of the held-out words.
    pub(crate) fn perplexity(&self, corpus: &Corpus, sampler: &Sampler) -> f64 {
        let row = |counts: &[i32], at: u32| counts[at as usize * self.width..][..self.width].to_vec();
        let nats = corpus.held_out.iter().map(|token| {
            sampler.surprise(
                &row(&self.doc_topic, token.doc),
                &row(&self.word_topic, token.word),
                &self.totals,
            )
        });
        (nats.sum::<f64>() / corpus.held_out.len() as f64).exp()
    }
}
