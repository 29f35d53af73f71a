//! Models in files: text, as the chapter on this program describes it.
use super::options::Options;
use super::problem::Problem;
use hectare::orion::{Error, Result};
use hectare_data::new_file;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The first line of a file.
const FORMAT: &str = "hectare lasso, version 1";
/// The most features that a file may have.
const MOST: usize = (1 << 31) - 2;

/// Weights, and what is predicted without features.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) intercept: f64,
    pub(crate) weights: Vec<f64>,
}

impl Model {
    pub(crate) fn of(problem: &Problem<'_>, o: &Options) -> Model {
        let intercept = if o.no_intercept { 0.0 } else { problem.intercept() };
        Model { intercept, weights: problem.weights.clone() }
    }

    /// The number that is predicted for a row.
    pub(crate) fn predict(&self, row: &[(u32, f32)]) -> f64 {
        let each = row.iter().map(|(feature, value)| self.weights[*feature as usize] * f64::from(*value));
        self.intercept + each.sum::<f64>()
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        // Shortest digits that are read as the same bits.
        let mut text = format!("{FORMAT}\nfeatures {}\nintercept {}\n", self.weights.len(), self.intercept);
        for (feature, weight) in (1..).zip(&self.weights).filter(|(_, weight)| **weight != 0.0) {
            writeln!(text, "{feature} {weight}").expect("text grows");
        }
        text += "end\n";
        new_file::write(path, text)
            .map_err(|error| Error::Invalid(format!("cannot write {}: {error}", path.display())))
    }

    pub(crate) fn read(path: &Path) -> Result<Model> {
        let file = path.display();
        let bytes = fs::read(path).map_err(|error| Error::Invalid(format!("cannot read {file}: {error}")))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::Invalid(format!("{file} is no text, and so no model that --save wrote")))?;
        parse(&text).map_err(|(line, what)| Error::Invalid(format!("{file}:{line}: {what}")))
    }
}

/// A line, and what is wrong with it.
type Wrong = (usize, String);

fn finite(line: usize, text: &str) -> Result<f64, Wrong> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| (line, format!("expected a finite number, found {text:?}")))
}

fn parse(text: &str) -> Result<Model, Wrong> {
    let mut lines = (1..).zip(text.lines());
    let mut last = 0;
    let mut next = || {
        let line = lines.next().ok_or((last + 1, "the file ends here: was it cut off?".to_owned()));
        line.inspect(|(line, _)| last = *line)
    };
    let (line, format) = next()?;
    if format != FORMAT {
        return Err((line, format!("the first line is {format:?}, and should be {FORMAT:?}")));
    }
    let named = |(line, text): (usize, &str), name: &str| match text.split_once(' ') {
        Some((found, rest)) if found == name => Ok((line, rest.to_owned())),
        _ => Err((line, format!("expected {name} and a number, found {text:?}"))),
    };
    let (line, features) = named(next()?, "features")?;
    let features = features.parse().ok().filter(|features| (1..=MOST).contains(features));
    let features: usize = features.ok_or_else(|| (line, format!("expected 1 to {MOST} features")))?;
    let (line, intercept) = named(next()?, "intercept")?;
    let intercept = finite(line, &intercept)?;
    let (mut weights, mut after) = (vec![0.0; features], 0);
    loop {
        let (line, text) = next()?;
        if text == "end" {
            return Ok(Model { intercept, weights });
        }
        let Some((feature, weight)) = text.split_once(' ') else {
            return Err((line, format!("expected a feature and its weight, found {text:?}")));
        };
        let range = after + 1..=features;
        let feature = feature.parse().ok().filter(|feature| range.contains(feature));
        let feature: usize = feature.ok_or_else(|| {
            (
                line,
                format!("expected a feature from {} to {features} and its weight, found {text:?}", after + 1),
            )
        })?;
        weights[feature - 1] = finite(line, weight)?;
        after = feature;
    }
}
