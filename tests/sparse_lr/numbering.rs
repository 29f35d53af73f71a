//! Features that are numbered by their frequency, where most are rare.
use super::sparse_lr::numbering::Numbering;
use super::{Examples, losses, options, sparse_lr};
use crate::common::program::program;
use hectare::orion::array::random::Stream;
use hectare::orion::relax::Consistency;
use sparse_lr::{serial, train};
use std::fs;

/// So many features that a few in the middle are frequent, the second of them most.
fn counts() -> Vec<u32> {
    let mut counts = vec![1; 5000];
    counts[1000..1004].copy_from_slice(&[70, 90, 63, 64]);
    counts
}

#[test]
fn frequent_features_come_first_behind_the_intercept() {
    let numbering = Numbering::by(&counts());
    assert_eq!((numbering.intercept(), numbering.head), (0, 4));
    let row = [(0, 0.5), (1000, 1.5), (1001, 2.5), (1002, 3.5), (1003, 4.5), (4999, 5.5)];
    let placed = [(1, 2.5), (2, 1.5), (3, 4.5), (4, 3.5), (5, 0.5), (5000, 5.5)];
    assert_eq!(numbering.row(&row), placed);
    let weights: Vec<f32> = (0..5001).map(|at| at as f32).collect();
    let placed = numbering.placed(weights.clone());
    assert_eq!(placed[..6], [5000.0, 1001.0, 1000.0, 1003.0, 1002.0, 0.0]);
    assert_eq!(numbering.restored(placed), weights);
}

#[test]
fn features_stay_where_most_are_frequent_or_there_are_few() {
    for counts in [[vec![64; 2500], vec![1; 2500]].concat(), counts()[..4000].to_vec()] {
        let numbering = Numbering::by(&counts);
        assert_eq!((numbering.intercept(), numbering.head), (counts.len(), counts.len() + 1));
        assert_eq!(numbering.row(&[(0, 0.5), (1001, 1.5)]), [(0, 0.5), (1001, 1.5)]);
        let weights: Vec<f32> = (0..=counts.len()).map(|at| at as f32).collect();
        assert_eq!(numbering.placed(weights.clone()), weights);
        assert_eq!(numbering.restored(weights.clone()), weights);
    }
}

/// Examples with three of a dozen frequent features and three of 5,000 rare ones; the frequent ones tell the label.
fn wide(name: &str, numbers: std::ops::Range<usize>) -> Examples {
    let line = |number| {
        let stream = Stream::new(3, "wide").child(number as u64);
        let mut features: Vec<u64> = (0..3).map(|at| 400 * stream.below(at, 12) + 7).collect();
        features.extend((3..6).map(|at| 1 + stream.below(at, 5000)));
        features.sort_unstable();
        features.dedup();
        let margin =
            features.iter().map(|feature| if feature % 400 == 7 { feature / 400 } else { 5 }).sum::<u64>();
        let features: String = features.iter().map(|feature| format!(" {feature}:1")).collect();
        format!("{}{features}\n", if margin > 5 * 6 { "+1" } else { "-1" })
    };
    Examples::of(name, &numbers.map(line).collect::<String>())
}

#[test]
fn wide_examples_are_learned_as_well_as_by_the_twin() {
    let files = [wide("wide", 0..4000), wide("wide-test", 4000..5000)];
    let o = options(&["--data", files[0].path(), "--test", files[1].path(), "--passes", "10"]);
    let twin = *losses(&serial(&o).unwrap()).last().unwrap();
    assert!(twin < 0.3, "there is something to learn: {twin}");
    for workers in [1, 2, 4] {
        for consistency in [Consistency::Bsp, Consistency::Bounded(1)] {
            let all = hectare::run(workers, |w| train(w, &o, consistency)).unwrap();
            let loss = *losses(&all[0]).last().unwrap();
            assert!(loss < 1.15 * twin, "{workers}, {consistency}: {loss}, the twin {twin}");
        }
    }
}

#[test]
fn wide_examples_are_merged_as_often_as_the_user_says() {
    let file = wide("every", 0..2000);
    for every in ["per-pass:3", "iterations:300", "seconds:0.001", "staleness:500"] {
        let o = options(&["--data", file.path(), "--every", every]);
        let all = hectare::run(2, |w| train(w, &o, Consistency::Bounded(1)));
        let loss = *losses(&all.unwrap_or_else(|error| panic!("{every}: {error}"))[0]).last().unwrap();
        assert!(loss < 0.6, "{every}: {loss}");
    }
}

/// Weights are saved, and loaded, by the numbers that features have in the files.
#[test]
fn a_model_of_wide_examples_predicts_what_was_learned() {
    let files = [wide("model", 0..3000), wide("model-test", 3000..3500)];
    let [model, found, again] =
        ["wide-model", "wide-chances", "wide-again"].map(|name| Examples::of(name, "old"));
    let run = |args: &[&str]| {
        let output = program("sparse_lr", &[&["--quiet"], args].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let chances = |file: &Examples| -> Vec<f32> {
        fs::read_to_string(file.path()).unwrap().lines().map(|line| line.parse().unwrap()).collect()
    };
    let close = || {
        let (found, again) = (chances(&found), chances(&again));
        assert_eq!((found.len(), again.len()), (500, 500));
        assert!(found.iter().any(|chance| *chance > 0.9) && found.iter().any(|chance| *chance < 0.1));
        // Products are added up in another order.
        found.iter().zip(&again).for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} {b}"));
    };
    let test = ["--test", files[1].path()];
    let learn =
        ["--data", files[0].path(), "--passes", "5", "--save", model.path(), "--predict", found.path()];
    run(&[&learn[..], &test, &["--workers", "2"]].concat());
    run(&[&["--load", model.path(), "--predict", again.path()], &test[..]].concat());
    close();
    // Going on from it, by steps of no length: the same.
    let go_on = [
        "--load",
        model.path(),
        "--data",
        files[0].path(),
        "--passes",
        "1",
        "--rate",
        "1e-9",
        "--rule",
        "sgd",
    ];
    run(&[&go_on[..], &["--predict", again.path()], &test].concat());
    close();
}
