//! The README shows this program as it is, and prints as it does.
use std::process::Command;

/// The first block of a language behind a text.
fn block<'a>(text: &'a str, behind: &str, fence: &str) -> &'a str {
    let (_, rest) = text.split_once(behind).expect(behind);
    let (_, rest) = rest.split_once(fence).expect(fence);
    rest.split_once("```").expect("an end").0
}

fn readme() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap()
}

#[test]
fn the_program_is_that_of_the_readme() {
    let readme = readme();
    let shown = block(&readme, "cargo run --release -p quickstart", "```rust\n");
    let source = include_str!("../src/main.rs");
    let code: String = source.split_inclusive('\n').filter(|line| !line.starts_with("//!")).collect();
    assert_eq!(shown, code);
    let lines = shown.lines().filter(|line| !line.trim().is_empty()).count();
    assert!((20..=30).contains(&lines), "{lines} lines");
}

#[test]
fn it_prints_what_the_readme_says() {
    let output = Command::new(env!("CARGO_BIN_EXE_quickstart")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let readme = readme();
    let shown = block(&readme, "cargo run --release -p quickstart", "```text\n");
    // `...` stands for lines that are left out.
    let mut rest = printed.lines();
    let mut left_out = false;
    for line in shown.lines() {
        if line.trim() == "..." {
            left_out = true;
            continue;
        }
        let found = if left_out { rest.find(|other| *other == line) } else { rest.next() };
        assert_eq!(found, Some(line), "of\n{printed}");
        left_out = false;
    }
    assert!(left_out || rest.all(str::is_empty), "the README leaves out the end of\n{printed}");
}
