//! The header of a `.npy` file: a magic string, a version, a length, and a literal of Python's with the element
//! type, the order and the shape. After NumPy's description of the format (Kern, 2007), versions 1.0 to 3.0.

/// The first bytes of every file.
const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Bytes of magic string, version and the longest length.
pub const PREAMBLE: usize = 12;
/// The longest header that is read. NumPy's own limit is 10,000 unless told otherwise.
const LONGEST: usize = 1 << 20;
/// The most dimensions that NumPy has.
const MOST_DIMENSIONS: usize = 64;
/// Data begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// Why a file is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// It does not begin with the magic string.
    #[error("not an .npy file: it does not begin with \\x93NUMPY")]
    NotNpy,
    /// It ends within its header.
    #[error("cut off within its header")]
    CutOff,
    /// An unknown version of the format.
    #[error("format version {major}.{minor}: known are 1.0, 2.0 and 3.0")]
    Version {
        /// The major number.
        major: u8,
        /// The minor number.
        minor: u8,
    },
    /// A header of more than 1 MiB, which no program writes.
    #[error("a header of {len} bytes: {LONGEST} at most are read")]
    TooLong {
        /// Its length.
        len: usize,
    },
    /// An unknown key.
    #[error("its header has an unknown key {key:?}")]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A key that occurs twice.
    #[error("its header has the key {key:?} twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A key that is missing.
    #[error("its header has no key {key:?}")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// An unexpected token.
    #[error("byte {at} of its header: expected {expected}, found {found}")]
    Unexpected {
        /// The place of the error.
        at: usize,
        /// The expected token.
        expected: String,
        /// The text that is there.
        found: String,
    },
    /// A string that does not end.
    #[error("byte {at} of its header: a string without an end")]
    EndlessString {
        /// Where it begins.
        at: usize,
    },
    /// A string with an escape.
    #[error("byte {at} of its header: a string with a backslash")]
    Backslash {
        /// Where it begins.
        at: usize,
    },
    /// Elements of several fields.
    #[error("its elements are records of several fields, which are not supported")]
    Records,
    /// More dimensions than NumPy has.
    #[error("it has more than {MOST_DIMENSIONS} dimensions")]
    Dimensions,
    /// `(3)` in place of `(3,)`.
    #[error("its header's shape is a number, not a tuple")]
    ShapeIsNumber,
    /// An extent beyond `usize`.
    #[error("byte {at} of its header: the extent {extent} is too large")]
    ExtentTooLarge {
        /// The place of the error.
        at: usize,
        /// The extent.
        extent: String,
    },
}

/// A parsed header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The element type in NumPy's notation, such as `<f4`.
    pub descr: String,
    /// Whether the first index runs fastest.
    pub fortran_order: bool,
    /// The extents of the dimensions.
    pub shape: Vec<usize>,
}

/// The range of the header's text, by the first [`PREAMBLE`] bytes of the file (fewer if it is shorter).
///
/// # Errors
/// [`NpyError`].
pub fn text_range(preamble: &[u8]) -> Result<std::ops::Range<usize>, NpyError> {
    if !preamble.starts_with(MAGIC) {
        return Err(NpyError::NotNpy);
    }
    let length = |bytes: &[u8]| bytes.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
    let (start, len) = match *preamble {
        [_, _, _, _, _, _, 1, 0, a, b, ..] => (10, length(&[a, b])),
        [_, _, _, _, _, _, 2 | 3, 0, a, b, c, d] => (12, length(&[a, b, c, d])),
        [_, _, _, _, _, _, 1..=3, 0, ..] => return Err(NpyError::CutOff),
        [_, _, _, _, _, _, major, minor, ..] => {
            return Err(NpyError::Version { major, minor });
        }
        _ => return Err(NpyError::CutOff),
    };
    if len > LONGEST {
        return Err(NpyError::TooLong { len });
    }
    Ok(start..start + len)
}

impl Header {
    /// Reads the header's text.
    ///
    /// # Errors
    /// [`NpyError`].
    pub fn parse(text: &[u8]) -> Result<Header, NpyError> {
        let (mut descr, mut fortran_order, mut shape) = (None, None, None);
        let mut rest = Literal { text, at: 0 };
        rest.expect(b'{')?;
        while !rest.skip(b'}') {
            let key = rest.string()?;
            rest.expect(b':')?;
            let twice = match key.as_str() {
                "descr" => descr.replace(rest.element_type()?).is_some(),
                "fortran_order" => fortran_order.replace(rest.boolean()?).is_some(),
                "shape" => shape.replace(rest.shape()?).is_some(),
                _ => return Err(NpyError::UnknownKey { key }),
            };
            if twice {
                return Err(NpyError::DuplicateKey { key });
            }
            if !rest.skip(b',') {
                rest.expect(b'}')?;
                break;
            }
        }
        if let Some(byte) = rest.peek() {
            return Err(rest.unexpected("the end", Some(byte)));
        }
        let missing = |key| NpyError::MissingKey { key };
        Ok(Header {
            descr: descr.ok_or_else(|| missing("descr"))?,
            fortran_order: fortran_order.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
        })
    }

    /// All bytes of a file before its data, as version 1.0 if the length allows.
    pub fn to_bytes(&self) -> Vec<u8> {
        let extents: String = self.shape.iter().map(|extent| format!("{extent}, ")).collect();
        let extents = if self.shape.len() == 1 { extents.trim_end() } else { extents.trim_end_matches(", ") };
        let order = if self.fortran_order { "True" } else { "False" };
        let mut text =
            format!("{{'descr': '{}', 'fortran_order': {order}, 'shape': ({extents}), }}", self.descr);
        let pad = |start: usize| (start + text.len() + 1).next_multiple_of(ALIGNMENT) - start;
        let (version, start, len) = match pad(10) {
            len if len <= usize::from(u16::MAX) => (1, 10, len),
            _ => (2, 12, pad(12)),
        };
        text.extend(std::iter::repeat_n(' ', len - 1 - text.len()));
        text.push('\n');
        let mut bytes = [MAGIC.as_slice(), &[version, 0], &len.to_le_bytes()[..start - 8]].concat();
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }
}

/// A literal of Python's, read from the left.
struct Literal<'a> {
    text: &'a [u8],
    at: usize,
}

impl Literal<'_> {
    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), NpyError> {
        match self.peek() {
            Some(found) if found == byte => {
                self.at += 1;
                Ok(())
            }
            found => Err(self.unexpected(&format!("{:?}", char::from(byte)), found)),
        }
    }

    fn unexpected(&self, expected: &str, found: Option<u8>) -> NpyError {
        let found = found.map_or("its end".into(), |byte| format!("{:?}", char::from(byte)));
        NpyError::Unexpected { at: self.at, expected: expected.into(), found }
    }

    fn string(&mut self) -> Result<String, NpyError> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            found => return Err(self.unexpected("a string", found)),
        };
        let rest = &self.text[self.at + 1..];
        let Some(len) = rest.iter().position(|&byte| byte == quote) else {
            return Err(NpyError::EndlessString { at: self.at });
        };
        if rest[..len].contains(&b'\\') {
            return Err(NpyError::Backslash { at: self.at });
        }
        self.at += len + 2;
        Ok(String::from_utf8_lossy(&rest[..len]).into_owned())
    }

    fn element_type(&mut self) -> Result<String, NpyError> {
        match self.peek() {
            Some(b'[' | b'(' | b'{') => Err(NpyError::Records),
            _ => self.string(),
        }
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        let found = self.peek();
        let rest = &self.text[self.at..];
        let (value, len) = match rest {
            [b'T', b'r', b'u', b'e', ..] => (true, 4),
            [b'F', b'a', b'l', b's', b'e', ..] => (false, 5),
            _ => return Err(self.unexpected("True or False", found)),
        };
        self.at += len;
        Ok(value)
    }

    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        self.expect(b'(')?;
        let mut shape = Vec::new();
        while !self.skip(b')') {
            if shape.len() == MOST_DIMENSIONS {
                return Err(NpyError::Dimensions);
            }
            shape.push(self.extent()?);
            if !self.skip(b',') {
                self.expect(b')')?;
                // `(3)` is a number, not a tuple.
                if shape.len() == 1 {
                    return Err(NpyError::ShapeIsNumber);
                }
                break;
            }
        }
        Ok(shape)
    }

    /// A whole number; Python 2 wrote an `L` behind it.
    fn extent(&mut self) -> Result<usize, NpyError> {
        let found = self.peek();
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Err(self.unexpected("an extent", found));
        }
        let text = &self.text[self.at..self.at + digits];
        let value = text
            .iter()
            .try_fold(0usize, |value, digit| value.checked_mul(10)?.checked_add(usize::from(digit - b'0')));
        let extent = || String::from_utf8_lossy(text).into_owned();
        let value = value.ok_or_else(|| NpyError::ExtentTooLarge { at: self.at, extent: extent() })?;
        self.at += digits;
        self.at += usize::from(self.text.get(self.at) == Some(&b'L'));
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
