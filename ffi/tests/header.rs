//! The committed header is the one that the sources make.
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
            "{} is out of date from line {line} on; write it anew with\n\
             HECTARE_BLESS=1 cargo test -p hectare-ffi --test header",
            path.display()
        );
    }
}
