//! Collapsed Gibbs sampling through the loop layer.
//!
//! Rows of documents stay with a worker, rows of words go around and are exact; the totals of the topics, which every
//! token changes, are a relaxed array: each worker has a copy with its own changes, merged at every hand-over of words and
//! as often as `--every` says.
use super::learned::Pair;
use super::{Corpus, Counts, Options, Rounds, Sampler, Token, padded};
use hectare::orion::array::random::Stream;
use hectare::orion::relax::{Consistency, Every};
use hectare::orion::{Context, Error, Result, parallel_for};
use hectare::{DistArray, SparseArray};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

/// How the totals of the topics may be relaxed, and as a check not at all. All add up the changes of every worker; under
/// [`Consistency::Async`], where of two changes at once one may be lost, totals would drift away from the counts. The
/// default waits at hand-overs only, which keep workers within a step of each other.
pub(crate) const KINDS: [Consistency; 4] =
    [Consistency::UNBOUNDED, Consistency::Bounded(1), Consistency::Bsp, Consistency::Serializable];
/// Merges in a pass, for each worker, beside those at hand-overs.
pub(crate) const MERGES: usize = 16;
/// Why [`Consistency::Async`] is refused.
pub(crate) const LOSSY: &str = "async may lose counts of topics, of which two workers change one at once: bsp, bounded:S or unbounded add up all";

/// The value of a token in the loop: its number, and its topic. Only the worker that has the token changes the topic; the
/// atomic makes that possible behind a shared reference, and costs nothing.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Assigned {
    pub(crate) number: u32,
    pub(crate) topic: AtomicU16,
}

/// Tokens with their topics, and how often each topic occurs: in documents, with words, in all.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) tokens: SparseArray<Assigned, 2>,
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
            let topic = corpus.begin(o, number)[0].into();
            (key(corpus.train[number]), Assigned { number: number as u32, topic })
        })?;
        let mut model = Model {
            tokens: tokens.named("tokens"),
            doc_topic: w.zeros([docs, width])?.named("doc_topic"),
            word_topic: w.zeros([words, width])?.named("word_topic"),
            totals: w.zeros([1, width])?.named("totals"),
            relax: (consistency, o.run.every(MERGES)),
            schedule: Rounds {
                rounds: if consistency == Consistency::Serializable { 0 } else { o.rounds() },
            },
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

    /// The topics of the tokens, by number, on every worker. Collective.
    pub(crate) fn pairs(&self, w: &mut Context<'_>, count: usize) -> Result<Vec<Pair>> {
        let (tokens, mut topics) = (&self.tokens, w.zeros::<u32, 1>([count])?.named("topics of tokens"));
        parallel_for!(w, unordered, read tokens, relax topics, consistency = Consistency::Bsp, every = Every::PerPass(1);
        for ((_d, _v), token) in tokens {
            topics.set(token.number as usize, u32::from(token.topic.load(Relaxed)));
        })?;
        Ok(topics.to_vec(w)?.into_iter().map(|topic| [topic as u16; 2]).collect())
    }

    /// How often topics occur. Collective.
    pub(crate) fn counts(&self, w: &mut Context<'_>) -> Result<Counts<'_>> {
        let Model { doc_topic, word_topic, totals, .. } = self;
        Ok(Counts { doc_topic, word_topic, totals: totals.to_vec(w)? })
    }
}
