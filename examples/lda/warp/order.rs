//! Where tokens lie: words one after the other, the tokens of each in the order of documents.
use super::super::{Corpus, Token};
use std::ops::Range;

/// Blocks of documents, and of words, of about as many tokens each: the iterations of the loops.
pub(crate) const BLOCKS: usize = 192;

/// Groups of tokens one after the other, such as the documents, and blocks of groups.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// Group `g` has the tokens from `starts[g]` to `starts[g + 1]`.
    starts: Vec<u32>,
    /// Block `b` has the groups from `blocks[b]` to `blocks[b + 1]`.
    blocks: Vec<usize>,
}

impl Groups {
    fn new(sizes: &[u32]) -> Groups {
        let mut starts = vec![0; sizes.len() + 1];
        for (group, size) in sizes.iter().enumerate() {
            starts[group + 1] = starts[group] + size;
        }
        let tokens = u64::from(starts[sizes.len()]);
        let before = |block: usize| {
            let share = tokens * block as u64 / BLOCKS as u64;
            starts.partition_point(|start| u64::from(*start) < share)
        };
        let mut blocks: Vec<usize> = (0..BLOCKS).map(before).collect();
        blocks.push(sizes.len());
        Groups { starts, blocks }
    }

    /// How many groups.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The tokens of each group of a block.
    pub(crate) fn of_block(&self, block: usize) -> impl Iterator<Item = Range<usize>> {
        (self.blocks[block]..self.blocks[block + 1]).map(|group| self.tokens(group))
    }

    /// The tokens of a group.
    pub(crate) fn tokens(&self, group: usize) -> Range<usize> {
        self.starts[group] as usize..self.starts[group + 1] as usize
    }
}

/// A half of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// Word by word.
    Words,
    /// Document by document.
    Documents,
}

/// The order of the tokens.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// Words, of tokens by place, and documents, of tokens by number.
    groups: [Groups; 2],
    /// The place of the token of each number.
    pub(crate) places: Vec<u32>,
}

impl Order {
    pub(crate) fn new(corpus: &Corpus) -> Order {
        let (mut of_word, mut of_document) = (vec![0; corpus.words.len()], vec![0; corpus.documents]);
        for token in &corpus.train {
            of_word[token.word as usize] += 1;
            of_document[token.doc as usize] += 1;
        }
        let (words, documents) = (Groups::new(&of_word), Groups::new(&of_document));
        let mut next = words.starts.clone();
        // Numbers of tokens go from document to document.
        let place = |token: &Token| {
            let next = &mut next[token.word as usize];
            *next += 1;
            *next - 1
        };
        let places = corpus.train.iter().map(place).collect();
        Order { groups: [words, documents], places }
    }

    /// The groups that half a pass visits, one after the other.
    pub(crate) fn groups(&self, half: Half) -> &Groups {
        &self.groups[half as usize]
    }

    /// The place of token `at` of the groups.
    pub(crate) fn place(&self, half: Half) -> impl Fn(usize) -> usize {
        move |at| match half {
            Half::Words => at,
            Half::Documents => self.places[at] as usize,
        }
    }
}
