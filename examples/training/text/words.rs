//! The words of documents, by number.
use std::collections::HashMap;

/// Words in the order of their frequency, and documents of them.
pub(crate) type Documents = (Vec<String>, Vec<Vec<u32>>);

/// Which words of a text count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep {
    /// Times that the word is in the text, at least.
    pub(crate) min_count: usize,
    /// How many of the most frequent ones are left out.
    pub(crate) skip_top: usize,
}

/// Words, which have numbers in the order in which they were first seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    numbers: HashMap<String, u32>,
}

impl Words {
    /// The number of a word.
    pub(crate) fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(word.to_owned(), number);
        number
    }

    /// The words that are kept, and the documents without the others.
    pub(crate) fn frequent(self, documents: Vec<Vec<u32>>, keep: Keep) -> Documents {
        let mut words = vec![String::new(); self.numbers.len()];
        self.numbers.into_iter().for_each(|(word, number)| words[number as usize] = word);
        frequent(words, documents, keep)
    }
}

/// The words that are kept, the most frequent first, and the documents with their numbers, without the others.
pub(crate) fn frequent(mut words: Vec<String>, mut documents: Vec<Vec<u32>>, keep: Keep) -> Documents {
    let mut counts = vec![0usize; words.len()];
    documents.iter().flatten().for_each(|word| counts[*word as usize] += 1);
    // Words of a vocabulary may be in no document.
    let mut order: Vec<usize> =
        (0..words.len()).filter(|word| counts[*word] >= keep.min_count.max(1)).collect();
    order.sort_by(|a, b| counts[*b].cmp(&counts[*a]).then_with(|| words[*a].cmp(&words[*b])));
    order.drain(..keep.skip_top.min(order.len()));
    let mut places = vec![None; words.len()];
    order.iter().zip(0u32..).for_each(|(word, place)| places[*word] = Some(place));
    for document in &mut documents {
        *document = document.iter().filter_map(|word| places[*word as usize]).collect();
    }
    (order.into_iter().map(|word| std::mem::take(&mut words[word])).collect(), documents)
}
