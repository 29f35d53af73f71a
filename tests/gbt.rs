//! The example `gbt`: the same trees for every number of workers, what they learn, files, bad input.
#[path = "../examples/gbt/main.rs"]
mod gbt;

use crate::common::program::{program, refuses};
use clap::Parser;
use gbt::model::Model;
use gbt::tree::{Node, Tree};
use gbt::{Options, data, train};
use hectare_testing::Folder;
use std::fs;
use std::path::Path;

fn options(more: &[&str]) -> Options {
    let small = ["gbt", "--quiet", "--rows", "1500", "--trees", "5"];
    let o = Options::parse_from(small.iter().chain(more));
    o.check().unwrap();
    o
}

/// The model that so many workers learn; with 0, that of the serial twin.
fn learned(o: &Options, workers: usize) -> Model {
    let mut all = hectare::run(workers.max(1), |w| train(w, o, workers == 0)).unwrap();
    let first = all.swap_remove(0);
    assert!(all.iter().all(|other| other.model == first.model && other.measured == first.measured));
    first.model
}

/// All bits of a model.
fn bits(model: &Model) -> String {
    format!("{model:?}")
}

fn depth(tree: &Tree, at: usize) -> usize {
    match tree.nodes[at] {
        Node::Leaf { .. } => 0,
        Node::Split { left, right, .. } => 1 + depth(tree, left as usize).max(depth(tree, right as usize)),
    }
}

fn leaves(tree: &Tree) -> usize {
    tree.nodes.iter().filter(|node| matches!(node, Node::Leaf { .. })).count()
}

#[test]
fn trees_have_the_same_bits_for_every_number_of_workers() {
    for loss in ["logistic", "squared"] {
        for growth in [
            &["--growth", "depth", "--depth", "4"][..],
            &["--growth", "leaf", "--depth", "0", "--leaves", "9"],
        ] {
            // Slots of 8 and of 16 bits.
            for bins in ["20", "255"] {
                let o = options(&[&["--loss", loss, "--bins", bins], growth].concat());
                let twin = learned(&o, 0);
                assert!(twin.trees.iter().all(|tree| leaves(tree) > 4), "{growth:?}");
                assert!(growth[1] != "depth" || twin.trees.iter().all(|tree| depth(tree, 0) <= 4));
                assert!(growth[1] != "leaf" || twin.trees.iter().all(|tree| leaves(tree) <= 9));
                for workers in 1..=4 {
                    assert_eq!(
                        bits(&learned(&o, workers)),
                        bits(&twin),
                        "{workers} workers, {loss}, {growth:?}, {bins}"
                    );
                }
            }
        }
    }
}

#[test]
fn slots_of_32_bits_make_the_same_trees_too() {
    let o =
        options(&["--rows", "8000", "--bins", "65536", "--trees", "1", "--loss", "squared", "--depth", "3"]);
    let twin = learned(&o, 0);
    assert_eq!(depth(&twin.trees[0], 0), 3);
    assert_eq!(bits(&learned(&o, 3)), bits(&twin));
}

#[test]
fn both_growths_split_the_same_leaves_if_there_are_leaves_enough() {
    let o = |growth| options(&["--growth", growth, "--depth", "4", "--leaves", "16"]);
    let (by_depth, by_leaf) = (learned(&o("depth"), 2), learned(&o("leaf"), 2));
    // In another order, so that nodes have other numbers.
    let row = |number: usize| {
        (0..10u32).map(|f| (f, ((number * 7 + f as usize * 13) % 97) as f32 / 97.0)).collect::<Vec<_>>()
    };
    for number in 0..200 {
        assert_eq!(by_depth.margin(&row(number)).to_bits(), by_leaf.margin(&row(number)).to_bits());
    }
}

/// The best split of all rows and its children's values, in floats of 64 bits, by looking at every value of every feature.
fn best_split(rows: &[(f64, Vec<f64>)], begin: f64, lambda: f64) -> (usize, f64, [f64; 2]) {
    let gradient = |range: &mut dyn Iterator<Item = &(f64, Vec<f64>)>| {
        range.fold([0.0, 0.0], |[g, h], (label, _)| [g + begin - label, h + 1.0])
    };
    let mut best = (0, 0.0, [0.0; 2]);
    let mut most = f64::NEG_INFINITY;
    for feature in 0..rows[0].1.len() {
        for (_, at) in rows {
            let threshold = at[feature];
            let [g, h] = gradient(&mut rows.iter().filter(|(_, x)| x[feature] <= threshold));
            let [other_g, other_h] = gradient(&mut rows.iter().filter(|(_, x)| x[feature] > threshold));
            let gain = g * g / (h + lambda) + other_g * other_g / (other_h + lambda);
            if gain > most && h >= 1.0 && other_h >= 1.0 {
                most = gain;
                best = (feature, threshold, [-g / (h + lambda), -other_g / (other_h + lambda)]);
            }
        }
    }
    best
}

#[test]
fn the_first_split_is_the_best_of_all() {
    let o = options(&["--loss", "squared", "--rows", "180", "--depth", "1", "--trees", "1", "--rate", "1"]);
    let read = hectare::run(1, |w| data::read(w, &o)?.train.to_vec(w)).unwrap().swap_remove(0);
    let dense = |row: &[(u32, f32)]| {
        let mut all = vec![0.0; 10];
        row.iter().for_each(|(feature, x)| all[*feature as usize] = f64::from(*x));
        all
    };
    let rows: Vec<_> = read.iter().map(|e| (f64::from(e.value.label), dense(&e.value.features))).collect();
    let model = learned(&o, 2);
    let (feature, value, children) = best_split(&rows, f64::from(model.begin), 1.0);
    let Node::Split { feature: found, threshold, left, right } = model.trees[0].nodes[0] else {
        panic!("no split")
    };
    assert_eq!(found as usize, feature);
    // The same rows are below.
    assert!(rows.iter().all(|(_, x)| (x[feature] <= f64::from(threshold)) == (x[feature] <= value)));
    for (node, wanted) in [(left, children[0]), (right, children[1])] {
        let Node::Leaf { value } = model.trees[0].nodes[node as usize] else { panic!("no leaf") };
        assert!((f64::from(value) - wanted).abs() < 1e-3 * wanted.abs(), "{value} {wanted}");
    }
}

#[test]
fn what_is_planted_is_learned() {
    // Noise has a deviation of 1, labels one of about 5.
    let o = options(&["--loss", "squared", "--rows", "6000", "--trees", "100"]);
    let trained = hectare::run(2, |w| train(w, &o, false)).unwrap().swap_remove(0);
    assert!(trained.measured.loss() < 1.7, "{:?}", trained.measured);
    let o = options(&["--rows", "6000", "--trees", "100"]);
    let trained = hectare::run(2, |w| train(w, &o, false)).unwrap().swap_remove(0);
    assert!(trained.measured.loss() < 0.26, "{:?}", trained.measured);
    // Limits hold.
    let o = options(&["--least-weight", "2000", "--loss", "squared"]);
    assert!(learned(&o, 1).trees.iter().all(|tree| leaves(tree) == 1));
    let o = options(&["--least-gain", "1e9", "--loss", "squared"]);
    assert!(learned(&o, 1).trees.iter().all(|tree| leaves(tree) == 1));
}

/// A row of generated numbers: a label, and five features, some of them zero.
fn numbers(k: usize) -> (f32, [f32; 5]) {
    let x = [k % 7, k * k % 11, k * 3 % 5, k % 2, 4].map(|x| x as f32 / 2.0 - 1.0);
    ((x[0] * x[1] + x[2]).round(), x)
}

fn libsvm(range: std::ops::Range<usize>, label: impl Fn(f32) -> f32) -> String {
    let line = |k| {
        let (y, x) = numbers(k);
        let features = x.iter().enumerate().filter(|(_, x)| **x != 0.0);
        let features: String = features.map(|(f, x)| format!(" {}:{x}", f + 1)).collect();
        format!("{}{features}\n", label(y))
    };
    range.map(line).collect()
}

fn csv(range: std::ops::Range<usize>, header: &str) -> String {
    let line = |k| {
        let (y, x) = numbers(k);
        format!("{},{},{y},{},{},{}\n", x[0], x[1], x[2], x[3], x[4])
    };
    header.to_owned() + &range.map(line).collect::<String>()
}

#[test]
fn a_saved_model_predicts_the_same_bits() {
    let folder = Folder::new("gbt-saved");
    let sign = |y: f32| if y > 0.0 { 7.0 } else { 3.0 };
    for (loss, files) in [
        ("squared", [libsvm(0..300, |y| y), libsvm(300..400, |y| y)]),
        ("logistic", [libsvm(0..300, sign), libsvm(300..400, sign)]),
    ] {
        let [train, test] =
            ["train", "test"].map(|name| folder.write(name, &files[usize::from(name == "test")]));
        let [model, one, two] = ["model.json", "one", "two"].map(|name| folder.at(name));
        let files = ["--data", &train, "--test", &test, "--loss", loss];
        let out = ["--trees", "20", "--save", &model, "--predict", &one];
        let said = program("gbt", &[&["--quiet", "--workers", "2"], &files[..], &out].concat());
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let loaded = Model::read(Path::new(&model)).unwrap();
        let o = Options::parse_from([&["gbt", "--quiet", "--trees", "20"], &files[..]].concat());
        assert_eq!(bits(&loaded), bits(&learned(&o, 3)), "{loss}");
        for workers in ["1", "3"] {
            let args = ["--load", &model, "--test", &test, "--predict", &two, "--workers", workers];
            let again = program("gbt", &args);
            assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
            assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap(), "{loss}");
            let (said, again) =
                (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&again.stdout));
            assert!(said.contains(again.trim()), "{said} {again}");
        }
        assert_eq!(fs::read_to_string(&one).unwrap().lines().count(), 100);
    }
}

#[test]
fn csv_and_libsvm_files_make_the_same_trees() {
    let folder = Folder::new("gbt-formats");
    let sparse = folder.write("train", &libsvm(0..200, |y| y));
    let dense = folder.write("train.csv", &csv(0..200, ""));
    let named = folder.write("named.csv", &csv(0..200, "a,b,label,c,\"d\",e\n"));
    let learn = |file: &str| learned(&options(&["--loss", "squared", "--data", file, "--label", "3"]), 2);
    let (sparse, dense, named) = (learn(&sparse), learn(&dense), learn(&named));
    assert_eq!(bits(&sparse), bits(&dense));
    assert_eq!(sparse.trees, named.trees);
    assert_eq!(named.names.as_ref().map(|names| names.join(" ")).as_deref(), Some("a b c d e"));
    // A second header, and columns in another order, are other features.
    let model = folder.at("named.json");
    let args = [
        "--data",
        &folder.at("named.csv"),
        "--label",
        "3",
        "--loss",
        "squared",
        "--save",
        &model,
        "--trees",
        "2",
    ];
    assert!(program("gbt", &args).status.success());
    let other = folder.write("other.csv", &csv(0..9, "a,c,label,b,d,e\n"));
    let load = ["--load", &model, "--label", "3", "--test", &other];
    refuses("gbt", &[(&load, "other.csv:1: feature 2 is \"c\", and \"b\" was learned from")]);
}

#[test]
fn bad_input_is_one_line_and_a_code() {
    let folder = Folder::new("gbt-bad");
    let good = folder.write("good", "1 1:2 3:1\n0 1:1 2:4\n");
    for (name, text, says) in [
        ("word", "1 1:2\nyes 1:1\n", "word:2: label: expected a number, found \"yes\""),
        ("empty", "", "empty has no rows to learn from"),
        ("bare", "1\n0\n", "bare has 0 features"),
        (
            "gap",
            "1 1:2\n0 1:3 2:\n",
            "gap:2: a value is missing (\"\"), which is not supported: put in a number",
        ),
        ("nan", "1 1:2\n0 1:NaN\n", "nan:2: a value is missing (\"NaN\")"),
        ("inf", "1 1:2\n0 1:inf\n", "inf:2: expected a finite"),
        ("zeroth", "1 1:2\n0 0:3\n", "zeroth:2: features begin at 1 here, found 0"),
        ("far", "1 1:2\n0 99999999:3\n", "far has 99999999 features"),
        ("one", "1 1:2\n1 1:3\n", "all examples have the label 1"),
        ("empty.csv", "", "empty.csv has no rows to learn from"),
        ("hole.csv", "1,2,3\n0,,5\n", "hole.csv:2: column 2 is missing (\"\"), which is not supported"),
        ("unknown.csv", "y,a,b\n1,2,3\n0,5,?\n", "unknown.csv:3: column 3 is missing (\"?\")"),
        ("short.csv", "1,2,3\n0,5\n", "short.csv:2: expected 3 columns, as in the first line, found 2"),
        ("long.csv", "1,2,3\n0,5,1,1\n", "long.csv:2: expected 3 columns, as in the first line, found 4"),
        (
            "text.csv",
            "y,a,b\n1,2,3\ntwo,5,1\n",
            "text.csv:3: the label, column 1: expected a number, found \"two\"",
        ),
        ("pandas.csv", ",y,a\n0,1,2\n1,0,5\n", "pandas.csv:1: the first column has no name"),
        ("slip.csv", "1,2,x3\n0,5,1\n", "slip.csv:1: column 3: expected a number, found \"x3\""),
    ] {
        let file = folder.write(name, text);
        for more in [&["--workers", "2"][..], &["--serial"]] {
            refuses("gbt", &[(&[&["--data", &file], more].concat(), says)]);
        }
    }
    // Nobody writes into it: it is not waited for.
    let pipe = folder.at("pipe.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    refuses("gbt", &[(&["--data", &pipe], "pipe.csv is not a regular file")]);
    let wide = folder.write("wide", "1 1:2 7:1\n");
    let third = folder.write("third", "2 1:2\n");
    let empty = folder.at("empty");
    let narrow = folder.write("narrow.csv", "1,2\n0,3\n");
    for (test, says) in [
        (&wide, "wide:1: feature 7, and there are 3: take a file with the features that are learned from"),
        (&third, "third:1: the label 2 is none of those learned, which are 0 and 1"),
        (&empty, "empty has no rows to test with"),
        (&narrow, "narrow.csv:1: 1 features, and 3 were learned from"),
    ] {
        refuses("gbt", &[(&["--data", &good, "--test", test], says)]);
    }
    refuses("gbt", &[(&["--data", &good, "--features", "2"], "good:1: feature 3, and there are 2")]);
    let enough =
        program("gbt", &["--data", &good, "--test", &folder.write("more", "0 7:1\n"), "--features", "7"]);
    assert!(enough.status.success());
    let model = folder.at("model.json");
    assert!(program("gbt", &["--data", &good, "--save", &model, "--trees", "1"]).status.success());
    let text = fs::read_to_string(&model).unwrap();
    let cut = folder.write("cut.json", &text[..text.len() / 2]);
    let other = folder.write("other.json", &text.replace("version 1", "version 2"));
    let damaged = folder.write(
        "damaged.json",
        &text.replace("{\"value\"", "{\"left\":0,\"right\":0,\"feature\":0,\"threshold\":0,\"old\""),
    );
    let endless = r#"[{"nodes":[{"feature":0,"threshold":0.5,"left":0,"right":0}]}]"#;
    let (head, _) = text.split_once("\"trees\":").unwrap();
    let endless = folder.write("endless.json", &format!("{head}\"trees\":{endless}}}"));
    for (file, says) in [
        (&cut, "cut.json:"),
        (&other, "other.json: the format is"),
        (&damaged, "damaged.json:"),
        (&endless, "endless.json: tree 0 is damaged: node 0: its children are 0 and 0"),
        (&good, "good:1: this is no model that --save wrote"),
    ] {
        refuses("gbt", &[(&["--load", file, "--test", &good], says)]);
    }
    refuses(
        "gbt",
        &[
            (&["--data", "/nowhere"], "/nowhere"),
            (&["--data", "/nowhere.csv"], "/nowhere.csv"),
            (
                &["--data", &narrow, "--label", "3"],
                "narrow.csv:1: there are 2 columns, and --label 3 is none of them",
            ),
            (&["--trees", "0"], "--trees 0"),
            (&["--depth", "0"], "--depth 0: only with --growth leaf"),
            (&["--depth", "17"], "--depth 17"),
            (&["--bins", "1"], "--bins 1"),
            (&["--leaves", "1"], "--leaves 1"),
            (&["--rate", "0"], "--rate 0"),
            (&["--lambda=-1"], "--lambda -1"),
            (&["--test", &good], "--test: only with --data"),
            (&["--consistency", "bsp"], "has but one"),
            (&["--save", "/nowhere/model"], "/nowhere/model"),
        ],
    );
}

#[test]
fn adult_income_is_learned_as_well_as_by_other_programs() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let files = ["a9a", "a9a.t"].map(|name| data.join(name));
    if let Some(missing) = files.iter().find(|file| !file.exists()) {
        return hectare_testing::skip("shared data", missing.display());
    }
    let [train, test] = files.each_ref().map(|file| file.to_str().unwrap());
    let o = Options::parse_from(["gbt", "--quiet", "--data", train, "--test", test]);
    let trained = hectare::run(2, |w| gbt::train(w, &o, false)).unwrap().swap_remove(0);
    let gbt::quality::Measured::Classes(quality) = trained.measured else { panic!("no classes") };
    // LightGBM 4.7 and XGBoost 3.2 with the same limits: 0.8528 and 0.8532, loss 0.3208 and 0.3207, AUC 0.9045.
    assert!(quality.accuracy > 0.8532 - 0.003 && quality.loss < 0.3207 + 0.002, "{quality:?}");
    assert!(quality.auc.is_some_and(|auc| auc > 0.9045 - 0.003), "{quality:?}");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_name() {
    let folder = hectare_testing::Folder::new("gbt-mark");
    let rows: String = (0..40).map(|n| format!("{},{n}\n", n % 2)).collect();
    let marked = folder.write("marked.csv", &format!("\u{feff}\"a\",y\n{rows}"));
    let plain = folder.write("plain.csv", &format!("a,y\n{rows}"));
    let args = ["--data", &marked, "--test", &plain, "--label", "2", "--loss", "squared", "--trees", "2"];
    let output = program("gbt", &args);
    assert!(output.status.success(), "{output:?}");
}
