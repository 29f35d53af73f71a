//! Examples: from files, or generated.
use super::Options;
use super::labels::{Found, Labels};
use super::model::Model;
use super::numbering::Numbering;
use super::planted::planted;
use hectare::SparseArray;
use hectare::orion::array::random::{Permutation, Stream};
use hectare::orion::{Context, Error, Result};
use hectare_data::text::{LabelledRow, LineError, Share, libsvm, read_rows};
use std::path::Path;

/// Of this many generated examples, one more is made to test with.
const TEST: usize = 10;

/// The most features: array indices of 32 bits reach farther, memory seldom does.
const MOST: usize = (1 << 31) - 2;

/// The examples to learn from and those to test with. Labels above 0 are positive.
pub(crate) struct Examples<R> {
    pub(crate) train: R,
    pub(crate) test: R,
    /// How many features there are.
    pub(crate) features: usize,
    /// The labels as the files have them.
    pub(crate) labels: Labels,
}

pub(crate) type Shared = Examples<SparseArray<LabelledRow, 1>>;

/// Examples of all workers. Collective.
pub(crate) fn parallel(w: &mut Context<'_>, o: &Options, model: Option<&Model>) -> Result<Shared> {
    let (train, test, labels) = match &o.data {
        Some(file) => {
            let (train, labels) = match model {
                Some(model) => (w.text_rows(file, signed(model.labels))?, model.labels),
                None => learned(w, file)?,
            };
            let test = w.text_rows(o.test.as_ref().unwrap_or(file), signed(labels))?;
            (train, test, labels)
        }
        None => {
            let count = o.rows / TEST;
            let test = w.entries([count], count, |k| ([k], planted(o.shape(), o.rows + k)))?;
            (w.entries([o.rows], o.rows, |k| ([k], planted(o.shape(), k)))?, test, Labels::SIGNS)
        }
    };
    let features = width(w, &[&train, &test], model)?;
    Ok(Examples { train: train.named("train"), test: test.named("test"), features, labels })
}

/// The examples to test with alone, and how many features there are. Collective.
pub(crate) fn tested(
    w: &mut Context<'_>,
    o: &Options,
    model: &Model,
) -> Result<(SparseArray<LabelledRow, 1>, usize)> {
    let test = match &o.test {
        Some(file) => w.text_rows(file, signed(model.labels))?,
        None => return Err(Error::Invalid("--test: there is nothing to predict".into())),
    };
    check(o, 1, test.len())?;
    let features = width(w, &[&test], Some(model))?;
    Ok((test.named("test"), features))
}

/// How many features the examples and the model have.
fn width(
    w: &mut Context<'_>,
    examples: &[&SparseArray<LabelledRow, 1>],
    model: Option<&Model>,
) -> Result<usize> {
    let mut most = model.map_or(0, |model| model.weights.len() as u64);
    for rows in examples {
        rows.for_each_local(|_, row| most = most.max(row.features.last().map_or(0, |(f, _)| *f as u64 + 1)));
    }
    checked(w.all_reduce(most, u64::max)? as usize)
}

/// Refuses what an index that is a hash, or a slip, leads to.
fn checked(features: usize) -> Result<usize> {
    if features > MOST {
        return Err(Error::Invalid(format!(
            "the examples have a feature {features}, and there is a weight for each up to the last: number features without \
             gaps (the greatest is {MOST})"
        )));
    }
    Ok(features)
}

/// The examples of a file to learn from, and their labels.
fn learned(w: &mut Context<'_>, file: &Path) -> Result<(SparseArray<LabelledRow, 1>, Labels)> {
    let rows = w.text_rows(file, libsvm)?;
    let mut found = Found::NONE;
    rows.for_each_local(|_, row| found.insert(row.label));
    let found =
        w.all_reduce(found.to_array(), |a, b| Found::from_array(a).and(Found::from_array(b)).to_array())?;
    let labels = Labels::of(file, Found::from_array(found))?;
    if labels.are_signs() {
        return Ok((rows, labels));
    }
    let sign = |label| if label == labels.positive { 1.0 } else { -1.0 };
    Ok((
        rows.map(w, |_, row| LabelledRow { label: sign(row.label), features: row.features.clone() })?,
        labels,
    ))
}

/// The parser of a file whose labels are known.
fn signed(labels: Labels) -> impl Fn(&str, usize) -> std::result::Result<Option<LabelledRow>, LineError> {
    move |line, offset| {
        let Some(mut row) = libsvm(line, offset)? else { return Ok(None) };
        row.label = labels.sign(row.label)?;
        Ok(Some(row))
    }
}

/// Refuses to learn from nothing, and to test with nothing.
pub(crate) fn check(o: &Options, learned: usize, tested: usize) -> Result<()> {
    let what = match (learned, tested, o.test.as_ref().or(o.data.as_ref())) {
        (0, ..) => "there are no examples to learn from".into(),
        (_, 0, Some(file)) => format!("{} has no examples to test with", file.display()),
        (_, 0, None) => format!("there are no examples to test with: take --rows {TEST}, or more"),
        _ => return Ok(()),
    };
    Err(Error::Invalid(what))
}

/// Examples for the serial twin: labels, and the features of all one after the other.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) labels: Vec<f32>,
    pub(crate) ends: Vec<usize>,
    pub(crate) features: Vec<(u32, f32)>,
}

impl Rows {
    fn of(rows: impl Iterator<Item = LabelledRow>) -> Rows {
        let mut all = Rows::default();
        for row in rows {
            all.labels.push(row.label);
            all.features.extend(row.features);
            all.ends.push(all.features.len());
        }
        all
    }

    /// The examples of a file to learn from, and their labels.
    fn learned(file: &Path) -> Result<(Rows, Labels)> {
        let mut rows = Rows::of(read_rows(file, Share::ALL, libsvm)?.into_iter());
        let mut found = Found::NONE;
        rows.labels.iter().for_each(|label| found.insert(*label));
        let labels = Labels::of(file, found)?;
        rows.labels.iter_mut().for_each(|label| *label = if *label == labels.positive { 1.0 } else { -1.0 });
        Ok((rows, labels))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (f32, &[(u32, f32)])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends).map(|(start, end)| &self.features[start..*end]);
        self.labels.iter().copied().zip(ranges)
    }

    /// The same in a random order, one after the other in memory.
    pub(crate) fn shuffled(&self) -> Rows {
        let count = self.labels.len();
        let place = Permutation::new(Stream::new(1, "order of examples"), count);
        let start = |row: usize| if row == 0 { 0 } else { self.ends[row - 1] };
        let row = |row: usize| LabelledRow {
            label: self.labels[row],
            features: self.features[start(row)..self.ends[row]].to_vec(),
        };
        Rows::of((0..count).map(|at| row(place.invert(at as u32) as usize)))
    }

    /// The same with features by their places.
    pub(crate) fn numbered(&self, numbering: &Numbering) -> Rows {
        Rows::of(
            self.iter().map(|(label, features)| LabelledRow { label, features: numbering.row(features) }),
        )
    }

    /// How many examples have each of the `features`.
    pub(crate) fn counts(&self, features: usize) -> Vec<u32> {
        let mut counts = vec![0; features];
        self.features.iter().for_each(|(feature, _)| counts[*feature as usize] += 1);
        counts
    }

    /// Part `part` of `of`.
    pub(crate) fn part(&self, part: usize, of: usize) -> Rows {
        let row =
            |(label, features): (f32, &[(u32, f32)])| LabelledRow { label, features: features.to_vec() };
        let bound = |part: usize| self.labels.len() * part / of;
        Rows::of(self.iter().skip(bound(part)).take(bound(part + 1) - bound(part)).map(row))
    }
}

/// The examples for the serial twin.
pub(crate) fn load(o: &Options, model: Option<&Model>) -> Result<Examples<Rows>> {
    let (train, test, labels) = match &o.data {
        Some(file) => {
            let (rows, labels) = match model {
                Some(model) => {
                    (Rows::of(read_rows(file, Share::ALL, signed(model.labels))?.into_iter()), model.labels)
                }
                None => Rows::learned(file)?,
            };
            let test = read_rows(o.test.as_ref().unwrap_or(file), Share::ALL, signed(labels))?;
            // Examples of a class often stand together in files.
            (rows.shuffled(), Rows::of(test.into_iter()), labels)
        }
        None => {
            let planted = |number| planted(o.shape(), number);
            let test = (o.rows..o.rows + o.rows / TEST).map(planted);
            (Rows::of((0..o.rows).map(planted)), Rows::of(test), Labels::SIGNS)
        }
    };
    let all = train.features.iter().chain(&test.features);
    let known = model.map_or(0, |model| model.weights.len());
    let features = all.map(|(feature, _)| *feature as usize + 1).fold(known, usize::max);
    Ok(Examples { train, test, features: checked(features)?, labels })
}
