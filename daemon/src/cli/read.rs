//! Reading an area from outside: its newest published version, pinned while it is written out.
use super::output::print;
use crate::ask::open;
use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use hectare_dsm::bytemuck;
use hectare_dsm::{Element, Error, Job};
use hectare_wire::Connection;
use std::fmt::{Display, Write};

/// How an area is written out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// One element a line.
    Csv,
    /// A NumPy file.
    Npy,
    /// The bytes, 32 a line, in hexadecimal digits.
    Hex,
    /// A JSON array.
    Json,
}

/// What to read.
#[derive(Debug, Args)]
pub(super) struct Read {
    /// The job.
    job: String,
    /// The area.
    area: String,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Form::Csv)]
    form: Form,
    /// As JSON: the same as --form json.
    #[arg(long, conflicts_with = "form")]
    json: bool,
}

pub(super) fn read(connection: &Connection, what: &Read) -> Result<()> {
    let job = open(connection, &what.job)?;
    let areas = job.areas()?;
    let no_area = || anyhow!(Error::NoSuchArea { name: what.area.clone() });
    let info = areas.iter().find(|area| area.name == what.area).ok_or_else(no_area)?;
    let form = if what.json { Form::Json } else { what.form };
    let kind = info.element.split(' ').next().unwrap_or_default();
    match kind {
        "u8" => dump::<u8>(&job, &what.area, form, "|u1"),
        "u16" => dump::<u16>(&job, &what.area, form, "<u2"),
        "u32" => dump::<u32>(&job, &what.area, form, "<u4"),
        "u64" => dump::<u64>(&job, &what.area, form, "<u8"),
        "i8" => dump::<i8>(&job, &what.area, form, "|i1"),
        "i16" => dump::<i16>(&job, &what.area, form, "<i2"),
        "i32" => dump::<i32>(&job, &what.area, form, "<i4"),
        "i64" => dump::<i64>(&job, &what.area, form, "<i8"),
        "f32" => dump::<f32>(&job, &what.area, form, "<f4"),
        "f64" => dump::<f64>(&job, &what.area, form, "<f8"),
        other => {
            bail!("area {:?} holds elements of {other}: only numbers can be read from outside", what.area)
        }
    }
}

fn dump<T: Element + Display + serde::Serialize>(job: &Job, name: &str, form: Form, npy: &str) -> Result<()> {
    let (observer, area) = (job.observer()?, job.attach::<T>(name)?);
    let pinned = observer.read(&area)?;
    let values: &[T] = &pinned;
    match form {
        Form::Csv => {
            let mut text = String::new();
            for value in values {
                writeln!(text, "{value}")?;
            }
            print(text.as_bytes())
        }
        Form::Json => print(format!("{}\n", serde_json::to_string(values)?).as_bytes()),
        Form::Hex => {
            let mut text = String::new();
            for line in bytemuck::cast_slice::<T, u8>(values).chunks(32) {
                line.iter().try_for_each(|byte| write!(text, "{byte:02x}"))?;
                text.push('\n');
            }
            print(text.as_bytes())
        }
        Form::Npy => {
            print(&npy_header(npy, values.len()))?;
            print(bytemuck::cast_slice(values))
        }
    }
}

/// The header of format 1.0 (NumPy Enhancement Proposal 1): its length makes the data begin at a multiple of
/// 64 bytes.
fn npy_header(kind: &str, len: usize) -> Vec<u8> {
    let mut about = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({len},), }}");
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
    #[test]
    fn npy_headers_are_aligned_and_say_their_length() {
        for len in [0, 7, 123_456_789] {
            let header = super::npy_header("<f4", len);
            assert_eq!(header.len() % 64, 0);
            assert_eq!(u16::from_le_bytes([header[8], header[9]]) as usize, header.len() - 10);
            let text = String::from_utf8_lossy(&header[10..]).into_owned();
            assert!(text.contains(&format!("({len},)")) && text.ends_with('\n'), "{text}");
        }
    }
}
