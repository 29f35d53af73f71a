//! Tables for people, JSON for machines.
use anyhow::Result;
use serde::Serialize;
use std::io::{ErrorKind, Write};

/// Prints to standard output; a reader that has had enough (`| head`) is no error.
pub(super) fn print(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("standard output cannot be written"))
        }
        _ => Ok(()),
    }
}

/// Prints a value as JSON in several lines.
pub(super) fn json(value: &impl Serialize) -> Result<()> {
    print(format!("{}\n", serde_json::to_string_pretty(value)?).as_bytes())
}

/// An error and its causes in one line; what says its cause itself is not followed by it.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(|cause| cause.to_string().replace('\n', " ")) {
        if line.is_empty() {
            line = cause;
        } else if !line.contains(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

/// Prints lines in columns as wide as they must be.
pub(super) fn table<const N: usize>(head: [&str; N], lines: Vec<[String; N]>) -> Result<()> {
    print(table_text(head, lines).as_bytes())
}

/// Lines in columns as wide as they must be; columns of numbers end together.
pub(super) fn table_text<const N: usize>(head: [&str; N], lines: Vec<[String; N]>) -> String {
    let is_number = |cell: &String| cell == "-" || cell.starts_with(|c: char| c.is_ascii_digit());
    let mut numbers = [true; N];
    for line in &lines {
        for (number, cell) in numbers.iter_mut().zip(line) {
            *number &= is_number(cell);
        }
    }
    let lines: Vec<[String; N]> = std::iter::once(head.map(str::to_owned)).chain(lines).collect();
    let mut widths = [0; N];
    for line in &lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(widths).zip(numbers).map(|((cell, width), number)| match number {
            true => format!("{cell:>width$}"),
            false => format!("{cell:width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A number of bytes in the unit that leaves up to four digits before the point.
pub(super) fn bytes(count: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let step = (0..units.len() - 1).find(|step| count >> (10 * step) < 1024).unwrap_or(units.len() - 1);
    if step == 0 {
        format!("{count} B")
    } else {
        format!("{:.1} {}", count as f64 / (1u64 << (10 * step)) as f64, units[step])
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_have_units() {
        let cases = [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 46, "64.0 TiB")];
        for (count, text) in cases {
            assert_eq!(super::bytes(count), text);
        }
    }
}
