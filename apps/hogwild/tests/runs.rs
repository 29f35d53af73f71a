//! The program as a user runs it: losses by consistency, files, bad input.
use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    // A launcher around the tests is none of the program's.
    let mut command = Command::new(env!("CARGO_BIN_EXE_hogwild"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("HECTARE_")) {
        command.env_remove(name);
    }
    command
        .args(["--rows", "4000", "--features", "500", "--epochs", "3"])
        .args(if arguments.contains(&"--every") { &[][..] } else { &["--every", "16"] })
        .args(arguments)
        .output()
        .unwrap()
}

/// The losses after each epoch, as they were printed.
fn losses(arguments: &[&str]) -> Vec<String> {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let loss = |line: &str| Some(line.strip_prefix("epoch ")?.split_whitespace().nth(3)?.replace(',', ""));
    let losses: Vec<String> = text.lines().filter_map(loss).collect();
    assert_eq!(losses.len(), 3, "{text}");
    losses
}

fn last(arguments: &[&str]) -> f64 {
    losses(arguments)[2].parse().unwrap()
}

fn refused(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn barriers_give_the_same_losses_in_every_run() {
    for workers in ["2", "3"] {
        let first = losses(&["--workers", workers]);
        assert_eq!(first, losses(&["--workers", workers]));
        let values: Vec<f64> = first.iter().map(|loss| loss.parse().unwrap()).collect();
        assert!(values.is_sorted_by(|a, b| a > b) && values[0] < 0.65, "{values:?}");
    }
}

#[test]
fn every_consistency_learns() {
    let alone = last(&["--workers", "1"]);
    for consistency in ["bsp", "bounded:0", "bounded:3", "async"] {
        let loss = last(&["--workers", "3", "--consistency", consistency]);
        assert!((loss - alone).abs() < 0.1 * alone, "{consistency}: {loss}, one worker {alone}");
    }
}

#[test]
fn the_consistency_is_named_as_it_is_asked_for() {
    for consistency in ["bsp", "bounded:3", "async"] {
        let output = run(&["--workers", "2", "--consistency", consistency]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(&format!("2 workers, {consistency}: test loss ")), "{text}");
    }
}

#[test]
fn files_are_read_in_parts() {
    let dir = std::env::temp_dir().join(format!("hogwild-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("rows");
    let row = |number: usize| format!("{} {}:1 {}:0.5\n", number % 2 + 1, number % 2 + 1, number % 7 + 3);
    std::fs::write(&path, (0..100).map(row).collect::<String>()).unwrap();
    let file = path.to_str().unwrap();
    let loss = last(&["--data", file, "--workers", "3", "--rate", "0.5", "--every", "8"]);
    // The labels 1 and 2 hang on the first feature alone.
    assert!(loss < 0.1, "{loss}");
    std::fs::write(&path, "1 1:1\n2 1:1\n3 1:1\n").unwrap();
    assert!(refused(&["--data", file]).contains("labels 1, 3 and 2; two are wanted"));
    std::fs::write(&path, "1 1:1\n").unwrap();
    assert!(refused(&["--data", file]).contains("1 examples are too few for 2 workers"));
    assert!(refused(&["--data", "/nowhere"]).contains("/nowhere"));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn bad_options_are_refused() {
    assert!(refused(&["--consistency", "bounded:x"]).contains("bounded:S with a number"));
    assert!(refused(&["--workers", "0"]).contains("--workers"));
    assert!(refused(&["--rate", "nan"]).contains("the loss is NaN"));
}
