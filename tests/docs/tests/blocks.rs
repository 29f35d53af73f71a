//! Every block of the documents is tested: Rust by rustdoc, C by the tests of its interface, shell here.
//!
//! A block of `sh` runs. All of one document are one session of bash in a directory of its own, where `cargo run` starts the
//! program that the tests have built, and `matrix_completion` learns from few ratings unless told which. A block of `sh long`
//! measures, trains for long, or changes the machine: the packages, programs, files and options that it names have to be there.
use hectare_docs::{files, markdown, read, root};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program that stands in for `cargo` in a session.
const CARGO: &str = r#"#!/bin/bash
# cargo build ..; cargo run [--release] -p PACKAGE [-- ARGUMENT..]
verb=$1; shift
packages=()
while [ $# -gt 0 ]; do
    case $1 in
        -p) packages+=("$2"); shift ;;
        --) shift; break ;;
        --release | --bins) ;;
        *) echo "cargo $verb: $1 is not expected here" >&2; exit 2 ;;
    esac
    shift
done
for package in "${packages[@]}"; do
    grep -qsx "name = \"$package\"" "$PROJECT"/Cargo.toml "$PROJECT"/*/Cargo.toml "$PROJECT"/*/*/Cargo.toml ||
        { echo "there is no package $package" >&2; exit 2; }
done
case $verb in
    build) ;;
    run) exec "${packages[0]}" "$@" ;;
    *) echo "cargo $verb: not expected here" >&2; exit 2 ;;
esac
"#;
const MATRIX_COMPLETION: &str = r#"#!/bin/bash
case " $* " in *" --ratings "*) few=() ;; *) few=(--ratings "$RATINGS") ;; esac
exec "$BUILT/matrix_completion" "${few[@]}" "$@"
"#;

fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_owned()
}

fn write(path: PathBuf, text: &str) {
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The output of a document's blocks of `sh`, run one after the other.
fn session(document: &str) -> String {
    let script: String = markdown::parts(&read(document))
        .0
        .into_iter()
        .filter(|block| block.kind == "sh")
        .map(|block| format!("# {document}:{}\n{}", block.line, block.text))
        .collect();
    assert!(!script.is_empty(), "{document} has no block");
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for name in ["target", "bin", "home", "run"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    std::fs::set_permissions(at("run"), PermissionsExt::from_mode(0o700)).unwrap();
    for name in ["hectare", "hectared", "quickstart", "hogwild", "exchange", "matrix_completion"] {
        let program = built().join(name);
        assert!(
            program.exists(),
            "{} is not built: run all tests, or cargo build --workspace",
            program.display()
        );
        if name != "matrix_completion" {
            symlink(program, at("bin").join(name)).unwrap();
        }
    }
    write(at("bin/cargo"), CARGO);
    write(at("bin/matrix_completion"), MATRIX_COMPLETION);
    symlink(at("bin"), at("target/release")).unwrap();
    let ratings: String =
        (0..4000).map(|k| format!("{},{},{}\n", 1 + k % 97, 1 + k * 7 % 61, 1 + k % 5)).collect();
    std::fs::write(at("ratings.csv"), ratings).unwrap();
    // An address that nobody has: the documents' may be taken.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = script.replace("127.0.0.1:9464", &format!("127.0.0.1:{port}"));
    // On a busy machine, what a reader waits a second for takes longer.
    let script = format!(
        "set -e\nsleep() {{ command sleep $((5 * $1)); }}\n\
         trap 'code=$?; kill $(jobs -p) 2>/dev/null || true; wait || true; exit $code' EXIT\n{script}"
    );
    let output = Command::new("timeout")
        .args(["--kill-after", "10", "300", "bash", "-c", &script])
        .current_dir(directory.path())
        .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", at("bin").display()))
        .env("HOME", at("home"))
        .env("HECTARE_RUN_DIR", at("run"))
        .env("PROJECT", root())
        .env("BUILT", built())
        .env("RATINGS", at("ratings.csv"))
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{document}: {}\n{printed}\n{errors}", output.status);
    printed
}

#[test]
fn the_readme_runs() {
    let printed = session("README.md");
    assert!(printed.contains("pass 5: RMSE 0.0408") && printed.contains("rotation: user stays"), "{printed}");
    // `top` has something to show.
    assert!(
        printed.lines().filter(|line| line.starts_with("mf ") && line.contains(" live ")).count() == 2,
        "{printed}"
    );
}

#[test]
fn the_walk_through_processes_runs() {
    if Command::new("curl").arg("--version").output().is_err() {
        return hectare_testing::skip("curl", "the walk looks at metrics");
    }
    let printed = session("docs/src/tutorial/processes.md");
    // Threads and processes: the same losses.
    let losses: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains("handover, 4 workers in"))
        .map(|line| line.split("train loss ").nth(1).unwrap().split(" in ").next().unwrap())
        .collect();
    assert!(losses.len() == 2 && losses[0] == losses[1], "{printed}");
    for said in [
        "job mf: 4 workers, nothing found",
        "hectare_worker_rounds_total",
        ", 32)",
        "hectare run ended with 137",
    ] {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    assert_eq!(printed.lines().filter(|line| line.contains(" live ")).count(), 4, "{printed}");
}

#[test]
fn areas_are_on_threads_and_processes() {
    let document = "docs/src/howto/areas.md";
    let printed = session(document);
    for (head, size, sum) in [("worker", 2, 3000), ("[0] worker", 3, 6000), ("[2] worker", 3, 6000)] {
        let ends = format!(" of {size}: {sum}");
        let said = |line: &str| line.starts_with(head) && line.ends_with(&ends);
        assert!(printed.lines().any(said), "{head}{ends}: {printed}");
    }
    let source = read("apps/exchange/src/main.rs");
    let shown = markdown::parts(&read(document)).0;
    assert!(shown.iter().any(|block| block.text == source), "the chapter shows another program");
}

#[test]
fn what_operators_type_runs() {
    session("docs/src/operations/operators.md");
}

#[test]
fn the_walk_to_other_hosts_runs() {
    let probe = Command::new("unshare").args(["--net", "true"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return hectare_testing::skip("network namespaces", "the walk makes two");
    }
    let printed = session("docs/src/tutorial/hosts.md");
    for said in [
        "cluster lab, fingerprint ",
        "[0] rank 0 is at eth0",
        " 10.78.0.2/24",
        "hectare run ended with 3",
        "it ended with 8",
    ] {
        assert!(printed.contains(said), "{said}: {printed}");
    }
    assert_eq!(printed.matches("it ended with 3").count(), 1, "{printed}");
    // On both hosts, and on the second; only rank 0 prints.
    assert_eq!(printed.matches("[0] pass 5: RMSE 0.0408").count(), 2, "{printed}");
    assert_eq!(printed.matches("pass 5").count(), 2, "{printed}");
    // On two hosts the same as on two threads.
    for loss in ["0.449800002", "0.413797474", "0.392061590"] {
        assert_eq!(printed.matches(&format!("test loss {loss},")).count(), 2, "{loss}: {printed}");
    }
}

#[test]
fn the_reference_of_several_hosts_runs() {
    let printed = session("docs/src/operations/hosts.md");
    assert_eq!(printed.matches(".config/hectare/cluster.key: cluster hectare").count(), 2, "{printed}");
}

#[test]
fn matrix_completion_runs() {
    let printed = session("docs/src/howto/matrix-completion.md");
    assert_eq!(printed.matches("test RMSE").count(), 4, "a table and a last line of two runs: {printed}");
}

#[test]
fn no_block_is_left_out() {
    const RUN: [&str; 7] = [
        "README.md",
        "docs/src/howto/areas.md",
        "docs/src/howto/matrix-completion.md",
        "docs/src/operations/hosts.md",
        "docs/src/operations/operators.md",
        "docs/src/tutorial/hosts.md",
        "docs/src/tutorial/processes.md",
    ];
    let doctests = read("src/lib.rs");
    for document in files(".md") {
        for block in markdown::parts(&read(&document)).0 {
            let place = format!("{document}:{}: {}", block.line, block.kind);
            match block.kind.as_str() {
                "sh" => assert!(
                    RUN.contains(&document.as_str()),
                    "{place}: it is not run; add a test, or say `sh long`"
                ),
                "sh long" => names_what_is_there(&place, &block.text),
                "rust" | "rust,standalone_crate" => {
                    assert!(
                        doctests.contains(&format!("include_str!(\"../{document}\")")),
                        "{place}: src/lib.rs lacks it"
                    );
                }
                "c" | "cpp" => {
                    let compiled = ["docs/src/c/porting.md", "docs/src/c/loops.md"];
                    assert!(compiled.contains(&&document[..]), "{place}: no test compiles it");
                }
                // Output, and a dependency for somebody's own manifest.
                "text" | "toml" => {}
                "" if !document.starts_with("docs/") => {}
                _ => panic!("{place}: not a kind of block that is tested"),
            }
        }
    }
}

/// The packages, programs, files and options of the project that commands name are there.
fn names_what_is_there(place: &str, text: &str) {
    let manifests: String = files("Cargo.toml").iter().map(|path| read(path)).collect();
    let sources = files(".rs");
    let is_there = |end: &str| sources.iter().any(|path| path.ends_with(end));
    for line in text.replace("\\\n", " ").lines() {
        let line = line.split(" #").next().unwrap_or(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            let found = match pair[0] {
                "-p" | "--package" => manifests.contains(&format!("name = \"{}\"\n", pair[1])),
                "--example" => {
                    ["/main.rs", ".rs"].iter().any(|end| is_there(&format!("examples/{}{end}", pair[1])))
                }
                "--bench" if line.contains("cargo bench") => is_there(&format!("benches/{}.rs", pair[1])),
                "--test" if line.contains("cargo test") => is_there(&format!("tests/{}.rs", pair[1])),
                _ => true,
            };
            assert!(found, "{place}: there is no {} {}", pair[0], pair[1]);
        }
        for word in &words {
            let script = word.ends_with(".sh") || word.ends_with(".service");
            assert!(
                !script || root().join(word).exists() || word.starts_with('~'),
                "{place}: there is no {word}"
            );
        }
        // Options of the project's own programs, by the fields or words that declare them.
        let Some(program) = words.windows(2).find(|pair| pair[0] == "--example").map(|pair| pair[1]) else {
            continue;
        };
        let folders = [format!("examples/{program}/"), "examples/training/".to_owned()];
        let own = sources.iter().filter(|path| folders.iter().any(|folder| path.starts_with(folder)));
        let code: String = own.map(|path| read(path)).collect();
        for option in
            words.iter().skip_while(|word| **word != "--").skip(1).filter(|word| word.starts_with("--"))
        {
            let field = format!("{}:", option.trim_start_matches('-').replace('-', "_"));
            assert!(code.contains(&field), "{place}: {program} has no option {option}");
        }
    }
}
