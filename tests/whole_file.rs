//! The files that the examples write: whole or not at all.
use crate::common::program::program;
use hectare_testing::Folder;
use std::fs;
use std::os::unix::fs::MetadataExt;

#[test]
fn programs_replace_a_model_and_do_not_write_over_it() {
    let folder = Folder::new("whole-models");
    let rows: String = (1..60).map(|n| format!("{} {}:1 {}:{n}\n", n % 2, 1 + n % 3, 4 + n % 2)).collect();
    let text = (0..60)
        .map(|n| format!("sea ship sail wave port tree {} rose lily acorn maple birch\n", ["x", "y"][n % 2]));
    let (rows, text) = (folder.write("rows", &rows), folder.write("text", &text.collect::<String>()));
    let (model, saved) = (folder.at("model"), folder.at("saved"));
    let of_rows = ["--data", &rows, "--save", &model];
    let of_text = ["--text", &text, "--lines", "--min-count", "1", "--passes", "1", "--save"];
    let cases: [(&str, Vec<&str>, &[&str]); 5] = [
        ("sparse_lr", [&of_rows[..], &["--test", &rows, "--passes", "1"]].concat(), &["model"]),
        ("gbt", [&of_rows[..], &["--test", &rows, "--trees", "2"]].concat(), &["model"]),
        ("lasso", of_rows.to_vec(), &["model"]),
        ("word2vec", [&of_text[..], &[&model, "--dimension", "4"]].concat(), &["model"]),
        (
            "lda",
            [&of_text[..], &[&saved, "--topics", "2", "--skip-top", "0"]].concat(),
            &["saved/topics.npy", "saved/vocabulary.txt", "saved/tokens.npy", "saved/training.json"],
        ),
    ];
    let old = folder.at("old");
    let inode = |path: &str| fs::metadata(path).unwrap().ino();
    for (name, args, files) in cases {
        for file in files.iter().map(|file| folder.at(file)) {
            let run = || {
                let output = program(name, &[&args[..], &["--workers", "1", "--quiet"]].concat());
                assert!(output.status.success(), "{name}: {output:?}");
            };
            run();
            // A second name of the old file: its number is not given to the next.
            fs::hard_link(&file, &old).unwrap();
            run();
            assert_ne!(inode(&file), inode(&old), "{name}: {file} was written over");
            fs::remove_file(&old).unwrap();
        }
    }
}
