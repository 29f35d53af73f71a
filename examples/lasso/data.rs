//! The rows to learn from and those to test with, checked.
use super::columns::Columns;
use super::model::Model;
use super::options::Options;
use hectare::orion::array::random::Stream;
use hectare::orion::{Error, Result};
use hectare_data::text::{LabelledRow, LineError, Share, libsvm, read_rows};
use std::path::Path;

/// The most features: array indices of 32 bits reach farther, memory seldom does.
const MOST: usize = (1 << 31) - 2;
/// Neighbouring features of generated rows that are correlated by about a half; one in each such group matters.
const GROUP: usize = 10;
const MATTERS: usize = 100;

/// Columns to learn from, and rows to test with.
#[derive(Debug)]
pub(crate) struct Data {
    pub(crate) columns: Columns,
    pub(crate) targets: Vec<f64>,
    pub(crate) test: Vec<LabelledRow>,
}

/// Generated row `number`: dense, of correlated features, of which few matter.
fn planted(features: usize, number: usize) -> LabelledRow {
    let stream = Stream::new(23, "lasso").child(number as u64);
    let (own, shared) = (stream.child(0), stream.child(1));
    let feature = |k: u64| (0.71 * own.normal(k) + 0.7 * shared.normal(k / GROUP as u64)) as f32;
    let features: Vec<_> = (0..features as u32).map(|k| (k, feature(u64::from(k)))).collect();
    let weights = Stream::new(23, "lasso's weights");
    let matters = features.iter().step_by(MATTERS);
    let signal: f64 = matters.map(|(k, x)| 2.0 * weights.normal(u64::from(*k)) * f64::from(*x)).sum();
    LabelledRow { label: (signal + stream.child(2).normal(0)) as f32, features }
}

/// The last feature of a row, from 1.
fn last(row: &LabelledRow) -> usize {
    row.features.last().map_or(0, |(feature, _)| *feature as usize + 1)
}

/// The rows of a file, of as many features as are `known`, if that is said.
fn rows_of(file: &Path, known: Option<usize>) -> Result<Vec<LabelledRow>> {
    let parse = |line: &str, offset: usize| {
        let row = libsvm(line, offset)?;
        let last = row.as_ref().map_or(0, last);
        match known.filter(|known| last > *known) {
            Some(known) => Err(LineError::from(format!(
                "feature {last}, and there are {known}: take a file with the features that are learned from"
            ))),
            None => Ok(row),
        }
    };
    let rows = read_rows(file, Share::ALL, parse)?;
    match rows.is_empty() {
        true => Err(Error::Invalid(format!("{} has no rows", file.display()))),
        false => Ok(rows),
    }
}

impl Data {
    pub(crate) fn read(o: &Options) -> Result<Data> {
        let Some(file) = &o.data else {
            let row = |number| planted(o.features, number);
            let all: Vec<LabelledRow> = (0..o.rows).map(row).collect();
            let test = (o.rows..o.rows + o.rows.div_ceil(4)).map(row).collect();
            return Ok(Data::of(&all, o.features, test));
        };
        let all = rows_of(file, None)?;
        let features = all.iter().map(last).max().unwrap_or(0);
        if features == 0 || features > MOST {
            return Err(Error::Invalid(format!(
                "{} has {features} features: there have to be some, up to {MOST}, numbered without gaps",
                file.display()
            )));
        }
        let test = o.test.as_ref().map_or_else(|| Ok(all.clone()), |test| rows_of(test, Some(features)))?;
        Ok(Data::of(&all, features, test))
    }

    fn of(all: &[LabelledRow], features: usize, test: Vec<LabelledRow>) -> Data {
        let targets = all.iter().map(|row| f64::from(row.label)).collect();
        Data { columns: Columns::of(all, features), targets, test }
    }
}

/// The rows to test a model with.
pub(crate) fn to_predict(o: &Options, model: &Model) -> Result<Vec<LabelledRow>> {
    let file = o.test.as_ref().ok_or_else(|| Error::Invalid("--test: there is nothing to predict".into()))?;
    rows_of(file, Some(model.weights.len()))
}
