//! How good vectors are.
use super::{Text, kernel::LANES};
use hectare::orion::array::random::Stream;
use hectare::orion::dot;

/// Words that each pair is compared with.
const OTHERS: u64 = 200;

/// The chance that words of a pair that ought to be alike are more alike, by the cosine, than one of them and a random
/// word (the area under the ROC curve): 0.5 for vectors that know nothing. `None` without pairs.
pub(crate) fn score(text: &Text, vectors: &[f32], width: usize) -> Option<f64> {
    debug_assert_eq!(width % LANES, 0);
    let mut unit = vectors.to_vec();
    for row in unit.chunks_exact_mut(width) {
        let norm = dot(row, row).sqrt().max(f32::MIN_POSITIVE);
        row.iter_mut().for_each(|x| *x /= norm);
    }
    let row = |word: usize| &unit[word * width..][..width];
    let numbers = Stream::new(5, "others");
    // Not among rare words, of which little is known.
    let frequent = text.pairs.iter().flatten().max()? + 1;
    let mut more = 0u64;
    for (number, [a, b]) in text.pairs.iter().enumerate() {
        let alike = dot(row(*a), row(*b));
        let other = |at| numbers.child(number as u64).below(at, frequent as u64) as usize;
        more += (0..OTHERS).filter(|at| alike > dot(row(*a), row(other(*at)))).count() as u64;
    }
    Some(more as f64 / (OTHERS * text.pairs.len() as u64) as f64)
}

/// The words that are most like `word`.
pub(crate) fn nearest<'t>(
    text: &'t Text,
    vectors: &[f32],
    width: usize,
    word: usize,
    count: usize,
) -> Vec<&'t str> {
    let row = |word: usize| &vectors[word * width..][..width];
    let cosine =
        |other: usize| dot(row(word), row(other)) / dot(row(other), row(other)).sqrt().max(f32::MIN_POSITIVE);
    let others = (0..text.words.len().min(20_000)).filter(|other| *other != word);
    let mut others: Vec<(f32, usize)> = others.map(|other| (cosine(other), other)).collect();
    others.sort_by(|a, b| b.0.total_cmp(&a.0));
    others.iter().take(count).map(|other| text.words[other.1].as_str()).collect()
}
