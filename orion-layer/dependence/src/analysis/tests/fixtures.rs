//! The analysis against distance sets that isl has computed (`tests/fixtures/distances.py`).
use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::isl;

const FIXTURES: &str = include_str!("../../../tests/fixtures/distances.jsonl");

/// The nest of a line: access 0 writes, access 1 reads.
fn nest_of(line: &Value) -> LoopNest {
    let dims = isl::variables(&line["dims"], "dims");
    let mut nest = LoopNest::new("fixture", Order::Ordered, Space::Dense, dims);
    nest.inner = isl::variables(&line["inner"], "inner");
    for (key, mode) in [("source", Mode::Write), ("sink", Mode::Read)] {
        access(&mut nest, 0, mode, isl::subscripts(&line[key]));
    }
    nest
}

fn negated(point: &[i64]) -> Vec<i64> {
    point.iter().map(|d| -d).collect()
}

/// The sign patterns of a vector.
fn patterns(vector: &[Distance], sign: i64) -> Vec<String> {
    let mut all = vec![String::new()];
    for distance in vector {
        let signs = [(-1, '-'), (0, '0'), (1, '+')];
        let possible = signs.into_iter().filter(|(d, _)| match distance {
            Distance::Exact(exact) => exact.signum() == d * sign,
            other => other.contains(d * sign),
        });
        let possible: Vec<char> = possible.map(|(_, name)| name).collect();
        all = all.iter().flat_map(|p| possible.iter().map(move |name| format!("{p}{name}"))).collect();
    }
    all
}

/// How the analysis of a line differs from isl's.
pub(super) fn difference(line: &Value) -> Option<String> {
    let found = analyze(&nest_of(line));
    if let Some(points) = line.get("points") {
        let expected: BTreeSet<Vec<i64>> = serde_json::from_value(points.clone()).unwrap();
        let (Some(forward), Some(backward)) = (found.distances(0, 1), found.distances(1, 0)) else {
            return Some(format!("not enumerated, but isl has {} points", expected.len()));
        };
        let points = forward.iter().cloned().chain(backward.iter().map(|point| negated(point)));
        let points: BTreeSet<Vec<i64>> = points.collect();
        return (points != expected).then(|| format!("{points:?} instead of {expected:?}"));
    }
    type Extents = Vec<(i64, i64)>;
    let expected: Vec<(String, Extents)> = serde_json::from_value(line["signs"].clone()).unwrap();
    let pair = found.list.iter().filter(|d| d.source != d.sink);
    let signs: BTreeSet<String> =
        pair.flat_map(|d| patterns(&d.vector, if d.source == 0 { 1 } else { -1 })).collect();
    let names: BTreeSet<String> = expected.iter().map(|(name, _)| name.clone()).collect();
    if signs != names {
        return Some(format!("{signs:?} instead of {names:?}"));
    }
    for (name, extents) in expected {
        for corner in [0, 1] {
            let corner: Vec<i64> = extents.iter().map(|e| if corner == 0 { e.0 } else { e.1 }).collect();
            let covers = |d: &super::super::Dependence| match d.source {
                0 => d.sink == 1 && d.covers(&corner),
                _ => d.sink == 0 && d.covers(&negated(&corner)),
            };
            if !found.list.iter().any(covers) {
                return Some(format!("{corner:?} of {name} is in no vector"));
            }
        }
    }
    None
}

/// The nests and what isl says of them.
pub(super) fn lines() -> Vec<Value> {
    isl::lines(FIXTURES)
}

#[test]
fn distances_equal_those_of_isl() {
    let lines = lines();
    assert_eq!(lines.len(), 600);
    let differ = |(number, line)| difference(line).map(|what| format!("line {}: {what}", number + 1));
    let differences: Vec<String> = lines.iter().enumerate().filter_map(differ).collect();
    assert!(differences.is_empty(), "{} lines differ: {differences:#?}", differences.len());
}
