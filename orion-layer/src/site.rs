//! Where in the program a collective call stands.
use std::cmp::Ordering;
use std::fmt;
use std::panic::Location;

/// A call site: every collective call carries its own, so that replicas that diverge can be told where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The source file.
    pub file: &'static str,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl Site {
    /// The place of the caller of the function that calls this (with `#[track_caller]`).
    #[track_caller]
    pub fn here() -> Site {
        let place = Location::caller();
        Site { file: place.file(), line: place.line(), column: place.column() }
    }
}

/// Orders loops as the program's source does, by names that end with a line and a column; those that do not, by name.
pub(crate) fn by_place(a: &str, b: &str) -> Ordering {
    fn place(name: &str) -> Option<(&str, u32, u32)> {
        let (rest, column) = name.rsplit_once(':')?;
        let (file, line) = rest.rsplit_once(':')?;
        Some((file, line.parse().ok()?, column.parse().ok()?))
    }
    place(a).cmp(&place(b)).then_with(|| a.cmp(b))
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_100_comes_after_line_99() {
        let mut names = ["b.rs:1:1", "a.rs:100:5", "a.rs:99:17", "a.rs:99:5", "by hand"];
        names.sort_by(|a, b| by_place(a, b));
        assert_eq!(names, ["by hand", "a.rs:99:5", "a.rs:99:17", "a.rs:100:5", "b.rs:1:1"]);
    }
}
