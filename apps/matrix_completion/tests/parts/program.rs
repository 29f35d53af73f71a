//! The program: a run in parts, bad input, its curves.
use crate::matrix_completion::generate::generate;
use crate::support::SMALL;
use hectare_testing::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_matrix_completion"))
}

/// A directory for one test, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hectare-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().into()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A folder that stays behind harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn refused(output: &Output) -> String {
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(!output.status.success(), "accepted");
    assert!(output.status.code().is_some(), "killed: {message}");
    assert_eq!(message.lines().count(), 1, "not one line: {message}");
    assert!(message.starts_with("error: ") && !message.contains("panicked"), "{message}");
    message
}

#[test]
fn one_of_several_processes_without_a_job_says_so() {
    let directory = Directory::new("alone");
    let lines = (0..300u32).map(|n| format!("{} {} {}\n", n * 7 % 21, n * 11 % 17, 1 + n % 5));
    let file = directory.file("ratings", lines.collect::<String>());
    let run = |size: &str| {
        let mut command = program();
        command.args(["--quiet", "--epochs", "1", "--rank", "2", "--ratings", &file]);
        command.env("OMPI_COMM_WORLD_RANK", "1").env("OMPI_COMM_WORLD_SIZE", size);
        let output = command.output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (done, said) = run("4");
    assert!(
        done && said.starts_with("note: OMPI_COMM_WORLD_SIZE says that this is one of 4 processes"),
        "{said}"
    );
    assert_eq!(run("1"), (true, String::new()));
}

#[test]
fn a_run_in_two_parts_has_the_bits_of_one() {
    let directory = Directory::new("checkpoints");
    let lines = (0..3000u32).map(|n| format!("{} {} {}\n", n * 7 % 211, n * 11 % 97, 1 + n * n % 5));
    let file = directory.file("ratings", lines.collect::<String>());
    let train = |mode: &str, epochs: &str, checkpoint: &Path| {
        let args = ["--quiet", "--workers", "2", "--rank", "5", "--ratings", &file, "--mode", mode];
        let mut command = program();
        command.args(args).args(["--epochs", epochs, "--checkpoint"]).arg(checkpoint).output().unwrap()
    };
    for mode in ["serial", "shared", "areas", "handover"] {
        let [whole, parts] = ["whole", "parts"].map(|name| directory.0.join(format!("{mode}-{name}")));
        assert!(train(mode, "5", &whole).status.success());
        for epochs in ["2", "2", "5"] {
            let output = train(mode, epochs, &parts);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(fs::read(&whole).unwrap(), fs::read(&parts).unwrap(), "{mode}");
    }

    let good = directory.0.join("serial-whole");
    let mut bytes = fs::read(&good).unwrap();
    let other =
        program().args(["--quiet", "--rank", "6", "--ratings", &file, "--checkpoint"]).arg(&good).output();
    assert!(refused(&other.unwrap()).contains("of another run, which has rank 5, and this run has rank 6"));
    // As many ratings of as many users and items.
    let text = fs::read_to_string(&file).unwrap();
    let same_shape = directory.file("other", text.replacen("0 0 1\n", "0 0 2\n", 1));
    let mut other = program();
    other.args(["--quiet", "--rank", "5", "--ratings", &same_shape, "--checkpoint"]).arg(&good);
    assert!(refused(&other.output().unwrap()).contains("has other ratings, or another split of them"));
    for at in [0, 30, bytes.len() / 2, bytes.len() - 1] {
        bytes[at] ^= 1;
        let damaged = directory.file("damaged", &bytes);
        assert!(refused(&train("shared", "6", Path::new(&damaged))).contains("no whole checkpoint"));
        bytes[at] ^= 1;
    }
    let short = directory.file("short", &bytes[..bytes.len() - 9]);
    assert!(refused(&train("shared", "6", Path::new(&short))).contains("no whole checkpoint"));
}

#[test]
fn bad_files_are_refused_with_file_and_line() {
    let directory = Directory::new("bad-files");
    let good = "1 1 3\n2 1 4\n";
    for (content, expected) in [
        ("", "no ratings"),
        ("\n \n", "no ratings"),
        ("user,item,rating\n", "no ratings"),
        ("1 1 3\n2 1\n", "line 2: expected user, item and rating between spaces, found 2"),
        ("1 3\n2 4\n", "line 1: expected user, item and rating between spaces, found 2"),
        ("1,1,3\n2,1,4\n3 1 4\n", "line 3: expected user, item and rating between ','"),
        ("1::1::3\n\n2::-5::4\n", "line 3: the item id -5 is negative"),
        (",user,item,rating\n0,1,1,3\n", "line 1: the first column has no name"),
        ("-1 1 3\n", "line 1: the user id -1 is negative"),
        ("1 1 3\nx 1 4\n", "line 2: the user id \"x\" is not"),
        ("1 1.5 3\n", "line 1: the item id \"1.5\" is not"),
        ("1 99999999999999999999 3\n", "line 1: the item id"),
        ("1 1 NaN\n", "line 1: the rating NaN is not finite"),
        ("1 1 3\n1 2 inf\n", "line 2: the rating inf is not finite"),
        ("1 1 1e60\n", "line 1: the rating 1e60 is not finite"),
        ("1 1 3\r2 1 4\r", "line 1: a carriage return without a line feed"),
        ("1 1 good\n", "line 1: the rating \"good\" is not a number"),
        ("1\t1\t\n", "line 1"),
    ] {
        let file = directory.file("ratings", content);
        let message = refused(&program().args(["--ratings", &file]).output().unwrap());
        assert!(message.contains(&file) && message.contains(expected), "{content:?}: {message}");

        let train = directory.file("good", good);
        let message = refused(&program().args(["--ratings", &train, "--test", &file]).output().unwrap());
        assert!(message.contains(&file) && message.contains(expected), "{content:?} to test: {message}");
    }
    let file = directory.file("binary", b"1 1 3\n1 2 \xff\n");
    assert!(
        refused(&program().args(["--ratings", &file]).output().unwrap()).contains(":2: this is not text")
    );
    let missing = directory.0.join("missing");
    let message = refused(&program().arg("--ratings").arg(&missing).output().unwrap());
    assert!(message.contains(missing.to_str().unwrap()), "{message}");
    refused(&program().arg("--ratings").arg(&directory.0).output().unwrap());
}

#[test]
fn bad_options_are_refused() {
    let directory = Directory::new("bad-options");
    let ratings = directory.file("ratings", "1 1 3\n2 1 4\n1 2 5\n2 2 3\n");
    for (options, named) in [
        (&["--rank", "0"][..], "--rank"),
        (&["--rank", "9999999999999999"], "memory"),
        (&["--rank", "-3"], "-3"),
        (&["--rank", "many"], "--rank"),
        (&["--workers", "0"], "--workers"),
        (&["--workers", "257"], "--workers"),
        (&["--epochs", "0"], "--epochs"),
        (&["--batch", "0"], "--batch"),
        (&["--lr", "NaN"], "--lr"),
        (&["--lr", "inf"], "--lr"),
        (&["--lr", "0"], "--lr"),
        (&["--lr", "-0.1"], "--lr"),
        (&["--decay", "0"], "--decay"),
        (&["--reg", "-1"], "--reg"),
        (&["--reg", "NaN"], "--reg"),
        (&["--split", "0"], "--split"),
        (&["--split", "1"], "--split"),
        (&["--split", "NaN"], "--split"),
        (&["--split", "-0.5"], "--split"),
        (&["--mode", "magic"], "--mode"),
        (&["--transport", "pigeon"], "--transport"),
        (&["--step", "giant"], "--step"),
        (&["--split", "0.5", "--test", "x"], "--split"),
        (&["--out", "/proc/none"], "/proc/none"),
        (&["--lr", "1e30", "--split", "0.25"], "diverged"),
        (&["--nonsense"], "--nonsense"),
        // clap's tip stands below its first line.
        (&["--rnak", "3"], "tip: a similar argument exists: '--rank'"),
        (
            &["--mode", "area"],
            "[possible values: serial, shared, areas, handover] (tip: a similar value exists: 'areas')",
        ),
        (&["--step"], "[possible values: fixed, adagrad]"),
    ] {
        let message =
            refused(&program().args(["--quiet", "--ratings", &ratings]).args(options).output().unwrap());
        assert!(message.contains(named), "{options:?}: {message}");
    }
    let message = refused(&program().args(["--test", &ratings]).output().unwrap());
    assert!(message.contains("not provided: --ratings <FILE> (see --help)"), "{message}");
    assert!(program().arg("--help").output().unwrap().status.success());
}

#[test]
fn without_test_ratings_none_are_spoken_of() {
    let directory = Directory::new("untested");
    let ratings = directory.file("ratings", "1 1 3\n2 1 4\n1 2 5\n2 2 3\n");
    let out = directory.0.join("out");
    let mut train = program();
    train.args(["--ratings", &ratings, "--split", "0.001", "--epochs", "2", "--out"]).arg(&out);
    let output = train.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("no test ratings after 2 epochs"), "{said}");
    let csv = fs::read_to_string(out.join("loss.csv")).unwrap();
    assert!(!said.contains("NaN") && !csv.contains("NaN"), "{said}{csv}");
    assert!(csv.lines().skip(1).all(|line| line.split(',').nth(2) == Some("")), "{csv}");
}

#[test]
fn an_interrupt_ends_training_with_what_was_learnt() {
    let directory = Directory::new("interrupted");
    let (out, saved) = (directory.0.join("out"), directory.0.join("saved"));
    let mut train = program();
    train.args(["--quiet", "--rank", "4", "--epochs", "1000000", "--workers", "2", "--checkpoint"]);
    let mut child = train.arg(&saved).arg("--out").arg(&out).stderr(Stdio::piped()).spawn().unwrap();
    // Training is under way.
    while !saved.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let told = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(told.success());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("interrupted: training ended after epoch"), "{error}");
    let csv = fs::read_to_string(out.join("loss.csv")).unwrap();
    assert!(csv.lines().count() > 1 && out.join("loss.svg").exists(), "{csv}");
}

#[test]
fn all_modes_write_the_same_curve() {
    let directory = Directory::new("curve");
    let text: String = generate(SMALL, 1)
        .iter()
        .map(|rating| format!("{}::{}::{}::0\n", rating.user * 1000, rating.item + 1, rating.value))
        .collect();
    let ratings = directory.file("ratings.dat", text);
    let curve = |options: &[&str]| {
        let out = directory.0.join("out");
        let output = program()
            .args(["--ratings", &ratings, "--rank", "8", "--epochs", "3", "--batch", "50", "--out"])
            .arg(&out)
            .args(options)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let svg = fs::read_to_string(out.join("loss.svg")).unwrap();
        assert!(svg.contains("</svg>") && svg.contains("epoch") && svg.contains("training"), "{svg}");
        let csv = fs::read_to_string(out.join("loss.csv")).unwrap();
        let mut lines = csv.lines();
        assert!(
            lines
                .next()
                .unwrap()
                .starts_with("epoch,train_loss,test_rmse,seconds,updates_per_s,mode,workers")
        );
        // Epoch and losses, with all digits.
        lines.map(|line| line.split(',').take(3).collect::<Vec<_>>().join(",")).collect::<Vec<_>>()
    };
    let expected = curve(&["--mode", "serial"]);
    assert_eq!(expected.len(), 3);
    for workers in ["1", "2", "3", "4", "8"] {
        for mode in ["shared", "areas"] {
            assert_eq!(curve(&["--mode", mode, "--workers", workers]), expected, "{mode}, {workers} workers");
        }
    }
    for transport in ["published", "handed", "logged"] {
        assert_eq!(curve(&["--mode", "areas", "--transport", transport]), expected, "{transport}");
    }
    let handover = curve(&["--mode", "handover", "--workers", "3"]);
    assert_eq!(handover.len(), 3);
    assert_ne!(handover, expected, "another order");
}

#[test]
fn movielens_reaches_the_quality_of_libmf() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let (train, test) = (data.join("ml1m.train.txt"), data.join("ml1m.test.txt"));
    if !train.exists() || !test.exists() {
        return skip("shared data", train.display());
    }
    for mode in ["serial", "shared", "areas", "handover"] {
        // Without optimization a short run has to do.
        let (epochs, bound) = match mode {
            _ if cfg!(debug_assertions) => ("2", 0.90),
            "handover" => ("15", 0.85),
            _ => ("15", 0.8463),
        };
        let directory = Directory::new(&format!("movielens-{mode}"));
        let output = program()
            .args(["--quiet", "--mode", mode, "--epochs", epochs, "--ratings"])
            .arg(&train)
            .arg("--test")
            .arg(&test)
            .arg("--out")
            .arg(&directory.0)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let csv = fs::read_to_string(directory.0.join("loss.csv")).unwrap();
        let rmse: f64 = csv.lines().last().unwrap().split(',').nth(2).unwrap().parse().unwrap();
        assert!(rmse <= bound, "mode {mode}: test RMSE {rmse} after {epochs} epochs");
    }
}
