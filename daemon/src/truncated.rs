//! Values in log lines: those that clients sent are cut to a length.
use std::fmt::{self, Debug, Display, Write};

/// The largest number of bytes of a value in the log.
const MOST: usize = 256;

/// Shows a value as `Debug` does, but no more than 256 bytes of it.
pub(crate) struct Truncated<T>(pub(crate) T);

impl<T: Debug> Display for Truncated<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = Rest { left: MOST, out: f };
        match write!(rest, "{:?}", self.0) {
            Err(fmt::Error) if rest.left == 0 => f.write_str("..."),
            other => other,
        }
    }
}

/// Fails when there is no room left, so that no more text is formatted.
struct Rest<'f, 'g> {
    left: usize,
    out: &'f mut fmt::Formatter<'g>,
}

impl Write for Rest<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let fits = text.floor_char_boundary(self.left);
        self.out.write_str(&text[..fits])?;
        if fits == text.len() {
            self.left -= fits;
            return Ok(());
        }
        self.left = 0;
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_cut_and_what_is_short_is_not() {
        assert_eq!(Truncated([1, 2]).to_string(), "[1, 2]");
        assert_eq!(Truncated("a".repeat(254)).to_string().len(), 256);
        let cut = Truncated("\u{e9}".repeat(10_000)).to_string();
        assert!(cut.len() <= MOST + 3 && cut.ends_with("\u{e9}..."), "{cut}");
        assert_eq!(Truncated(vec![1; 10_000]).to_string().len(), MOST + 3);
    }
}
