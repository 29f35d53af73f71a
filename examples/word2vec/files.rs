//! Vectors in files, in the formats of word2vec (Mikolov et al., 2013), which most programs for vectors of words read.
//!
//! Both begin with a line `words dimension`. In the text format a line for each word follows, with its numbers; in the
//! binary one the word, a space, its numbers as floats of 32 bits (little-endian), and a line's end.
use super::{Options, begin, width};
use anyhow::{Context, Result, bail, ensure};
use hectare_data::new_file;
use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

/// Words and their vectors, one after the other, as a file has them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Vectors {
    pub(crate) words: Vec<String>,
    pub(crate) dimension: usize,
    pub(crate) numbers: Vec<f32>,
}

fn is_binary(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "bin")
}

/// Writes the vectors of all words, in the binary format if the name ends in `.bin`.
pub(crate) fn save(o: &Options, words: &[String], vectors: &[f32], path: &Path) -> Result<()> {
    let written = new_file::write_by(path, |out| {
        writeln!(out, "{} {}", words.len(), o.dimension)?;
        for (word, row) in words.iter().zip(vectors.chunks_exact(width(o))) {
            let row = &row[..o.dimension];
            out.write_all(word.as_bytes())?;
            if is_binary(path) {
                out.write_all(b" ")?;
                row.iter().try_for_each(|x| out.write_all(&x.to_le_bytes()))?;
            } else {
                // Shortest digits that are read as the same bits.
                row.iter().try_for_each(|x| write!(out, " {x}"))?;
            }
            out.write_all(b"\n")?;
        }
        Ok(())
    });
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Reads what [`save`], `word2vec.c` or gensim wrote.
pub(crate) fn read(path: &Path) -> Result<Vectors> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let parsed = if is_binary(path) { binary(&bytes) } else { text(&bytes) };
    parsed.with_context(|| path.display().to_string())
}

/// The vectors that a run begins with: those of the file, and random ones of words that it does not have.
pub(crate) fn begin_with(o: &Options, words: &[String], path: &Path) -> Result<Vec<f32>> {
    let (vectors, file) = (read(path)?, path.display());
    let (dimension, width) = (vectors.dimension, width(o));
    ensure!(
        dimension == o.dimension,
        "{file} has vectors of {dimension} numbers: say --dimension {dimension}"
    );
    let rows = vectors.words.iter().map(String::as_str).zip(vectors.numbers.chunks_exact(dimension));
    let known: HashMap<&str, &[f32]> = rows.collect();
    let (mut start, mut found) = (begin(o, words.len()), false);
    for (word, row) in words.iter().zip(start.chunks_exact_mut(width)) {
        if let Some(vector) = known.get(word.as_str()) {
            row[..dimension].copy_from_slice(vector);
            found = true;
        }
    }
    ensure!(found, "{file} has no word of the text");
    Ok(start)
}

/// Words and dimension, and what is behind the first line.
fn header(bytes: &[u8]) -> Result<([usize; 2], &[u8])> {
    let end = bytes.iter().take(100).position(|byte| *byte == b'\n');
    let line = end.and_then(|end| str::from_utf8(&bytes[..end]).ok()).unwrap_or_default();
    let parts: Vec<&str> = line.split_ascii_whitespace().collect();
    let numbers = match parts[..] {
        [words, dimension] => words.parse::<usize>().ok().zip(dimension.parse::<usize>().ok()),
        _ => None,
    };
    let Some((words, dimension)) = numbers else {
        bail!("the first line has to be the number of words and the dimension, as word2vec writes it")
    };
    // Each number has a byte at least.
    let fits = words.checked_mul(dimension).is_some_and(|count| count <= bytes.len());
    ensure!(fits && dimension > 0, "{words} vectors of {dimension} numbers are not in it: was it cut off?");
    Ok(([words, dimension], &bytes[end.map_or(0, |end| end + 1)..]))
}

fn text(bytes: &[u8]) -> Result<Vectors> {
    let ([count, dimension], rest) = header(bytes)?;
    let rest = str::from_utf8(rest).context("it is no text: name it .bin if it is binary")?;
    let (mut words, mut numbers) = (Vec::with_capacity(count), Vec::with_capacity(count * dimension));
    for (at, line) in (2..).zip(rest.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let mut parts = line.split_ascii_whitespace();
        words.push(parts.next().unwrap_or_default().to_owned());
        let before = numbers.len();
        for part in parts {
            let number = part.parse::<f32>().ok().filter(|number| number.is_finite());
            numbers.push(
                number.with_context(|| format!("line {at}: expected a finite number, found {part:?}"))?,
            );
        }
        let found = numbers.len() - before;
        ensure!(found == dimension, "line {at}: a vector of {found} numbers, not {dimension}");
    }
    let found = words.len();
    ensure!(found == count, "the first line tells of {count} words, and it has {found}: was it cut off?");
    Ok(Vectors { words, dimension, numbers })
}

fn binary(bytes: &[u8]) -> Result<Vectors> {
    let ([count, dimension], mut rest) = header(bytes)?;
    let (mut words, mut numbers) = (Vec::with_capacity(count), Vec::with_capacity(count * dimension));
    for number in 1..=count {
        let cut = || format!("it ends in vector {number} of {count}: was it cut off?");
        let space = rest.iter().position(|byte| *byte == b' ').with_context(cut)?;
        // gensim writes no line's end behind a vector.
        let word = rest[..space].strip_prefix(b"\n").unwrap_or(&rest[..space]);
        words.push(String::from_utf8_lossy(word).into_owned());
        let (row, behind) = rest[space + 1..].split_at_checked(4 * dimension).with_context(cut)?;
        numbers.extend(row.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        rest = behind;
    }
    let more = rest.strip_prefix(b"\n").unwrap_or(rest).len();
    ensure!(
        more == 0,
        "{more} bytes follow the last of {count} vectors: is it another format, or two files in one?"
    );
    ensure!(numbers.iter().all(|number| number.is_finite()), "a number is not finite");
    Ok(Vectors { words, dimension, numbers })
}
