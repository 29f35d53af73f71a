//! WarpLDA through the loop layer, and its serial twin: two loops a pass, over words and over documents.
//!
//! Tokens lie by word. The loop over words has its tokens one after the other; the one over documents picks its own from
//! everywhere. Which those are is in the data, so the loops relax the array of tokens; as every token is of one word and
//! one document, nobody else reads or writes it meanwhile, and nothing is given up. Results are the same bits on any
//! number of workers.
mod order;
mod phase;

use self::order::{BLOCKS, Half, Order};
#[allow(unused_imports)] // for tests
pub(crate) use self::phase::{Choice, Phase, Scratch};
use super::learned::Pair;
use super::{Corpus, Counts, Options, Plain, padded};
use hectare::DistArray;
use hectare::orion::array::random::Stream;
use hectare::orion::relax::{Consistency, Every};
use hectare::orion::{Context, Result, parallel_for};
use std::cell::RefCell;

/// Tokens with their topics, on the workers.
#[derive(Debug)]
pub(crate) struct Model {
    order: Order,
    /// [`Choice`]s, by place.
    tokens: DistArray<u32, 1>,
    /// How often each topic occurs in a block.
    sums: DistArray<i32, 2>,
    /// How often each occurs in all, and β for each word.
    totals: Vec<f32>,
    priors: [f32; 2],
    beta_sum: f32,
    /// Counts made from the tokens, when they were last asked for.
    doc_topic: DistArray<i32, 2>,
    word_topic: DistArray<i32, 2>,
}

/// The tokens at first, by place.
fn first(o: &Options, corpus: &Corpus, order: &Order) -> Vec<Choice> {
    let mut tokens = vec![Choice::new(0, 0); order.places.len()];
    for (number, place) in order.places.iter().enumerate() {
        let [topic, proposed] = corpus.begin(o, number);
        tokens[*place as usize] = Choice::new(topic, proposed);
    }
    tokens
}

/// The totals at first.
fn first_totals(o: &Options, corpus: &Corpus) -> Vec<f32> {
    let mut counts = vec![0i32; o.topics];
    (0..corpus.train.len()).for_each(|number| counts[usize::from(corpus.begin(o, number)[0])] += 1);
    with_prior(counts.into_iter(), beta_sum(o, corpus))
}

fn beta_sum(o: &Options, corpus: &Corpus) -> f32 {
    (f64::from(o.beta()) * corpus.words.len() as f64) as f32
}

fn with_prior(counts: impl Iterator<Item = i32>, beta_sum: f32) -> Vec<f32> {
    counts.map(|count| count as f32 + beta_sum).collect()
}

/// The random numbers of the half passes of a pass.
pub(crate) fn numbers(o: &Options, pass: usize) -> [Stream; 2] {
    let of_pass = super::numbers(o, pass);
    [of_pass.child(0), of_pass.child(1)]
}

impl Model {
    /// Every token with a random topic. Collective.
    pub(crate) fn new(w: &mut Context<'_>, o: &Options, corpus: &Corpus) -> Result<Model> {
        let order = Order::new(corpus);
        let tokens: Vec<u32> = first(o, corpus, &order).into_iter().map(Choice::bits).collect();
        Ok(Model {
            tokens: w.from_slice([tokens.len()], &tokens)?.named("tokens"),
            sums: w.zeros([BLOCKS, o.topics])?.named("sums"),
            totals: first_totals(o, corpus),
            priors: [o.beta(), o.alpha()],
            beta_sum: beta_sum(o, corpus),
            doc_topic: w.zeros([corpus.documents, padded(o.topics)])?.named("doc_topic"),
            word_topic: w.zeros([corpus.words.len(), padded(o.topics)])?.named("word_topic"),
            order,
        })
    }

    /// Draws every topic anew, by a proposal of each kind. Collective.
    pub(crate) fn pass(&mut self, w: &mut Context<'_>, numbers: [Stream; 2]) -> Result<()> {
        self.half(w, Half::Words, numbers[0])?;
        self.half(w, Half::Documents, numbers[1])
    }

    fn half(&mut self, w: &mut Context<'_>, half: Half, numbers: Stream) -> Result<()> {
        let Model { order, tokens, sums, totals, priors, .. } = self;
        let phase = Phase::new(priors[half as usize], totals, numbers);
        let (groups, place) = (order.groups(half), order.place(half));
        let scratch = RefCell::new(Scratch::new(totals.len()));
        parallel_for!(w, unordered, relax tokens, write sums,
            consistency = Consistency::Async, every = Every::PerPass(1);
        for b in 0..BLOCKS {
            let (occur, scratch) = (sums.row_mut(b), &mut *scratch.borrow_mut());
            occur.fill(0);
            for group in groups.of_block(b) {
                scratch.tokens.clear();
                scratch.tokens.extend(group.clone().map(|at| Choice::of(tokens.get(place(at)))));
                phase.visit(group.start, scratch, occur);
                for (at, token) in group.zip(&scratch.tokens) {
                    tokens.set(place(at), token.bits());
                }
            }
        })?;
        self.totals = totals_of(&self.sums.to_vec(w)?, self.totals.len(), self.beta_sum);
        Ok(())
    }

    /// The topics of the tokens, by number.
    pub(crate) fn pairs(&self, w: &Context<'_>) -> Result<Vec<Pair>> {
        let tokens = self.tokens.to_vec(w)?;
        let pair = |place: &u32| Choice::of(tokens[*place as usize]).pair();
        Ok(self.order.places.iter().map(pair).collect())
    }

    /// How often topics occur. Collective.
    pub(crate) fn counts(&mut self, w: &mut Context<'_>) -> Result<Counts<'_>> {
        let Model { order, tokens, doc_topic, word_topic, .. } = self;
        let [words, documents] = [Half::Words, Half::Documents].map(|half| order.groups(half));
        let place = order.place(Half::Documents);
        parallel_for!(w, unordered, read tokens, write word_topic; for v in 0..words.len() {
            let row = word_topic.row_mut(v);
            row.fill(0);
            words.tokens(v).for_each(|place| row[Choice::of(tokens[place]).topic()] += 1);
        })?;
        parallel_for!(w, unordered, read tokens, write doc_topic; for d in 0..documents.len() {
            let row = doc_topic.row_mut(d);
            row.fill(0);
            for number in documents.tokens(d) {
                row[Choice::of(tokens[place(number)]).topic()] += 1;
            }
        })?;
        let mut totals = vec![0; padded(self.totals.len())];
        for (total, sum) in totals.iter_mut().zip(&self.totals) {
            *total = (sum - self.beta_sum).round() as i32;
        }
        Ok(Counts { doc_topic: &self.doc_topic, word_topic: &self.word_topic, totals })
    }
}

/// The totals, of the sums of blocks.
fn totals_of(sums: &[i32], topics: usize, beta_sum: f32) -> Vec<f32> {
    let mut counts = vec![0; topics];
    for row in sums.chunks_exact(topics) {
        counts.iter_mut().zip(row).for_each(|(count, sum)| *count += sum);
    }
    with_prior(counts.into_iter(), beta_sum)
}

/// The same without Hectare.
#[derive(Debug)]
pub(crate) struct Twin {
    order: Order,
    tokens: Vec<Choice>,
    totals: Vec<f32>,
    beta_sum: f32,
}

impl Twin {
    pub(crate) fn new(o: &Options, corpus: &Corpus) -> Twin {
        let order = Order::new(corpus);
        let (tokens, totals) = (first(o, corpus, &order), first_totals(o, corpus));
        Twin { order, tokens, totals, beta_sum: beta_sum(o, corpus) }
    }

    pub(crate) fn pass(&mut self, o: &Options, numbers: [Stream; 2]) {
        self.half(o, Half::Words, o.beta(), numbers[0]);
        self.half(o, Half::Documents, o.alpha(), numbers[1]);
    }

    fn half(&mut self, o: &Options, half: Half, prior: f32, numbers: Stream) {
        let phase = Phase::new(prior, &self.totals, numbers);
        let (groups, place) = (self.order.groups(half), self.order.place(half));
        let (mut scratch, mut sums) = (Scratch::new(o.topics), vec![0; o.topics]);
        for group in (0..groups.len()).map(|group| groups.tokens(group)) {
            scratch.tokens.clear();
            scratch.tokens.extend(group.clone().map(|at| self.tokens[place(at)]));
            phase.visit(group.start, &mut scratch, &mut sums);
            for (at, token) in group.zip(&scratch.tokens) {
                self.tokens[place(at)] = *token;
            }
        }
        self.totals = totals_of(&sums, o.topics, self.beta_sum);
    }

    /// The counts that follow from the topics.
    pub(crate) fn counts(&self, o: &Options, corpus: &Corpus) -> Plain {
        let pair = |place: &u32| self.tokens[*place as usize].pair();
        Plain::of(o, corpus, self.order.places.iter().map(pair).collect())
    }
}
