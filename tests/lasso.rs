//! The example `lasso`: the same weights for every number of workers, the best objective, draws, files, bad input.
#[path = "../examples/lasso/main.rs"]
mod lasso;

use crate::common::program::{program, refuses};
use clap::Parser;
use hectare::orion::array::random::Stream;
use hectare_data::text::LabelledRow;
use hectare_testing::Folder;
use lasso::columns::Columns;
use lasso::data::Data;
use lasso::model::Model;
use lasso::train::Trained;
use lasso::{Options, train};
use std::fs;
use std::path::Path;

fn options(more: &[&str]) -> Options {
    let small = ["lasso", "--quiet", "--rows", "150", "--features", "120", "--lambda", "0.1"];
    let o = Options::parse_from(small.iter().chain(more));
    o.check().unwrap();
    o
}

/// The model that so many workers learn; with 0, that of the serial twin.
fn learned(o: &Options, workers: usize) -> Trained {
    let data = Data::read(o).unwrap();
    let mut all = hectare::run(workers.max(1), |w| train(w, o, &data, workers == 0)).unwrap();
    let first = all.swap_remove(0);
    assert!(all.iter().all(|other| other.model == first.model && other.updates == first.updates));
    first
}

/// All bits of what is learned.
fn bits(trained: &Trained) -> (Vec<u64>, u64, u64) {
    let weights = trained.model.weights.iter().map(|weight| weight.to_bits());
    (
        weights.chain([trained.model.intercept.to_bits()]).collect(),
        trained.objective.to_bits(),
        trained.updates,
    )
}

#[test]
fn weights_have_the_same_bits_for_every_number_of_workers() {
    for more in [&[][..], &["--uniform"], &["--no-intercept"], &["--batch", "3", "--bound", "0.5"]] {
        let o = options(more);
        let twin = bits(&learned(&o, 0));
        for workers in 1..=3 {
            assert_eq!(bits(&learned(&o, workers)), twin, "{workers} workers, {more:?}");
        }
    }
}

/// Rows of small files: eight features, of which some are often 0, and one is constant.
fn row(number: usize) -> LabelledRow {
    let stream = Stream::new(4, "rows").child(number as u64);
    let value = |k: u32| match k {
        3 => 2.0,
        k if k % 3 == 2 && stream.uniform(u64::from(k)) < 0.7 => 0.0,
        k => (10.0 * stream.uniform(u64::from(k))).round() as f32 / 4.0,
    };
    let features: Vec<(u32, f32)> = (0..8).map(|k| (k, value(k))).filter(|(_, x)| *x != 0.0).collect();
    let signal: f32 = features.iter().map(|(k, x)| if k % 2 == 0 { *x } else { 0.25 * x }).sum();
    LabelledRow { label: signal + 7.0 + stream.child(1).normal(0) as f32, features }
}

fn libsvm(rows: impl Iterator<Item = LabelledRow>) -> String {
    let line = |row: LabelledRow| {
        let features: String = row.features.iter().map(|(k, x)| format!(" {}:{x}", k + 1)).collect();
        format!("{}{features}\n", row.label)
    };
    rows.map(line).collect()
}

/// The objective of a model, from its definition.
fn objective(rows: &[LabelledRow], model: &Model, lambda: f64) -> f64 {
    let error = |row: &LabelledRow| (f64::from(row.label) - model.predict(&row.features)).powi(2);
    let squares: f64 = rows.iter().map(error).sum();
    squares / (2.0 * rows.len() as f64) + lambda * model.weights.iter().map(|x| x.abs()).sum::<f64>()
}

#[test]
fn what_is_learned_is_the_best_by_its_definition() {
    let folder = Folder::new("lasso-best");
    let rows: Vec<_> = (0..200).map(row).collect();
    let file = folder.write("rows", &libsvm(rows.iter().cloned()));
    for more in [&[][..], &["--no-intercept"], &["--uniform"]] {
        let files = ["--data", file.as_str(), "--gap", "1e-9", "--lambda", "0.05"];
        let o = options(&[&files, more].concat());
        let trained = learned(&o, 2);
        let found = objective(&rows, &trained.model, 0.05);
        assert!((found - trained.objective).abs() < 1e-9 * found, "{found} {}", trained.objective);
        assert!(trained.gap <= 1e-9 * found, "{}", trained.gap);
        // Nothing near it is better.
        for feature in 0..9 {
            for step in [-1e-3, 1e-3] {
                let mut other = trained.model.clone();
                match feature {
                    8 if o.no_intercept => continue,
                    8 => other.intercept += step,
                    feature => other.weights[feature] += step,
                }
                assert!(objective(&rows, &other, 0.05) > found, "{feature} {step} {more:?}");
            }
        }
        // A constant column is no use beside an intercept.
        assert_eq!(trained.model.weights[3] == 0.0, !o.no_intercept);
    }
    // From some penalty on, nothing is learned but the mean.
    let none = learned(&options(&["--data", &file, "--lambda", "100"]), 2).model;
    let mean: f64 = rows.iter().map(|row| f64::from(row.label)).sum::<f64>() / 200.0;
    assert!(none.weights.iter().all(|weight| *weight == 0.0) && (none.intercept - mean).abs() < 1e-9);
}

#[test]
fn priority_needs_a_third_of_the_updates_of_uniform_draws() {
    // 1,000 features in correlated groups of ten, of which ten matter.
    let size = ["--rows", "300", "--features", "1000", "--lambda", "0.3"];
    let best = learned(&options(&[&size[..], &["--gap", "1e-6"]].concat()), 2).objective;
    let target = (1.01 * best).to_string();
    let updates = |more: &[&str]| {
        let trained = learned(&options(&[&size[..], &["--target", &target], more].concat()), 2);
        assert!(trained.objective <= 1.01 * best);
        trained.updates
    };
    let (priority, uniform) = (updates(&[]), updates(&["--uniform"]));
    assert!(3 * priority <= uniform, "{priority} {uniform}");
}

#[test]
fn columns_are_those_of_the_rows() {
    let rows: Vec<_> = (0..700).map(row).collect();
    let columns = Columns::of(&rows, 8);
    let dense = |column: u32| -> Vec<f64> {
        let value = |row: &LabelledRow| {
            row.features.iter().find(|(k, _)| *k == column).map_or(0.0, |(_, x)| f64::from(*x))
        };
        rows.iter().map(value).collect()
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let other: Vec<f64> = (0..700).map(|k| f64::from(k % 13)).collect();
    for a in 0..8 {
        let by_parts: f64 =
            columns.parts(a as usize).map(|part| part.dot(&other[part.block * columns.block..])).sum();
        assert!((by_parts - dot(&dense(a), &other)).abs() < 1e-9);
        let mut sum = vec![0.0; 700];
        for block in 0..700usize.div_ceil(columns.block) {
            let start = block * columns.block;
            columns.part(a as usize, block).add_to(&mut sum[start..], 2.0);
        }
        assert_eq!(sum, dense(a).iter().map(|x| 2.0 * x).collect::<Vec<_>>());
        for b in 0..8 {
            assert!((columns.product(a as usize, b as usize) - dot(&dense(a), &dense(b))).abs() < 1e-9);
        }
    }
}

#[test]
fn a_saved_model_predicts_the_same_bits() {
    let folder = Folder::new("lasso-saved");
    let train = folder.write("train", &libsvm((0..150).map(row)));
    let test = folder.write("test", &libsvm((150..200).map(row)));
    let [model, one, two] = ["model", "one", "two"].map(|name| folder.at(name));
    let args = ["--data", &train, "--test", &test, "--save", &model, "--predict", &one, "--workers", "2"];
    let said = program("lasso", &args);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said = String::from_utf8(said.stdout).unwrap();
    for workers in ["1", "3"] {
        let args = ["--load", &model, "--test", &test, "--predict", &two, "--workers", workers];
        let again = program("lasso", &args);
        assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
        assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
        assert!(said.contains(String::from_utf8_lossy(&again.stdout).trim()), "{said}");
    }
    assert_eq!(fs::read_to_string(&one).unwrap().lines().count(), 50);
    let o = Options::parse_from(["lasso", "--quiet", "--data", &train, "--test", &test]);
    assert_eq!(Model::read(Path::new(&model)).unwrap(), learned(&o, 3).model);
}

#[test]
fn bad_input_is_one_line_and_a_code() {
    let folder = Folder::new("lasso-bad");
    let good = folder.write("good", "1.5 1:2 3:1\n-2 1:1 2:4\n0.5 2:1\n");
    for (name, text, says) in [
        ("word", "1 1:2\nyes 1:1\n", "word:2: label: expected a number, found \"yes\""),
        ("nan", "1 1:2\nNaN 1:1\n", "nan:2: label: expected a finite f32, found \"NaN\""),
        ("inf", "1 1:2\n2 1:inf\n", "inf:2: expected a finite f32, found \"inf\""),
        ("gap", "1 1:2\n0 1:3 2:\n", "gap:2: expected a number, found \"\""),
        ("pair", "1 1:2\n0 1\n", "pair:2: expected index:value, found \"1\""),
        ("zeroth", "1 1:2\n0 0:3\n", "zeroth:2: features begin at 1 here, found 0"),
        ("order", "1 2:2 1:1\n", "order:1: "),
        ("far", "1 1:2\n0 4294967295:3\n", "far has 4294967295 features"),
        ("empty", "", "empty has no rows"),
        ("bare", "1\n0\n", "bare has 0 features"),
    ] {
        let file = folder.write(name, text);
        for more in [&["--workers", "2"][..], &["--serial"]] {
            refuses("lasso", &[(&[&["--data", &file], more].concat(), says)]);
        }
    }
    refuses("lasso", &[(&["--data", &folder.at("absent")], "absent: No such file")]);
    let wide = folder.write("wide", "1 1:2 7:1\n");
    let says = "wide:1: feature 7, and there are 3: take a file with the features that are learned from";
    refuses("lasso", &[(&["--data", &good, "--test", &wide], says)]);
    for (args, says) in [
        (&["--lambda=-1"][..], "--lambda -1: a finite number, 0 or greater"),
        (&["--lambda", "NaN"], "--lambda NaN: a finite number"),
        (&["--batch", "0"], "--batch 0: at least 1"),
        (&["--explore", "2"], "--explore 2: from 0 to 1"),
        (&["--test", &good], "--test: only with --data"),
        (&["--workers", "0"], "--workers 0: at least 1"),
        (&["--consistency", "bsp"], "--consistency"),
    ] {
        refuses("lasso", &[(args, says)]);
    }
    // Features that are all but the same, in one round: steps that add up to too much.
    let twins: String = (0..40)
        .map(|k| {
            let features: String = (1..=20).map(|f| format!(" {f}:{}", 1 + k % 7)).collect();
            format!("{}{features}\n", k % 7)
        })
        .collect();
    let twins = folder.write("twins", &twins);
    let says = "features of a round depend on each other too much; try a smaller --bound or --batch";
    refuses("lasso", &[(&["--data", &twins, "--bound", "1.5", "--batch", "20"], says)]);
    assert!(program("lasso", &["--data", &twins, "--batch", "20"]).status.success());

    let model = folder.at("model");
    assert!(program("lasso", &["--data", &good, "--save", &model]).status.success());
    let text = fs::read_to_string(&model).unwrap();
    for (name, text, says) in [
        ("cut", text.replace("end\n", ""), "the file ends here: was it cut off?"),
        ("other", text.replace("version 1", "version 2"), "other:1: the first line is"),
        ("features", text.replace("features 3", "features -3"), "features:2: expected 1 to"),
        ("intercept", text.replace("intercept ", "intercept NaN"), "intercept:3: expected a finite number"),
        ("weight", text.replace("end\n", "9 1.5\nend\n"), "expected a feature from"),
        ("words", text.replace("end\n", "what\nend\n"), "expected a feature and its weight, found \"what\""),
        ("nothing", String::new(), "nothing:1: the file ends here"),
    ] {
        let file = folder.write(name, &text);
        refuses("lasso", &[(&["--load", &file, "--test", &good], says)]);
    }
    let says = "wide:1: feature 7, and there are 3";
    refuses("lasso", &[(&["--load", &model, "--test", &wide], says)]);
    refuses("lasso", &[(&["--data", &good, "--save", "/nowhere/model"], "--save /nowhere/model")]);
}
