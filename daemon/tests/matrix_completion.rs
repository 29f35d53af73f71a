//! The application `matrix_completion`, unchanged, as four threads and as four processes.
use crate::common::cluster::Cluster;
use crate::common::{Host, example, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Ratings of 120 users and 80 items, in a file.
fn ratings(host: &Host) -> PathBuf {
    ratings_in(host.top.path())
}

pub(crate) fn ratings_in(directory: &Path) -> PathBuf {
    let file = directory.join("ratings");
    let lines: String = (0..3000u32)
        .map(|n| {
            let (i, j) = (n * 7919 % 120, n * 104_729 % 80);
            format!("{i} {j} {}\n", 1 + (i * j + i + 3 * j) % 5)
        })
        .collect();
    std::fs::write(&file, lines).unwrap();
    file
}

fn arguments(command: &mut Command, data: &Path, more: &[&str]) {
    command.arg("--ratings").arg(data).args(["--rank", "8", "--batch", "150"]).args(more);
}

fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
    output
}

/// Losses and errors of each epoch with all their digits, and the last line that was printed.
fn result(out: &Path, output: &Output) -> (Vec<String>, String) {
    let text = std::fs::read_to_string(out.join("loss.csv")).unwrap();
    let fields = |line: &str| line.split(',').take(3).collect::<Vec<_>>().join(",");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (text.lines().skip(1).map(fields).collect(), printed.trim_end().lines().last().unwrap().to_owned())
}

/// Ways of sharing the model between processes.
const WAYS: [&[&str]; 4] = [
    &["--mode", "handover"],
    &["--mode", "areas"],
    &["--mode", "areas", "--transport", "handed"],
    &["--mode", "areas", "--transport", "logged"],
];

#[test]
fn four_processes_learn_what_four_threads_do() {
    let (host, program) = (Host::new(), example("matrix_completion"));
    let _daemon = host.daemon("");
    let data = ratings(&host);
    for (number, way) in WAYS.into_iter().enumerate() {
        let directory = |what: &str| host.top.path().join(format!("{what}-{number}"));
        let (threads, processes) = (directory("threads"), directory("processes"));
        let out =
            |path: &Path| ["--epochs", "3", "--quiet", "--out", path.to_str().unwrap()].map(str::to_owned);

        let mut command = host.command(program.to_str().unwrap());
        arguments(&mut command, &data, &[way, &["--workers", "4"]].concat());
        let (expected, line) = result(&threads, &output(command.args(out(&threads))));
        assert!(expected.len() == 3 && line.contains("4 workers in 1 process"), "{line}");

        let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
        command.args(["run", "-n", "4", "--"]).arg(&program);
        arguments(&mut command, &data, way);
        let (found, line) = result(&processes, &output(command.args(out(&processes))));
        assert_eq!(found, expected, "{way:?}");
        assert!(line.starts_with("[0] ") && line.contains("4 workers in 4 processes"), "{line}");
        assert!(host.jobs().is_empty());
    }
}

#[test]
fn modes_of_one_process_and_other_numbers_of_workers_are_refused() {
    let (host, program) = (Host::new(), example("matrix_completion"));
    let _daemon = host.daemon("");
    let pipe = host.top.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (way, part) in [
        (["--ratings", pipe.to_str().unwrap()], "pipe: not a regular file, which each process would read"),
        (["--mode", "serial"], "mode serial runs in one process, not in 2: use --mode areas or handover"),
        (["--mode", "shared"], "mode shared runs in one process, not in 2"),
        (["--workers", "3"], "--workers is 3, but 2 processes were started: leave it out"),
    ] {
        let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
        let said = command.args(["run", "-n", "2", "--keep-going", "--"]).arg(&program).args(way).output();
        let said = said.unwrap();
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        assert_eq!((said.status.code(), text.matches(part).count()), (Some(1), 2), "{text}");
    }
    // One process is like any other start.
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    command.args(["run", "-n", "1", "--"]).arg(&program);
    arguments(&mut command, &ratings(&host), &["--mode", "serial", "--epochs", "1", "--quiet"]);
    let said = String::from_utf8(output(&mut command).stdout).unwrap();
    assert!(said.starts_with("[0] serial, 1 worker in 1 process"), "{said}");
}

#[test]
fn two_hosts_learn_what_one_does() {
    let Some(cluster) = Cluster::new(2) else { return };
    let (program, data) = (example("matrix_completion"), ratings_in(cluster.top.path()));
    let (program, data) = (program.display(), data.display());
    for (number, way) in WAYS.into_iter().enumerate() {
        let directory = |what: &str| cluster.top.path().join(format!("{what}-{number}"));
        let (one, two) = (directory("one"), directory("two"));
        let of = |out: &Path| {
            let out = out.display();
            format!(
                "{program} --ratings {data} --rank 8 --batch 150 {} --epochs 3 --quiet --out {out}",
                way.join(" ")
            )
        };
        let threads = output(Command::new("sh").args(["-c", &format!("{} --workers 2", of(&one))]));
        let said =
            cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &format!("exec {}", of(&two)));
        assert_eq!(said.code, 0, "{way:?}: {said:?}");
        let losses = |out: &Path| result(out, &threads).0;
        assert_eq!(losses(&two), losses(&one), "{way:?}");
    }
    cluster.assert_nothing_is_left();
}

/// Of hosts with disks of their own, each may have other ratings, or another checkpoint or none.
#[test]
fn files_that_differ_between_hosts_are_refused() {
    let Some(cluster) = Cluster::new(2) else { return };
    let program = example("matrix_completion");
    let text = std::fs::read_to_string(ratings_in(cluster.top.path())).unwrap();
    let write =
        |host: usize, name: &str, text: &str| std::fs::write(cluster.home(host).join(name), text).unwrap();
    (0..2).for_each(|host| write(host, "ratings", &text));
    let run = |epochs: usize| {
        // `HOME` is a folder of the host's own.
        let script = format!(
            "exec {} --ratings $HOME/ratings --rank 8 --batch 150 --mode handover --quiet --checkpoint $HOME/saved --epochs {epochs}",
            program.display()
        );
        cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &script)
    };
    let said = run(2);
    assert_eq!(said.code, 0, "{said:?}");
    let saved = std::fs::read(cluster.home(0).join("saved")).unwrap();
    // The first host has saved alone.
    let refused = |part: &str| {
        let said = run(3);
        let hosts = [cluster.name(0), cluster.name(1)];
        assert!(said.code != 0 && said.err.contains(part), "{said:?}");
        assert!(hosts.iter().all(|host| said.err.contains(&format!("(host {host} ("))), "{said:?}");
        assert_eq!(std::fs::read(cluster.home(0).join("saved")).unwrap(), saved);
    };
    refused("no file: copy one to all hosts, or remove it from all");
    std::fs::write(cluster.home(1).join("saved"), &saved).unwrap();
    write(1, "ratings", &text.replacen(" 1\n", " 2\n", 1));
    std::fs::remove_file(cluster.home(1).join("saved")).unwrap();
    refused("see different files of");
    write(1, "ratings", &text);
    std::fs::write(cluster.home(1).join("saved"), &saved).unwrap();
    let said = run(3);
    assert_eq!(said.code, 0, "{said:?}");
    cluster.assert_nothing_is_left();
}

/// Ctrl-C goes to the processes, of which any may be the one that has it: all end after the same epoch, and what they have
/// learnt is saved.
#[test]
fn an_interrupt_ends_all_processes_with_what_was_learnt() {
    let (host, program) = (Host::new(), example("matrix_completion"));
    let _daemon = host.daemon("");
    let data = ratings(&host);
    for way in [&["--mode", "handover"][..], &["--mode", "areas"]] {
        for rank in [None, Some(1)] {
            let out = host.top.path().join(format!("{}-{rank:?}", way[1]));
            let saved = out.with_extension("saved");
            let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
            command.args(["run", "-n", "2", "--job", "mf", "--"]).arg(&program);
            arguments(&mut command, &data, way);
            command
                .args(["--epochs", "1000000", "--quiet", "--checkpoint"])
                .arg(&saved)
                .arg("--out")
                .arg(&out);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            until("an epoch to end", || saved.exists());
            let to = match rank {
                None => child.id() as i32,
                Some(rank) => pid_of(&host, rank).unwrap(),
            };
            kill_process(Pid::from_raw(to).unwrap(), Signal::INT).unwrap();
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(130), "{way:?} {rank:?}: {said}");
            assert!(said.contains("[0] interrupted: training ended after epoch"), "{said}");
            assert!(!said.contains("error"), "{said}");
            let csv = std::fs::read_to_string(out.join("loss.csv")).unwrap();
            assert!(csv.lines().count() > 1 && out.join("loss.svg").exists(), "{csv}");
            until("the job to go", || host.jobs().is_empty());
        }
    }
}

/// The process of a rank of the job `mf`.
fn pid_of(host: &Host, rank: u64) -> Option<i32> {
    let processes: Value = serde_json::from_str(&host.hectare(&["ps", "mf", "--json"]).out).ok()?;
    let has = |process: &&Value| {
        process["workers"].as_array().is_some_and(|all| all.iter().any(|worker| worker["rank"] == rank))
    };
    processes.as_array()?.iter().find(has)?["pid"].as_i64().map(|pid| pid as i32)
}

/// Kills rank 2 while it learns; what the others do is up to `more`.
fn with_a_death(way: &[&str], more: &[&str]) -> (Option<i32>, String) {
    let (host, program) = (Host::new(), example("matrix_completion"));
    let _daemon = host.daemon("");
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    command.args(["run", "-n", "4", "--job", "mf"]).args(more).arg("--").arg(program);
    arguments(&mut command, &ratings(&host), way);
    command.args(["--epochs", "1000000", "--quiet"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let mut victim = 0;
    crate::common::until("the workers to learn", || {
        let said = host.hectare(&["ps", "mf", "--json"]);
        let Ok(processes) = serde_json::from_str::<Value>(&said.out) else { return false };
        let worker = |process: &Value, rank: u64| {
            process["workers"].as_array().unwrap().iter().any(|worker| worker["rank"] == rank)
        };
        let all = processes.as_array().unwrap();
        let of = all.iter().find(|process| worker(process, 2));
        victim = of.map_or(0, |process| process["pid"].as_i64().unwrap() as i32);
        let round = |process: &Value| process["workers"][0]["last_round"].as_u64().unwrap_or(0);
        all.iter().filter(|process| round(process) > 20).count() == 4
    });
    kill_process(Pid::from_raw(victim).unwrap(), Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    crate::common::until("the job to go", || host.jobs().is_empty());
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_worker_that_is_killed_ends_the_run() {
    for way in [&["--mode", "handover"][..], &["--mode", "areas"]] {
        let (code, said) = with_a_death(way, &["--grace-s", "0"]);
        assert!(code == Some(128 + 9) && said.contains("rank 2 failed first"), "{code:?} {said}");
        // Where nobody ends the others, they see that one is missing, and none of them waits for ever.
        let (code, said) = with_a_death(way, &["--keep-going"]);
        assert!(code == Some(128 + 9) && said.contains("rank 2 failed first"), "{code:?} {said}");
        for rank in [0, 1, 3] {
            assert!(said.contains(&format!("[{rank}] error: ")), "{said}");
        }
    }
}
