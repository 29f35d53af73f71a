//! Programs in C and C++ that were written for one host, on three: built once, started there as processes, and where their
//! results are a matter of bits, compared with what threads of one host have.
use crate::areas_on_hosts::read_until;
use crate::common::cluster::{Cluster, Running};
use hectare_hosts::Fault;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const HOSTS: usize = 3;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The directory of `libhectare.so`, which is built now unless it is newer than its sources.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).expect("tests lie in PROFILE/deps").to_owned();
    if !hectare_testing::is_current(&profile.join("libhectare.so"), &["ffi", "dsm", "wire"]) {
        let mut command = Command::new(env!("CARGO"));
        command.args(["build", "-p", "hectare-ffi", "--lib"]);
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        assert!(command.status().unwrap().success());
    }
    profile
}

/// Compiles sources of the workspace to a program in a directory; nothing where there is no compiler.
fn build(compiler: &str, sources: &[PathBuf], to: &Path) -> Option<String> {
    if !Command::new(compiler).arg("--version").output().is_ok_and(|output| output.status.success()) {
        hectare_testing::skip(compiler, "it does not run");
        return None;
    }
    let (library, include) = (library(), workspace().join("ffi/include"));
    let program = to.join(sources[0].file_stem().unwrap());
    let mut command = Command::new(compiler);
    command.arg(if compiler == "cc" { "-std=gnu99" } else { "-std=c++17" }).args(["-O0", "-pthread", "-I"]);
    command.arg(include).args(sources).arg("-o").arg(&program).arg("-L").arg(&library);
    command.args(["-lhectare", "-lm"]).arg(format!("-Wl,-rpath,{}", library.display()));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(program.to_str().unwrap().to_owned())
}

/// The sources of an example, or of a test program of the C interface.
fn example(name: &str, extension: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(workspace().join("examples/c").join(name)).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let mut sources: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|found| found == extension)).collect();
    // The program is called after the first.
    sources.sort_by_key(|path| (path.file_stem().unwrap() != "main", path.clone()));
    sources
}

fn test_program(file: &str) -> Vec<PathBuf> {
    vec![workspace().join("ffi/tests/c").join(file)]
}

/// The output of a program on this host, without a launcher.
fn alone(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    for name in ["HECTARE_JOB", "HECTARE_RANK", "HECTARE_SIZE"] {
        command.env_remove(name);
    }
    let Output { status, stdout, stderr } = command.args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Its output as a process on each host.
fn on_hosts(cluster: &Cluster, program: &str, arguments: &[&str]) -> String {
    let line = format!("exec {program} {}", arguments.join(" "));
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20", "--no-prefix"], &line);
    assert_eq!(said.code, 0, "{said:?}");
    cluster.assert_nothing_is_left();
    said.out
}

#[test]
fn reducers_and_arrays_of_c() {
    let top = tempfile::tempdir().unwrap();
    let Some(program) = build("cc", &test_program("arrays.c"), top.path()) else { return };
    let Some(cluster) = Cluster::new(HOSTS) else { return };
    assert_eq!(on_hosts(&cluster, &program, &[]), "ok\n".repeat(HOSTS));
}

#[test]
fn rows_of_c_that_change_owners() {
    let top = tempfile::tempdir().unwrap();
    let Some(program) = build("cc", &test_program("rows.c"), top.path()) else { return };
    let Some(cluster) = Cluster::new(HOSTS) else { return };
    assert_eq!(on_hosts(&cluster, &program, &[]), "ok\n".repeat(HOSTS));
    // One of two workers of the last host ends: whoever waits for it is told.
    let args = ["--hosts", &cluster.list(2), "--timeout", "20", "--no-prefix", "--keep-going"];
    let said = cluster.run(&args, &format!("exec {program} ends"));
    assert_eq!((said.out, said.code), ("ok\n".repeat(2 * HOSTS - 1), 0), "{}", said.err);
    cluster.assert_nothing_is_left();
}

#[test]
fn loops_of_c_have_the_bits_of_the_serial_program() {
    let top = tempfile::tempdir().unwrap();
    let Some(program) = build("cc", &test_program("loops.c"), top.path()) else { return };
    let Some(cluster) = Cluster::new(HOSTS) else { return };
    assert_eq!(on_hosts(&cluster, &program, &[]), "ok\n".repeat(HOSTS));
}

#[test]
fn cpp_has_the_bits_of_one_host_and_hears_of_a_lost_one() {
    let top = tempfile::tempdir().unwrap();
    let Some(program) = build("c++", &test_program("clusters.cc"), top.path()) else { return };
    let expected = alone(&program, &[]);
    assert!(expected.lines().count() == HOSTS && expected.contains("centers 0x1."), "{expected}");
    let Some(mut cluster) = Cluster::new(HOSTS) else { return };
    assert_eq!(on_hosts(&cluster, &program, &[]), expected);

    let line = format!("exec {program} endless");
    let list = cluster.list(1);
    let mut run =
        Running::start(cluster.command(&["--hosts", &list, "--timeout", "3", "--no-prefix"], &line));
    for _ in 0..HOSTS {
        read_until(&mut run, "under way");
    }
    let cuts = [(0, 1), (1, 0), (1, 2), (2, 1)].map(|(from, to)| Fault::Cut { from, to });
    cluster.network.set(&cuts).unwrap();
    let mut ended = Vec::new();
    while ended.len() < HOSTS {
        let line = run.lines(1).remove(0);
        // HA_PEER_FAILED
        if let Some(error) = line.strip_prefix("ended: 36: ") {
            ended.push(error.to_owned());
        }
    }
    let names = |host: usize| {
        ended.iter().filter(|error| error.contains(&format!("({}:", cluster.network.address(host)))).count()
    };
    // The one that is cut off names another.
    assert_eq!(names(1), 2, "{ended:?}");
    run.end();
    cluster.network.set(&[]).unwrap();
    cluster.assert_nothing_is_left();
}

/// Losses of each epoch, bit for bit.
fn losses(said: &str) -> Vec<String> {
    let loss =
        |line: &str| Some(line.split_once("epoch ")?.1.split_once('(')?.1.split_once(')')?.0.to_owned());
    said.lines().filter_map(loss).collect()
}

#[test]
fn completion_has_the_losses_of_one_host() {
    let top = tempfile::tempdir().unwrap();
    let Some(program) = build("c++", &example("completion", "cpp"), top.path()) else { return };
    let ratings = top.path().join("ratings");
    let text = (0..3000u32).fold(String::new(), |mut text, n| {
        let (user, item) = (n * 7919 % 200, n * 104_729 % 131);
        writeln!(text, "{user} {item} {}", 1 + (user + 3 * item) % 5).unwrap();
        text
    });
    std::fs::write(&ratings, text).unwrap();
    let settings = ["--ratings", ratings.to_str().unwrap(), "--rank", "8", "--epochs", "2", "--batch", "400"];
    let with = |more: &[&'static str]| [&settings[..], more].concat();
    let expected = losses(&alone(&program, &with(&["--memory", "shared", "--workers", "3"])));
    assert_eq!(expected.len(), 2);
    let Some(cluster) = Cluster::new(HOSTS) else { return };
    // As many workers for each host, of which the one that opens the model may come last.
    let list = cluster.list(2);
    let line = format!("exec {program} {}", settings.join(" "));
    for _ in 0..3 {
        let said = cluster.run(&["--hosts", &list, "--timeout", "20", "--no-prefix"], &line);
        assert_eq!((said.code, losses(&said.out)), (0, expected.clone()), "{said:?}");
    }
    for transport in ["rows", "published", "copies"] {
        let said = on_hosts(&cluster, &program, &with(&["--transport", transport]));
        assert_eq!(losses(&said), expected, "{transport}: {said}");
    }
}

#[test]
fn hogwild_learns_on_three_hosts() {
    let top = tempfile::tempdir().unwrap();
    let Some(program) = build("cc", &example("hogwild", "c"), top.path()) else { return };
    let samples = top.path().join("samples");
    let text = (0..3000u32).fold(String::new(), |mut text, n| {
        let (kind, other) = (n * 7919 % 3, 4 + n * 104_729 % 40);
        writeln!(text, "{} {}:1 {other}:0.5", if kind == 1 { "+1" } else { "-1" }, kind + 1).unwrap();
        text
    });
    std::fs::write(&samples, text).unwrap();
    let settings = ["--samples", samples.to_str().unwrap(), "--epochs", "3"];
    let last = |said: &str| {
        let line = said.lines().rfind(|line| line.contains("epoch 3")).expect("three epochs").to_owned();
        let number = |after: &str, end: char| {
            line.split_once(after).unwrap().1.split_once(end).unwrap().0.parse::<f64>().unwrap()
        };
        (number("loss ", ','), number("accuracy ", ';'))
    };
    let (loss, accuracy) = last(&alone(&program, &[&settings[..], &["--workers", "3"]].concat()));
    assert!(loss < 0.3 && accuracy > 0.99, "{loss} {accuracy}");
    let Some(cluster) = Cluster::new(HOSTS) else { return };
    let found = last(&on_hosts(&cluster, &program, &settings));
    assert!((found.0 - loss).abs() < 0.05 && found.1 > 0.99, "{found:?}, on one host {loss} {accuracy}");
}
