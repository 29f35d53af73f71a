//! Text with planted topics.
use super::Documents;
use hectare::orion::array::random::Stream;

/// Topics of generated documents; word `w` belongs to topic `w % PLANTED`.
pub(crate) const PLANTED: usize = 50;

/// The parameters of generated text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generated {
    /// How many.
    pub(crate) documents: usize,
    /// Different words.
    pub(crate) words: usize,
    /// The mean number of words in a document.
    pub(crate) length: usize,
    /// Of Zipf's law.
    pub(crate) exponent: f64,
    /// Topics in a document.
    pub(crate) topics: u64,
    /// So far from a document's topic are those, around a ring, whose words it has also, the farther the fewer; 0 for none.
    pub(crate) spread: u64,
}

/// Documents with a few planted topics each. Ranks of words follow Zipf's law (density proportional to `r^-s`); words of
/// rank `r` belong to topic `r % PLANTED`. A document takes 0.7 of its words from the words of its own topics, the
/// others from all. Topics lie on a ring, and with a `spread` those near a document's own count among them.
pub(crate) fn generate(o: Generated) -> Documents {
    let power = 1.0 - o.exponent;
    let rank = |unit: f64, ranks: usize| {
        let rank = ((((ranks + 1) as f64).powf(power) - 1.0) * unit + 1.0).powf(1.0 / power);
        (rank as usize - 1).min(ranks - 1)
    };
    let stream = Stream::new(7, "documents");
    let topics = PLANTED.min(o.words);
    // The difference of two numbers of 0 to `spread`, by bits that the topic does not depend on much.
    let astray = |bits: u64| match o.spread {
        0 => 0,
        spread => {
            let [a, b] = [bits & 0xffff, bits >> 16 & 0xffff].map(|part| (part * (spread + 1)) >> 16);
            (topics as u64 + a - b) as usize
        }
    };
    let document = |doc: usize| -> Vec<u32> {
        let numbers = stream.child(doc as u64);
        let own: Vec<usize> = (0..o.topics).map(|at| numbers.below(at, topics as u64) as usize).collect();
        let length = o.length / 2 + numbers.below(o.topics, o.length as u64 + 1) as usize;
        let word = |at: u64| match numbers.below(at, 10) {
            ..7 => {
                let topic = own[numbers.below(at + 1, o.topics) as usize];
                let topic = (topic + astray(numbers.bits(at + 1))) % topics;
                let ranks = (o.words - topic).div_ceil(topics);
                rank(numbers.uniform(at + 2), ranks) * topics + topic
            }
            _ => rank(numbers.uniform(at + 2), o.words),
        };
        (0..length as u64).map(|at| word(o.topics + 1 + 3 * at) as u32).collect()
    };
    let words = (0..o.words).map(|word| format!("w{word}t{}", word % topics)).collect();
    (words, (0..o.documents).map(document).collect())
}
