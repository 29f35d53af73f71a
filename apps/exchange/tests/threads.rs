//! The program with nobody to launch it: two threads.
use std::process::Command;

#[test]
fn two_threads_add_up_the_same_areas() {
    // Without what a launcher would have put into the environment.
    let output = Command::new(env!("CARGO_BIN_EXE_exchange")).env_clear().output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut lines: Vec<_> = printed.lines().collect();
    lines.sort_unstable();
    // 1000 elements of 1, and 1000 of 2.
    assert_eq!(lines, ["worker 0 of 2: 3000", "worker 1 of 2: 3000"]);
}
