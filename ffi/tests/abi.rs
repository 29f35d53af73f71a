//! The binary interface is that of the committed snapshot: `abi/N.txt` for version N of the interface
//! (`HA_ABI_VERSION`). What changes needs a new version:
//!
//! - something was added: raise `HA_ABI_VERSION` by one, and put new functions into a new version of the symbols in
//!   `package/hectare.map`;
//! - something was changed or taken away: raise it to the next thousand, which changes the soname.
//!
//! Then `HECTARE_BLESS=1 cargo test -p hectare-ffi --test abi` writes the snapshot of the new version. That of an old
//! one is never written again.
mod common;

use common::{compiler, has, library, root, run};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Command;

/// The declarations of a header.
#[derive(Debug, Default)]
struct Declarations {
    /// Structs that programs see into, and their fields.
    structs: Vec<(String, Vec<String>)>,
    constants: Vec<String>,
    /// Functions and types of functions, on one line each.
    prototypes: Vec<String>,
}

fn parse(header: &str) -> Declarations {
    let mut found = Declarations::default();
    // Without comments and directives, of which the macros are kept.
    let mut code = String::new();
    for line in header.lines() {
        let line = line.split("//").next().unwrap_or("").trim();
        if let Some(macro_) = line.strip_prefix("#define ") {
            let name = macro_.split_whitespace().next().unwrap_or("");
            if name.starts_with("HA_") && !name.contains('(') {
                found.constants.push(name.to_owned());
            }
        }
        if !line.starts_with('#') {
            code.push_str(line);
            code.push(' ');
        }
    }
    let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let code = code.replace("extern \"C\" {", "");
    let mut rest = &code[..];
    while let Some(end) = rest.find([';', '{']) {
        let (head, brace) = (rest[..end].trim(), rest[end..].starts_with('{'));
        rest = &rest[end + 1..];
        if !brace {
            let is_function = head.contains('(') && !head.starts_with("static");
            if is_function {
                found.prototypes.push(head.trim_start_matches("} ").to_owned());
            }
            continue;
        }
        // The body, up to its brace.
        let mut depth = 1;
        let close = rest.find(|character| {
            depth += match character {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        });
        let Some(close) = close else { break };
        let body = &rest[..close];
        rest = &rest[close + 1..];
        if let Some(name) = head.strip_prefix("typedef struct ") {
            let fields = body.split(';').map(str::trim).filter(|field| !field.is_empty());
            let name_of = |field: &str| {
                let field = field.split('[').next().unwrap_or("");
                field.rsplit([' ', '*']).next().unwrap_or("").to_owned()
            };
            found.structs.push((name.to_owned(), fields.map(name_of).collect()));
        } else if head.starts_with("enum ") {
            let values = body.split(',').filter_map(|value| value.split('=').next()).map(str::trim);
            found.constants.extend(values.filter(|value| !value.is_empty()).map(str::to_owned));
        }
    }
    found
}

/// Everything that a compiled program relies on, a line each.
fn interface() -> String {
    let header = std::fs::read_to_string(root().join("include/hectare/hectare.h")).unwrap();
    let found = parse(&header);
    assert!(
        found.structs.len() > 10 && found.constants.len() > 50 && found.prototypes.len() > 60,
        "{found:?}"
    );
    let mut program = String::from("#include <hectare/hectare.h>\n#include <stdio.h>\nint main(void) {\n");
    for (name, fields) in &found.structs {
        writeln!(program, "printf(\"size {name} %zu\\n\", sizeof({name}));").unwrap();
        for field in fields {
            writeln!(
                program,
                "printf(\"field {name}.{field} at %zu, %zu bytes\\n\", offsetof({name}, {field}), \
                 sizeof((({name} *)0)->{field}));"
            )
            .unwrap();
        }
    }
    for constant in &found.constants {
        if constant == "HA_ABI_VERSION" {
            continue;
        }
        writeln!(program, "printf(\"constant {constant} %llu\\n\", (unsigned long long){constant});")
            .unwrap();
    }
    program.push_str("return 0;\n}\n");
    let directory = tempfile::tempdir().unwrap();
    let (source, built) = (directory.path().join("abi.c"), directory.path().join("abi"));
    std::fs::write(&source, program).unwrap();
    let mut cc = compiler("cc", "c99");
    run(cc.arg(&source).arg("-o").arg(&built));
    let mut lines: BTreeSet<String> = BTreeSet::new();
    let out = run(&mut Command::new(built));
    lines.extend(String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned));
    lines.extend(found.prototypes.iter().map(|prototype| format!("declared {prototype}")));
    lines.extend(symbols(directory.path()));
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The symbols of the shared library as it is installed, with their versions.
fn symbols(directory: &std::path::Path) -> Vec<String> {
    let profile = library();
    let mut install = Command::new(root().join("install.sh"));
    install.arg("--prefix=/p").arg(format!("--destdir={}", directory.display())).arg("--no-build");
    install.arg(format!("--target-dir={}", profile.parent().unwrap().display()));
    if profile.ends_with("debug") {
        install.arg("--debug");
    }
    run(&mut install);
    let library = directory.join("p/lib/libhectare.so");
    let out = run(Command::new("nm").args(["-D", "--defined-only", "--with-symbol-versions"]).arg(library));
    let text = String::from_utf8(out.stdout).unwrap();
    let symbols =
        text.lines().filter_map(|line| line.split_once(' ').map(|(_, symbol)| format!("symbol {symbol}")));
    symbols.collect()
}

fn version() -> u32 {
    let source = std::fs::read_to_string(root().join("src/version.rs")).unwrap();
    let line = source.lines().find(|line| line.starts_with("pub const HA_ABI_VERSION")).expect("the version");
    let number: String = line.rsplit('=').next().unwrap().chars().filter(char::is_ascii_digit).collect();
    number.parse().expect("a number")
}

/// Declarations of an older interface of the same major version that are missing now. Structs that begin with a size
/// field may grow.
fn broken(old: &str, new: &str) -> Vec<String> {
    let now: BTreeSet<&str> = new.lines().collect();
    let grew = |line: &str| {
        let Some((name, size)) = line.strip_prefix("size ").and_then(|rest| rest.split_once(' ')) else {
            return false;
        };
        let sized = now.iter().any(|line| line.starts_with(&format!("field {name}.size at 0,")));
        let number = |text: &str| text.parse::<usize>().unwrap_or(0);
        let larger = now.iter().find_map(|line| line.strip_prefix(&format!("size {name} ")));
        sized && larger.is_some_and(|larger| number(larger) > number(size))
    };
    old.lines().filter(|line| !now.contains(line) && !grew(line)).map(str::to_owned).collect()
}

#[test]
fn the_interface_is_that_of_its_version() {
    if !has("cc") || !has("nm") {
        return;
    }
    let (version, now) = (version(), interface());
    let path = root().join(format!("abi/{version}.txt"));
    if std::env::var_os("HECTARE_BLESS").is_some() && !path.exists() {
        std::fs::write(&path, &now).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_else(|_| {
        panic!("{}: write it with HECTARE_BLESS=1 cargo test -p hectare-ffi --test abi", path.display())
    });
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (committed.lines().collect(), now.lines().collect());
    let gone: Vec<_> = old.difference(&new).collect();
    let added: Vec<_> = new.difference(&old).collect();
    assert!(
        gone.is_empty() && added.is_empty(),
        "the interface is no longer version {version}, as in {}:\n  gone {gone:#?}\n  new {added:#?}\n\
         raise HA_ABI_VERSION in src/version.rs to {} if all of it is new, else to {}; see tests/abi.rs",
        path.display(),
        version + 1,
        (version / 1000 + 1) * 1000
    );
}

#[test]
fn older_versions_of_the_same_soname_are_kept() {
    let version = version();
    let new = std::fs::read_to_string(root().join(format!("abi/{version}.txt"))).unwrap();
    for entry in std::fs::read_dir(root().join("abi")).unwrap() {
        let path = entry.unwrap().path();
        let number: u32 = path.file_stem().unwrap().to_str().unwrap().parse().expect("a version");
        assert!(number <= version, "{}", path.display());
        if number / 1000 == version / 1000 {
            let lost = broken(&std::fs::read_to_string(&path).unwrap(), &new);
            assert!(lost.is_empty(), "version {version} breaks version {number}: {lost:#?}");
        }
    }
}

#[test]
fn changes_are_told_from_additions() {
    let old =
        "constant HA_A 1\nfield s.size at 0, 8 bytes\nsize s 16\nsize t 8\nsymbol T ha_f@@HECTARE_0.1\n";
    assert!(broken(old, old).is_empty());
    let grown = old.replace("size s 16", "size s 24") + "constant HA_B 2\nfield s.more at 16, 8 bytes\n";
    assert!(broken(old, &grown).is_empty());
    assert_eq!(broken(old, &old.replace("size s 16", "size s 8")), ["size s 16"]);
    assert_eq!(broken(old, &old.replace("size t 8", "size t 16")), ["size t 8"]);
    assert_eq!(broken(old, &old.replace("HA_A 1", "HA_A 2")), ["constant HA_A 1"]);
    assert_eq!(broken(old, &old.replace("0.1", "0.2")), ["symbol T ha_f@@HECTARE_0.1"]);
}

#[test]
fn declarations_are_found() {
    let header = "#define HA_X 3\n#define HA_F(a) a\ntypedef struct ha_s {\n // Its size.\n size_t size;\n char name[8];\n\
                  const void *p;\n} ha_s;\nenum ha_e\n#if 1\n : int\n#endif\n { HA_A = 1, HA_B = 2, };\n\
                  typedef struct ha_o ha_o;\n#ifdef __cplusplus\nextern \"C\" {\n#endif\nint ha_f(int a,\n   int b);\n\
                  #ifdef __cplusplus\n}\n#endif\nstatic inline int ha_g(void)\n{\n if (1) { return ha_f(1, 2); }\n}\n";
    let found = parse(header);
    assert_eq!(found.structs, [("ha_s".to_owned(), vec!["size".to_owned(), "name".into(), "p".into()])]);
    assert_eq!(found.constants, ["HA_X", "HA_A", "HA_B"]);
    assert_eq!(found.prototypes, ["int ha_f(int a, int b)"]);
}
