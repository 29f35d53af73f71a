//! Half a pass of WarpLDA (Chen et al., 2016) over the tokens of a document, or of a word.
//!
//! A topic is drawn by Metropolis and Hastings' steps. A topic proposed in proportion to `word[k] + β` is accepted by the
//! counts of the document and the totals alone, for those of the word cancel out; one proposed in proportion to
//! `doc[k] + α` by the counts of the word and the totals. So half a pass goes document by document, accepts what was
//! proposed by words, and makes proposals; the other half goes word by word. Either has one row of counts in hand, which it
//! counts from the tokens; no matrix of counts is kept. A proposal is the topic of another token of the same group, or,
//! for the prior's share, any topic: nothing depends on the number of topics.
//!
//! Counts are those of before the half pass ("delayed"), of the group as of all: so what is drawn does not depend on who
//! visits which groups, and when, and the tokens of a group do not wait for each other.
use super::super::learned::Pair;
use hectare::orion::array::random::Stream;
use std::hint::select_unpredictable;

/// Shares of tokens and of priors are counted in parts of a token, of which there are two to this.
const FRACTION: u32 = 24;
/// Numbers of tokens are below it.
const OTHER: u64 = 1 << 40;

/// A token's topic, and the one proposed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice(u32);

impl Choice {
    pub(crate) fn new(topic: u16, proposed: u16) -> Choice {
        Choice(u32::from(topic) | u32::from(proposed) << 16)
    }

    pub(crate) fn of(bits: u32) -> Choice {
        Choice(bits)
    }

    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    pub(crate) fn pair(self) -> Pair {
        [self.topic() as u16, self.proposed() as u16]
    }

    #[inline(always)]
    pub(crate) fn topic(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    #[inline(always)]
    pub(crate) fn proposed(self) -> usize {
        (self.0 >> 16) as usize
    }
}

/// The parameters of half a pass, besides its tokens.
#[derive(Clone, Debug)]
pub(crate) struct Phase<'t> {
    topics: usize,
    /// Of a topic in a group: α of documents, β of words.
    prior: f32,
    /// How often each topic occurs in all, and β for each word.
    totals: &'t [f32],
    numbers: Stream,
}

/// Room for one row of counts, all zero between groups.
#[derive(Clone, Debug)]
pub(crate) struct Scratch {
    counts: Vec<f32>,
    pub(crate) tokens: Vec<Choice>,
}

impl Scratch {
    pub(crate) fn new(topics: usize) -> Scratch {
        Scratch { counts: vec![0.0; topics], tokens: Vec::new() }
    }
}

impl<'t> Phase<'t> {
    pub(crate) fn new(prior: f32, totals: &'t [f32], numbers: Stream) -> Phase<'t> {
        Phase { topics: totals.len(), prior, totals, numbers }
    }

    /// Visits the tokens of a group in [`Scratch::tokens`], of which the first has number `first` in this phase. Adds to
    /// `sums` how often each topic occurs afterwards.
    pub(crate) fn visit(&self, first: usize, scratch: &mut Scratch, sums: &mut [i32]) {
        let Scratch { counts, tokens } = scratch;
        for token in tokens.iter() {
            counts[token.topic()] += 1.0;
        }
        for (number, token) in (first as u64..).zip(tokens.iter_mut()) {
            let (old, proposed) = (token.topic(), token.proposed());
            let unit = (self.numbers.bits(number) >> 40) as f32 * (1.0 / (1u64 << 24) as f32);
            // The token itself does not count.
            let before = (counts[old] - 1.0 + self.prior) * self.totals[proposed];
            let own = f32::from(u8::from(proposed == old));
            let after = (counts[proposed] - own + self.prior) * (self.totals[old] - 1.0);
            // Nobody can foresee it.
            let new = select_unpredictable(unit * before < after, proposed, old);
            sums[new] += 1;
            *token = Choice::new(new as u16, old as u16);
        }
        // The counts were those of before.
        for token in tokens.iter() {
            counts[token.proposed()] = 0.0;
        }
        self.propose(first, tokens);
    }

    /// Proposes a topic for each token: with the probability of the tokens' share that of one of them, else any.
    fn propose(&self, first: usize, tokens: &mut [Choice]) {
        let length = (tokens.len() as u64) << FRACTION;
        let prior = f64::from(self.prior) * self.topics as f64 * (1u64 << FRACTION) as f64;
        let all = u128::from(length.saturating_add(prior as u64));
        for at in 0..tokens.len() {
            let number = (first + at) as u64;
            // The bits that were not used above come first.
            let random = u128::from(self.numbers.bits(number).rotate_left(32));
            let share = ((random * all) >> 64) as u64;
            let proposed = match share < length {
                true => tokens[(share >> FRACTION) as usize].topic(),
                false => self.numbers.below(number | OTHER, self.topics as u64) as usize,
            };
            tokens[at] = Choice::new(tokens[at].topic() as u16, proposed as u16);
        }
    }
}
