//! Rows from files: LIBSVM's format and CSV, whose zeros are left out.
use hectare::orion::array::text::{LabelledRow, LineError, libsvm};
use hectare::orion::{Error, Result};
use hectare_data::text::{Field, TextError, is_unnamed};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The header of a file: known before its rows are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Format {
    Libsvm,
    /// Numbers between commas.
    Csv {
        columns: usize,
        /// The column of the labels, from 0.
        label: usize,
        /// Bytes of the header, if there is one.
        header: Option<(usize, Vec<String>)>,
    },
}

/// Texts that stand for a missing value.
const MISSING: [&str; 6] = ["", "?", "na", "nan", "n/a", "null"];

fn is_missing(text: &str) -> bool {
    MISSING.iter().any(|missing| text.eq_ignore_ascii_case(missing))
}

impl Format {
    /// The format of a file, whose labels stand in column `label`, from 1.
    pub(crate) fn of(path: &Path, label: usize) -> Result<Format> {
        if path.extension().is_none_or(|extension| !extension.eq_ignore_ascii_case("csv")) {
            return Ok(Format::Libsvm);
        }
        let file = path.display();
        // Before it is opened: a pipe is open only when somebody writes into it, and each worker reads its share.
        if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(Error::Invalid(TextError::NotAFile { path: path.to_owned() }.to_string()));
        }
        let mut line = String::new();
        File::open(path)
            .and_then(|opened| BufReader::new(opened).read_line(&mut line))
            .map_err(|error| Error::Invalid(format!("cannot read {file}: {error}")))?;
        // A byte order mark is no part of the first name.
        let text = line.strip_prefix('\u{feff}').unwrap_or(&line);
        let names: Vec<String> =
            text.trim().split(',').map(|name| name.trim().trim_matches('"').to_owned()).collect();
        if label > names.len() {
            return Err(Error::Invalid(format!(
                "{file}:1: there are {} columns, and --label {label} is none of them",
                names.len()
            )));
        }
        if names.len() < 2 && !line.trim().is_empty() {
            return Err(Error::Invalid(format!(
                "{file}:1: there is one column, of labels, and no feature: is it .csv?"
            )));
        }
        let is_header = names.iter().any(|name| f32::parse(name).is_err() && !is_missing(name));
        // One that is not a number at all is a name, if others are names too; a single one is a slip.
        let is_header =
            is_header && names.iter().filter(|name| f32::parse(name).is_ok()).count() * 2 < names.len();
        if is_header && is_unnamed(&names[0]) {
            return Err(Error::Invalid(format!("{file}:1: {}", LineError::NoName)));
        }
        Ok(Format::Csv {
            columns: names.len(),
            label: label - 1,
            header: is_header.then_some((line.len(), names)),
        })
    }

    /// How many features rows have, if the format says.
    pub(crate) fn features(&self) -> Option<usize> {
        match self {
            Format::Libsvm => None,
            Format::Csv { columns, .. } => Some(columns - 1),
        }
    }

    /// The names of the features, if there are any.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        let Format::Csv { label, header: Some((_, names)), .. } = self else { return None };
        let mut names = names.clone();
        names.remove(*label);
        Some(names)
    }

    /// The row of a line, whose features are below `features`, if that is known.
    pub(crate) fn row(
        &self,
        line: &str,
        offset: usize,
        features: Option<usize>,
    ) -> std::result::Result<Option<LabelledRow>, LineError> {
        let (columns, label) = match self {
            Format::Libsvm => {
                let row = libsvm(line, offset).map_err(|error| match error {
                    LineError::NotFinite { found, .. } if is_missing(&found) => missing("a value", &found),
                    LineError::NotANumber { found } if is_missing(&found) => missing("a value", &found),
                    other => other,
                })?;
                return match row.as_ref().and_then(|row| row.features.last()).zip(features) {
                    Some(((last, _), most)) if *last as usize >= most => Err(LineError::from(format!(
                        "feature {}, and there are {most}: take a file with the features that are learned from, or say how \
                         many there are by --features when learning",
                        u64::from(*last) + 1
                    ))),
                    _ => Ok(row),
                };
            }
            Format::Csv { header: Some((length, _)), .. } if offset < *length => return Ok(None),
            Format::Csv { columns, label, .. } => (*columns, *label),
        };
        if line.trim().is_empty() {
            return Ok(None);
        }
        let mut row = LabelledRow { label: 0.0, features: Vec::new() };
        let mut found = 0;
        for (column, text) in line.split(',').map(str::trim).enumerate() {
            found += 1;
            if is_missing(text) {
                return Err(missing(&format!("column {}", column + 1), text));
            }
            let value = f32::parse(text).map_err(|error| {
                let what = if column == label { "the label, " } else { "" };
                LineError::from(format!("{what}column {}: {error}", column + 1))
            })?;
            if column == label {
                row.label = value;
            } else if value != 0.0 {
                row.features.push(((column - usize::from(column > label)) as u32, value));
            }
        }
        if found != columns {
            return Err(LineError::from(format!(
                "expected {columns} columns, as in the first line, found {found}"
            )));
        }
        Ok(Some(row))
    }
}

fn missing(what: &str, found: &str) -> LineError {
    LineError::from(format!(
        "{what} is missing ({found:?}), which is not supported: put in a number, as the mean of the column, or leave out the line"
    ))
}
