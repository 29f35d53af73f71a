//! Ctrl-C in examples: training ends after its pass, and what was reached is written.
use crate::common::program::command;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn an_interrupt_ends_training_and_keeps_the_curve() {
    let folder = std::env::temp_dir().join(format!("hectare-interrupted-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let curve = folder.join("curve.csv");
    for way in [&["--workers", "2"][..], &["--serial"], &["--all", "--workers", "1"]] {
        let mut program = command("lda");
        program.args(["--documents", "50", "--passes", "1000000", "--curve"]).arg(&curve).args(way);
        let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("pass   2") {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "{way:?}: it has ended");
        }
        // Nobody may stop reading: it writes on.
        let rest = std::thread::spawn(move || said.lines().map_while(Result::ok).last());
        let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(told.success());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{way:?}: {error}");
        assert!(
            error.starts_with("interrupted: training (") && error.lines().count() == 1,
            "{way:?}: {error}"
        );
        rest.join().unwrap();
        let points = fs::read_to_string(&curve).unwrap();
        assert!(points.lines().count() > 2, "{way:?}: {points}");
    }
    fs::remove_dir_all(&folder).unwrap();
}
