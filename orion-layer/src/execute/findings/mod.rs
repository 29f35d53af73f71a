//! Checking a loop: what its body really touches, against what its description says and what its schedule would
//! allow.
//!
//! A checked loop runs serially, one iteration at a time, on worker 0. Every element that an iteration touches must
//! be named by the description at that iteration; and of two iterations that touch an element which one of them
//! writes, the schedule must order one before the other.
mod cover;
mod prefetch_check;
mod races;

pub(crate) use self::cover::Covers;
pub(crate) use self::prefetch_check::PrefetchCheck;
pub(crate) use self::races::Races;

use hectare_dependence::loop_nest::LoopNest;
use std::collections::BTreeMap;
use std::ops::Range;

/// How many findings of one kind are told in full.
const TOLD: usize = 3;

/// The findings of a check, by kind: those of one kind and one array are told a few times, then counted.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    kinds: BTreeMap<(&'static str, usize), (Vec<String>, usize)>,
}

impl Findings {
    fn add(&mut self, kind: &'static str, array: usize, text: impl FnOnce() -> String) {
        let (told, count) = self.kinds.entry((kind, array)).or_default();
        *count += 1;
        if told.len() < TOLD {
            told.push(text());
        }
    }

    /// One line per finding.
    pub(crate) fn into_lines(self, nest: &LoopNest) -> Vec<String> {
        let mut lines = Vec::new();
        for ((kind, array), (told, count)) in self.kinds {
            let more = count - told.len();
            lines.extend(told);
            if more > 0 {
                lines.push(format!("... and {more} more {kind} of {}", nest.arrays[array].name));
            }
        }
        lines
    }
}

/// An iteration, in words.
fn iteration(nest: &LoopNest, index: &[i64]) -> String {
    let pairs: Vec<String> =
        nest.dims.iter().zip(index).map(|(dim, at)| format!("{}={at}", dim.name)).collect();
    format!("({})", pairs.join(", "))
}

/// Some elements of an array, in words.
fn elements(nest: &LoopNest, array: usize, ranges: &[Range<usize>]) -> String {
    let one = |range: &Range<usize>| match range.len() {
        1 => range.start.to_string(),
        _ => format!("{}..{}", range.start, range.end),
    };
    let parts: Vec<String> = ranges.iter().map(one).collect();
    format!("{}[{}]", nest.arrays[array].name, parts.join(", "))
}

/// Calls `visit` with every index in a box until it returns false; whether it never did.
fn all_points(ranges: &[Range<usize>], mut visit: impl FnMut(&[usize]) -> bool) -> bool {
    let mut going = true;
    hectare_dependence::schedule::for_each_cell(
        &hectare_dependence::schedule::Tile { cells: ranges.to_vec() },
        |point| {
            going = visit(point);
            going
        },
    );
    going
}
