//! The forms in which elements are written out.
use anyhow::{Result, bail};
use clap::ValueEnum;
use hectare_dsm::{AreaBytes, bytemuck};
use serde_json::{Value, json};
use std::fmt::{Display, Write};

/// How an area is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// One row per line, with commas between elements.
    Csv,
    /// A NumPy file; two-dimensional if the area has rows of more than one element.
    Npy,
    /// The bytes in hexadecimal, 32 per line: also for elements that are not numbers.
    Hex,
    /// A JSON array.
    Json,
}

/// Calls a function of the element type that an area has, if that is a number.
macro_rules! by_type {
    ($area:expr, $read:expr, $call:ident($($argument:expr),*)) => {
        match $read.element.split(' ').next().unwrap_or_default() {
            "u8" => $call::<u8>($($argument),*),
            "u16" => $call::<u16>($($argument),*),
            "u32" => $call::<u32>($($argument),*),
            "u64" => $call::<u64>($($argument),*),
            "u128" => $call::<u128>($($argument),*),
            "i8" => $call::<i8>($($argument),*),
            "i16" => $call::<i16>($($argument),*),
            "i32" => $call::<i32>($($argument),*),
            "i64" => $call::<i64>($($argument),*),
            "i128" => $call::<i128>($($argument),*),
            "f32" => $call::<f32>($($argument),*),
            "f64" => $call::<f64>($($argument),*),
            _ => bail!("area {:?} holds elements of {}: only --format hex writes those", $area, $read.element),
        }
    };
}

/// The elements in a form.
pub(super) fn written(form: Form, area: &str, read: &AreaBytes) -> Result<Vec<u8>> {
    match form {
        Form::Hex => Ok(hex(&read.bytes)),
        Form::Csv => by_type!(area, read, csv(read)),
        Form::Npy => npy(area, read),
        Form::Json => Ok(format!("{}\n", by_type!(area, read, array(read))?).into_bytes()),
    }
}

/// The elements with what they are of.
pub(super) fn object(job: &str, area: &str, read: &AreaBytes) -> Result<Value> {
    Ok(json!({
        "job": job,
        "area": area,
        "element": read.element.split(' ').next(),
        "len": read.len,
        "row": read.row,
        "version": { "term": read.version.term, "counter": read.version.counter },
        "first": read.range.start,
        "values": by_type!(area, read, array(read))?,
    }))
}

/// Elements a line: rows, if the range is of whole ones.
fn row(read: &AreaBytes) -> usize {
    let whole = read.range.start.is_multiple_of(read.row) && read.range.len().is_multiple_of(read.row);
    if whole { read.row.max(1) } else { 1 }
}

fn values<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

fn csv<T: bytemuck::Pod + Display>(read: &AreaBytes) -> Result<Vec<u8>> {
    let values: Vec<T> = values(&read.bytes);
    let mut text = String::new();
    for line in values.chunks(row(read)) {
        for (index, value) in line.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(text, "{comma}{value}")?;
        }
        text.push('\n');
    }
    Ok(text.into_bytes())
}

fn array<T: bytemuck::Pod + Display + serde::Serialize>(read: &AreaBytes) -> Result<Value> {
    // By their digits: as a `Value`, an `f32` would have those of the `f64` that it is widened to. Numbers of 128
    // bits have more than JSON readers keep, and are strings.
    let json = |value: T| match size_of::<T>() {
        16 => Ok(Value::String(value.to_string())),
        _ => serde_json::from_str(&serde_json::to_string(&value)?),
    };
    Ok(values::<T>(&read.bytes).into_iter().map(json).collect::<Result<_, serde_json::Error>>()?)
}

fn hex(bytes: &[u8]) -> Vec<u8> {
    let mut text = String::new();
    for line in bytes.chunks(32) {
        for byte in line {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text.into_bytes()
}

fn npy(area: &str, read: &AreaBytes) -> Result<Vec<u8>> {
    const { assert!(cfg!(target_endian = "little"), "the types below say so") };
    let kind = match read.element.split(' ').next().unwrap_or_default() {
        "u8" => "|u1",
        "u16" => "<u2",
        "u32" => "<u4",
        "u64" => "<u8",
        "i8" => "|i1",
        "i16" => "<i2",
        "i32" => "<i4",
        "i64" => "<i8",
        "f32" => "<f4",
        "f64" => "<f8",
        other => {
            bail!("area {area:?} holds elements of {other}, which NumPy has no type for: use --format hex")
        }
    };
    let mut file = npy_header(kind, read.range.len(), row(read));
    file.extend(&read.bytes);
    Ok(file)
}

/// The header of format 1.0 (NumPy Enhancement Proposal 1): its length makes the data begin at a multiple of
/// 64 bytes.
fn npy_header(kind: &str, len: usize, row: usize) -> Vec<u8> {
    let shape = if row > 1 { format!("({}, {row})", len / row) } else { format!("({len},)") };
    let mut about = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let before = 10 + about.len() + 1;
    about.push_str(&" ".repeat(before.next_multiple_of(64) - before));
    about.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((about.len() as u16).to_le_bytes());
    header.extend(about.as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[f32], row: usize, range: std::ops::Range<usize>) -> AreaBytes {
        let job = hectare_dsm::Job::builder().reserve(1 << 20).embedded().unwrap();
        let mut worker = job.worker().unwrap();
        let spec = hectare_dsm::AreaSpec::new("a").row(row);
        let mut area = worker.create::<f32>(spec, values.len()).unwrap();
        area.write(&worker).unwrap().as_mut_slice().copy_from_slice(values);
        worker.sync().unwrap();
        job.observer().unwrap().read_bytes("a", Some(range)).unwrap()
    }

    #[test]
    fn npy_headers_are_aligned_and_say_their_shape() {
        for (len, row, shape) in [(0, 1, "(0,)"), (7, 1, "(7,)"), (123_456_789, 9, "(13717421, 9)")] {
            let header = npy_header("<f4", len, row);
            assert_eq!(header.len() % 64, 0);
            assert_eq!(u16::from_le_bytes([header[8], header[9]]) as usize, header.len() - 10);
            let text = String::from_utf8_lossy(&header[10..]).into_owned();
            assert!(text.contains(&format!("'shape': {shape},")) && text.ends_with('\n'), "{text}");
        }
    }

    #[test]
    fn rows_are_lines_where_they_are_whole() {
        let values = [1.0, 2.5, -3.0, 4.0, 5.0, 6.0];
        let text =
            |range| String::from_utf8(written(Form::Csv, "a", &read(&values, 3, range)).unwrap()).unwrap();
        assert_eq!(text(0..6), "1,2.5,-3\n4,5,6\n");
        assert_eq!(text(3..6), "4,5,6\n");
        assert_eq!(text(1..3), "2.5\n-3\n");
        assert_eq!(text(2..2), "");
        let file = written(Form::Npy, "a", &read(&values, 3, 3..6)).unwrap();
        assert!(String::from_utf8_lossy(&file).contains("'shape': (1, 3)"));
        assert_eq!(file[file.len() - 12..], bytemuck::cast::<[f32; 3], [u8; 12]>([4.0, 5.0, 6.0]));
        let object = object("j", "a", &read(&values, 3, 4..6)).unwrap();
        assert_eq!((&object["first"], &object["values"]), (&4.into(), &json!([5.0, 6.0])));
        assert_eq!(object["version"]["counter"], 1);
        let tenth = written(Form::Json, "a", &read(&[0.1], 1, 0..1)).unwrap();
        assert_eq!(tenth, b"[0.1]\n");
    }
}
