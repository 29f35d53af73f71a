//! Parts of the texts of errors that depend on what is known.
use super::Rank;
use std::ops::Range;
use std::time::Duration;

/// " of host H", if something is of another host.
pub(super) fn of_host(host: &Option<String>) -> String {
    host.as_ref().map_or_else(String::new, |host| format!(" of host {host}"))
}

/// The part of a message on the worker there that has failed.
pub(super) fn has_failed(rank: Option<Rank>) -> String {
    rank.map_or_else(String::new, |rank| format!(" (worker {rank} there has failed)"))
}

/// The part of a message on the lines that were found beside those of `bytes`.
pub(super) fn more_lines(bytes: &Range<usize>, lines: usize) -> String {
    match lines.saturating_sub(bytes.len().div_ceil(64)) {
        0 => String::new(),
        more => format!(", nor what is in {more} more lines of 64 bytes"),
    }
}

/// A duration as people say it: two significant digits below ten, whole numbers above.
pub(super) fn rounded(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    let (value, unit) = match seconds {
        0.0 => (0.0, "s"),
        ..0.000_999_5 => (seconds * 1e6, "us"),
        ..0.999_5 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    // One digit behind the point below ten; 2.0 is 2.
    let value = if value < 9.95 { (value * 10.0).round() / 10.0 } else { value.round() };
    format!("{value} {unit}")
}

/// The panics of all workers in one line.
pub(super) fn panics_text(panics: &[(Rank, String)]) -> String {
    let each: Vec<String> =
        panics.iter().map(|(rank, text)| format!("worker {rank} panicked: {text}")).collect();
    each.join("; ")
}
