//! Every link leads somewhere, every chapter is in the table of contents, every document that code names is there.
use hectare_docs::{files, markdown, read, root};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{} leads out of the project", path.display()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in files(".md") {
        let text = read(&document);
        for (line, target) in markdown::links(&text) {
            if target.starts_with("https://") {
                continue;
            }
            count += 1;
            let (path, anchor) =
                target.split_once('#').map_or((target.as_str(), None), |(p, a)| (p, Some(a)));
            let folder = Path::new(&document).parent().unwrap();
            let to = if path.is_empty() { PathBuf::from(&document) } else { plain(&folder.join(path)) };
            let is_there = root().join(&to).exists();
            let has_anchor = anchor.is_none_or(|anchor| {
                is_there && markdown::anchors(&read(to.to_str().unwrap())).iter().any(|other| other == anchor)
            });
            // A file outside of the book is not part of its pages.
            let in_book = !document.starts_with("docs/src/") || to.starts_with("docs/src");
            if !(is_there && has_anchor && in_book) {
                wrong.push(format!("{document}:{line}: {target}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 60, "only {count} links were found");
}

#[test]
fn every_chapter_is_in_the_contents_once() {
    let contents: Vec<String> = markdown::links(&read("docs/src/SUMMARY.md"))
        .into_iter()
        .map(|link| format!("docs/src/{}", link.1))
        .collect();
    let chapters: BTreeSet<String> = files(".md")
        .into_iter()
        .filter(|path| path.starts_with("docs/src/") && !path.ends_with("SUMMARY.md"))
        .collect();
    assert_eq!(contents.iter().cloned().collect::<BTreeSet<_>>(), chapters);
    assert_eq!(contents.len(), chapters.len(), "a chapter is there twice");
    for chapter in &chapters {
        let text = read(chapter);
        let (_, rest) = markdown::parts(&text);
        let titles = rest.iter().filter(|(_, line)| line.starts_with("# ")).count();
        assert!(
            rest.first().is_some_and(|(_, line)| line.starts_with("# ")) && titles == 1,
            "{chapter}: one title"
        );
    }
}

#[test]
fn documents_that_code_names_are_there() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for end in [".rs", ".h", ".hpp", ".toml", ".md", ".sh"] {
        for file in files(end) {
            let text = read(&file);
            for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c))) {
                let word = word.trim_end_matches('.');
                let Some(at) = word.find("docs/").filter(|_| word.ends_with(".md")) else { continue };
                count += 1;
                if !root().join(&word[at..]).exists() {
                    wrong.push(format!("{file}: {word}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 20, "only {count} names were found");
}
