//! The modules of a crate know each other in one direction: there is no circle among them.
use crate::common::sources_of_crates;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The names that each module uses of others.
type Known = BTreeMap<String, BTreeSet<String>>;

/// The code of a file: no comments, and nothing from its tests on.
fn code(text: &str) -> String {
    let is_code = |line: &&str| !line.starts_with("mod tests {") && !line.starts_with("pub mod tests {");
    let without_comment = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    text.lines().take_while(is_code).map(without_comment).collect::<Vec<_>>().join("\n")
}

/// The first names of the paths that begin with `prefix`, in groups (`prefix{a::b, c}`) too.
fn heads(code: &str, prefix: &str) -> BTreeSet<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        // Part of another word, or a macro's `$crate`.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || "_$:".contains(c)) {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let (mut depth, mut starts) = (0, true);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => starts = true,
                c if starts && !c.is_whitespace() => {
                    found.insert(name(&group[at..]));
                    starts = false;
                }
                _ => {}
            }
        }
    }
    found
}

/// Notes what the file or folder at `path`, of module `module`, takes from the modules in `folder`. `crate_path` is the path of
/// `folder` from the crate's root on, `depth` how many modules `path` is below `folder`.
fn note(module: &str, path: &Path, crate_path: &str, depth: usize, known: &mut Known) {
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if !is_of_tests(&path) {
                let is_root = path.file_stem().is_some_and(|stem| stem == "mod");
                note(module, &path, crate_path, if is_root { depth } else { depth + 1 }, known);
            }
        }
    } else if path.extension().is_some_and(|end| end == "rs") {
        let code = code(&fs::read_to_string(path).unwrap());
        let found = known.entry(module.to_owned()).or_default();
        found.extend(heads(&code, crate_path));
        found.extend(heads(&code, &"super::".repeat(depth)));
    }
}

/// Tests and models look at everything.
fn is_of_tests(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    ["tests", "tests.rs", "models", "steps", "large_numbers.rs"].contains(&name)
}

/// Which modules of a folder of sources each of them names.
fn modules(folder: &Path, crate_path: &str) -> Known {
    let mut known = Known::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !["lib", "mod", "main"].contains(&module.as_str()) && !is_of_tests(&path) {
            note(&module, &path, crate_path, 1, &mut known);
        }
    }
    let all: BTreeSet<_> = known.keys().cloned().collect();
    for (module, others) in &mut known {
        others.retain(|other| other != module && all.contains(other));
    }
    known
}

/// The modules that are left when those that know nothing of what is left go, again and again: circles, and who knows them.
fn circle(mut known: Known) -> Known {
    loop {
        let free: Vec<_> =
            known.iter().filter(|(_, others)| others.is_empty()).map(|(module, _)| module.clone()).collect();
        if free.is_empty() {
            return known;
        }
        for module in free {
            known.remove(&module);
            known.values_mut().for_each(|others| {
                others.remove(&module);
            });
        }
    }
}

/// The circles in a folder and those below it.
fn circles(folder: &Path, crate_path: &str, found: &mut BTreeMap<PathBuf, Known>) {
    let circle = circle(modules(folder, crate_path));
    if !circle.is_empty() {
        found.insert(folder.to_owned(), circle);
    }
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !is_of_tests(&path) {
            let name = path.file_name().unwrap().to_str().unwrap();
            circles(&path, &format!("{crate_path}{name}::"), found);
        }
    }
}

#[test]
fn no_modules_form_a_circle() {
    for sources in sources_of_crates() {
        let mut found = BTreeMap::new();
        circles(&sources, "crate::", &mut found);
        assert!(found.is_empty(), "circles, and modules that need one: {found:#?}");
    }
}

#[test]
fn a_circle_is_found() {
    let heads = |text: &str| heads(&code(text), "crate::").into_iter().collect::<Vec<_>>();
    assert_eq!(heads("use crate::a::B;\nlet x = crate::c::d(); // crate::e"), ["a", "c"]);
    assert_eq!(heads("use crate::{\n    a::{B, C},\n    d,\n};"), ["a", "d"]);
    assert_eq!(heads("$crate::a::b; my_crate::c; x\nmod tests {\nuse crate::d;"), [""; 0]);
    let known = |pairs: &[(&str, &str)]| {
        let mut known = Known::new();
        for (module, other) in pairs {
            known.entry((*module).to_owned()).or_default().insert((*other).to_owned());
            known.entry((*other).to_owned()).or_default();
        }
        known
    };
    assert!(circle(known(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    assert_eq!(circle(known(&[("a", "b"), ("b", "c"), ("c", "b")])).len(), 3);
}
