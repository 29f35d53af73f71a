//! `hectare run --hosts` whose output nobody reads, or reads late; and its run directory.
use crate::common::{Host, until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Child, Command, Stdio};

const MIB: u64 = 1 << 20;

/// Two ranks on this host, which is started as one of a list, and of which each runs a script.
fn command(host: &Host, args: &[&str], script: &str) -> Command {
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    command.args(["run", "--hosts", "localhost:2"]).args(args).args(["--", "sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Bytes of a process that are in memory.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// How many bytes the process and those below it have written so far, of all that they write.
fn written(pid: u32) -> u64 {
    let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")).map_or(0, |count| count.parse().unwrap())
}

fn end(child: &mut Child) -> Option<i32> {
    let mut status = None;
    until("the launcher to end", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap().code()
}

/// Nothing outlives a test that failed.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn in_home(name: &str, host: &Host) -> std::path::PathBuf {
    host.top.path().join(name)
}

#[test]
fn output_that_nobody_reads_stops_programs_and_no_more() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 65536\n");
    let file = in_home("pid", &host);
    // It writes without an end, and its process id first.
    let script = format!("echo $$ > {}-$HECTARE_RANK; exec yes hectare", file.display());
    let mut launcher = Guard(command(&host, &[], &script).spawn().unwrap());
    let pid_of = |rank: u32| std::fs::read_to_string(format!("{}-{rank}", file.display())).ok();
    until("the ranks to start", || {
        [0, 1].iter().all(|rank| pid_of(*rank).is_some_and(|pid| pid.ends_with('\n')))
    });
    let pid = pid_of(0).unwrap().trim().parse().unwrap();
    let mut before = 0;
    until("the rank to be held up", || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        std::mem::replace(&mut before, written(pid)) == before && before > 0
    });
    let resident = resident(launcher.0.id());
    assert!(resident < 64 * MIB, "{} MiB are kept", resident / MIB);
    // It still hears its user.
    kill_process(Pid::from_child(&launcher.0), Signal::TERM).unwrap();
    assert_eq!(end(&mut launcher.0), Some(128 + 15));
    let mut said = String::new();
    launcher.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("nobody reads standard output"), "{said}");
    until("the job to go", || host.jobs().is_empty());
}

#[test]
fn a_rank_that_fails_is_named_while_nobody_reads_the_output_of_another() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 65536\n");
    let (full, script) = (in_home("full", &host), "[ $HECTARE_RANK = 0 ] && exec yes hectare");
    let script = format!("{script}; while [ ! -e {} ]; do sleep 0.05; done; exit 7", full.display());
    let mut launcher = Guard(command(&host, &["--grace-s", "1"], &script).spawn().unwrap());
    // Far more than there is room for on the way.
    std::thread::sleep(std::time::Duration::from_secs(1));
    std::fs::write(full, b"").unwrap();
    assert_eq!(end(&mut launcher.0), Some(7));
    let mut said = String::new();
    launcher.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("rank 1 on host localhost") && said.contains("failed first"), "{said}");
}

#[test]
fn a_late_reader_gets_every_line() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 65536\n");
    let listed = ["run", "--hosts", "localhost:1"];
    for start in [&listed[..], &["run", "-n", "1"]] {
        let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
        command.args(start).args(["--no-prefix", "--", "seq", "300000"]);
        let mut launcher = Guard(command.stdout(Stdio::piped()).spawn().unwrap());
        // Longer than what was written last is waited for when its readers are gone.
        std::thread::sleep(std::time::Duration::from_secs(5));
        assert!(launcher.0.try_wait().unwrap().is_none(), "it did not wait: {start:?}");
        let mut out = String::new();
        launcher.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        assert!(
            out.lines().eq((1..=300_000).map(|number| number.to_string()).collect::<Vec<_>>()),
            "{start:?}"
        );
        assert_eq!(end(&mut launcher.0), Some(0));
    }
}

#[test]
fn the_run_directory_that_is_named_is_that_of_the_hosts() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 65536\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hectare"));
    command.env("HECTARE_RUN_DIR", host.top.path().join("another")).env("HOME", host.top.path());
    command.arg("--run-dir").arg(host.dir.path());
    command.args(["run", "--hosts", "localhost:1", "--", "sh", "-c", "echo job $HECTARE_JOB"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("job run-"));
}

#[test]
fn arguments_may_be_as_long_as_linux_takes_them() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 65536\n");
    let long = "x".repeat(100_000);
    let said = host.hectare(&["run", "--hosts", "localhost:1", "--", "sh", "-c", "echo ${#1}", "sh", &long]);
    assert_eq!((said.code, said.out.trim()), (0, "[0] 100000"), "{}", said.err);
}
