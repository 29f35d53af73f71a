//! Lines of columns: indices, then a value.
use super::{Field, LineError, Parsed, field};

/// The text between columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// Any number of spaces and tabs.
    Whitespace,
    /// This text; spaces beside it belong to the columns of `Field`s of text and are ignored in numbers.
    Text(&'static str),
}

/// How the lines of a file are divided into `N` indices and a value.
///
/// Empty lines are passed over. Everything else that is not as described is an error.
///
/// ```
/// use hectare_data::text::{Columns, Separator};
/// // `userId,movieId,rating,timestamp`, with ids from 1.
/// let parser = Columns { first_index: 1, more_columns: true, ..Columns::CSV }.parser::<f32, 2>();
/// assert_eq!(parser("userId,movieId,rating,timestamp", 0), Ok(None));
/// assert_eq!(parser("1,307,3.5,1256677221", 32), Ok(Some(([0, 306], 3.5))));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The text between columns.
    pub separator: Separator,
    /// The first index of the file: 0 or 1, say. It is taken off.
    pub first_index: usize,
    /// Whether the first line of the file is passed over if no column of it begins like a number.
    pub header: bool,
    /// Whether there may be more columns behind the value, which are ignored.
    pub more_columns: bool,
    /// Lines that begin with this character are passed over.
    pub comment: Option<u8>,
}

impl Columns {
    /// Columns between spaces and tabs, indices from 0, comments after `#`.
    pub const WHITESPACE: Columns = Columns {
        separator: Separator::Whitespace,
        first_index: 0,
        header: false,
        more_columns: false,
        comment: Some(b'#'),
    };
    /// Columns between commas, indices from 0, perhaps a header. Quotes are not understood.
    pub const CSV: Columns =
        Columns { separator: Separator::Text(","), header: true, comment: None, ..Columns::WHITESPACE };
    /// Columns between single tabs, indices from 0, perhaps a header.
    pub const TSV: Columns = Columns { separator: Separator::Text("\t"), ..Columns::CSV };
    /// MovieLens: `user::item::rating::time`, ids from 1.
    pub const MOVIELENS: Columns = Columns {
        separator: Separator::Text("::"),
        first_index: 1,
        header: false,
        more_columns: true,
        comment: None,
    };

    /// The parser of such lines.
    pub fn parser<T: Field, const N: usize>(self) -> impl Fn(&str, usize) -> Parsed<T, N> {
        move |line, offset| self.parse(line, offset)
    }

    #[inline]
    fn parse<T: Field, const N: usize>(&self, line: &str, offset: usize) -> Parsed<T, N> {
        if line.trim_ascii().is_empty() || self.comment.is_some_and(|comment| line.as_bytes()[0] == comment) {
            return Ok(None);
        }
        let parsed = match self.separator {
            Separator::Whitespace => {
                self.entry(line.as_bytes().split_blank().map(|range| &line[range]), line)
            }
            Separator::Text(text) if text.len() == 1 => {
                self.entry(line.split(char::from(text.as_bytes()[0])).map(str::trim_ascii), line)
            }
            Separator::Text(text) => self.entry(line.split(text).map(str::trim_ascii), line),
        };
        parsed.map(Some).or_else(|what| {
            // Offset 3 is the beginning behind a byte order mark.
            let first_line = offset == 0 || offset == 3;
            match self.header && first_line && self.is_header(line) {
                true if has_row_numbers(line, self.separator) => Err(LineError::NoName),
                true => Ok(None),
                false => Err(what),
            }
        })
    }

    fn is_header(&self, line: &str) -> bool {
        let is_name = |column: &str| {
            let first = column.trim_ascii().bytes().next();
            first.is_none_or(|byte| !byte.is_ascii_digit() && !b"+-.".contains(&byte))
        };
        match self.separator {
            Separator::Whitespace => line.split_ascii_whitespace().all(is_name),
            Separator::Text(text) => line.split(text).all(is_name),
        }
    }

    #[inline]
    fn entry<'a, T: Field, const N: usize>(
        &self,
        mut columns: impl Iterator<Item = &'a str>,
        line: &str,
    ) -> Result<([usize; N], T), LineError> {
        let expected =
            || LineError::Columns { indices: N, more: self.more_columns, found: shorten(line).into() };
        let mut key = [0; N];
        for index in &mut key {
            let text = columns.next().ok_or_else(expected)?;
            *index = field::index(text)?.checked_sub(self.first_index).ok_or_else(|| {
                LineError::BeforeFirst { what: "indices", first: self.first_index, found: text.into() }
            })?;
        }
        let value = T::parse(columns.next().ok_or_else(expected)?)?;
        if !self.more_columns && columns.next().is_some() {
            return Err(expected());
        }
        Ok((key, value))
    }
}

/// Whether the first column of a header has no name.
fn has_row_numbers(header: &str, separator: Separator) -> bool {
    let Separator::Text(text) = separator else { return false };
    is_unnamed(header.split(text).next().unwrap_or_default())
}

/// Whether a name in the header of a table stands for a column without one: it is empty, or what pandas calls it. If the first column has
/// none, it most often has the numbers of the rows ([`LineError::NoName`]).
///
/// ```
/// use hectare_data::text::is_unnamed;
/// assert!(is_unnamed("") && is_unnamed(" \"Unnamed: 0\"") && !is_unnamed("user"));
/// ```
pub fn is_unnamed(name: &str) -> bool {
    ["", "Unnamed: 0"].contains(&name.trim_ascii().trim_matches('"'))
}

/// The beginning of a line, for errors.
pub(super) fn shorten(line: &str) -> &str {
    &line[..line.floor_char_boundary(60)]
}

/// Splits at runs of spaces and tabs.
trait SplitBlank {
    fn split_blank(&self) -> impl Iterator<Item = std::ops::Range<usize>>;
}

impl SplitBlank for [u8] {
    #[inline]
    fn split_blank(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let blank = |byte: u8| byte == b' ' || byte == b'\t';
        let mut at = 0;
        std::iter::from_fn(move || {
            while at < self.len() && blank(self[at]) {
                at += 1;
            }
            let start = at;
            while at < self.len() && !blank(self[at]) {
                at += 1;
            }
            (start < at).then_some(start..at)
        })
    }
}

/// The parser of lines `i j value` between spaces or tabs, indices from 0, comments after `#`.
///
/// # Errors
/// [`LineError`].
#[inline]
pub fn whitespace<T: Field, const N: usize>(line: &str, offset: usize) -> Parsed<T, N> {
    Columns::WHITESPACE.parse(line, offset)
}

/// The parser of lines `i,j,value`, indices from 0; the first line may be a header.
///
/// # Errors
/// [`LineError`].
#[inline]
pub fn csv<T: Field, const N: usize>(line: &str, offset: usize) -> Parsed<T, N> {
    Columns::CSV.parse(line, offset)
}

/// The parser of lines of `i`, `j` and a value between tabs, indices from 0; the first line may be a header.
///
/// # Errors
/// [`LineError`].
#[inline]
pub fn tsv<T: Field, const N: usize>(line: &str, offset: usize) -> Parsed<T, N> {
    Columns::TSV.parse(line, offset)
}

/// The parser of lines `user::item::rating::time`, as in MovieLens-1M and -10M. Ids begin at 1 there, indices at
/// 0 here: user 1 is row 0. The time is left out.
///
/// # Errors
/// [`LineError`].
#[inline]
pub fn movielens(line: &str, offset: usize) -> Parsed<f32, 2> {
    Columns::MOVIELENS.parse(line, offset)
}
