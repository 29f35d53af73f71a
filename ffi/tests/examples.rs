//! The programs of examples/c: built with plain `cc` and `c++`, run as threads and as processes, with good and bad input.
mod common;

use common::{build_with_cargo, compiler, has, library, program, root, run};
use hectare_testing::{built_once, is_current};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The two programs, built once; nothing where there is no compiler.
struct Built {
    completion: PathBuf,
    hogwild: PathBuf,
    work: tempfile::TempDir,
}

fn built() -> Option<&'static Built> {
    static BUILT: OnceLock<Option<Built>> = OnceLock::new();
    let make = || {
        if !has("cc") || !has("c++") {
            return None;
        }
        let work = tempfile::tempdir().unwrap();
        let build = |mut compiler: Command, name: &str, extension: &str| {
            // Of each profile, as it is linked with that one's library.
            let profile = library().file_name().unwrap().display();
            let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{profile}"));
            let files = [files(&sources().join(name)), files(&root().join("include/hectare"))].concat();
            built_once(&program, &files, |out| {
                let is_source = |path: &&PathBuf| path.extension().is_some_and(|found| found == extension);
                compiler.args(["-O1", "-pthread", "-o"]).arg(out).args(files.iter().filter(is_source));
                compiler.arg("-L").arg(library()).args(["-lhectare", "-lm"]);
                run(compiler.arg(format!("-Wl,-rpath,{}", library().display())));
            });
            program
        };
        let completion = build(compiler("c++", "c++17"), "completion", "cpp");
        let hogwild = build(compiler("cc", "c99"), "hogwild", "c");
        std::fs::write(work.path().join("ratings"), ratings("::")).unwrap();
        std::fs::write(work.path().join("samples"), samples()).unwrap();
        Some(Built { completion, hogwild, work })
    };
    BUILT.get_or_init(make).as_ref()
}

/// All files of a directory, sorted.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn sources() -> PathBuf {
    root().join("../examples/c")
}

/// Ratings that users and items have biases in, so that there is something to learn.
fn ratings(separator: &str) -> String {
    (0..6000u32).fold(String::new(), |mut text, n| {
        let (user, item) = (n * 7919 % 200, n * 104_729 % 131);
        let value = (3.0 + 0.5 * f64::from(user % 5) - 0.5 * f64::from(item % 4)).round().clamp(1.0, 5.0);
        writeln!(text, "{user}{separator}{item}{separator}{value}{separator}978300760").unwrap();
        text
    })
}

/// Samples whose label one of three features decides.
fn samples() -> String {
    (0..4000u32).fold(String::new(), |mut text, n| {
        let (kind, other) = (n * 7919 % 3, 4 + n * 104_729 % 40);
        writeln!(text, "{} {}:1 {other}:0.5", if kind == 1 { "+1" } else { "-1" }, kind + 1).unwrap();
        text
    })
}

/// How to learn from `ratings`.
const SETTINGS: [&str; 10] =
    ["--rank", "20", "--epochs", "4", "--batch", "60", "--lr", "0.1", "--decay", "1"];

impl Built {
    fn completion(&self, arguments: &[&str]) -> Output {
        let mut command = program(&self.completion, self.work.path());
        command.current_dir(self.work.path()).args(arguments).output().unwrap()
    }

    /// The losses of a run over the ratings, bit for bit, and the test errors.
    fn losses(&self, arguments: &[&str]) -> Vec<(String, f64)> {
        epochs(&self.completion(&[&["--ratings", "ratings"], &SETTINGS[..], arguments].concat()))
    }

    fn hogwild(&self, arguments: &[&str]) -> Output {
        let mut command = program(&self.hogwild, self.work.path());
        command.current_dir(self.work.path()).args(arguments).output().unwrap()
    }
}

/// Losses as hexadecimal numbers, and test errors, of each epoch that a run printed.
#[track_caller]
fn epochs(output: &Output) -> Vec<(String, f64)> {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let of_an_epoch = |line: &str| {
        let (_, rest) = line.split_once("epoch ")?;
        let (loss, rest) = rest.split_once('(')?.1.split_once(')')?;
        let (_, rest) = rest.split_once("RMSE ")?;
        Some((loss.to_owned(), rest.split_once(';')?.0.parse().unwrap()))
    };
    text.lines().filter_map(of_an_epoch).collect()
}

#[test]
fn losses_are_the_same_bits_for_both_memories_and_all_worker_counts() {
    let Some(built) = built() else { return };
    let expected = built.losses(&["--memory", "shared", "--workers", "1"]);
    assert_eq!(expected.len(), 4);
    let rmse: Vec<f64> = expected.iter().map(|(_, rmse)| *rmse).collect();
    assert!(rmse.windows(2).all(|pair| pair[1] < pair[0]) && rmse[3] < 0.9 * rmse[0], "{rmse:?}");
    for workers in ["1", "2", "4"] {
        let ways = [
            &["--memory", "shared"][..],
            &["--transport", "rows"],
            &["--transport", "published"],
            &["--transport", "copies"],
            &["--transport", "copies", "--tracking", "automatic"],
        ];
        for way in ways {
            let found = built.losses(&[way, &["--workers", workers]].concat());
            assert_eq!(found, expected, "{way:?} with {workers} workers");
        }
    }
}

#[test]
fn formats_of_ratings_mean_the_same() {
    let Some(built) = built() else { return };
    let expected = built.losses(&["--workers", "1"]);
    for (name, header, separator) in [("csv", "userId,movieId,rating,timestamp\n", ","), ("spaces", "", " ")]
    {
        std::fs::write(built.work.path().join(name), header.to_owned() + &ratings(separator)).unwrap();
        assert_eq!(built.losses(&["--ratings", name, "--workers", "1"]), expected, "{name}");
    }
}

#[test]
fn generated_ratings_are_there_without_a_file() {
    let Some(built) = built() else { return };
    let found = epochs(&built.completion(&["--epochs", "2", "--rank", "8", "--workers", "2"]));
    assert!(found.len() == 2 && found[1].1 < found[0].1, "{found:?}");
}

/// Loss and accuracy of the last epoch.
#[track_caller]
fn last(output: &Output) -> (f64, f64) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let line = text.lines().rfind(|line| line.contains("epoch 5")).expect("five epochs");
    let number = |after: &str, end: char| {
        let (_, rest) = line.split_once(after).expect(after);
        rest.split_once(end).expect("more behind it").0.parse().expect("a number")
    };
    (number("loss ", ','), number("accuracy ", ';'))
}

#[test]
fn hogwild_learns_in_both_memories() {
    let Some(built) = built() else { return };
    let on = |memory: &str, workers: &str| {
        last(&built.hogwild(&["--samples", "samples", "--memory", memory, "--workers", workers]))
    };
    // One worker is a serial loop in both.
    let serial = on("shared", "1");
    assert_eq!(serial, on("areas", "1"));
    assert!(serial.0 < 0.2 && serial.1 > 0.99, "{serial:?}");
    for memory in ["shared", "areas"] {
        for workers in ["2", "4"] {
            let (loss, accuracy) = on(memory, workers);
            assert!(
                (loss - serial.0).abs() < 0.05 && accuracy > 0.99,
                "{memory}, {workers}: {loss} {accuracy}"
            );
        }
    }
    assert!(last(&built.hogwild(&[])).1 > 0.85, "generated samples");
}

#[test]
fn the_build_files_find_an_installed_library() {
    if !has("cc") || !has("c++") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let (prefix, library) = (place("prefix"), library());
    let mut install = Command::new(root().join("install.sh"));
    install.arg(format!("--prefix={}", prefix.display())).arg("--no-build");
    install.arg(format!("--target-dir={}", library.parent().unwrap().display()));
    run(install.args(library.ends_with("debug").then_some("--debug")));

    let mut found = Vec::new();
    if has("make") && has("pkg-config") {
        let mut make = Command::new("make");
        make.arg("-C").arg(sources()).arg(format!("OUT={}", place("made").display())).arg("OPTIMIZE=-O0");
        make.env_remove("MAKEFLAGS").env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        run(&mut make);
        found.push(place("made"));
    }
    if has("cmake") {
        let mut cmake = Command::new("cmake");
        cmake.arg("-S").arg(sources()).arg("-B").arg(place("cmade")).arg("-DCMAKE_BUILD_TYPE=Debug");
        cmake.arg("-DHECTARE_EXAMPLES_NATIVE=OFF");
        run(cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
        run(Command::new("cmake").arg("--build").arg(place("cmade")));
        found.push(place("cmade"));
    }
    std::fs::write(place("ratings"), ratings("\t")).unwrap();
    std::fs::write(place("samples"), samples()).unwrap();
    for build in found {
        let run = |name: &str, arguments: &[&str]| {
            let mut command = program(build.join(name), directory.path());
            command.current_dir(directory.path()).env("LD_LIBRARY_PATH", prefix.join("lib"));
            command.args(arguments).output().unwrap()
        };
        let completion = epochs(&run("completion", &[&["--ratings", "ratings"], &SETTINGS[..]].concat()));
        assert_eq!(completion.len(), 4);
        assert!(last(&run("hogwild", &["--samples", "samples"])).1 > 0.99);
    }
}

/// A daemon with a run directory of its own.
struct Daemon {
    child: Child,
    bin: PathBuf,
    directory: PathBuf,
}

impl Daemon {
    fn start(directory: &Path) -> Daemon {
        let bin = library().to_owned();
        if !is_current(&bin.join("hectared"), &["daemon", "dsm", "wire"]) {
            build_with_cargo(&bin, &["-p", "hectare-daemon", "--bins"]);
        }
        let directory = directory.join("run");
        let mut command = program(bin.join("hectared"), &directory);
        command.env("HECTARE_RUN_DIR", &directory).stderr(Stdio::null());
        let daemon = Daemon { child: command.spawn().unwrap(), bin, directory };
        let since = Instant::now();
        while !daemon.hectare(&["jobs"]).status.success() {
            assert!(since.elapsed() < Duration::from_secs(120), "the daemon does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
        daemon
    }

    fn hectare(&self, arguments: &[&str]) -> Output {
        let mut command = program(self.bin.join("hectare"), &self.directory);
        command.env("HECTARE_RUN_DIR", &self.directory).args(arguments).output().unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn four_processes_have_the_losses_of_four_threads() {
    let Some(built) = built() else { return };
    let host = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(host.path());
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (completion, hogwild) = (text(&built.completion), text(&built.hogwild));
    let [ratings, samples] = ["ratings", "samples"].map(|name| text(&built.work.path().join(name)));
    for transport in ["rows", "published", "copies"] {
        let more = ["--transport", transport];
        let start = ["run", "-n", "4", "--", &completion, "--ratings", &ratings];
        let processes = epochs(&daemon.hectare(&[&start, &SETTINGS[..], &more].concat()));
        assert_eq!(processes, built.losses(&["--workers", "4"]), "{transport}");
    }
    let output = daemon.hectare(&["run", "-n", "4", "--", &hogwild, "--samples", &samples]);
    let (loss, accuracy) = last(&output);
    assert!(loss < 0.25 && accuracy > 0.99, "{loss} {accuracy}");

    for (wrong, says) in [
        (&["--memory", "shared"][..], "--memory shared is for the threads of one process"),
        (&["--workers", "2"], "--workers 2 with 4 processes"),
    ] {
        for example in [&completion, &hogwild] {
            let output = daemon.hectare(&[&["run", "-n", "4", "--", example], wrong].concat());
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code() == Some(2) && text.contains(says), "{example} {wrong:?}: {text}");
        }
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let Some(built) = built() else { return };
    let write = |name: &str, text: &str| std::fs::write(built.work.path().join(name), text).unwrap();
    write("empty", "");
    write("cut", "1::2::3\n1::2\n");
    write("word", "1::2::3\n1::x::3\n");
    write("nan", "1::2::3\n1::3::nan\n");
    write("no-colon", "+1 3:1\n-1 4\n");
    write("zero", "+1 0:1\n");
    write("label", "x 1:1\n");
    type Case<'a> = (&'a [&'a str], i32, &'a str);
    let completion: [Case<'_>; 18] = [
        (&["--frob", "1"], 2, "unknown option '--frob'"),
        (&["ratings"], 2, "unknown option 'ratings'"),
        (&["--rank"], 2, "--rank needs a value"),
        (&["--rank", "0"], 2, "--rank must be a whole number from 1"),
        (&["--epochs=x"], 2, "--epochs must be a whole number"),
        (&["--batch", "-1"], 2, "--batch must be a whole number"),
        (&["--workers", "99999999999999999999"], 2, "--workers must be a whole number from 1 to 64"),
        (&["--lr", "nan"], 2, "--lr must be a number above 0"),
        (&["--reg", "-0.1"], 2, "--reg must be a number of 0 or more"),
        (&["--memory", "disk"], 2, "--memory must be one of shared, areas"),
        (&["--transport", "mail"], 2, "--transport must be one of rows, published, copies"),
        (&["--tracking", "automatic"], 2, "--tracking automatic is for --transport copies"),
        (&["--ratings", "nowhere"], 1, "cannot open nowhere: No such file"),
        (&["--ratings", "empty"], 1, "there are no ratings in empty"),
        (&["--ratings", "cut"], 1, "cut, line 2: expected user, item and rating, found 2 columns"),
        (&["--ratings", "word"], 1, "word, line 2: the item 'x' is not a whole number"),
        (&["--ratings", "nan"], 1, "nan, line 2: the rating 'nan' is not a finite number"),
        (&["--ratings", "ratings", "--lr", "1000"], 1, "training diverged"),
    ];
    let hogwild: [Case<'_>; 11] = [
        (&["--frob", "1"], 2, "unknown option '--frob'"),
        (&["--every"], 2, "--every needs a value"),
        (&["--workers", "0"], 2, "--workers must be a whole number from 1 to 64"),
        (&["--epochs", "1.5"], 2, "--epochs must be a whole number"),
        (&["--lr", "nan"], 2, "--lr must be a number"),
        (&["--memory", "disk"], 2, "--memory must be one of shared, areas"),
        (&["--samples", "nowhere"], 1, "cannot open nowhere: No such file"),
        (&["--samples", "empty"], 1, "there are no samples"),
        (&["--samples", "no-colon"], 1, "no-colon, line 2: a feature is not of the form index:value"),
        (&["--samples", "zero"], 1, "zero, line 1: an index is not from 1"),
        (&["--samples", "label"], 1, "label, line 1: it does not begin with a label"),
    ];
    let check = |output: Output, (arguments, code, says): Case<'_>| {
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        assert!(text.starts_with("error: ") && text.contains(says), "{arguments:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{arguments:?}: {text}");
    };
    for case in completion {
        check(built.completion(case.0), case);
    }
    for case in hogwild {
        check(built.hogwild(case.0), case);
    }
    for help in [built.completion(&["--help"]), built.hogwild(&["--help"])] {
        assert!(help.status.success() && String::from_utf8_lossy(&help.stdout).contains("--workers"));
    }
}
