//! A worker killed in the middle of an epoch of a program under `hectare run`: the error names it, and with a
//! checkpoint the program is started again and ends with the bits of a run that nobody disturbed.
use crate::common::{Host, example, until};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

/// `hectare run -n 4` of a program that saves what it has learnt to `checkpoint`.
fn run(host: &Host, program: &Path, args: &[&str], checkpoint: &Path) -> Command {
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    command.args(["run", "-n", "4", "--job", "training", "--"]).arg(program).args(args);
    command.arg("--checkpoint").arg(checkpoint);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn said(output: &Output) -> String {
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{}\n{out}{err}", output.status)
}

fn changed(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|file| file.modified()).ok()
}

/// The process of a rank, from `hectare ps`.
fn process_of(host: &Host, rank: u32) -> Option<Pid> {
    let ps: serde_json::Value =
        serde_json::from_str(&host.hectare(&["ps", "training", "--json"]).out).ok()?;
    let held = |line: &&serde_json::Value| {
        line["workers"].as_array().is_some_and(|all| all.iter().any(|worker| worker["rank"] == rank))
    };
    Pid::from_raw(ps.as_array()?.iter().find(held)?["pid"].as_i64()?.try_into().ok()?)
}

/// Epochs: enough for a kill to come before the last one, also where code is optimized.
const EPOCHS: &str = if cfg!(debug_assertions) { "25" } else { "400" };

/// Ratings of 60 000 pairs, as lines of row, column and value.
fn ratings(host: &Host) -> String {
    let file = host.top.path().join("ratings.txt");
    let line = |n: u64| format!("{} {} {}\n", n * 7919 % 1500, n * 104_729 % 701, 1 + (n * n + 3 * n) % 5);
    std::fs::write(&file, (0..60_000).map(line).collect::<String>()).unwrap();
    file.to_str().unwrap().into()
}

/// Runs a program and kills its rank 2 after the second checkpoint, if it has not ended by then.
fn killed(host: &Host, mut program: Command, checkpoint: &Path) -> Output {
    let child = program.spawn().unwrap();
    until("the first checkpoint", || changed(checkpoint).is_some());
    let first = changed(checkpoint);
    until("the second checkpoint", || changed(checkpoint) != first);
    if let Some(victim) = process_of(host, 2) {
        // It may have ended since.
        let _ = kill_process(victim, Signal::KILL);
    }
    child.wait_with_output().unwrap()
}

/// Kills rank 2 between two checkpoints, starts the program again, and compares with a run that went through.
fn killed_in_mid_epoch(host: &Host, program: &str, args: &[&str]) {
    let program = example(program);
    let daemon = host.daemon("");
    let (whole, broken) = (host.top.path().join("whole"), host.top.path().join("broken"));
    let undisturbed = run(host, &program, args, &whole).output().unwrap();
    assert!(undisturbed.status.success(), "{}", said(&undisturbed));

    // A busy machine may hold this process up until the program has ended.
    let cut_short = (0..20).find_map(|_| {
        let _ = std::fs::remove_file(&broken);
        let killed = killed(host, run(host, &program, args, &broken), &broken);
        let cut_short = std::fs::read(&broken).unwrap() != std::fs::read(&whole).unwrap();
        until("the job to go", || host.jobs().is_empty());
        cut_short.then_some(killed)
    });
    let killed = cut_short.expect("a run that was cut short");
    assert!(!killed.status.success(), "{}", said(&killed));
    let named = String::from_utf8_lossy(&killed.stderr).contains("rank 2 failed first");
    assert!(named, "{}", said(&killed));
    daemon.wait_for("member died");

    let resumed = run(host, &program, args, &broken).output().unwrap();
    assert!(resumed.status.success(), "{}", said(&resumed));
    assert!(
        std::fs::read(&broken).unwrap() == std::fs::read(&whole).unwrap(),
        "other bits: {}",
        said(&resumed)
    );
    assert!(host.jobs().is_empty() && !daemon.log().contains("panicked"));
}

#[test]
fn factorize_goes_on_from_its_checkpoint() {
    let host = Host::new();
    let file = ratings(&host);
    let args = ["--passes", EPOCHS, "--rank", "8", "--train", &file, "--test", &file];
    killed_in_mid_epoch(&host, "factorize", &args);
}

#[test]
fn matrix_completion_goes_on_from_its_checkpoint() {
    for mode in ["handover", "areas"] {
        let host = Host::new();
        let file = ratings(&host);
        let args = ["--mode", mode, "--epochs", EPOCHS, "--rank", "8", "--quiet", "--ratings", &file];
        killed_in_mid_epoch(&host, "matrix_completion", &args);
    }
}
