//! The example `factorize`: what its relaxed loops give against its serial twin.
#[allow(dead_code, reason = "the program's `main` and what only it uses")]
#[path = "../examples/factorize/main.rs"]
mod factorize;

use crate::common::program::{program, refuses};
use clap::Parser;
use factorize::training::{Curve, Options};
use factorize::{serial, train};
use hectare::orion::array::random::Stream;
use hectare::orion::relax::Consistency;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// Ratings of 300 users and 120 films, whose factors are of rank 2, in a file to learn from and one to test with.
struct Files(PathBuf);

impl Files {
    fn new(name: &str) -> Files {
        let folder = std::env::temp_dir().join(format!("hectare-factorize-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let stream = Stream::new(5, "ratings");
        let mut texts = [String::new(), String::new()];
        for k in 0..9000u64 {
            let (i, j) = (stream.below(2 * k, 300), stream.below(2 * k + 1, 120));
            let factor = |side: u64, at: u64, k: u64| stream.child(1 + side).normal(2 * at + k);
            let x = 3.0 + 0.5 * (0..2).map(|k| factor(0, i, k) * factor(1, j, k)).sum::<f64>();
            writeln!(texts[usize::from(k % 10 == 0)], "{i} {j} {x:.3}").unwrap();
        }
        // The largest indices are in both.
        texts.iter_mut().for_each(|text| text.push_str("299 119 3.0\n"));
        fs::write(folder.join("train"), &texts[0]).unwrap();
        fs::write(folder.join("test"), &texts[1]).unwrap();
        Files(folder)
    }

    fn options(&self, more: &[&str]) -> Options {
        let [train, test] = ["train", "test"].map(|name| self.0.join(name).display().to_string());
        let args = ["factorize", "--quiet", "--rank", "8", "--train", &train, "--test", &test];
        Options::parse_from(args.iter().chain(more))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn errors(curve: &Curve) -> Vec<f64> {
    curve.points().map(|point| point.1).collect()
}

fn on(workers: usize, o: &Options, consistency: Consistency) -> Vec<f64> {
    let all = hectare::run(workers, |w| train(w, o, consistency)).unwrap();
    assert!(all.iter().all(|curve| errors(curve) == errors(&all[0])), "all workers know the same error");
    errors(&all[0])
}

const KINDS: [Consistency; 4] =
    [Consistency::Serializable, Consistency::Bsp, Consistency::Bounded(2), Consistency::Async];

#[test]
fn relaxed_columns_learn_as_well_as_the_serial_twin() {
    let files = Files::new("relaxed");
    for (steps, passes, rate) in [("adaptive", "15", "0.13"), ("ada-revision", "30", "0.3")] {
        let o =
            files.options(&["--steps", steps, "--passes", passes, "--rate", rate, "--every", "per-pass:64"]);
        let twin = errors(&serial(&o).unwrap());
        let (first, last) = (twin[0], twin[twin.len() - 1]);
        assert!(last < 0.75 * first, "{steps}: {twin:?}");
        for consistency in KINDS {
            for workers in [1, 2, 4] {
                let found = *on(workers, &o, consistency).last().unwrap();
                // Shuffled otherwise, and stale: but far on the way that the twin goes.
                assert!(
                    found < last + 0.15 * (first - last),
                    "{steps}, {consistency}, {workers} workers: {found}, {last}"
                );
            }
        }
    }
}

#[test]
fn bulk_synchronous_runs_have_the_same_bits_every_time() {
    let files = Files::new("bits");
    for steps in ["fixed", "adaptive", "ada-revision"] {
        let o = files.options(&["--steps", steps, "--passes", "3"]);
        assert_eq!(on(3, &o, Consistency::Bsp), on(3, &o, Consistency::Bsp), "{steps}");
    }
}

#[test]
fn the_target_ends_training() {
    let files = Files::new("target");
    let o = files.options(&["--passes", "15"]);
    let all = errors(&serial(&o).unwrap());
    let target = all[4].to_string();
    let o = files.options(&["--passes", "15", "--target", &target]);
    let reached = all.iter().position(|error| *error <= all[4]).unwrap() + 1;
    assert_eq!(errors(&serial(&o).unwrap()).len(), reached);
}

#[test]
fn one_command_draws_every_consistency() {
    let files = Files::new("curves");
    let [train, test, svg, csv] =
        ["train", "test", "all.svg", "all.csv"].map(|name| files.0.join(name).display().to_string());
    for file in [&svg, &csv] {
        let args = ["--all", "--workers", "1,2", "--passes", "4", "--rank", "8", "--quiet", "--curve", file];
        let output = program("factorize", &[&args[..], &["--train", &train, "--test", &test]].concat());
        assert!(output.status.success(), "{output:?}");
    }
    let (picture, table) = (fs::read_to_string(&svg).unwrap(), fs::read_to_string(&csv).unwrap());
    let names = ["serializable", "bulk-synchronous", "staleness of at most 1 clock", "asynchronous"];
    let mut runs = vec!["serial".to_owned()];
    runs.extend(
        [1, 2]
            .iter()
            .flat_map(|n| names.map(|name| format!("{n} worker{}, {name}", if *n == 1 { "" } else { "s" }))),
    );
    for run in &runs {
        assert_eq!(
            table.lines().filter(|line| line.starts_with(&format!("\"{run}\","))).count(),
            4,
            "{table}"
        );
        // At the line's end, in both panels.
        assert_eq!(picture.matches(&format!(">{run}</text>")).count(), 2, "{run}");
    }
    assert_eq!(table.lines().count(), 1 + 4 * runs.len());
    assert!(picture.contains("passes") && picture.contains("seconds") && picture.contains("test RMSE"));
}

#[test]
fn bad_input_is_one_line_and_a_code() {
    refuses(
        "factorize",
        &[
            (&["--rank", "3"], "--rank 3: at least 5"),
            (&["--workers", "0"], "--workers 0"),
            (&["--rate=-1"], "--rate -1: a finite number above 0"),
            (&["--rate", "nan"], "--rate NaN: a finite number above 0"),
            (&["--reg", "nan"], "--reg NaN: a finite number, 0 or greater"),
            (&["--curve", "/nowhere/at/all.svg"], "--curve /nowhere/at/all.svg: No such file"),
            (&["--workers", "1,2"], "only with --all"),
            (&["--consistency", "bsp", "--every", "seconds:0"], "`every = Time(0ns)`: clocks would"),
        ],
    );
}

#[test]
fn a_file_without_entries_is_no_error_of_zero() {
    let files = Files::new("empty");
    let [train, none] = ["train", "none"].map(|name| files.0.join(name).display().to_string());
    fs::write(&none, "").unwrap();
    for more in [&["--workers", "2"][..], &["--serial"]] {
        let test = [&["--train", &train, "--test", &none][..], more].concat();
        let both = [&["--train", &none, "--test", &train][..], more].concat();
        refuses(
            "factorize",
            &[(&test, "none: the file has no entries"), (&both, "none: the file has no entries")],
        );
    }
}

#[test]
fn a_checkpoint_that_is_not_saved_is_refused() {
    refuses("tensor", &[(&["--checkpoint", "/nowhere/at/all"], "--checkpoint: this program saves none")]);
}

#[test]
fn a_loss_that_is_not_finite_is_one_line_and_a_code() {
    let files = Files::new("infinite");
    let [train, test] = ["train", "test"].map(|name| files.0.join(name).display().to_string());
    let steps = ["--quiet", "--steps", "fixed", "--rate", "1e20"];
    let files = ["--train", &train, "--test", &test];
    let cases: [(&str, &[&str], &[&str]); 3] = [
        ("factorize", &files, &["--consistency", "bsp"]),
        ("factorize", &files, &["--serial"]),
        ("tensor", &[], &["--passes", "1", "--rank", "8"]),
    ];
    for (name, files, more) in cases {
        let says = "pass 1: the training loss is NaN: steps were too long; try a smaller --rate";
        refuses(name, &[(&[&steps[..], files, more].concat(), says)]);
    }
}

#[test]
fn separators_headers_and_times_are_found() {
    let files = Files::new("columns");
    let o = files.options(&["--passes", "2"]);
    let expected = errors(&serial(&o).unwrap());
    for (name, between, header, first) in [
        ("movielens", "::", "", 1),
        ("csv", ",", "userId,movieId,rating,timestamp\n", 0),
        ("semicolons", ";", "\"User\";\"Item\";\"Rating\";\"Time\"\n", 0),
        ("tabs", "\t", "", 0),
        ("spaces", " ", "", 0),
    ] {
        for part in ["train", "test"] {
            let line = |line: &str| {
                let columns: Vec<&str> = line.split(' ').collect();
                let key = |at: usize| (columns[at].parse::<usize>().unwrap() + first).to_string();
                [&key(0), &key(1), columns[2], "978300760"].join(between) + "\n"
            };
            let text = fs::read_to_string(files.0.join(part)).unwrap();
            let lines: String = text.lines().map(line).collect();
            fs::write(files.0.join(format!("{part}.{name}")), format!("{header}{lines}")).unwrap();
        }
        let [train, test] =
            ["train", "test"].map(|part| files.0.join(format!("{part}.{name}")).display().to_string());
        let args =
            ["factorize", "--quiet", "--rank", "8", "--passes", "2", "--train", &train, "--test", &test];
        let o = Options::parse_from(args);
        assert_eq!(errors(&serial(&o).unwrap()), expected, "{name}");
        assert_eq!(on(2, &o, Consistency::Serializable).len(), 2, "{name}");
    }
}

#[test]
fn saved_factors_predict_what_was_measured() {
    let files = Files::new("saved");
    let [train, test, saved] =
        ["train", "test", "saved"].map(|name| files.0.join(name).display().to_string());
    for more in [&["--workers", "2"][..], &["--serial"], &["--workers", "1", "--steps", "ada-revision"]] {
        let args = ["--train", &train, "--test", &test, "--rank", "8", "--passes", "3", "--save", &saved];
        let output = program("factorize", &[&args[..], more].concat());
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}");
        let rows = |name: &str| {
            let path = files.0.join("saved").join(name);
            hectare::run(1, |w| w.npy_file::<f32, 2>(&path)?.to_vec(w)).unwrap().swap_remove(0)
        };
        let (u, v) = (rows("rows.npy"), rows("columns.npy"));
        assert_eq!((u.len(), v.len()), (300 * 8, 120 * 8));
        let (mut squares, mut count) = (0.0, 0);
        for line in fs::read_to_string(&test).unwrap().lines() {
            let columns: Vec<f64> = line.split(' ').map(|column| column.parse().unwrap()).collect();
            let row = |rows: &[f32], at: f64| rows[at as usize * 8..][..8].to_vec();
            let products =
                row(&u, columns[0]).into_iter().zip(row(&v, columns[1])).map(|(a, b)| f64::from(a * b));
            squares += (columns[2] - products.sum::<f64>()).powi(2);
            count += 1;
        }
        let error = (squares / f64::from(count)).sqrt();
        assert!(said.contains(&format!("test RMSE {error:.4} after 3 passes")), "{error} {said}");
    }
}

#[test]
fn loaded_factors_predict_and_are_gone_on_with() {
    let files = Files::new("loaded");
    let [train, test, saved, list] =
        ["train", "test", "saved", "list"].map(|name| files.0.join(name).display().to_string());
    let data = ["--train", &train, "--test", &test, "--rank", "8", "--passes"];
    let run = |args: &[&str]| {
        let output = program("factorize", args);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said} {:?}", String::from_utf8(output.stderr));
        said
    };
    let error = |said: &str, begins: &str| -> f64 {
        let line = said.lines().find(|line| line.starts_with(begins)).unwrap();
        let rest = line.split_once("test RMSE ").unwrap().1;
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    let learned = error(&run(&[&data[..], &["6", "--save", &saved]].concat()), "pass   6");
    let said = run(&["--load", &saved, "--test", &test, "--rank", "8", "--predict", &list]);
    assert_eq!((error(&said, "901 predictions"), said.lines().count()), (learned, 1), "{said}");
    let predicted = fs::read_to_string(&list).unwrap();
    let (mut squares, mut count) = (0.0, 0);
    for (line, predicted) in fs::read_to_string(&test).unwrap().lines().zip(predicted.lines()) {
        let value: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
        squares += (value - predicted.parse::<f64>().unwrap()).powi(2);
        count += 1;
    }
    assert_eq!((predicted.lines().count(), count), (901, 901));
    assert!(((squares / f64::from(count)).sqrt() - learned).abs() < 1e-3, "{learned}");
    // Learning goes on from there, not from the beginning.
    for more in [&["--workers", "2"][..], &["--serial"], &["--workers", "1", "--steps", "ada-revision"]] {
        let begun = error(&run(&[&data[..], &["1"], more].concat()), "pass   1");
        let gone_on = error(&run(&[&data[..], &["1", "--load", &saved], more].concat()), "pass   1");
        assert!(gone_on < 0.9 * begun, "{more:?}: {learned}, {gone_on}, {begun}");
    }
    let (rows, more) = (files.0.join("saved/rows.npy"), files.0.join("more"));
    fs::write(&more, "300 0 3.0\n").unwrap();
    let more = more.to_str().unwrap();
    let predict = ["--load", &saved, "--predict", &list, "--rank", "8", "--test"];
    refuses(
        "factorize",
        &[
            (&["--load", &saved, "--train", &train, "--test", &test], "factors of rank 8: say --rank 8"),
            (
                &["--load", &saved, "--rank", "8", "--train", more, "--test", more],
                "300 rows, but the entries",
            ),
            (&[&predict[..], &[more]].concat(), "entry 1 has index 300 (from 0), and"),
            (&["--load", "/nowhere", "--rank", "8"], "/nowhere/rows.npy"),
            (&["--test", &test], "--test: needs entries to learn from"),
        ],
    );
    fs::write(&rows, "no matrix").unwrap();
    refuses("factorize", &[(&[&predict[..], &[&test]].concat(), "rows.npy")]);
}
