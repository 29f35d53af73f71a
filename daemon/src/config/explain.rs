//! Messages for errors in a configuration, in terms of its keys.
use super::EXAMPLE;

/// The text of an error of the parser at a byte of a configuration: with its line, the key and its value, and what is expected. An error
/// that is nowhere is about no key.
pub(super) fn explain(text: &str, at: Option<usize>, message: &str) -> String {
    let Some(at) = at else { return message.to_owned() };
    let line = text[..at].matches('\n').count() + 1;
    format!("line {line}: {}", explain_at(text, at, message))
}

fn explain_at(text: &str, at: usize, message: &str) -> String {
    let begin = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let line = text[begin..].lines().next().unwrap_or_default();
    let table = table_of(&text[..begin]);
    let path = |key: &str| table.map_or_else(|| key.to_owned(), |table| format!("{table}.{key}"));
    if let Some((unknown, known)) = unknown_field(message) {
        let meant = known.iter().min_by_key(|key| distance(key, unknown));
        let is_near = |key: &&&str| distance(key, unknown) <= unknown.len().div_ceil(3);
        let help = match meant.filter(is_near) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => {
                let all: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
                format!("the keys there are {}", all.join(", "))
            }
        };
        // A key that contains others is named at its own line.
        let place = if line.trim_start().starts_with('[') { unknown.to_owned() } else { path(unknown) };
        return format!("unknown key `{place}`; {help}");
    }
    let Some((key, value)) = line.split_once('=') else { return message.to_owned() };
    let (key, value) = (key.trim(), value.split(" #").next().unwrap_or_default().trim());
    let example = example(table, key).map(|line| format!("; for example, {line}"));
    format!("{} = {value}: {message}{}", path(key), example.unwrap_or_default())
}

/// The name of the table that is open at the end of a text.
fn table_of(text: &str) -> Option<&str> {
    let heads = text.lines().rev().map(str::trim).find(|line| line.starts_with('['))?;
    heads.trim_start_matches('[').split(']').next()
}

/// The key that is not known, and those that are.
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let mut quoted = message.strip_prefix("unknown field ")?.split('`').skip(1).step_by(2);
    Some((quoted.next()?, quoted.collect()))
}

/// The line of the example with a key.
fn example(table: Option<&str>, key: &str) -> Option<&'static str> {
    let mut open = None;
    for line in EXAMPLE.lines().map(|line| line.strip_prefix("#: ").unwrap_or(line)) {
        if let Some(name) = line.strip_prefix('[') {
            open = name.split(']').next();
        } else if open == table && line.split_once('=').is_some_and(|(name, _)| name.trim() == key) {
            return Some(line);
        }
    }
    None
}

/// How many letters have to be changed, left out or put in to make one word of another.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let least = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], least);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::explain;

    #[test]
    fn an_error_that_is_nowhere_is_about_no_key() {
        let text = "max_jobs = 3\nmax_clients = 4\n";
        assert_eq!(explain(text, None, "too much"), "too much");
        assert_eq!(
            explain(text, Some(13), "too much"),
            "line 2: max_clients = 4: too much; for example, max_clients = 1024"
        );
    }
}
