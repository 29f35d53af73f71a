//! Every exit code, one line that says what to do, nothing left behind; and what `read` and `wait` give.
use crate::common::{Host, Said};
use hectare_daemon::cli::exit::CODES;
use hectare_dsm::{AreaSpec, Job};
use hectare_wire::{Connection, Reply, Request};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

fn member(host: &Host, job: &str) -> (Connection, Job) {
    let connection = host.connect();
    let attach = Request::Attach { job: job.into(), rank: None };
    let (Reply::Attached { .. }, Some(memory)) = connection.ask(&attach).unwrap() else { panic!() };
    (connection, Job::from_descriptor(memory).unwrap())
}

/// One line on standard error, nothing on standard output, and the code.
fn fails(host: &Host, args: &[&str], code: i32, part: &str) {
    let said = host.hectare(args);
    assert_eq!((said.code, said.err.lines().count()), (code, 1), "{args:?}: {said:?}");
    assert!(said.err.contains(part) && said.out.is_empty(), "{args:?}: {said:?}");
}

fn works(host: &Host, args: &[&str]) -> String {
    let said: Said = host.hectare(args);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{args:?}: {said:?}");
    said.out
}

/// Every command that needs the daemon, of a job that there is not.
const NEED_A_DAEMON: [&[&str]; 16] = [
    &["ps"],
    &["jobs"],
    &["ping"],
    &["top", "--once"],
    &["ps", "nowhere"],
    &["areas", "nowhere"],
    &["stat", "nowhere"],
    &["check", "nowhere"],
    &["read", "nowhere", "a"],
    &["wait", "nowhere", "a"],
    &["wait", "nowhere"],
    &["wait", "nowhere", "--timeout", "9"],
    &["top", "nowhere", "--once"],
    &["job", "remove", "nowhere"],
    &["job", "create", "a b"],
    &["run", "-n", "1", "--job", "a b", "--", "true"],
];
/// Those of them that are about a job.
const NEED_A_JOB: usize = 4;

#[test]
fn without_a_daemon_every_command_says_so() {
    let host = Host::new();
    for args in &NEED_A_DAEMON[..NEED_A_DAEMON.len() - 1] {
        fails(&host, args, 3, "no daemon runs for ");
        assert!(!host.dir.path().exists(), "{args:?} left something behind");
    }
    // Its socket may be there still.
    host.daemon("").kill();
    fails(&host, &["jobs"], 3, "start `hectared`");
}

#[test]
fn a_wrong_run_directory_is_refused_by_every_command() {
    let host = Host::new();
    let daemon = host.daemon("");
    std::fs::set_permissions(host.dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    for args in &NEED_A_DAEMON[..NEED_A_DAEMON.len() - 1] {
        fails(&host, args, 6, "has mode 0755, it must be 0700: chmod 0700 it");
    }
    std::fs::set_permissions(host.dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
    works(&host, &["ping"]);
    let file = host.top.path().join("file");
    std::fs::write(&file, "").unwrap();
    fails(&host, &["--run-dir", file.to_str().unwrap(), "jobs"], 6, "is not a directory");
    let long = host.top.path().join("x".repeat(120));
    let long = long.to_str().unwrap();
    fails(&host, &["--run-dir", long, "jobs"], 6, "too long for the path of a socket: choose a shorter one");
    drop(daemon);
}

#[test]
fn what_there_is_not_is_refused() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    for args in &NEED_A_DAEMON[NEED_A_JOB..NEED_A_DAEMON.len() - 2] {
        fails(&host, args, 4, "there is no job \"nowhere\"; `hectare jobs` lists them");
    }
    for args in &NEED_A_DAEMON[NEED_A_DAEMON.len() - 2..] {
        fails(&host, args, 4, "invalid job name \"a b\"");
    }
    works(&host, &["wait", "nowhere", "--missing-ok"]);
    works(&host, &["wait", "nowhere", "--missing-ok", "--timeout", "9"]);
    assert_eq!(host.hectare(&["wait", "nowhere", "a", "--missing-ok"]).code, 2);
    works(&host, &["job", "create", "j", "--keep"]);
    fails(&host, &["job", "create", "j"], 4, "exists already");
    fails(&host, &["read", "j", "a"], 4, "job \"j\" has no area \"a\": `hectare areas j` lists");
    works(&host, &["job", "remove", "j"]);
    assert_eq!(works(&host, &["jobs"]).lines().count(), 1, "nothing is left behind");
}

#[test]
fn the_daemon_has_the_same_codes() {
    let host = Host::new();
    let run = |args: &[&str]| {
        let output = host.command(env!("CARGO_BIN_EXE_hectared")).args(args).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let file = host.top.path().join("wrong.toml");
    std::fs::write(&file, "[metrics]\nport = 1\n").unwrap();
    let (code, said) = run(&["--config", file.to_str().unwrap()]);
    assert!(code == Some(5) && said.lines().count() == 1 && said.contains("line 2"), "{code:?} {said}");
    std::fs::write(&file, "[limits]\nworkers = 0\n").unwrap();
    let (code, said) = run(&["--config", file.to_str().unwrap()]);
    assert!(code == Some(5) && said.lines().count() == 1 && said.contains("limits.workers is 0"), "{said}");
    fails(&host, &["config", "check", file.to_str().unwrap()], 5, "limits.workers is 0");
    std::fs::write(&file, "[metrics]\nport = 1\n").unwrap();
    let (code, said) = run(&["--run-dir", file.to_str().unwrap()]);
    assert!(code == Some(6) && said.lines().count() == 1, "{code:?} {said}");
    assert_eq!(run(&["--colour"]).0, Some(2));
    // A run directory in which no socket can be made.
    std::fs::create_dir_all(host.dir.socket()).unwrap();
    std::fs::set_permissions(host.dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let (code, said) = run(&[]);
    let path = host.dir.path().to_str().unwrap();
    assert!(
        code == Some(6) && said.contains(path) && said.contains("removing the socket"),
        "{code:?} {said}"
    );
    std::fs::remove_dir(host.dir.socket()).unwrap();
    let _daemon = host.daemon("");
    let (code, said) = run(&[]);
    assert!(code == Some(4) && said.contains("another daemon runs"), "{code:?} {said}");
    fails(
        &host,
        &["config", "check", file.to_str().unwrap()],
        5,
        "unknown key `metrics.port`; the keys there are",
    );
    std::fs::write(&file, "key_file = \"/nowhere.key\"\n").unwrap();
    let check = ["config", "check", file.to_str().unwrap()];
    fails(
        &host,
        &check,
        5,
        "key_file = \"/nowhere.key\" (or HECTARE_KEY_FILE): there is no cluster key /nowhere.key: make one",
    );
    fails(&host, &["config", "show", "--config", "/nowhere.toml"], 5, "/nowhere.toml cannot be read");
}

#[test]
fn output_that_cannot_be_written_is_named() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = Host::new().command(env!("CARGO_BIN_EXE_hectare"));
    let said = command
        .args(["config", "example"])
        .stdout(full)
        .stderr(std::process::Stdio::piped())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(1));
    assert!(err.contains("standard output cannot be written: No space left"), "{err}");
}

#[test]
fn every_code_is_documented() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/operations/operators.md");
    let text = std::fs::read_to_string(root).unwrap();
    let host = Host::new();
    let (help, page) = (works(&host, &["--help"]), works(&host, &["man"]));
    assert!(page.contains(".SH \"EXIT STATUS\"") && page.contains(".TH hectare"), "{page}");
    for (code, meaning) in CODES {
        assert!(
            text.contains(&format!("| {code} | {meaning} |")),
            "{code} in docs/src/operations/operators.md"
        );
        assert!(help.contains(&format!("\n  {code:<3}  ")), "{help}");
        assert!(page.contains(&format!("\\fB{code}\\fR")), "{page}");
    }
}

/// The reference of programs on several hosts has every option of `hectare run`.
#[test]
fn every_option_of_run_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/operations/hosts.md");
    let text = std::fs::read_to_string(path).unwrap();
    let help = works(&Host::new(), &["run", "--help"]);
    let options: Vec<&str> = help
        .lines()
        .filter(|line| line.trim_start().starts_with('-'))
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")))
        .filter(|option| !["--run-dir", "--help", "--version"].contains(option))
        .collect();
    assert!(options.len() > 12 && options.contains(&"--hostfile"), "{help}");
    for option in options {
        assert!(text.contains(&format!("`{option}")), "{option} in docs/src/operations/hosts.md");
    }
}

#[test]
fn pages_and_completions_are_there_for_every_command() {
    let host = Host::new();
    let out = host.top.path().join("man");
    works(&host, &["man", "--out", out.to_str().unwrap()]);
    for page in ["hectare", "hectare-run", "hectare-top", "hectare-job-create", "hectared"] {
        let text = std::fs::read_to_string(out.join(format!("{page}.1"))).unwrap();
        assert!(text.contains("EXIT STATUS") && text.contains(&format!(".TH {page} ")), "{page}: {text}");
    }
    let run = std::fs::read_to_string(out.join("hectare-run.1")).unwrap();
    assert!(run.contains("keep\\-going") && run.contains("How many processes"), "{run}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = works(&host, &["completions", shell]);
        assert!(text.contains("areas") && text.contains("keep-going"), "{shell}");
        assert!(works(&host, &["completions", shell, "--daemon"]).contains("metrics-listen"), "{shell}");
    }
    // The shell that is here takes them.
    let file = host.top.path().join("hectare.bash");
    std::fs::write(&file, works(&host, &["completions", "bash"])).unwrap();
    let status = std::process::Command::new("bash").arg("-n").arg(&file).status().unwrap();
    assert!(status.success());
}

#[test]
fn read_gives_one_version_in_each_form() {
    let host = Host::new();
    let _daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    let (_connection, job) = member(&host, "j");
    let mut worker = job.worker().unwrap();
    let mut area = worker.create::<f32>(AreaSpec::new("m").row(3), 6).unwrap();
    area.write(&worker).unwrap().as_mut_slice().copy_from_slice(&[0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
    let mut pairs = worker.create::<[u16; 2]>("pairs", 1).unwrap();
    pairs.write(&worker).unwrap().set(0, [1, 2]);
    worker.sync().unwrap();
    let read = |more: &[&str]| works(&host, &[&["read", "j", "m"], more].concat());
    assert_eq!(read(&[]), "0.5,1,1.5\n2,2.5,3\n");
    assert_eq!(read(&["--range", "3.."]), "2,2.5,3\n");
    assert_eq!(read(&["--range", "1..3", "--format", "json"]), "[1.0,1.5]\n");
    assert_eq!(read(&["--range", "..2", "--format", "hex"]), "0000003f0000803f\n");
    let object: Value = serde_json::from_str(&read(&["--json", "--range", "4..5"])).unwrap();
    assert_eq!((&object["values"][0], &object["element"]), (&2.5.into(), &"f32".into()));
    assert_eq!((&object["version"]["counter"], &object["first"]), (&1.into(), &4.into()));
    assert_eq!(read(&["--version", "1.1", "--range", "..1"]), "0.5\n");
    fails(&host, &["read", "j", "m", "--version", "2"], 1, "has version 1.1, not 2");
    fails(&host, &["read", "j", "m", "--range", "4..9"], 1, "outside area \"m\" of 6 elements");
    assert_eq!(host.hectare(&["read", "j", "m", "--range", "9..4"]).code, 2);
    // Elements without a name are bytes.
    assert_eq!(works(&host, &["read", "j", "pairs", "--format", "hex"]), "01000200\n");
    fails(&host, &["read", "j", "pairs"], 1, "only --format hex");
    // NumPy reads it, where there is one.
    let file = host.top.path().join("m.npy");
    let output =
        host.command(env!("CARGO_BIN_EXE_hectare")).args(["read", "j", "m", "--format", "npy"]).output();
    std::fs::write(&file, output.unwrap().stdout).unwrap();
    let script = "import sys\ntry: import numpy\nexcept ImportError: sys.exit()\n\
                  assert numpy.load(sys.argv[1]).tolist() == [[0.5, 1, 1.5], [2, 2.5, 3]]";
    if let Ok(output) = std::process::Command::new("python3").args(["-c", script]).arg(&file).output() {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn wait_returns_when_it_is_so_and_not_before() {
    let host = Host::new();
    let daemon = host.daemon("[defaults]\nbytes = 1048576\n");
    let (connection, job) = member(&host, "j");
    let mut worker = job.worker().unwrap();
    fails(&host, &["wait", "j", "a", "--timeout", "0.05"], 7, "nobody has created it");
    fails(&host, &["wait", "j", "--timeout", "0.05"], 7, "it has members");
    let mut area = worker.create::<u8>("a", 10).unwrap();
    works(&host, &["wait", "j", "a"]);
    fails(&host, &["wait", "j", "a", "--version", "2", "--timeout", "0.05"], 7, "it is at version 0.0");
    let waits = |args: &[&str]| {
        let mut command = host.command(env!("CARGO_BIN_EXE_hectare"));
        command.args(args).stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let mut waiting = waits(&["wait", "j", "a", "--version", "1.2", "--json"]);
    for value in 1..=2 {
        assert!(waiting.try_wait().unwrap().is_none(), "version {}", value - 1);
        area.write(&worker).unwrap().fill(value);
        worker.sync().unwrap();
    }
    let output = waiting.wait_with_output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &said["version"]["counter"]), (Some(0), &2.into()));
    works(&host, &["wait", "j", "a", "--fresh", "100"]);
    std::thread::sleep(Duration::from_millis(20));
    fails(&host, &["wait", "j", "a", "--fresh", "0.01", "--timeout", "0"], 7, "its age is");
    assert_eq!(host.hectare(&["wait", "j", "--version", "1"]).code, 2);
    // Its job goes: there is nothing to wait for any more.
    let mut lost = waits(&["wait", "j", "a", "--version", "9"]);
    let ended = waits(&["wait", "j"]);
    // It is refused if it comes when the job is gone.
    daemon.wait_for("Wait {");
    drop((area, worker, job));
    assert!(lost.try_wait().unwrap().is_none());
    drop(connection);
    assert_eq!(ended.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(lost.wait().unwrap().code(), Some(4));
}

#[test]
fn check_names_whom_a_round_waits_for() {
    let host = Host::new();
    let _daemon = host.daemon("");
    let (_connection, job) = member(&host, "j");
    let mut late = job.worker_at(1).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| job.worker_at(0).unwrap().barrier().unwrap());
        crate::common::until("a round that waits", || {
            let said = host.hectare(&["check", "j"]);
            said.code == 1 && said.out.contains("waits for worker 1 (process ")
        });
        late.barrier().unwrap();
    });
    drop(late);
    assert!(works(&host, &["check", "j"]).contains("nothing found"));
}

#[test]
fn a_cluster_key_is_made_once_and_checked() {
    let host = Host::new();
    let file = host.top.path().join("my.key");
    let path = file.to_str().unwrap();
    let made = host.hectare(&["key", "new", path, "--cluster", "lab"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.out.contains("cluster lab, fingerprint "), "{made:?}");
    let checked = host.hectare(&["key", "check", path]);
    assert_eq!((checked.code, &checked.out), (0, &made.out));
    let fails = |args: &[&str], part: &str| {
        let said = host.hectare(args);
        assert_eq!((said.code, said.err.lines().count()), (1, 1), "{said:?}");
        assert!(said.err.contains(part), "{said:?}");
    };
    fails(&["key", "new", path], "exists already");
    fails(&["key", "check", "/nowhere.key"], "there is no cluster key /nowhere.key");
    let unused = host.top.path().join("unused.key");
    for name in ["", "a b", "a\nb", &"a".repeat(65)] {
        let said = host.hectare(&["key", "new", unused.to_str().unwrap(), "--cluster", name]);
        let what = format!("hectare: --cluster {name:?}: the name of a cluster has 1 to 64 letters");
        assert!(said.code == 2 && said.err.lines().count() == 1 && said.err.starts_with(&what), "{said:?}");
        assert!(!unused.exists());
    }

    // Without a name: where the daemon looks for it.
    fails(&["key", "check"], "hectare/cluster.key");
    let usual = host.hectare(&["key", "new"]);
    assert!(
        usual.code == 0 && usual.out.contains(".config/hectare/cluster.key: cluster hectare"),
        "{usual:?}"
    );
    assert_eq!(host.hectare(&["key", "check"]).out, usual.out);

    // One that the configuration names has to be good before the daemon starts.
    let config = format!("key_file = {path:?}\n");
    drop(host.daemon(&config));
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let toml = host.top.path().join("hectared.toml");
    std::fs::write(&toml, config).unwrap();
    let refused = host.command(env!("CARGO_BIN_EXE_hectared")).arg("--config").arg(toml).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(5) && said.contains("0644") && said.contains("chmod 600"),
        "{said}"
    );
}
