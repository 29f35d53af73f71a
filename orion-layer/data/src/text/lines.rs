//! The lines of a share of a file, read in blocks.
use super::{LineError, TextError};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes read at a time: what fits into a core's second-level cache.
const BLOCK: usize = 256 << 10;

/// Part `part` of `of` about equally long parts of a file. Every line belongs to the part in which its first
/// byte lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// The number of this part, from 0.
    pub part: usize,
    /// The number of parts.
    pub of: usize,
}

impl Share {
    /// The whole file.
    pub const ALL: Share = Share { part: 0, of: 1 };

    /// The first byte of the share, or of the one behind it.
    fn bound(part: usize, of: usize, len: u64) -> u64 {
        (u128::from(len) * part as u128 / of as u128) as u64
    }
}

/// Calls `act` for every line of a share, in order, without its end (`\n` or `\r\n`), and with the byte of the
/// file at which it begins. A byte order mark at the beginning of the file is left out.
///
/// # Errors
/// [`TextError`]: reading failed, the file is not UTF-8, or what `act` said of a line.
///
/// # Panics
/// If there is no such share: `part` is not below `of`.
pub fn for_each_line(
    path: &Path,
    share: Share,
    mut act: impl FnMut(&str, usize) -> Result<(), LineError>,
) -> Result<(), TextError> {
    assert!(share.part < share.of, "part {} of {} of a file", share.part, share.of);
    let failed = |source| TextError::Read { path: path.to_owned(), source };
    // Before it is opened: a pipe is open only when somebody writes into it.
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(TextError::NotAFile { path: path.to_owned() });
    }
    let mut file = File::open(path).map_err(failed)?;
    let start = Share::bound(share.part, share.of, metadata.len());
    let mut end = Share::bound(share.part + 1, share.of, metadata.len());
    if start == end {
        return Ok(());
    }
    // The line that contains the byte before belongs to the share before, and ends where this share begins.
    let mut blocks = Blocks::new(&mut file, start.saturating_sub(1)).map_err(failed)?;
    let mut skipping = start > 0;
    while blocks.next().map_err(failed)? {
        let mut at = blocks.offset;
        let mut rest = blocks.lines();
        if skipping {
            let Some(newline) = rest.iter().position(|&byte| byte == b'\n') else { continue };
            rest = &rest[newline + 1..];
            at += newline as u64 + 1;
            skipping = false;
        }
        if at == 0 {
            let text = rest.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(rest);
            at = (rest.len() - text.len()) as u64;
            rest = text;
            // The first line begins with the mark, though what is read of it does not.
            end = end.max(at + 1);
        }
        // The text before an error of encoding is still parsed, since an error there comes first.
        let (text, valid) = match str::from_utf8(rest) {
            Ok(text) => (text, true),
            Err(error) => (str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default(), false),
        };
        let complete = if valid { text } else { &text[..text.rfind('\n').map_or(0, |newline| newline + 1)] };
        for line in complete.split_inclusive('\n') {
            if at >= end {
                return Ok(());
            }
            let content = line.strip_suffix('\n').unwrap_or(line);
            let content = content.strip_suffix('\r').unwrap_or(content);
            if let Err(what) = act(content, at as usize) {
                return Err(error_at(path, at, what));
            }
            at += line.len() as u64;
        }
        if !valid {
            if at >= end {
                return Ok(());
            }
            let byte = text.len() - complete.len() + 1;
            return Err(error_at(path, at, LineError::NotUtf8 { byte }));
        }
        if at >= end {
            return Ok(());
        }
    }
    Ok(())
}

/// Counts the lines before: only done when there is an error.
fn error_at(path: &Path, offset: u64, cause: LineError) -> TextError {
    match count_newlines(path, offset) {
        Ok(before) => TextError::Line { path: path.to_owned(), line: before + 1, source: cause },
        Err(source) => TextError::Read { path: path.to_owned(), source },
    }
}

fn count_newlines(path: &Path, end: u64) -> io::Result<u64> {
    let mut file = File::open(path)?.take(end);
    let mut block = vec![0; BLOCK];
    let mut count = 0;
    loop {
        match file.read(&mut block)? {
            0 => return Ok(count),
            len => count += block[..len].iter().filter(|&&byte| byte == b'\n').count() as u64,
        }
    }
}

/// Reads a file from some byte on in blocks of whole lines.
struct Blocks<'a> {
    file: &'a mut File,
    buffer: Vec<u8>,
    /// Bytes in the buffer.
    filled: usize,
    /// How much of it is whole lines.
    whole: usize,
    /// Where in the file the buffer begins.
    offset: u64,
}

impl<'a> Blocks<'a> {
    fn new(file: &'a mut File, offset: u64) -> io::Result<Blocks<'a>> {
        file.seek(SeekFrom::Start(offset))?;
        Ok(Blocks { file, buffer: vec![0; BLOCK], filled: 0, whole: 0, offset })
    }

    /// Whole lines; the last one of the file may have no end.
    fn lines(&self) -> &[u8] {
        &self.buffer[..self.whole]
    }

    /// Reads the next lines; false at the end of the file.
    fn next(&mut self) -> io::Result<bool> {
        self.buffer.copy_within(self.whole..self.filled, 0);
        self.offset += self.whole as u64;
        self.filled -= self.whole;
        self.whole = 0;
        let mut searched = self.filled;
        loop {
            if self.filled == self.buffer.len() {
                // A line that is longer than the buffer.
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            let read = match self.file.read(&mut self.buffer[self.filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            self.filled += read;
            if read == 0 {
                self.whole = self.filled;
                return Ok(self.whole > 0);
            }
            if let Some(newline) = self.buffer[searched..self.filled].iter().rposition(|&byte| byte == b'\n')
            {
                self.whole = searched + newline + 1;
                return Ok(true);
            }
            searched = self.filled;
        }
    }
}
