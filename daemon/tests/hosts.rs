//! `hectare run` on several hosts, which are network namespaces: places, output, failures, signals, and what is left behind.
use crate::common::cluster::{Cluster, HECTARE, Running};
use crate::common::{Host, Said, until};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn ranks_are_contiguous_and_know_their_place() {
    let Some(cluster) = Cluster::new(2) else { return };
    let script = "echo $HECTARE_RANK/$HECTARE_SIZE at $(ip -br address show eth0 | tr -s ' ' | cut -d' ' -f3); echo e >&2";
    for list in [&["-n", "4", "--hosts", &cluster.list(2)][..], &["--hosts", &cluster.list(2)]] {
        let said = cluster.run(list, script);
        assert_eq!(said.code, 0, "{said:?}");
        let (a, b) = ("10.77.0.1/24", "10.77.0.2/24");
        let expected =
            [(0, a), (1, a), (2, b), (3, b)].map(|(rank, at)| format!("[{rank}] {rank}/4 at {at}"));
        assert_eq!(sorted(&said.out), expected, "{said:?}");
        assert_eq!(sorted(&said.err), ["[0] e", "[1] e", "[2] e", "[3] e"]);
    }
    // Less ranks than there is room for, from a file; addresses by the name of an interface, one job, a directory, variables.
    let file = cluster.top.path().join("hosts");
    let text = format!("# two\n{} slots=2\n{} slots=2\n", cluster.name(0), cluster.name(1));
    std::fs::write(&file, text).unwrap();
    let args =
        ["-n", "3", "--hostfile", file.to_str().unwrap(), "--interface", "eth0", "--job", "j", "--no-prefix"];
    let more = ["--directory", "/proc", "-x", "FIRST=a b", "-x", "HOME"];
    let script = "echo $HECTARE_JOB $HECTARE_RANK $PWD $FIRST $HOME";
    let said = cluster.run(&[&args[..], &more].concat(), script);
    let home = cluster.top.path().display();
    let expected = [0, 1, 2].map(|rank| format!("j {rank} /proc a b {home}"));
    assert_eq!(
        (said.code, sorted(&said.out)),
        (0, expected.each_ref().map(String::as_str).to_vec()),
        "{said:?}"
    );
    cluster.assert_nothing_is_left();
}

#[test]
fn the_first_failure_is_named_with_its_host_and_ends_all() {
    let Some(cluster) = Cluster::new(2) else { return };
    let list = cluster.list(2);
    let said = cluster.run(&["--hosts", &list], "[ $HECTARE_RANK = 2 ] && exit 7; exec sleep 1000");
    assert_eq!(said.code, 7, "{said:?}");
    let named =
        format!("hectare: rank 2 on host {} (10.77.0.2) failed first: exit status: 7", cluster.name(1));
    assert!(said.err.lines().count() == 1 && said.err.contains(&named), "{said:?}");
    // A rank that was killed is the cause, though one of another host fails before that is known.
    let script = "[ $HECTARE_RANK = 0 ] && exit 3; [ $HECTARE_RANK = 3 ] && kill -9 $$; trap '' TERM; while :; do sleep 0.1; done";
    let said = cluster.run(&["--hosts", &list, "--grace-s", "0"], script);
    assert!(said.code == 137 && said.err.contains("rank 3 on host"), "{said:?}");
    // So is one that panicked: the error of another may be that it did.
    let script = "[ $HECTARE_RANK = 0 ] && exit 1; [ $HECTARE_RANK = 3 ] && { sleep 0.05; exit 101; }; exec sleep 1000";
    let said = cluster.run(&["--hosts", &list], script);
    assert!(said.code == 101 && said.err.contains("rank 3 on host"), "{said:?}");
    assert!(said.err.contains("the others are terminated"), "{said:?}");
    let script = "[ $HECTARE_RANK = 0 ] && exit 3; sleep 0.5; echo on";
    let said = cluster.run(&["--hosts", &list, "--keep-going"], script);
    assert_eq!((said.code, sorted(&said.out)), (3, vec!["[1] on", "[2] on", "[3] on"]), "{said:?}");
    cluster.assert_nothing_is_left();
}

/// Also when ranks have failed before, and the others went on.
#[test]
fn a_host_that_is_lost_later_is_named() {
    let Some(mut cluster) = Cluster::new(2) else { return };
    let list = cluster.list(2);
    let script = "[ $HECTARE_RANK = 0 ] && exit 3; echo ready; sleep 6; exit 1";
    let args = ["--hosts", &list, "--timeout", "2", "--keep-going"];
    let mut run = Running::start(cluster.command(&args, script));
    run.lines(3);
    let cut = |from, to| hectare_hosts::Fault::Cut { from, to };
    cluster.network.set(&[cut(0, 1), cut(1, 0)]).unwrap();
    let (code, said) = (run.end(), run.said());
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("hectare: ")).collect();
    assert!(code == Some(3) && lines.len() == 2, "{code:?} {said}");
    assert!(lines[0].contains("rank 0 on host") && lines[0].ends_with("the others go on"), "{said}");
    assert!(lines[1].contains(" is lost, says host ") && lines[1].contains("are terminated"), "{said}");
    cluster.network.set(&[]).unwrap();
    cluster.assert_nothing_is_left();
}

/// The part of the job that a daemon makes when the start was given up is not left behind.
#[test]
fn a_daemon_that_wakes_up_after_the_start_was_given_up_keeps_no_job() {
    let Some(cluster) = Cluster::new(2) else { return };
    let list = cluster.list(1);
    let daemon = Pid::from_raw(cluster.daemons[1].child.id() as i32).unwrap();
    let stopped = || kill_process(daemon, Signal::STOP).unwrap();
    let woken = || {
        let gone = "job removed: who made it is gone";
        let count = || cluster.daemons[1].log().matches(gone).count();
        let before = count();
        kill_process(daemon, Signal::CONT).unwrap();
        until("its part of the job to be made and removed", || count() > before);
        cluster.assert_nothing_is_left();
    };
    stopped();
    let said = cluster.run(&["--hosts", &list, "--job", "late", "--timeout", "1"], "true");
    assert!(said.code == 8 && said.err.contains("no answer within 1 s"), "{said:?}");
    woken();
    // The name is free.
    let said = cluster.run(&["--hosts", &list, "--job", "late"], "true");
    assert_eq!(said.code, 0, "{said:?}");

    // The same where the user gives up.
    stopped();
    let mut run = Running::start(cluster.command(&["--hosts", &list, "--job", "late"], "true"));
    until("the other host's part of the job", || !cluster.jobs(0).is_empty());
    run.signal(Signal::INT);
    assert_eq!(run.end(), Some(130), "{}", run.said());
    woken();
}

#[test]
fn a_program_that_is_missing_on_one_host_is_named_with_it() {
    let Some(cluster) = Cluster::new(2) else { return };
    let program = cluster.home(0).join("program");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let start = |words: &[&str]| {
        let mut command = Command::new(HECTARE);
        command.arg("run").args(["--rsh", &cluster.rsh(), "--hosts", &cluster.list(1)]);
        command.args(words).env("HOME", cluster.top.path()).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // Each host has its own home; the program is in that of the first.
    let (code, said) = start(&["sh", "-c", "exec $HOME/program"]);
    assert!(code == 127 && said.contains("rank 1 on host"), "{said}");
    let (code, said) = start(&["/nowhere"]);
    assert_eq!(code, 127, "{said}");
    assert!(said.contains("/nowhere cannot be started"), "{said}");
    let (code, said) = start(&["--directory", "/nowhere", "true"]);
    assert_eq!(code, 8, "{said}");
    assert!(said.contains("the directory /nowhere is not there"), "{said}");
    cluster.assert_nothing_is_left();
}

/// One sentence each, the code of wrong usage, and nothing is started: there is not even a daemon.
#[test]
fn input_that_cannot_be_meant_is_wrong_usage() {
    let host = Host::new();
    let file = host.top.path().join("hosts");
    let file = file.to_str().unwrap();
    let fails = |args: &[&str], part: &str| {
        let said = host.hectare(&[&["run"], args, &["--", "true"]].concat());
        assert!(said.code == 2 && said.err.contains(part) && said.out.is_empty(), "{args:?}: {said:?}");
        // Messages of clap have a form of their own.
        assert!(said.err.starts_with("error: ") || said.err.lines().count() == 1, "{args:?}: {said:?}");
    };
    fails(&["--hosts", ""], "column 1: a host without a name");
    fails(&["--hosts", "a:0"], "column 3: a host with room for no rank");
    fails(&["--hosts", "a,a"], "column 3: a is there twice");
    fails(&["--hosts", &"a".repeat(129)], "a name of more than 128 bytes");
    fails(&["--hosts", "a:4000,b:97"], "4097 ranks on all hosts; there may be 4096");
    fails(&["--hosts", "a", "-x", "=3"], "-x \"=3\": a variable without a name");
    fails(&["--hosts", "a", "-x", ""], "-x \"\": a variable without a name");
    fails(&["--hosts", "a", "--timeout", "0"], "within 0 seconds nobody can answer");
    fails(&["--hosts", "a", "--timeout", "1e18"], "is not a number of seconds");
    fails(&["-n", "1", "--grace-s", "18446744073709551615"], "--grace-s");
    let texts: [(&[u8], &str); 6] = [
        (b"", "line 1, column 1: no host is in it"),
        (b"# none\r\n\r\n", "no host is in it"),
        (b"a slots=0\r\n", "line 1, column 9: a host with room for no rank"),
        (b"a\r\na slots=2\r\n", "line 2, column 1: a is there twice"),
        (b"\xff slots=1\n", "cannot be read: stream did not contain valid UTF-8"),
        (b"a slots=5000\n", "5000 ranks on all hosts"),
    ];
    for (text, part) in texts {
        std::fs::write(file, text).unwrap();
        fails(&["--hostfile", file], part);
    }
    fails(&["--hostfile", "/dev/zero"], "host file /dev/zero cannot be read: it is longer than ");
    fails(&["--hostfile", "/nowhere"], "host file /nowhere cannot be read: No such file");
}

/// The caller's own host needs no remote shell, and a host alone no key.
#[test]
fn the_own_host_is_reached_without_a_remote_shell() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let script = "echo $HECTARE_RANK/$HECTARE_SIZE; [ $HECTARE_RANK = 0 ] || exit 5";
    let args =
        ["run", "--hosts", "localhost:2", "--rsh", "/nowhere", "--keep-going", "--", "sh", "-c", script];
    let said = host.hectare(&args);
    assert_eq!((said.code, sorted(&said.out)), (5, vec!["[0] 0/2", "[1] 1/2"]), "{said:?}");
    assert!(said.err.contains("rank 1 on host localhost (127.0.0.1) failed first"), "{said:?}");
    assert!(host.jobs().is_empty());
}

/// Ctrl-Z stops the caller and what runs on the hosts; both go on together.
#[test]
fn a_stopped_caller_stops_the_processes() {
    let Some(cluster) = Cluster::new(1) else { return };
    // Nothing is forked: who waits for a child that stopped before it began is not stopped itself.
    let script = "echo $$; exec sleep 1000";
    let mut run = Running::start(cluster.command(&["--hosts", &cluster.list(2), "--no-prefix"], script));
    let mut pids = run.lines(2);
    pids.push(run.child.id().to_string());
    let all = |state: &[&str]| {
        pids.iter().all(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| state.iter().any(|state| rest.starts_with(state)))
        })
    };
    run.signal(Signal::TSTP);
    until("all to stop", || all(&["T"]));
    run.signal(Signal::CONT);
    until("all to go on", || all(&["S", "R", "D"]));
    run.signal(Signal::TERM);
    assert_eq!(run.end(), Some(143));
    cluster.assert_nothing_is_left();
}

/// A job on one host needs no agent, also when that is another host.
#[test]
fn one_other_host_is_enough() {
    let Some(cluster) = Cluster::new(1) else { return };
    let list = cluster.list(2);
    let said = cluster.run(&["--hosts", &list], "echo $HECTARE_RANK/$HECTARE_SIZE; echo e >&2");
    assert_eq!((said.code, sorted(&said.out)), (0, vec!["[0] 0/2", "[1] 1/2"]), "{said:?}");
    assert_eq!(sorted(&said.err), ["[0] e", "[1] e"]);
    // As it is: no prefix, no line's end that was not there, bytes that are no text.
    let said = cluster
        .run(&["-n", "1", "--hosts", &list, "--no-prefix"], "printf 'a\\nb'; head -c 300000 /dev/zero");
    assert!(said.out.starts_with("a\nb\0") && said.out.len() == 3 + 300_000, "{}", said.out.len());
    let said = cluster.run(&["--hosts", &list], "[ $HECTARE_RANK = 1 ] && exit 7; exec sleep 1000");
    assert!(said.code == 7 && said.err.contains("rank 1 on host"), "{said:?}");
    // The daemon is asked for a job by a name that is taken.
    let said = cluster.run(&["--hosts", &list, "--job", "a/b"], "true");
    assert!(said.code == 4 && said.err.contains("invalid job name"), "{said:?}");
    let mut run = Running::start(cluster.command(&["--hosts", &list, "--job", "j"], STUBBORN));
    run.lines(2);
    let said = cluster.run(&["--hosts", &list, "--job", "j"], "true");
    assert!(said.code == 4 && said.err.contains("job \"j\" exists already"), "{said:?}");
    run.signal(Signal::KILL);
    run.end();
    cluster.assert_nothing_is_left();
}

/// In an allocation of SLURM's, hosts and ranks are those of its variables, and `srun` is the remote shell.
#[test]
fn an_allocation_of_slurm_says_where() {
    let Some(cluster) = Cluster::new(1) else { return };
    let bin = cluster.top.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    // Passes whole lines on, as the real one does.
    let shell = cluster.rsh().replace("{host}", "${4#--nodelist=}");
    let srun = "[ \"$1 $2 $3\" = '--nodes=1 --ntasks=1 --overlap' ] || exit 9\n".to_owned();
    let script = format!(
        "#!/bin/bash\n{srun}shell=\"{shell}\"\nexec $shell \"${{@:5}}\" > >(exec grep -a --line-buffered '')\n"
    );
    std::fs::write(bin.join("srun"), script).unwrap();
    std::fs::set_permissions(bin.join("srun"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let start = |variables: &[(&str, &str)], args: &[&str]| {
        let mut command = Command::new(HECTARE);
        command.arg("run").args(args).args(["--", "sh", "-c", "echo $HECTARE_RANK/$HECTARE_SIZE"]);
        command.env("PATH", &path).env("HOME", cluster.top.path()).env_remove("SLURM_JOB_NODELIST");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said { code: output.status.code().unwrap(), out: text(&output.stdout), err: text(&output.stderr) }
    };
    let name = cluster.name(0);
    let allocated = [("SLURM_JOB_NODELIST", name.as_str()), ("SLURM_TASKS_PER_NODE", "3")];
    let said = start(&allocated, &["--slurm"]);
    assert_eq!((said.code, sorted(&said.out)), (0, vec!["[0] 0/3", "[1] 1/3", "[2] 2/3"]), "{said:?}");
    let said = start(&allocated, &["--slurm", "-n", "4"]);
    assert!(said.code == 2 && said.err.contains("4 ranks on hosts that have 3 slots"), "{said:?}");
    let said = start(&[], &["--slurm"]);
    assert!(said.code == 2 && said.err.contains("SLURM_JOB_NODELIST is not set"), "{said:?}");
    cluster.assert_nothing_is_left();
}

/// The example of a script for `sbatch` starts daemons and the program, and leaves nothing.
#[test]
fn the_script_for_slurm_runs() {
    let top = tempfile::tempdir().unwrap();
    // It has one node, which is this host.
    let srun = "#!/bin/bash\nwhile [[ $1 = --* ]]; do shift; done\nexec \"$@\"\n";
    std::fs::write(top.path().join("srun"), srun).unwrap();
    std::fs::set_permissions(top.path().join("srun"), PermissionsExt::from_mode(0o755)).unwrap();
    let built = std::path::Path::new(HECTARE).parent().unwrap().display();
    let job = format!("test-{}", std::process::id());
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../dist/slurm.sh"));
    command.args(["sh", "-c", "echo $HECTARE_RANK/$HECTARE_SIZE $HECTARE_RUN_DIR; exit $HECTARE_RANK"]);
    command.env("PATH", format!("{}:{built}:{}", top.path().display(), std::env::var("PATH").unwrap()));
    command.env("HOME", top.path()).env("SLURM_JOB_ID", &job).env("SLURM_NNODES", "1");
    command.env("SLURM_JOB_NODELIST", "localhost").env("SLURM_TASKS_PER_NODE", "2");
    command.env_remove("XDG_CONFIG_HOME").env_remove("HECTARE_CONFIG").stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}{errors}");
    assert!(errors.contains("rank 1 on host localhost") && said.contains("[0] 0/2 "), "{said}{errors}");
    let dir = said.split_whitespace().last().unwrap();
    assert!(dir.ends_with(&job) && !std::path::Path::new(dir).exists(), "{said}");
}

const STUBBORN: &str = "trap 'echo got' INT TERM HUP; echo ready; while :; do sleep 0.05; done";

#[test]
fn signals_reach_all_hosts() {
    let Some(cluster) = Cluster::new(2) else { return };
    let list = cluster.list(2);
    let ready = ["[0] ready", "[1] ready", "[2] ready", "[3] ready"];
    let mut run = Running::start(cluster.command(&["--hosts", &list], STUBBORN));
    assert_eq!(run.lines(4), ready);
    run.signal(Signal::INT);
    assert_eq!(run.lines(4), ["[0] got", "[1] got", "[2] got", "[3] got"]);
    // The second Ctrl-C kills.
    run.signal(Signal::INT);
    assert_eq!(run.end(), Some(137));
    cluster.assert_nothing_is_left();

    let polite = "trap 'exit 0' USR1; echo ready; while :; do sleep 0.05; done";
    let mut run = Running::start(cluster.command(&["--hosts", &list], polite));
    assert_eq!(run.lines(4), ready);
    run.signal(Signal::USR1);
    assert_eq!(run.end(), Some(0));
    cluster.assert_nothing_is_left();
}

#[test]
fn a_killed_caller_leaves_nothing_on_any_host() {
    let Some(cluster) = Cluster::new(2) else { return };
    let list = cluster.list(2);
    let mut run = Running::start(cluster.command(&["--hosts", &list], STUBBORN));
    run.lines(4);
    run.signal(Signal::KILL);
    run.end();
    cluster.assert_nothing_is_left();
    // As with ssh: the part is no child of what the caller started, and learns it by the end of its pipe.
    let detached = cluster.top.path().join("rsh");
    let script =
        format!("#!/bin/sh\nexec 3<&0\nhost=$1; shift\nsetsid {} \"$@\" <&3 &\nwait\n", cluster.rsh())
            .replace("{host}", "$host");
    std::fs::write(&detached, script).unwrap();
    std::fs::set_permissions(&detached, PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new(HECTARE);
    command.args(["run", "--hosts", &list, "--rsh", detached.to_str().unwrap(), "--", "sh", "-c", STUBBORN]);
    let mut run = Running::start(command);
    run.lines(4);
    run.signal(Signal::KILL);
    run.end();
    cluster.assert_nothing_is_left();
}

/// Each is one line, with the host and the cause, and starts nothing.
#[test]
fn hosts_that_cannot_take_part_are_named() {
    let Some(mut cluster) = Cluster::new(2) else { return };
    let fails = |cluster: &Cluster, args: &[&str], code: i32, parts: &[&str]| {
        let said = cluster.run(args, "echo started");
        assert_eq!(
            (said.code, said.out.as_str(), said.err.lines().count()),
            (code, "", 1),
            "{args:?}: {said:?}"
        );
        for part in parts {
            assert!(said.err.contains(part), "{part}: {said:?}");
        }
        cluster.assert_nothing_is_left();
    };
    let (list, second) = (cluster.list(1), cluster.name(1));
    // A name that is taken on one of them; long before the time-out, the agent on the other one has ended.
    assert_eq!(cluster.hectare(1, &["job", "create", "taken"]).code, 0);
    let said = cluster.run(&["--hosts", &list, "--job", "taken", "--timeout", "600"], "true");
    assert!(said.code == 4 && said.err.contains("job \"taken\" exists already"), "{said:?}");
    assert_eq!(cluster.hectare(1, &["job", "remove", "taken"]).code, 0);
    cluster.assert_nothing_is_left();
    let other = format!("{}@10.77.0.1,no-such-host@10.77.0.9", cluster.name(0));
    fails(
        &cluster,
        &["--hosts", &other],
        8,
        &["host no-such-host (10.77.0.9)", "the remote shell ended", "no-such-host\":"],
    );
    fails(&cluster, &["--hosts", "a:2,b:x"], 2, &["--hosts: column 7"]);
    fails(&cluster, &["--hosts", "a:2,b:1", "-n", "4"], 2, &["4 ranks on hosts that have 3 slots: a:2,b:1"]);
    fails(&cluster, &["--hostfile", "/nowhere"], 2, &["host file /nowhere cannot be read"]);
    let wrong = format!("{}@10.77.0.1,{second}@10.77.0.7", cluster.name(0));
    fails(&cluster, &["--hosts", &wrong], 8, &[&second, "does not have the address 10.77.0.7,"]);
    let names = format!("{},{second}", cluster.name(0));
    fails(&cluster, &["--hosts", &names, "--interface", "eth7"], 8, &["there is no interface eth7"]);
    fails(&cluster, &["--hosts", &list, "--interface", "eth7"], 8, &["there is no interface eth7"]);
    // More ranks than a job has workers, on two hosts and on one.
    let (two, one) = (cluster.list(129), format!("{}@10.77.0.1:257", cluster.name(0)));
    for (list, asked) in [(two, 258), (one, 257)] {
        let parts = [&*format!("{asked} workers asked for, 256 allowed by"), "defaults.workers"];
        fails(&cluster, &["--hosts", &list], 4, &parts);
    }
    if !cfg!(feature = "rdma") {
        fails(&cluster, &["--hosts", &list, "--transport", "rdma"], 8, &["built without RDMA"]);
    }
    // Names that the hosts cannot look up.
    fails(&cluster, &["--hosts", &names], 8, &["is unknown here", "hectare-"]);

    // One that does not answer.
    let silent = cluster.top.path().join("silent");
    std::fs::write(
        &silent,
        format!(
            "#!/bin/sh\nhost=$1; shift\n[ $host = {second} ] && exec sleep 1000\nexec {} \"$@\"\n",
            cluster.rsh().replace("{host}", "$host")
        ),
    )
    .unwrap();
    std::fs::set_permissions(&silent, PermissionsExt::from_mode(0o755)).unwrap();
    let silent = silent.to_str().unwrap();
    fails(
        &cluster,
        &["--hosts", &list, "--rsh", silent, "--timeout", "1"],
        8,
        &[&second, "10.77.0.2", "no answer within 1 s"],
    );
    // One that speaks another version.
    let text = format!(
        "#!/bin/sh\nhost=$1; shift\n[ $host = {second} ] && {{ echo hectare-part 8; exec sleep 1000; }}\nexec {} \"$@\"\n",
        cluster.rsh().replace("{host}", "$host")
    );
    std::fs::write(silent, text).unwrap();
    fails(&cluster, &["--hosts", &list, "--rsh", silent], 8, &[&second, "it speaks version 8"]);
    // A remote shell that is no program, and a host without `hectare`.
    let said = cluster.run(&["--hosts", &list, "--rsh", "/nowhere"], "true");
    assert!(said.code == 2 && said.err.contains("/nowhere cannot be started"), "{said:?}");
    // It is there, and cannot be started for now: nothing was written wrong.
    let busy = std::fs::OpenOptions::new().write(true).open(silent).unwrap();
    let said = cluster.run(&["--hosts", &list, "--rsh", silent], "true");
    assert!(said.code == 1 && said.err.contains("cannot be started: "), "{said:?}");
    drop(busy);
    fails(
        &cluster,
        &["--hosts", &list, "--remote-hectare", "/nowhere"],
        8,
        &["the remote shell ended", "/nowhere"],
    );

    // Two names of one host.
    let twice = format!("{0}@10.77.0.1,x@10.77.0.1", cluster.name(0));
    fails(&cluster, &["--hosts", &twice], 2, &["have one address, 10.77.0.1"]);
    // Another key, one that others may read, and none.
    std::fs::remove_file(cluster.key(1)).unwrap();
    fails(&cluster, &["--hosts", &list], 8, &[&second, "there is no cluster key"]);
    hectare_daemon::key_file::make(&cluster.key(1), "lab").unwrap();
    fails(&cluster, &["--hosts", &list], 8, &[&second, "another cluster key (lab, ", "hectare key check"]);
    std::fs::set_permissions(cluster.key(1), PermissionsExt::from_mode(0o644)).unwrap();
    fails(&cluster, &["--hosts", &list], 8, &[&second, "0644"]);
    // No daemon.
    cluster.daemons.pop();
    let said = cluster.run(&["--hosts", &list], "true");
    assert!(said.code == 3 && said.err.contains(&second) && said.err.contains("no daemon runs"), "{said:?}");
}

#[test]
fn agents_log_as_their_daemons_do() {
    let Some(cluster) = Cluster::new(2) else { return };
    let list = cluster.list(1);
    let said = cluster.run(&["--hosts", &list, "--job", "logged"], "true");
    assert_eq!(said.code, 0, "{said:?}");
    cluster.assert_nothing_is_left();
    for daemon in &cluster.daemons {
        // Standard error has the lines of both.
        daemon.wait_for("the agent is here");
        let log = daemon.log();
        let mut of_agent = log.lines().filter(|line| line.contains("the agent is here"));
        assert!(of_agent.all(|line| line.starts_with('{')), "{log}");
    }
}
