//! Where in the program a collective call stands.
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

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
