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

const C: [&str; 4] = ["basics.c", "bad_input.c", "workers.c", "arrays.c"];

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
        println!("skipped: cc has no AddressSanitizer");
        return;
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
