//! The example `tensor`: files as people have them, factors that are saved, loaded and predicted with.
use crate::common::program::{program, refuses};
use hectare::orion::array::random::Stream;
use hectare_testing::Folder;
use std::fs;
use std::path::Path;

/// Entries of 30 by 20 by 10 whose factors are of rank 2: between `separator`, indices from `first` on.
fn entries(folder: &Folder, name: &str, header: &str, separator: &str, first: usize) -> String {
    let stream = Stream::new(5, "entries");
    let factor = |dim: u64, at: u64, k: u64| 0.5 + stream.child(dim).uniform(2 * at + k);
    let line = |k: u64| {
        let [i, j, l] = [stream.below(3 * k, 30), stream.below(3 * k + 1, 20), stream.below(3 * k + 2, 10)];
        let x: f64 = (0..2).map(|k| factor(1, i, k) * factor(2, j, k) * factor(3, l, k)).sum();
        let indices = [i, j, l].map(|index| (index as usize + first).to_string());
        format!("{}{separator}{x:.4}\n", indices.join(separator))
    };
    folder.write(name, &(header.to_owned() + &(0..3000).map(line).collect::<String>()))
}
fn run(args: &[&str]) -> String {
    let output = program("tensor", args);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said} {:?}", String::from_utf8(output.stderr));
    said
}

#[test]
fn separators_and_headers_make_no_difference() {
    let folder = Folder::new("tensor-formats");
    let plain = entries(&folder, "plain", "", " ", 0);
    let train = |file: &str, more: &[&str]| {
        let args = ["--train", file, "--test", file, "--passes", "2", "--rank", "4", "--workers", "1"];
        let said = run(&[&args[..], more].concat());
        let error = said.lines().last().unwrap().split(" after").next().unwrap().to_owned();
        error.split_once("test RMSE ").unwrap().1.to_owned()
    };
    for more in [&[][..], &["--serial"]] {
        let expected = train(&plain, more);
        for (header, separator, first) in
            [("", "::", 1), ("user,item,hour,count\n", ",", 0), ("", "\t", 0), ("a;b;c;x\n", ";", 0)]
        {
            let file = entries(&folder, "other", header, separator, first);
            assert_eq!(train(&file, more), expected, "{separator:?} {more:?}");
        }
    }
}

#[test]
fn files_without_entries_are_named() {
    let folder = Folder::new("tensor-empty");
    let good = folder.write("good", "0 0 0 1.5\n");
    for (name, text) in [("empty", ""), ("header", "user,item,hour,count\n")] {
        let file = folder.write(name, text);
        let says = format!("{file}: the file has no entries");
        for more in [&[][..], &["--serial"]] {
            let train: &[&str] = &[&["--train", &file, "--test", &good][..], more].concat();
            let test: &[&str] = &[&["--train", &good, "--test", &file][..], more].concat();
            refuses("tensor", &[(train, &says), (test, &says)]);
            refuses("factorize", &[(train, &says)]);
        }
    }
}

#[test]
fn factors_are_saved_loaded_and_predicted_with() {
    let folder = Folder::new("tensor-saved");
    let (data, saved, list) = (entries(&folder, "data", "", " ", 0), folder.at("saved"), folder.at("list"));
    let args = ["--train", &data, "--test", &data, "--rank", "4", "--workers"];
    let error = |said: &str, begins: &str| -> f64 {
        let line = said.lines().find(|line| line.starts_with(begins)).unwrap();
        line.split_once("test RMSE ").unwrap().1.split(' ').next().unwrap().parse().unwrap()
    };
    for workers in ["1", "2"] {
        let said = run(&[&args[..], &[workers, "--passes", "4", "--save", &saved]].concat());
        let learned = error(&said, "pass   4");
        for (name, count) in [("first.npy", 30), ("second.npy", 20), ("third.npy", 10)] {
            let path = Path::new(&saved).join(name);
            let shape = hectare::run(1, |w| Ok(w.npy_file::<f32, 2>(&path)?.shape())).unwrap();
            assert_eq!(shape, [[count, 4]], "{name}");
        }
        let said = run(&["--load", &saved, "--test", &data, "--rank", "4", "--predict", &list]);
        assert_eq!(error(&said, "3000 predictions"), learned);
        assert_eq!(fs::read_to_string(&list).unwrap().lines().count(), 3000);
        let begun = error(&run(&[&args[..], &[workers, "--passes", "1"]].concat()), "pass   1");
        let gone_on = run(&[&args[..], &[workers, "--passes", "1", "--load", &saved]].concat());
        assert!(error(&gone_on, "pass   1") < 0.9 * begun, "{begun} {learned} {gone_on}");
    }
    let serial = run(&[&args[..], &["1", "--serial", "--passes", "1", "--load", &saved]].concat());
    assert!(error(&serial, "pass   1") > 0.0);
    let fewer = folder.write("fewer", "0 0 0 1.5\n");
    refuses(
        "tensor",
        &[
            (&["--load", &saved, "--train", &data, "--test", &data], "factors of rank 4: say --rank 4"),
            (&["--load", &saved, "--rank", "4", "--train", &fewer, "--test", &fewer], "first.npy"),
        ],
    );
}
