//! Errors as programs say them.

/// An error and its causes in one line; a cause that the text before it has is not said again.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(|cause| cause.to_string()) {
        let cause = shorten(cause);
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

/// As much of an error is said. What is in a file may be longer: lines of it, that were found in place of others.
const MOST: usize = 800;

/// The beginning and the end of a long text.
fn shorten(text: String) -> String {
    if text.len() <= MOST {
        return text;
    }
    let (head, tail) = (text.floor_char_boundary(MOST / 2), text.ceil_char_boundary(text.len() - MOST / 4));
    format!("{} [... {} bytes ...] {}", &text[..head], tail - head, &text[tail..])
}
