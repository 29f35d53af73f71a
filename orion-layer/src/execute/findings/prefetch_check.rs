//! Whether the slice of a body names the keys of served arrays that the body uses.
use super::{Findings, iteration};
use crate::view::Touch;
use hectare_dependence::loop_nest::LoopNest;
use std::ops::Range;

/// Keys that are told of, at most.
const TOLD: usize = 6;

/// For each served array, by its number in the loop: what the slice has named, iteration by iteration.
#[derive(Debug, Default)]
pub(crate) struct PrefetchCheck {
    arrays: Vec<(usize, Vec<Vec<u32>>)>,
    iteration: usize,
}

impl PrefetchCheck {
    /// The slice has named these keys of an array, in ascending order, for the next iteration.
    pub(crate) fn add(&mut self, array: usize, keys: Vec<u32>) {
        match self.arrays.iter_mut().find(|(known, _)| *known == array) {
            Some((_, lists)) => lists.push(keys),
            None => self.arrays.push((array, vec![keys])),
        }
    }

    /// PassTrace what the next iteration, `index`, touches and the slice has not named.
    pub(crate) fn check(
        &mut self,
        nest: &LoopNest,
        index: &[i64],
        touches: &[Touch],
        findings: &mut Findings,
    ) {
        for (array, lists) in &self.arrays {
            let (shape, named) = (&nest.arrays[*array].shape, &lists[self.iteration]);
            let mut missed: Vec<usize> = touches
                .iter()
                .filter(|touch| touch.array == *array)
                .filter_map(|touch| key_of(shape, &touch.elements))
                .filter(|key| u32::try_from(*key).is_ok_and(|key| named.binary_search(&key).is_err()))
                .collect();
            missed.sort_unstable();
            missed.dedup();
            for key in missed {
                findings.add("write_misses uses", *array, || {
                    let show = |key: usize| show_key(&nest.arrays[*array].name, shape, key);
                    let names: Vec<String> = named.iter().take(TOLD).map(|key| show(*key as usize)).collect();
                    let more = if named.len() > TOLD { ", ..." } else { "" };
                    format!(
                        "iteration {} uses {}, and the slice that is run before it to fetch what it uses names {}{more}: a \
                         subscript of a served array must have the same value whenever it is computed",
                        iteration(nest, index),
                        show(key),
                        if names.is_empty() { "nothing".into() } else { names.join(", ") }
                    )
                });
            }
        }
        self.iteration += 1;
    }
}

/// The dimensions that tell keys apart: all of one, or all but the last.
fn leading(shape: &[usize]) -> &[usize] {
    if shape.len() > 1 { &shape[..shape.len() - 1] } else { shape }
}

fn key_of(shape: &[usize], elements: &[Range<usize>]) -> Option<usize> {
    leading(shape).iter().zip(elements).try_fold(0usize, |key, (extent, range)| {
        (range.start < *extent).then_some(key * extent + range.start)
    })
}

fn show_key(name: &str, shape: &[usize], mut key: usize) -> String {
    let mut index: Vec<String> = Vec::new();
    for extent in leading(shape).iter().rev() {
        index.push((key % extent).to_string());
        key /= extent;
    }
    index.reverse();
    format!("{name}[{}{}]", index.join(", "), if shape.len() > 1 { ", .." } else { "" })
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_elements_or_rows() {
        assert_eq!(key_of(&[10], &[7..8]), Some(7));
        assert_eq!(key_of(&[10], &[10..11]), None);
        assert_eq!(key_of(&[10, 3, 4], &[7..8, 2..3, 0..4]), Some(23));
        assert_eq!(show_key("w", &[10, 3, 4], 23), "w[7, 2, ..]");
        assert_eq!(show_key("w", &[10], 7), "w[7]");
    }
}
