//! Compiles `log_rows.c` against the release library with `cc`, and runs it: for any x86-64 machine, and for this one,
//! whose wider vectors make the steps shorter and the same test relatively dearer.
use std::path::Path;
use std::process::{Command, exit};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let this = std::env::current_exe().expect("the bench's own path");
    let profile = this.parent().and_then(Path::parent).expect("a target directory");
    let library = profile.join("libhectare.a");
    let succeed = |command: &mut Command| {
        let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        if !status.success() {
            eprintln!("{command:?} failed with {status}");
            exit(1);
        }
    };
    let target = profile.parent().expect("a target directory");
    // A library that is there already may have other features than a build of this crate alone, which takes half a minute.
    if !hectare_testing::is_current(&library, &["ffi", "dsm", "wire"]) {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--release", "-p", "hectare-ffi", "--lib", "--manifest-path"]);
        succeed(cargo.arg(root.join("Cargo.toml")).arg("--target-dir").arg(target));
    }
    let program = profile.join("log_rows");
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    for flags in [&["-O3"][..], &["-O3", "-march=native"]] {
        println!("cc {}", flags.join(" "));
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu99", "-Wall", "-Wextra", "-I"]).arg(root.join("include")).args(flags);
        cc.arg(root.join("benches/log_rows.c")).arg("-o").arg(&program).arg(&library);
        succeed(cc.args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]));
        succeed(Command::new(&program).args(&arguments));
    }
}
