//! Sentences in files: paragraphs, lines, words as they stand.
use super::word2vec::{Options, Text};
use crate::common::program::{program, refuses};
use clap::Parser;
use std::fs;

fn load(path: &str, more: &[&str]) -> (Vec<String>, Vec<usize>) {
    let args = [&["word2vec", "--min-count", "1", "--text", path], more].concat();
    let text = Text::load(&Options::parse_from(args)).unwrap();
    (text.words, text.sentences.iter().map(Vec::len).collect())
}

#[test]
fn lines_are_sentences_if_asked_for_and_words_may_stay_as_they_are() {
    let path = std::env::temp_dir().join(format!("hectare-word2vec-lines-{}.txt", std::process::id()));
    fs::write(&path, "\u{feff}One two, TWO\none_2 one_2\n\n two 7 7\n").unwrap();
    let file = path.to_str().unwrap();
    let letters = ["one", "two"].map(str::to_owned).to_vec();
    let (mut words, sentences) = load(file, &[]);
    words.sort();
    assert_eq!((words, sentences), (letters.clone(), vec![5, 1]));
    let (mut words, sentences) = load(file, &["--lines"]);
    words.sort();
    assert_eq!((words, sentences), (letters, vec![3, 2, 1]));
    let (words, sentences) = load(file, &["--lines", "--tokenized"]);
    assert_eq!(words, ["7", "one_2", "One", "TWO", "two", "two,"]);
    assert_eq!(sentences, [3, 2, 3]);
    fs::remove_file(&path).unwrap();
}

#[test]
fn who_forgets_that_lines_are_sentences_is_told() {
    let path = std::env::temp_dir().join(format!("hectare-word2vec-one-{}.txt", std::process::id()));
    fs::write(&path, "a b a b\na b a b\n".repeat(10)).unwrap();
    let args = ["--text", path.to_str().unwrap(), "--passes", "1", "--quiet", "--serial"];
    let said = |more: &[&str]| {
        let output = program("word2vec", &[&args[..], more].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let warning = said(&[]);
    assert!(
        warning.contains("no empty line is between its 20 lines") && warning.contains("--lines"),
        "{warning}"
    );
    assert!(!said(&["--lines"]).contains("--lines"));
    fs::write(&path, " \n\n").unwrap();
    refuses("word2vec", &[(&args, "the file is empty")]);
    fs::remove_file(&path).unwrap();
}
