//! As much of Markdown as the checks need: fenced blocks, links, headings.

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Where it begins, from 1.
    pub line: usize,
    /// The text behind the fence.
    pub kind: String,
    /// Its lines.
    pub text: String,
}

/// The fenced blocks of a document, and the rest of its lines with their numbers, from 1.
///
/// # Panics
/// When a block has no end.
pub fn parts(document: &str) -> (Vec<Block>, Vec<(usize, &str)>) {
    let (mut blocks, mut rest) = (Vec::new(), Vec::new());
    let mut open: Option<Block> = None;
    for (number, line) in (1..).zip(document.lines()) {
        match (line.strip_prefix("```").filter(|kind| !kind.contains('`')), &mut open) {
            (Some(kind), None) => open = Some(Block { line: number, kind: kind.into(), text: String::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => rest.push((number, line)),
        }
    }
    assert!(open.is_none(), "a block has no end: {open:?}");
    (blocks, rest)
}

/// A text without what stands between back quotes.
fn without_code(line: &str) -> String {
    line.split('`').enumerate().map(|(number, part)| if number % 2 == 0 { part } else { "x" }).collect()
}

/// Where links and images of a document lead, with their lines.
pub fn links(document: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in parts(document).1 {
        let line = without_code(line);
        let mut rest = line.as_str();
        while let Some((_, behind)) = rest.split_once("](") {
            let (target, behind) = behind.split_once(')').unwrap_or((behind, ""));
            found.push((number, target.to_owned()));
            rest = behind;
        }
    }
    found
}

/// The anchors that a link may name behind `#`, as GitHub and mdBook make it of the headings.
pub fn anchors(document: &str) -> Vec<String> {
    let headings = parts(document).1.into_iter().filter_map(|(_, line)| {
        let text = line.trim_start_matches('#');
        (text.len() < line.len() && text.starts_with(' ')).then(|| text.trim().to_owned())
    });
    headings
        .map(|text| {
            let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
        })
        .collect()
}
