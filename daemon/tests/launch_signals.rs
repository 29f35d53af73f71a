//! `hectare run` between its user and its processes: signals, the terminal, output that nobody takes.
use crate::common::{Daemon, Host, role_here, until};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

const ROLE: &str = "LAUNCH_SIGNALS_ROLE";

/// A launcher that runs a script, line by line of its output.
struct Launcher {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Launcher {
    fn start(host: &Host, args: &[&str], script: &str) -> Launcher {
        let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
        command.arg("run").args(args).args(["--", "sh", "-c", script]);
        Launcher::spawn(command)
    }

    fn spawn(mut command: Command) -> Launcher {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Launcher { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.out.read_line(&mut line).unwrap() > 0, "the launcher ended");
        line.trim_end().to_owned()
    }

    /// The process ids that the script prints, one a line, each behind the prefix of a rank.
    fn pids(&mut self, count: usize) -> Vec<Pid> {
        let number = |line: String| line.rsplit(' ').next().unwrap().parse().unwrap();
        (0..count).map(|_| Pid::from_raw(number(self.line())).unwrap()).collect()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(&mut self) -> Option<i32> {
        let mut status = None;
        until("the launcher to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

/// Nothing outlives a test that failed: what the launcher starts dies with it.
impl Drop for Launcher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn state(pid: Pid) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('X')
}

fn are_gone(pids: &[Pid]) {
    until("them to end", || pids.iter().all(|pid| matches!(state(*pid), 'Z' | 'X')));
}

fn host() -> (Host, Daemon) {
    let host = Host::new();
    let daemon = host.daemon("[defaults]\nbytes = 65536\n");
    (host, daemon)
}

#[test]
fn a_signal_reaches_what_a_wrapper_started() {
    let (host, _daemon) = host();
    for signal in [Signal::TERM, Signal::HUP] {
        let mut launcher = Launcher::start(&host, &["-n", "2"], "sleep 1000 & echo $!; wait");
        let pids = launcher.pids(2);
        launcher.signal(signal);
        let code = launcher.end();
        assert_eq!(code, Some(128 + signal.as_raw()));
        are_gone(&pids);
    }
    // One fails: what the wrappers of the others started ends, too, and what its own did.
    let script = "sleep 1000 & echo $!; if [ $HECTARE_RANK = 0 ]; then read x < $DIR/go; exit 3; fi; wait";
    let go = host.top.path().join("go");
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    command.env("DIR", host.top.path()).args(["run", "-n", "2", "--", "sh", "-c", script]);
    let mut launcher = Launcher::spawn(command);
    let pids = launcher.pids(2);
    std::fs::write(&go, "go\n").unwrap();
    assert_eq!(launcher.end(), Some(3));
    are_gone(&pids);
}

/// Who ignores the signal is killed: in the end, or when the user insists. Wrappers end first, what they started not.
#[test]
fn who_does_not_end_is_killed() {
    let (host, _daemon) = host();
    let stubborn = "sh -c 'trap \"\" TERM HUP INT; echo $$; while :; do sleep 0.05; done' & wait";
    for signal in [Signal::TERM, Signal::INT] {
        let mut launcher = Launcher::start(&host, &["-n", "2", "--grace-s", "1"], stubborn);
        let pids = launcher.pids(2);
        launcher.signal(signal);
        assert_ne!(launcher.end(), Some(0));
        are_gone(&pids);
    }
    let itself = "trap '' INT; echo $$; while :; do sleep 0.05; done";
    let mut launcher = Launcher::start(&host, &["-n", "2", "--grace-s", "100000"], itself);
    let pids = launcher.pids(2);
    launcher.signal(Signal::INT);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(pids.iter().all(|pid| test_kill_process(*pid).is_ok()));
    launcher.signal(Signal::INT);
    assert_eq!(launcher.end(), Some(128 + 9));
    are_gone(&pids);
}

#[test]
fn what_the_launcher_was_told_to_ignore_reaches_nobody() {
    let (host, _daemon) = host();
    let run = format!(
        "trap '' HUP; exec {} run -n 1 -- sh -c 'echo $$; read x < $DIR/go; echo done'",
        env!("CARGO_BIN_EXE_hectare")
    );
    let go = host.top.path().join("go");
    assert!(Command::new("mkfifo").arg(&go).status().unwrap().success());
    let mut command = host.command("sh");
    command.env("DIR", host.top.path()).args(["-c", &run]);
    let mut launcher = Launcher::spawn(command);
    launcher.pids(1);
    launcher.signal(Signal::HUP);
    std::fs::write(&go, "go\n").unwrap();
    assert_eq!((launcher.line().as_str(), launcher.end()), ("[0] done", Some(0)));
}

#[test]
fn a_stop_and_a_go_are_passed_on() {
    let (host, _daemon) = host();
    // No loop of the shell's: it is `D` and not `T` while a child stands still that it has made by vfork.
    let mut launcher = Launcher::start(&host, &["-n", "2"], "echo $$; exec sleep 1000");
    let pids = launcher.pids(2);
    let own = Pid::from_child(&launcher.child);
    for _ in 0..3 {
        launcher.signal(Signal::TSTP);
        until("all to be stopped", || pids.iter().chain([&own]).all(|pid| state(*pid) == 'T'));
        launcher.signal(Signal::CONT);
        until("all to go on", || pids.iter().chain([&own]).all(|pid| state(*pid) != 'T'));
    }
    launcher.signal(Signal::TERM);
    assert_eq!(launcher.end(), Some(128 + 15));
}

#[test]
fn a_reader_that_is_gone_kills_nobody() {
    let (host, _daemon) = host();
    let proof = host.top.path().join("proof");
    let script = format!(
        "i=0; while [ $i -lt 2000 ]; do echo $i || exit 9; i=$((i+1)); done; echo x > {}",
        proof.display()
    );
    let mut launcher = Launcher::start(&host, &["-n", "1"], &script);
    launcher.line();
    // Closes the launcher's.
    launcher.out = BufReader::new(spare());
    assert_eq!(launcher.end(), Some(0));
    assert!(proof.exists());
    std::fs::remove_file(&proof).unwrap();

    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    command.args(["run", "-n", "1", "--", "sh", "-c", &script]).stdout(full());
    let output = command.stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(proof.exists());
    assert!(said.contains("standard output cannot be written") && said.contains("2000 lines"), "{said}");
    // Nor is anything to be said of it.
    let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
    command.args(["run", "-n", "1", "--", "sh", "-c", "echo a; echo b >&2; exit 5"]);
    assert_eq!(command.stdout(full()).stderr(full()).status().unwrap().code(), Some(5));
}

/// The output of a process that has ended.
fn spare() -> ChildStdout {
    let mut child = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
    child.wait().unwrap();
    child.stdout.take().unwrap()
}

#[test]
fn codes_are_those_of_a_shell() {
    let (host, _daemon) = host();
    let code = |program: &[&str]| host.hectare(&[&["run", "-n", "2", "--"], program].concat()).code;
    assert_eq!(code(&["/nowhere/program"]), 127);
    assert_eq!(code(&["no-such-program"]), 127);
    let file = host.top.path().join("file");
    std::fs::write(&file, "no program").unwrap();
    assert_eq!(code(&[file.to_str().unwrap()]), 126);
    assert_eq!(code(&[host.top.path().to_str().unwrap()]), 126);
    assert_eq!(code(&["sh", "-c", "exit 126"]), 126);
    assert_eq!(code(&["sh", "-c", "no-such-program"]), 127);
    assert_eq!(code(&["sh", "-c", "kill -SEGV $$"]), 128 + 11);
    assert_eq!(code(&["sh", "-c", "exit 255"]), 255);
}

/// On a terminal of its own: this process becomes the session's leader and then the launcher.
#[test]
fn role() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    rustix::process::setsid().unwrap();
    // The first terminal that a session's leader opens is the session's.
    let open = || File::options().read(true).write(true).open(std::env::var("TTY").unwrap()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hectare"));
    let script = std::env::var("SCRIPT").unwrap();
    command.args(["run", "-n", "2", "--", "sh", "-c", &script]);
    panic!("{}", command.stdin(open()).stdout(open()).stderr(open()).exec());
}

struct OnTerminal {
    launcher: Child,
    ours: File,
    shown: Arc<Mutex<String>>,
}

impl OnTerminal {
    fn start(host: &Host, script: &str) -> OnTerminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let mut command = host.command(std::env::current_exe().unwrap().to_str().unwrap());
        command.args(["--exact", &role_here(), "--nocapture"]).env(ROLE, "1").env("SCRIPT", script);
        command.env("TTY", name.to_str().unwrap()).stdin(Stdio::null());
        let launcher = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let ours = File::from(ours);
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut from, to) = (ours.try_clone().unwrap(), shown.clone());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            loop {
                match from.read(&mut piece) {
                    Ok(got @ 1..) => to.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..got])),
                    // Nobody has it open yet, or any more.
                    _ if Arc::strong_count(&to) == 1 => return,
                    _ => std::thread::sleep(std::time::Duration::from_millis(5)),
                }
            }
        });
        OnTerminal { launcher, ours, shown }
    }

    fn shows(&self, part: &str, times: usize) {
        until(&format!("{part:?} in {:?}", self.shown.lock().unwrap()), || {
            self.shown.lock().unwrap().matches(part).count() >= times
        });
    }

    fn type_in(&mut self, text: &str) {
        self.ours.write_all(text.as_bytes()).unwrap();
    }

    fn code(&mut self) -> Option<i32> {
        let mut status = None;
        until("the launcher to end", || {
            status = self.launcher.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

#[test]
fn each_rank_that_reads_the_terminal_gets_it() {
    let (host, _daemon) = host();
    let mut terminal = OnTerminal::start(&host, "echo asks; read x < /dev/tty; echo \"heard<$x>\"");
    terminal.shows("asks", 2);
    terminal.type_in("first\n");
    terminal.shows("heard<first>", 1);
    terminal.type_in("second\n");
    terminal.shows("heard<second>", 1);
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn keys_of_the_terminal_reach_all() {
    let (host, _daemon) = host();
    // Ctrl-Z and Ctrl-C while the launcher has the terminal.
    let mut terminal = OnTerminal::start(&host, "echo runs; while :; do sleep 0.05; done");
    terminal.shows("runs", 2);
    let own = Pid::from_child(&terminal.launcher);
    terminal.type_in("\x1a");
    until("the launcher to be stopped", || state(own) == 'T');
    kill_process(own, Signal::CONT).unwrap();
    until("the launcher to go on", || state(own) != 'T');
    terminal.type_in("\x03");
    assert_eq!(terminal.code(), Some(128 + 2));

    // Ctrl-Z while a rank has it: the launcher has it back, and hands it on again afterwards.
    let script =
        "[ $HECTARE_RANK = 1 ] || exit 0; echo asks; while read x < /dev/tty; do echo \"heard<$x>\"; done";
    let mut terminal = OnTerminal::start(&host, script);
    terminal.shows("asks", 1);
    terminal.type_in("one\n");
    terminal.shows("heard<one>", 1);
    let own = Pid::from_child(&terminal.launcher);
    terminal.type_in("\x1a");
    until("the launcher to be stopped", || state(own) == 'T');
    kill_process(own, Signal::CONT).unwrap();
    terminal.type_in("two\n");
    terminal.shows("heard<two>", 1);
    // Ctrl-C goes to who has the terminal, and its end ends all.
    terminal.type_in("\x03");
    assert_eq!(terminal.code(), Some(128 + 2));
}
