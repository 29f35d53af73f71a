//! The chapter on errors has every public error, and none that there is not.
use hectare_docs::{markdown, read};
use std::collections::BTreeSet;

/// The variants of an enum in a source file.
fn variants(path: &str, name: &str) -> BTreeSet<String> {
    let text = read(path);
    let (_, body) =
        text.split_once(&format!("pub enum {name} {{\n")).unwrap_or_else(|| panic!("{path}: {name}"));
    let body = body.split("\n}").next().unwrap();
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    lines
        .filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()))
        .map(|line| line.chars().take_while(char::is_ascii_alphanumeric).collect())
        .collect()
}

/// The names in the first column of the table below a heading.
fn explained(heading: &str) -> BTreeSet<String> {
    let text = read("docs/src/reference/errors.md");
    let (_, lines) = markdown::parts(&text);
    let below = lines.iter().skip_while(|(_, line)| !line.starts_with(heading)).skip(1);
    let rows =
        below.take_while(|(_, line)| !line.starts_with("## ")).filter(|(_, line)| line.starts_with("| `"));
    rows.flat_map(|(number, line)| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert!(cells.len() == 3 && !cells[1].is_empty(), "errors.md:{number}: {line}");
        cells[0].split(", ").map(|name| name.trim_matches('`').to_owned()).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn every_error_is_explained() {
    assert_eq!(explained("## Of loops"), variants("orion-layer/src/error.rs", "Error"));
    assert_eq!(explained("## Of areas"), variants("dsm/src/error/mod.rs", "Error"));
    let wire = [("error", "Error"), ("refusal", "Refusal"), ("launch", "LaunchError")]
        .map(|(file, name)| variants(&format!("wire/src/{file}.rs"), name));
    assert_eq!(explained("## Of the daemon's clients"), wire.into_iter().flatten().collect());
    let header = read("ffi/include/hectare/hectare.h");
    let statuses = header.split("enum ha_status").nth(1).unwrap().split("\n};").next().unwrap();
    let statuses =
        statuses.lines().filter_map(|line| line.trim().split_once(" = ")).map(|(name, _)| name.to_owned());
    assert_eq!(explained("## Of the C interface"), statuses.collect());
}
