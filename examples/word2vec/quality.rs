//! How good vectors are.
use super::text::{Known, SPREAD};
use super::{Text, kernel::LANES};
use hectare::orion::array::random::Stream;
use hectare::orion::dot;

/// Words that each pair is compared with.
const OTHERS: u64 = 200;
/// Words that are compared with others of every grade.
const ASKED: usize = 2000;

/// How good vectors are by the cosine, at most 1; `None` if nothing is known about the words.
///
/// Of a text with planted topics, which lie on a ring: the rank correlation (Spearman) of cosines with how far apart the
/// words' topics are, from the same to so far that they share no sentences, on as many pairs of each distance. 0 for
/// vectors that know nothing.
///
/// Of a text with pairs of words that ought to be alike: the chance that these are more alike than one of them and a
/// random word (the area under the ROC curve). A half for vectors that know nothing.
pub(crate) fn score(text: &Text, vectors: &[f32], width: usize) -> Option<f64> {
    debug_assert_eq!(width % LANES, 0);
    let mut unit = vectors.to_vec();
    for row in unit.chunks_exact_mut(width) {
        let norm = dot(row, row).sqrt().max(f32::MIN_POSITIVE);
        row.iter_mut().for_each(|x| *x /= norm);
    }
    match &text.known {
        Known::Ring(topics) => correlation(topics, &unit, width),
        Known::Pairs(pairs) => area(pairs, &unit, width),
    }
}

fn correlation(topics: &[Vec<usize>], unit: &[f32], width: usize) -> Option<f64> {
    let row = |word: usize| &unit[word * width..][..width];
    let numbers = Stream::new(5, "grades");
    let words: Vec<(usize, usize)> =
        topics.iter().enumerate().flat_map(|(topic, words)| words.iter().map(move |w| (topic, *w))).collect();
    let grades = (2 * SPREAD + 2).min(topics.len().div_ceil(2));
    let (mut alike, mut near) = (Vec::new(), Vec::new());
    for (number, (topic, word)) in words.iter().step_by(words.len().div_ceil(ASKED).max(1)).enumerate() {
        for grade in 0..grades {
            let random = numbers.child(number as u64);
            let side = if random.below(2 * grade as u64, 2) == 0 { grade } else { topics.len() - grade };
            let others = &topics[(topic + side) % topics.len()];
            if others.is_empty() {
                continue;
            }
            let other = others[random.below(2 * grade as u64 + 1, others.len() as u64) as usize];
            if other != *word {
                alike.push(f64::from(dot(row(*word), row(other))));
                near.push(-(grade as f64));
            }
        }
    }
    let (alike, near) = (ranks(&alike), ranks(&near));
    let mean = (alike.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    let scale = (product(&alike, &alike) * product(&near, &near)).sqrt();
    (scale > 0.0).then(|| product(&alike, &near) / scale)
}

/// The ranks of values, from 0; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let mean = first as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|at| ranks[*at] = mean);
        first += equal.len();
    }
    ranks
}

fn area(pairs: &[[usize; 2]], unit: &[f32], width: usize) -> Option<f64> {
    let row = |word: usize| &unit[word * width..][..width];
    let numbers = Stream::new(5, "others");
    // Not among rare words, of which little is known.
    let frequent = pairs.iter().flatten().max()? + 1;
    let mut more = 0u64;
    for (number, [a, b]) in pairs.iter().enumerate() {
        let alike = dot(row(*a), row(*b));
        let other = |at| numbers.child(number as u64).below(at, frequent as u64) as usize;
        more += (0..OTHERS).filter(|at| alike > dot(row(*a), row(other(*at)))).count() as u64;
    }
    Some(more as f64 / (OTHERS * pairs.len() as u64) as f64)
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
