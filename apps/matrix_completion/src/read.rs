//! Ratings from text files: `user item rating`, and whatever follows on the line is ignored (a time, mostly).
//!
//! Which character separates the columns, and whether there is a header, is found by looking at the first lines,
//! so MovieLens' `::`, CSV, TSV and columns between spaces all work without an option.

use super::data::RawRating;
use anyhow::{Context, Result, bail, ensure};
use std::fmt;
use std::path::Path;

/// How many lines are looked at to find the separator.
const LINES_TO_LOOK_AT: usize = 10;

/// The separator of two columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// `::`, as in MovieLens 1M and 10M.
    DoubleColon,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// A tab, as in MovieLens 100K.
    Tab,
    /// Any run of spaces and tabs.
    Spaces,
}

/// Reads all ratings of a file.
///
/// # Errors
/// Each names the file, the line if there is one, and what is wrong with it.
pub fn read(path: &Path) -> Result<Vec<RawRating>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => {
            let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            bail!("{}:{line}: this is not text in UTF-8", path.display());
        }
    };
    parse(text).with_context(|| path.display().to_string())
}

/// Reads all ratings of a text.
///
/// # Errors
/// As [`read`], without the file's name.
pub fn parse(text: &str) -> Result<Vec<RawRating>> {
    let lines = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    if let Some((number, _)) = lines().find(|(_, line)| line.trim_end().contains('\r')) {
        bail!(
            "line {}: a carriage return without a line feed does not end a line: convert it (tr '\\r' '\\n')",
            number + 1
        );
    }
    let separator = Separator::find(lines().map(|(_, line)| line));
    let first = lines().next().map_or("", |(_, line)| line);
    let header = usize::from(separator.is_header(first));
    if header > 0
        && separator.columns(first).is_ok_and(|[name, ..]| ["", "Unnamed: 0"].contains(&unquote(name)))
    {
        bail!(
            "line 1: the first column has no name, as if it were the numbers of the rows: write the file without them (pandas: \
             `index=False`), or give the column a name"
        );
    }

    let mut ratings = Vec::with_capacity(text.len() / 12);
    for (number, line) in lines().skip(header) {
        ratings.push(separator.parse(line).map_err(|error| anyhow::anyhow!("line {}: {error}", number + 1))?);
    }
    ensure!(!ratings.is_empty(), "there are no ratings in it");
    Ok(ratings)
}

impl Separator {
    /// The separator that cuts most of the first lines into three columns, so that an error will be about the line that is wrong; if none
    /// cuts any, the one that makes most columns.
    fn find<'a>(lines: impl Iterator<Item = &'a str>) -> Self {
        let lines: Vec<&str> = lines.take(LINES_TO_LOOK_AT).collect();
        let fitting = |separator: &Self| {
            let columns =
                || lines.iter().map(|line| separator.columns(line).map_or_else(|found| found, |_| 3));
            (columns().filter(|count| *count == 3).count(), columns().sum::<usize>())
        };
        // `max_by_key` returns the last of equals: the list goes from the most general to the most particular.
        [Self::Spaces, Self::Tab, Self::Semicolon, Self::Comma, Self::DoubleColon]
            .into_iter()
            .max_by_key(fitting)
            .unwrap_or(Self::Spaces)
    }

    /// The first three columns, or how many there are instead.
    fn columns(self, line: &str) -> Result<[&str; 3], usize> {
        fn first_three<'a>(mut columns: impl Iterator<Item = &'a str>) -> Result<[&'a str; 3], usize> {
            let mut found = [""; 3];
            for (count, column) in found.iter_mut().enumerate() {
                *column = columns.next().ok_or(count)?.trim();
            }
            Ok(found)
        }
        match self {
            Self::DoubleColon => first_three(line.split("::")),
            Self::Comma => first_three(line.split(',')),
            Self::Semicolon => first_three(line.split(';')),
            Self::Tab => first_three(line.split('\t')),
            Self::Spaces => first_three(line.split_ascii_whitespace()),
        }
    }

    /// Whether a first line names the columns: it has them, and none of them is a number.
    fn is_header(self, line: &str) -> bool {
        self.columns(line)
            .is_ok_and(|columns| columns.iter().all(|column| unquote(column).parse::<f64>().is_err()))
    }

    fn parse(self, line: &str) -> Result<RawRating, LineError> {
        let [user, item, value] =
            self.columns(line).map_err(|found| LineError::Columns { found, separator: self })?;
        let rating: f32 = unquote(value).parse().map_err(|_| LineError::NotARating(value.into()))?;
        if !rating.is_finite() {
            return Err(LineError::NotFinite(value.into()));
        }
        Ok(RawRating { user: id(user, "user")?, item: id(item, "item")?, value: rating })
    }
}

impl fmt::Display for Separator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DoubleColon => "'::'",
            Self::Comma => "','",
            Self::Semicolon => "';'",
            Self::Tab => "tabs",
            Self::Spaces => "spaces",
        })
    }
}

/// Some programs write every column of a CSV in quotes.
fn unquote(column: &str) -> &str {
    column.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(column)
}

fn id(column: &str, what: &'static str) -> Result<u64, LineError> {
    let number = unquote(column);
    number.parse().map_err(|_| {
        if number.starts_with('-') && number.parse::<i128>().is_ok() {
            LineError::NegativeId { what, id: number.into() }
        } else {
            LineError::NotAnId { what, id: column.into() }
        }
    })
}

/// Errors of a line.
enum LineError {
    Columns { found: usize, separator: Separator },
    NotAnId { what: &'static str, id: String },
    NegativeId { what: &'static str, id: String },
    NotARating(String),
    NotFinite(String),
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Columns { found, separator } => {
                write!(
                    f,
                    "expected user, item and rating between {separator}, found {}",
                    super::report::counted(*found, "column")
                )
            }
            Self::NotAnId { what, id } => write!(f, "the {what} id {id:?} is not a whole number of 64 bits"),
            Self::NegativeId { what, id } => write!(f, "the {what} id {id} is negative"),
            Self::NotARating(value) => write!(f, "the rating {value:?} is not a number"),
            Self::NotFinite(value) => write!(f, "the rating {value} is not finite"),
        }
    }
}
