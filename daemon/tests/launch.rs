//! `hectare run`: ranks, output, failures, signals.
use crate::common::{Host, example, until};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;

fn sh<'a>(n: &'a str, more: &[&'a str], script: &'a str) -> Vec<&'a str> {
    [&["run", "-n", n], more, &["--", "sh", "-c", script]].concat()
}

#[test]
fn each_process_knows_its_place_and_its_output_has_its_rank() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let said =
        host.hectare(&sh("3", &["--job", "j"], "echo $HECTARE_JOB $HECTARE_RANK/$HECTARE_SIZE; echo e >&2"));
    assert_eq!(said.code, 0, "{said:?}");
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&said.out), ["[0] j 0/3", "[1] j 1/3", "[2] j 2/3"]);
    assert_eq!(sorted(&said.err), ["[0] e", "[1] e", "[2] e"]);
    assert!(host.jobs().is_empty());
    // Lines without an end, bytes that are no text, and nothing.
    let said = host.hectare(&sh("1", &["--no-prefix"], "printf 'a\\nb'"));
    assert_eq!(said.out, "a\nb");
    let said = host.hectare(&sh("1", &[], "printf 'a\\n\\nb'"));
    assert_eq!(said.out, "[0] a\n[0] \n[0] b\n");
}

/// From the program on, all words are the program's, whether `--` stands before it or not.
#[test]
fn the_first_word_without_a_dash_is_the_program() {
    let host = Host::new();
    let _daemon = host.daemon("");
    for dashes in [&[][..], &["--"]] {
        let words =
            [&["run", "-n", "1", "--no-prefix"], dashes, &["sh", "-c", "echo $0 $1 $2", "--job", "-n", "--"]];
        let said = host.hectare(&words.concat());
        assert_eq!((said.code, said.out.as_str()), (0, "--job -n --\n"), "{said:?}");
    }
    // Options of `hectare run` stand before the program.
    let said = host.hectare(&["run", "-n", "1", "--no-such-option", "true"]);
    assert!(said.code == 2 && said.err.contains("--no-such-option"), "{said:?}");
}

#[test]
fn the_first_failure_is_named_and_ends_the_rest() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let said = host.hectare(&sh("3", &[], "[ $HECTARE_RANK = 1 ] && exit 7; exec sleep 1000"));
    assert_eq!(said.code, 7, "{said:?}");
    assert!(said.err.contains("rank 1 failed first") && said.err.contains('7'), "{said:?}");
    // One that panicked is rather the cause than one that ended with an error before.
    let panics = "[ $HECTARE_RANK = 0 ] && exit 1; [ $HECTARE_RANK = 2 ] && { sleep 0.05; exit 101; }; exec sleep 1000";
    let said = host.hectare(&sh("3", &[], panics));
    assert!(said.code == 101 && said.err.contains("rank 2 failed first"), "{said:?}");
    // One that does not end when it is told to.
    let stubborn = "[ $HECTARE_RANK = 0 ] && kill -9 $$; trap '' TERM; while :; do sleep 0.1; done";
    let said = host.hectare(&sh("2", &["--grace-s", "0"], stubborn));
    assert_eq!(said.code, 128 + 9, "{said:?}");
    assert!(said.err.contains("rank 0 failed first"), "{said:?}");
    assert!(!said.err.contains("what they started"), "{said:?}");
    // One that ends and leaves another behind that does not: the user is told what is waited for.
    let leaves = "f=$(mktemp -u); sh -c 'trap \"\" TERM; : > $0; while :; do sleep 0.1; done' $f >/dev/null 2>&1 & \
                  until [ -e $f ]; do sleep 0.01; done; rm $f; exit 3";
    let said = host.hectare(&sh("1", &["--grace-s", "2"], leaves));
    assert!(
        said.code == 3 && said.err.contains("but not what they started: it is killed in 1 s"),
        "{said:?}"
    );
    let said =
        host.hectare(&sh("2", &["--keep-going"], "[ $HECTARE_RANK = 0 ] && exit 3; sleep 0.2; echo on"));
    assert_eq!((said.code, said.out.as_str()), (3, "[1] on\n"), "{said:?}");
    assert!(host.jobs().is_empty());
}

/// One of three fails before it joins: the others do not wait until their time is over.
#[test]
fn who_does_not_come_is_not_waited_for() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let program = example("factorize");
    let data = host.top.path().join("ratings");
    let lines: String = (0..400).map(|n| format!("{} {} {}\n", n % 20, n / 20, 1 + n % 5)).collect();
    std::fs::write(&data, lines).unwrap();
    let script = format!(
        "[ $HECTARE_RANK = 1 ] && exit 7; exec {} --workers 3 --passes 1 --rank 8 --train {data} --test {data}",
        program.display(),
        data = data.display()
    );
    // Twice in one job that stays: what was said of the first program's worker is not said of the second's.
    assert_eq!(host.hectare(&["job", "create", "kept", "--keep"]).code, 0);
    for _ in 0..2 {
        let said = host.hectare(&sh("3", &["--keep-going", "--job", "kept"], &script));
        assert_eq!(said.code, 7, "{said:?}");
        let told = said.err.lines().filter(|line| line.contains("worker 1 will not come")).count();
        assert_eq!(told, 2, "{said:?}");
    }
    // In a job of its own: one that ends well, but does not join.
    let said = host.hectare(&sh("3", &["--keep-going"], &script.replace("exit 7", "exit 0")));
    let told = said.err.lines().filter(|line| line.contains("worker 1 will not come")).count();
    assert!(said.code != 0 && told == 2, "{said:?}");
    let whole = script.replace("exit 7", "true");
    let said = host.hectare(&sh("3", &["--keep-going", "--job", "kept"], &whole));
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn signals_are_passed_on() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let script = "trap 'echo got; exit 0' USR1; echo ready; while :; do sleep 0.05; done";
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    let mut child = command.args(sh("2", &[], script)).stdout(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&child);
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..2 {
        line.clear();
        std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
        assert!(line.ends_with("ready\n"), "{line}");
    }
    kill_process(pid, Signal::USR1).unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut reader, &mut rest).unwrap();
    assert_eq!(rest.matches("got").count(), 2, "{rest}");
    assert!(child.wait().unwrap().success());
    until("its job to go", || host.jobs().is_empty());
}

#[test]
fn what_cannot_be_done_is_one_line_and_a_code() {
    let host = Host::new();
    let one_line = |args: &[&str], code: i32, part: &str| {
        let said = host.hectare(args);
        assert_eq!((said.code, said.err.lines().count()), (code, 1), "{args:?}: {said:?}");
        assert!(said.err.contains(part) && said.out.is_empty(), "{args:?}: {said:?}");
    };
    for command in
        [&["ps"][..], &["jobs"], &["areas", "j"], &["stat", "j"], &["run", "-n", "1", "--", "true"]]
    {
        one_line(command, 3, "no daemon runs");
    }
    one_line(&["config", "check", "/nowhere.toml"], 5, "/nowhere.toml");
    let _daemon = host.daemon("[limits]\nworkers = 300\n");
    one_line(&["areas", "j"], 4, "there is no job \"j\"");
    one_line(&["job", "create", "j", "--workers", "301"], 4, "limits.workers");
    one_line(&["job", "create", "a/b"], 4, "invalid job name");
    one_line(&["run", "-n", "1", "--", "/nowhere"], 127, "/nowhere cannot be started");
    one_line(
        &["run", "-n", "1", "--", ""],
        127,
        "the program, whose name is empty (\"\"), cannot be started",
    );
    let many = ["run", "-n", "257", "--job", "many", "--", "echo", "begun"];
    one_line(&many, 4, "257 workers asked for, 256 allowed by the settings of job \"many\": start fewer");
    assert_eq!(host.hectare(&["job", "create", "many", "--workers", "257"]).code, 0);
    assert_eq!(host.hectare(&many).out.matches("begun").count(), 257);
    assert_eq!(host.hectare(&["run", "-n", "0", "--", "true"]).code, 2);
    assert!(host.jobs().is_empty());
    let example = host.hectare(&["config", "example"]);
    assert!(hectare_daemon::config::Config::parse(&example.out).is_ok());
    assert!(host.hectare(&["config", "show"]).out.contains("max_jobs = 64"));
}

#[test]
fn a_killed_launcher_takes_its_processes_with_it() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    let script = "trap '' TERM HUP; echo $$; while :; do sleep 0.05; done";
    let mut child =
        command.args(sh("3", &["--no-prefix", "--job", "j"], script)).stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut pids = Vec::new();
    while pids.len() < 3 {
        let mut line = String::new();
        assert!(std::io::BufRead::read_line(&mut reader, &mut line).unwrap() > 0);
        pids.push(Pid::from_raw(line.trim().parse().unwrap()).unwrap());
    }
    assert_eq!(host.jobs()[0].members, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    // Gone, or dead and not waited for by whoever inherited them.
    let ended = |pid: &Pid| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        stat.map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])))
    };
    until("them to end", || pids.iter().all(ended));
    until("the job to go", || host.jobs().is_empty());
}

/// `hectare run` holds its job across daemons, before any of its processes is a member.
#[test]
fn a_launcher_brings_its_job_to_the_next_daemon() {
    let host = Host::new();
    let daemon = host.daemon("");
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    let run = sh("1", &["--job", "j"], "echo ready; exec sleep 1000");
    let mut child = command.args(run).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "[0] ready\n");
    daemon.kill();
    let _daemon = host.daemon("");
    until("the job to be back", || host.jobs().first().is_some_and(|job| job.members == 1 && job.ranks == 0));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    until("the job to go", || host.jobs().is_empty());
}

#[test]
fn other_launchers_work_in_its_place() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let (program, data) = (example("factorize"), host.top.path().join("ratings"));
    let lines: String =
        (0..900u32).map(|n| format!("{} {} {}\n", n * 7919 % 60, n * 104_729 % 41, 1 + n % 5)).collect();
    std::fs::write(&data, lines).unwrap();
    let launchers: [&[(&str, &str)]; 4] = [
        &[
            ("SLURM_PROCID", "RANK"),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_NTASKS", "9"),
            ("SLURM_NNODES", "1"),
        ],
        &[
            ("OMPI_COMM_WORLD_RANK", "RANK"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ],
        &[("PMI_RANK", "RANK"), ("PMI_SIZE", "2"), ("MPI_LOCALNRANKS", "2")],
        &[("RANK", "RANK"), ("WORLD_SIZE", "2"), ("LOCAL_WORLD_SIZE", "2")],
    ];
    for (number, variables) in launchers.into_iter().enumerate() {
        let start = |rank: &str| {
            let mut command = host.command(program.to_str().unwrap());
            command.env("HECTARE_JOB", format!("j-{number}")).args(["--passes", "2", "--rank", "8"]);
            command.arg("--train").arg(&data).arg("--test").arg(&data);
            for (name, value) in variables {
                command.env(name, if *value == "RANK" { rank } else { value });
            }
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let processes = [start("0"), start("1")];
        let said = processes.map(|process| process.wait_with_output().unwrap());
        for output in &said {
            assert!(output.status.success(), "{variables:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let printed = said.map(|output| String::from_utf8(output.stdout).unwrap());
        let passes = printed.each_ref().map(|text| text.matches("pass ").count());
        assert!(passes[0] >= 2 && passes[1] == 0, "{printed:?}");
        until("its job to go", || host.jobs().is_empty());
    }
}

#[test]
fn options_of_several_hosts_are_refused_on_one() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 65536\n");
    for option in [
        ["--rendezvous", "a"],
        ["--rsh", "ssh"],
        ["--interface", "lo"],
        ["--port", "7117"],
        ["--timeout", "9"],
        ["--cipher", "none"],
        ["--transport", "udp"],
        ["--remote-hectare", "hectare"],
    ] {
        let said = host.hectare(&[&["run", "-n", "1"], &option[..], &["--", "true"]].concat());
        let what = format!("{} is for several hosts", option[0]);
        assert!(said.code == 2 && said.err.contains(&what), "{said:?}");
    }
    // These have a meaning everywhere.
    let directory = host.top.path().to_str().unwrap();
    let args = ["run", "-n", "1", "-x", "A=5", "--directory", directory, "--", "sh", "-c", "echo $A $PWD"];
    let said = host.hectare(&args);
    assert_eq!((said.code, said.out), (0, format!("[0] 5 {directory}\n")), "{}", said.err);
    let said = host.hectare(&["run", "-n", "1", "-x", "HECTARE_NOT_SET", "--", "true"]);
    assert!(said.code == 2 && said.err.contains("-x HECTARE_NOT_SET"), "{said:?}");
    let said = host.hectare(&["run", "-n", "1", "--directory", "/nowhere", "--", "true"]);
    assert!(said.code == 2 && said.err.contains("--directory /nowhere"), "{said:?}");
}
