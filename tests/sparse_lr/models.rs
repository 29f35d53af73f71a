//! Models in files, going on from them, and predictions.
use super::sparse_lr::labels::Labels;
use super::sparse_lr::model::Model;
use super::{Examples, sparse_lr};
use crate::common::program::{program, refuses};
use sparse_lr::{Options, serial};
use std::fs;
use std::path::Path;

/// Runs the program, which succeeds; what it says.
fn run(args: &[&str]) -> String {
    let output = program("sparse_lr", &[&["--quiet"], args].concat());
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && error.is_empty(), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn numbers(path: &str) -> Vec<f32> {
    fs::read_to_string(path).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

/// Examples with labels 1 and 2 instead of -1 and +1.
fn twos(name: &str, numbers: std::ops::Range<usize>) -> Examples {
    let signs = Examples::write(&format!("{name}-signs"), numbers);
    let text = fs::read_to_string(signs.path()).unwrap();
    Examples::of(name, &text.replace("-1 ", "1 ").replace("+1 ", "2 "))
}

#[test]
fn a_saved_model_predicts_what_was_learned() {
    let files = [twos("saved", 0..600), twos("saved-test", 600..800)];
    let [model, chances, labels, again] =
        ["model", "chances", "labels", "again"].map(|name| Examples::of(&format!("out-{name}"), "old"));
    let learn =
        ["--data", files[0].path(), "--test", files[1].path(), "--passes", "5", "--save", model.path()];
    let out = ["--predict", chances.path(), "--predict-labels", labels.path()];
    for manner in
        [&["--serial"][..], &["--workers", "1"], &["--workers", "3"], &["--workers", "2", "--serve"]]
    {
        let said = run(&[&learn[..], &out, manner].concat());
        let (found, expected) = (numbers(chances.path()), numbers(labels.path()));
        assert_eq!((found.len(), expected.len()), (200, 200));
        let text = fs::read_to_string(files[1].path()).unwrap();
        let right = text.lines().zip(&found).zip(&expected).filter(|((line, chance), label)| {
            assert!(
                (0.0..=1.0).contains(*chance) && (**chance > 0.5) == (**label == 2.0),
                "{chance}, {label}"
            );
            line.starts_with(&format!("{label} "))
        });
        let accuracy = format!("accuracy {:.4}", right.count() as f64 / 200.0);
        assert!(said.contains(&accuracy), "{manner:?}: {said}, counted {accuracy}");
        // From the file, on other workers: the same.
        let told = run(&[
            "--load",
            model.path(),
            "--test",
            files[1].path(),
            "--predict",
            again.path(),
            "--workers",
            "2",
        ]);
        assert!(told.starts_with("test loss") && told.contains(&accuracy), "{told}, not {accuracy}");
        assert_eq!(numbers(again.path()), found, "{manner:?}");
    }
}

#[test]
fn a_model_is_a_text_of_six_lines_and_weights() {
    let file = Examples::of("format", "");
    let model = Model {
        labels: Labels { negative: 1.0, positive: 2.0 },
        weights: vec![0.1, -2.5e-9, 0.0, 3e12],
        intercept: Some(-0.75),
    };
    model.write(Path::new(file.path())).unwrap();
    let text = fs::read_to_string(file.path()).unwrap();
    let header = "solver_type L2R_LR\nnr_class 2\nlabel 2 1\nnr_feature 4\nbias 1\nw\n";
    assert_eq!(text, format!("{header}0.1\n-0.0000000025\n0\n3000000000000\n-0.75\n"));
    assert_eq!(Model::read(Path::new(file.path())).unwrap(), model);
    let bare = Model { intercept: None, ..model };
    bare.write(Path::new(file.path())).unwrap();
    assert_eq!(Model::read(Path::new(file.path())).unwrap(), bare);
    // LIBLINEAR's weights are for the label that it saw first, and its bias may have another value.
    fs::write(
        file.path(),
        "solver_type L1R_LR\nnr_class 2\nlabel -1 1\nnr_feature 2\nbias 2\nw\n0.5 \n-1 \n0.25 \n",
    )
    .unwrap();
    let theirs = Model { labels: Labels::SIGNS, weights: vec![-0.5, 1.0], intercept: Some(-0.5) };
    assert_eq!(Model::read(Path::new(file.path())).unwrap(), theirs);
}

#[test]
fn training_goes_on_from_a_model() {
    let (file, model) = (Examples::write("goes-on", 0..600), Examples::of("goes-on-model", ""));
    let data = ["sparse_lr", "--quiet", "--rule", "sgd", "--decay", "1", "--data", file.path()];
    let last = |more: &[&str]| {
        let o = <Options as clap::Parser>::parse_from(data.iter().chain(more));
        *super::losses(&serial(&o).unwrap()).last().unwrap()
    };
    last(&["--passes", "2", "--save", model.path()]);
    let rest = last(&["--passes", "3", "--load", model.path()]);
    // SGD has no state but the weights.
    assert_eq!(rest, last(&["--passes", "5"]));
    let workers = run(&["--data", file.path(), "--load", model.path(), "--passes", "1", "--workers", "2"]);
    let loss: f64 = workers.split("test loss ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    assert!(loss < last(&["--passes", "2"]), "{workers}");
}

#[test]
fn files_that_are_no_models_are_refused_with_the_line() {
    let (data, file) = (Examples::of("two-labels", "1 1:1\n-1 2:1\n"), Examples::of("no-model", ""));
    let good = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n0.5\n-0.5\n";
    let with = |from: &str, to: &str| good.replace(from, to);
    let cases = [
        (String::new(), ": expected the header of a model"),
        ("+1 3:0.5\n".into(), ":1: expected the header of a model"),
        (with("nr_class 2", "nr_class 3"), ":2: a model of 3 classes"),
        (with("L2R_LR", "L2R_L2LOSS_SVC"), ":1: a model of L2R_L2LOSS_SVC, which is no logistic regression"),
        (with("label 1 -1\n", ""), "the header lacks"),
        (with("label 1 -1", "label 1"), ":3: expected two labels"),
        (with("label 1 -1", "label 1 1"), "both labels are 1"),
        (with("nr_feature 2", "nr_feature two"), ":4: nr_feature: expected a number, found \"two\""),
        (with("nr_feature 2", "nr_feature 99999999999999"), "it ends after 2 weights of 99999999999999"),
        (with("\n-0.5", ""), "it ends after 1 weights of 2: was it cut off?"),
        (with("\n-0.5\n", "\n-0.5"), "the last line has no end: was it cut off?"),
        (with("\n0.5\n", &format!("\n{}\n", "x".repeat(100_000))), "xxx [... "),
        (with("-0.5\n", "-0.5\n1\n"), ":9: more than 2 weights"),
        (with("\n0.5\n", "\nhalf\n"), ":7: weight: expected a number, found \"half\""),
        (with("\n0.5\n", "\nNaN\n"), ":7: weight: expected a finite number"),
        (with("\n0.5\n", "\n1e99\n"), ":7: weight: expected a finite number"),
    ];
    for (text, says) in &cases {
        fs::write(file.path(), text).unwrap();
        for more in [&["--test", data.path()][..], &["--data", data.path(), "--serial"]] {
            refuses("sparse_lr", &[(&[&["--load", file.path()], more].concat(), says)]);
        }
    }
    fs::write(file.path(), [0xff, 0xfe, 0]).unwrap();
    refuses("sparse_lr", &[(&["--load", file.path(), "--test", data.path()], "is no text")]);
}

#[test]
fn what_cannot_be_done_with_a_model_is_said_before_anything_is_learned() {
    let (data, model) = (Examples::of("fits-not", "1 1:1\n2 2:1\n"), Examples::of("fits-not-model", ""));
    Model { labels: Labels::SIGNS, weights: vec![1.0], intercept: Some(0.5) }
        .write(Path::new(model.path()))
        .unwrap();
    let (data, load) = (["--data", data.path()], ["--load", model.path()]);
    let both = |more: &[&str], says: &str| refuses("sparse_lr", &[(&[&load[..], more].concat(), says)]);
    refuses("sparse_lr", &[(&["--rows", "100", "--save", "/nowhere/model"], "--save /nowhere/model")]);
    refuses(
        "sparse_lr",
        &[(&["--rows", "100", "--workers", "3", "--predict", "/nowhere/out"], "--predict /nowhere/out")],
    );
    refuses("sparse_lr", &[(&["--test", data[1]], "--test: only with --data")]);
    refuses("sparse_lr", &[(&["--rows", "100", "--passes", "0"], "--passes 0")]);
    refuses("sparse_lr", &[(&["--load", "/nowhere/model", "--test", data[1]], "cannot read /nowhere/model")]);
    both(&[], "--load: needs --data");
    both(&["--test", data[1], "--serial"], "only with --data");
    both(&["--test", data[1]], ":2: the label 2 is none of those learned, which are -1 and 1");
    both(&[data[0], data[1]], ":2: the label 2 is none of those learned");
    both(&[data[0], data[1], "--no-intercept"], "--no-intercept: the model in");
}

#[test]
fn chances_are_those_of_the_margins() {
    for margin in [-200.0, -3.0, -1e-7, 0.0, 0.5, 100.0] {
        let chance = f64::from(sparse_lr::logistic::probability(margin));
        assert!((chance - 1.0 / (1.0 + f64::from(-margin).exp())).abs() < 1e-7, "{margin}: {chance}");
    }
}
