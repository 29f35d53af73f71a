//! A program of the loop layer, unchanged, as four threads and as four processes.
use crate::common::{Host, example};
use std::process::{Command, Output};

/// The lines about passes, without the times.
fn passes(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let of_a_pass = text.lines().filter_map(|line| line.find("pass ").map(|at| &line[at..]));
    of_a_pass.map(|line| line.rsplit_once("  ").expect("a time at the end").0.to_owned()).collect()
}

#[test]
fn four_processes_learn_what_four_threads_do() {
    let (host, program) = (Host::new(), example("factorize"));
    let _daemon = host.daemon("");
    let data = host.top.path().join("ratings");
    let lines: String = (0..4000u32)
        .map(|n| {
            let (i, j) = (n * 7919 % 200, n * 104_729 % 131);
            format!("{i} {j} {}\n", 1 + (i * j + i + 3 * j) % 5)
        })
        .collect();
    std::fs::write(&data, lines).unwrap();
    let arguments = |command: &mut Command| {
        command.args(["--workers", "4", "--passes", "3", "--rank", "8"]);
        command.arg("--train").arg(&data).arg("--test").arg(&data).output().unwrap()
    };
    let threads = passes(&arguments(&mut host.command(program.to_str().unwrap())));
    let mut run = host.command(env!("CARGO_BIN_EXE_hectare"));
    let processes = passes(&arguments(run.args(["run", "-n", "4", "--"]).arg(program)));
    assert_eq!(threads.len(), 3);
    assert_eq!(threads, processes);
    assert!(host.jobs().is_empty());
}
