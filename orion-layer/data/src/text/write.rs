//! Arrays to text: what [`whitespace`](super::whitespace) reads.
use crate::entries::Entry;
use std::fmt::Display;
use std::io::{self, Write};

/// Writes `i j value` per entry. Floats are written with as many digits as it takes to read back the same bits.
///
/// # Errors
/// Errors of `out`.
pub fn write_entries<T: Display, const N: usize>(
    out: &mut impl Write,
    entries: &[Entry<T, N>],
) -> io::Result<()> {
    for entry in entries {
        entry.key.iter().try_for_each(|index| write!(out, "{index} "))?;
        writeln!(out, "{}", entry.value)?;
    }
    Ok(())
}

/// Writes rows of `columns` elements, a space between two elements and a line per row.
///
/// # Errors
/// Errors of `out`.
///
/// # Panics
/// If the elements are not whole rows.
pub fn write_rows<T: Display>(out: &mut impl Write, elements: &[T], columns: usize) -> io::Result<()> {
    if elements.is_empty() {
        return Ok(());
    }
    assert!(
        columns > 0 && elements.len().is_multiple_of(columns),
        "{} elements in rows of {columns}",
        elements.len()
    );
    for row in elements.chunks_exact(columns) {
        write!(out, "{}", row[0])?;
        row[1..].iter().try_for_each(|element| write!(out, " {element}"))?;
        writeln!(out)?;
    }
    Ok(())
}
