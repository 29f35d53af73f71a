//! Every memory ordering stronger than relaxed says, in a comment close above it, what it is for or what it pairs with.
use crate::common::sources_of_crates;
use std::fs;
use std::path::{Path, PathBuf};

/// How many lines above an ordering its comment may begin.
const NEAR: usize = 8;
const STRONG: [&str; 4] = ["Ordering::Acquire", "Ordering::Release", "Ordering::AcqRel", "Ordering::SeqCst"];
const WORDS: [&str; 6] = ["Acquire", "Release", "SeqCst", "acquire", "release", "pairs with"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        // Models and tests may order more than needed.
        if path.is_dir() && !["models", "tests", "steps"].contains(&name) {
            sources(&path, found);
        } else if name.ends_with(".rs") && !["tests.rs", "model.rs", "large_numbers.rs"].contains(&name) {
            found.push(path);
        }
    }
}

fn code_and_comment(line: &str) -> (&str, &str) {
    line.split_once("//").unwrap_or((line, ""))
}

/// The lines whose ordering is not accounted for, before the tests at the end of a file.
fn unexplained(text: &str) -> Vec<usize> {
    let lines: Vec<_> =
        text.lines().take_while(|line| !line.starts_with("mod tests {")).map(code_and_comment).collect();
    let is_explained = |at: usize| {
        lines[at.saturating_sub(NEAR)..=at]
            .iter()
            .any(|(_, comment)| WORDS.iter().any(|word| comment.contains(word)))
    };
    let strong = |at: &usize| STRONG.iter().any(|strong| lines[*at].0.contains(strong));
    (0..lines.len()).filter(strong).filter(|at| !is_explained(*at)).map(|at| at + 1).collect()
}

#[test]
fn every_strong_ordering_names_its_partner() {
    let mut found = Vec::new();
    sources_of_crates().for_each(|folder| sources(&folder, &mut found));
    assert!(found.len() > 100, "the sources are elsewhere: {found:?}");
    let mut silent = Vec::new();
    for path in found {
        let lines = unexplained(&fs::read_to_string(&path).unwrap());
        silent.extend(lines.into_iter().map(|line| format!("{}:{line}", path.display())));
    }
    assert!(silent.is_empty(), "orderings without a comment on their partner:\n{}", silent.join("\n"));
}

#[test]
fn an_ordering_without_a_comment_is_found() {
    assert_eq!(unexplained("x.load(Ordering::SeqCst);"), [1]);
    assert_eq!(unexplained("// Acquire: pairs with y.\nx.load(Ordering::Acquire);"), [0usize; 0]);
    assert_eq!(unexplained(&format!("// Acquire.\n{}x.load(Ordering::Acquire);", "\n".repeat(9))), [11]);
}
