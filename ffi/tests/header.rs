//! The committed header is the one that the sources make, and compilers have nothing to say about it.
mod common;

use common::{compiler, has, run};
use std::path::Path;

/// The header as the sources make it.
fn generate() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect(path);
    let mut config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("cbindgen.toml");
    config.header = Some(read("src/header_top.h").trim_end().to_owned());
    config.trailer = None;
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_crate(root)
        .generate()
        .expect("cbindgen understands the sources");
    let mut out = Vec::new();
    bindings.write(&mut out);
    let made = String::from_utf8(out).expect("text");
    // The inline functions belong inside of the guard.
    let end = made.rfind("#endif").expect("an include guard");
    let lines =
        format!("{}{}\n{}", &made[..end].trim_end(), read("src/header_inline.h").trim_end(), &made[end..]);
    lines.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[test]
fn the_header_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/hectare/hectare.h");
    let made = generate();
    if std::env::var_os("HECTARE_BLESS").is_some() {
        std::fs::write(&path, &made).expect("the header");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if committed != made {
        let different = committed.lines().zip(made.lines()).position(|(old, new)| old != new);
        let line = different.unwrap_or(committed.lines().count().min(made.lines().count())) + 1;
        panic!(
            "{} is out of date from line {line} on; regenerate it with\n\
             HECTARE_BLESS=1 cargo test -p hectare-ffi --test header",
            path.display()
        );
    }
}

/// Uses everything in line, in both languages.
const PROGRAM: &str = "#include <hectare/hectare.h>
int main(void)
{
    ha_job_options job;
    ha_area_options area;
    uint64_t wait = 10 * HA_SECOND + HA_FOREVER / 2;
    ha_type type = HA_F64;
    ha_status status = HA_OK;
    ha_job_options_init(&job);
    ha_area_options_init(&area);
    area.tracking = HA_TRACK_WHOLE;
    if (ha_log(NULL, 0, 1) == HA_OK || ha_log_row(NULL, 0) == HA_OK || ha_log_rows(NULL, 0, 1) == HA_OK)
        return 1;
    return wait == 0 || type == HA_F32 || status != HA_OK;
}
";

#[test]
fn compilers_accept_the_header_without_warnings() {
    let directory = tempfile::tempdir().unwrap();
    let languages = [("cc", "c99"), ("cc", "c11"), ("cc", "c17"), ("clang", "c99"), ("c++", "c++11")];
    let more = [("c++", "c++17"), ("c++", "c++20"), ("clang++", "c++11"), ("clang++", "c++17")];
    for (program, standard) in languages.into_iter().chain(more) {
        if !has(program) {
            continue;
        }
        let name = if standard.starts_with("c++") { "p.cc" } else { "p.c" };
        let source = directory.path().join(name);
        std::fs::write(&source, PROGRAM).unwrap();
        for level in ["-O0", "-O2"] {
            let mut compiler = compiler(program, standard);
            compiler.args([level, "-c", "-o"]).arg(directory.path().join("p.o")).arg(&source);
            run(&mut compiler);
        }
    }
}
