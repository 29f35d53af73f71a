//! The rows to learn from and those to test with, checked.
use super::labels::{Found, Labels};
use super::loss::{Loss, MOST_ROWS};
use super::model::Model;
use super::options::Options;
use super::table::Format;
use hectare::SparseArray;
use hectare::orion::array::random::Stream;
use hectare::orion::array::text::LabelledRow;
use hectare::orion::{Context, Error, Result};
use std::path::Path;

pub(crate) type Rows = SparseArray<LabelledRow, 1>;

/// The most features: there is a list of bins for each.
const MOST: usize = 1 << 24;
/// Features of generated rows.
const PLANTED: usize = 10;

/// Rows to learn from and to test with.
pub(crate) struct Data {
    pub(crate) train: Rows,
    pub(crate) test: Rows,
    pub(crate) features: usize,
    /// Of logistic loss.
    pub(crate) labels: Option<Labels>,
    /// The names of the features.
    pub(crate) names: Option<Vec<String>>,
}

/// Generated row `number`: five of its features matter, in steps, products and waves (as in Friedman, 1991).
fn planted(loss: Loss, number: usize) -> LabelledRow {
    let stream = Stream::new(17, "boosting").child(number as u64);
    let x: Vec<f64> = (0..PLANTED as u64).map(|k| stream.uniform(k)).collect();
    let wave = (std::f64::consts::PI * x[0] * x[1]).sin();
    let y = 10.0 * wave + 20.0 * (x[2] - 0.5).powi(2) + 10.0 * x[3] + 5.0 * x[4] + stream.child(1).normal(0);
    let label = match loss {
        Loss::Squared => y,
        Loss::Logistic => f64::from(y > 14.4).mul_add(2.0, -1.0),
    };
    // Some are zero, and left out.
    let kept = x.iter().enumerate().filter(|(k, x)| k % 2 == 0 || **x > 0.3);
    LabelledRow { label: label as f32, features: kept.map(|(k, x)| (k as u32, *x as f32)).collect() }
}

/// Collective.
pub(crate) fn read(w: &mut Context<'_>, o: &Options) -> Result<Data> {
    let Some(file) = &o.data else {
        let (count, loss) = ((o.rows / 4).max(1), o.loss);
        let train = w.entries([o.rows], o.rows, |k| ([k], planted(loss, k)))?;
        let test = w.entries([count], count, |k| ([k], planted(loss, o.rows + k)))?;
        let labels = (loss == Loss::Logistic).then_some(Labels::SIGNS);
        return Ok(Data {
            train: train.named("train"),
            test: test.named("test"),
            features: PLANTED,
            labels,
            names: None,
        });
    };
    let format = Format::of(file, o.label)?;
    let train = w.text_rows(file, |line, offset| format.row(line, offset, o.features))?;
    let count = train.len();
    if count == 0 {
        return Err(Error::Invalid(format!("{} has no rows to learn from", file.display())));
    }
    if count > MOST_ROWS {
        return Err(Error::Invalid(format!(
            "{} has {count} rows, and sums of derivatives hold {MOST_ROWS}: take fewer, drawn at random",
            file.display()
        )));
    }
    let labels = match o.loss {
        Loss::Logistic => Some(labels_of(w, file, &train)?),
        Loss::Squared => None,
    };
    let features = match format.features().or(o.features) {
        Some(features) => features,
        None => {
            let mut most = 0u64;
            train.for_each_local(|_, row| {
                most = most.max(row.features.last().map_or(0, |(f, _)| u64::from(*f) + 1))
            });
            w.all_reduce(most, u64::max)? as usize
        }
    };
    if features == 0 || features > MOST {
        return Err(Error::Invalid(format!(
            "{} has {features} features: there have to be some, up to {MOST}, numbered without gaps",
            file.display()
        )));
    }
    let names = format.names();
    let test = read_test(w, o, o.test.as_ref().unwrap_or(file), (features, labels, names.as_deref()))?;
    Ok(Data { train: train.named("train"), test, features, labels, names })
}

/// The rows to test a model with. Collective.
pub(crate) fn read_to_predict(w: &mut Context<'_>, o: &Options, model: &Model) -> Result<Rows> {
    let file = o.test.as_ref().ok_or_else(|| Error::Invalid("--test: there is nothing to predict".into()))?;
    read_test(w, o, file, (model.features, model.labels(), model.names.as_deref()))
}

/// Rows to test with, of a file that has the features and labels learned. Collective.
fn read_test(
    w: &mut Context<'_>,
    o: &Options,
    file: &Path,
    (features, labels, names): (usize, Option<Labels>, Option<&[String]>),
) -> Result<Rows> {
    let format = Format::of(file, o.label)?;
    let shown = file.display();
    if let Some(found) = format.features().filter(|found| *found != features) {
        return Err(Error::Invalid(format!(
            "{shown}:1: {found} features, and {features} were learned from: take a file with the same columns"
        )));
    }
    if let (Some(found), Some(names)) = (format.names(), names)
        && let Some(at) = (0..features).find(|at| found[*at] != names[*at])
    {
        return Err(Error::Invalid(format!(
            "{shown}:1: feature {} is {:?}, and {:?} was learned from: bring the columns into the order of the file learned from",
            at + 1,
            found[at],
            names[at]
        )));
    }
    let test = w.text_rows(file, |line, offset| {
        let row = format.row(line, offset, Some(features))?;
        if let (Some(row), Some(labels)) = (&row, labels) {
            labels.sign(row.label)?;
        }
        Ok(row)
    })?;
    if test.is_empty() {
        return Err(Error::Invalid(format!("{shown} has no rows to test with")));
    }
    Ok(test.named("test"))
}

/// The two labels of a file. Collective.
fn labels_of(w: &mut Context<'_>, file: &Path, rows: &Rows) -> Result<Labels> {
    let mut found = Found::NONE;
    rows.for_each_local(|_, row| found.insert(row.label));
    let all =
        w.all_reduce(found.to_array(), |a, b| Found::from_array(a).and(Found::from_array(b)).to_array())?;
    Labels::of(file, Found::from_array(all))
}
