//! The C test programs: plain, with AddressSanitizer, under valgrind.
//!
//! By hand, after `cargo build -p hectare-ffi`:
//!
//! ```sh
//! cd ffi/tests/c
//! cc -g -fsanitize=address,undefined -I ../../include bad_input.c -L ../../../target/debug -lhectare -pthread
//! LD_LIBRARY_PATH=../../../target/debug ./a.out
//! cc -g -I ../../include bad_input.c -L ../../../target/debug -lhectare -pthread
//! LD_LIBRARY_PATH=../../../target/debug valgrind --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite ./a.out
//! ```
mod common;

use common::{build, compiler, has, program, run};
use hectare_testing::skip;
use std::os::unix::process::ExitStatusExt;

const C: [&str; 6] = ["basics.c", "bad_input.c", "workers.c", "arrays.c", "rows.c", "loops.c"];

#[test]
fn as_c99() {
    let directory = tempfile::tempdir().unwrap();
    for source in C {
        // The programs use POSIX threads, which are no part of the standard; the header does not.
        let built = build(compiler("cc", "gnu99"), source, directory.path());
        run(&mut program(built, directory.path()));
    }
}

#[test]
fn as_cpp17() {
    let directory = tempfile::tempdir().unwrap();
    for (cpp, standard) in [("c++", "c++17"), ("c++", "c++20"), ("clang++", "c++17")] {
        if has(cpp) {
            let built = build(compiler(cpp, standard), "layer.cc", directory.path());
            run(&mut program(built, directory.path()));
        }
    }
    if has("c++") {
        // Without exceptions, the statuses are left.
        let source = directory.path().join("plain.cc");
        std::fs::write(
            &source,
            "#include <hectare/hectare.hpp>\nint main() { hectare::status s; \
             auto j = hectare::job::connect(s, \"none\"); return s.ok() ? 1 : 0; }\n",
        )
        .unwrap();
        let mut cpp = compiler("c++", "c++17");
        cpp.args(["-fno-exceptions", "-fno-rtti"]);
        let built = build(cpp, source.to_str().unwrap(), directory.path());
        run(&mut program(built, directory.path()));
    }
}

#[test]
fn with_address_sanitizer() {
    let directory = tempfile::tempdir().unwrap();
    let probe = directory.path().join("probe.c");
    std::fs::write(&probe, "int main(void) { return 0; }\n").unwrap();
    let mut cc = compiler("cc", "gnu99");
    cc.args(["-fsanitize=address,undefined", "-o"]).arg(directory.path().join("probe")).arg(&probe);
    if !cc.status().is_ok_and(|status| status.success()) {
        return skip("AddressSanitizer", "cc does not link it");
    }
    for source in C {
        let mut cc = compiler("cc", "gnu99");
        cc.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
        let built = build(cc, source, directory.path());
        run(program(built, directory.path()).env("ASAN_OPTIONS", "detect_leaks=1"));
    }
    let mut cpp = compiler("c++", "c++17");
    cpp.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    let built = build(cpp, "layer.cc", directory.path());
    run(program(built, directory.path()).env("ASAN_OPTIONS", "detect_leaks=1"));
}

#[test]
fn under_valgrind() {
    if !has("valgrind") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for source in C {
        let built = build(compiler("cc", "gnu99"), source, directory.path());
        let mut valgrind = program("valgrind", directory.path());
        valgrind.args(["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", "-q"]);
        // One thread at a time runs; whoever waits for another must not take all of it.
        valgrind.arg("--fair-sched=try").arg(built).env("TEST_SHORT", "1");
        run(&mut valgrind);
    }
}

/// Pointers of a worker that has not left may be in use elsewhere: its thread does not end without the process.
#[test]
fn a_thread_that_ends_as_a_worker_ends_its_process() {
    let directory = tempfile::tempdir().unwrap();
    let built = build(compiler("cc", "gnu99"), "thread_ends.c", directory.path());
    for (way, what) in [
        ("worker", "worker 0 of a job"),
        ("observer", "observer 0 of a job"),
        ("exit", "worker 0"),
        ("cancel", "worker 0"),
    ] {
        let out = program(&built, directory.path()).arg(way).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.signal(), Some(libc::SIGABRT), "{way}: {}\n{text}", out.status);
        assert!(text.contains(&format!("ended while it was {what}")), "{way}: {text}");
        assert!(text.contains("in C: ha_worker_leave, ha_observer_close"), "{way}: {text}");
    }
    for way in ["left", "key"] {
        run(program(&built, directory.path()).arg(way));
    }
}

/// A C program that logs too little: wrong sums without a word, and an error under `HECTARE_CHECK=1`.
#[test]
fn a_forgotten_log_is_an_error_under_check() {
    let directory = tempfile::tempdir().unwrap();
    let built = build(compiler("cc", "gnu99"), "forgotten.c", directory.path());
    for (way, what) in [
        ("range", "worker 1 wrote elements 320..328 (bytes 2560..2624) of area \"part/1\""),
        (
            "lines",
            "elements 320..328 (bytes 2560..2624) of area \"part/1\" and did not log them, nor what is in 2 more",
        ),
        ("all", "worker 1 wrote elements 320..328 (bytes 2560..2624) of area \"part/1\""),
    ] {
        let out = run(program(&built, directory.path()).arg(way).env_remove("HECTARE_CHECK"));
        assert!(String::from_utf8_lossy(&out.stdout).contains("wrong sum"), "{way}: {out:?}");
        assert!(out.stderr.is_empty(), "{way}: {out:?}");
        let out = run(program(&built, directory.path()).arg(way).env("HECTARE_CHECK", "1"));
        let (said, printed) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert!(said.contains("HA_UNLOGGED") && said.contains(what), "{way}: {said}");
        assert!(said.contains("ha_log, ha_log_rows or ha_log_all"), "{way}: {said}");
        assert!(said.contains("right sum"), "it is published all the same: {said}");
        assert!(printed.contains("HECTARE_CHECK=1") && printed.contains(what), "{way}: {printed}");
    }
    let out = run(program(&built, directory.path()).arg("none").env("HECTARE_CHECK", "1"));
    assert!(String::from_utf8_lossy(&out.stdout).contains("right sum") && out.stderr.is_empty(), "{out:?}");
}
