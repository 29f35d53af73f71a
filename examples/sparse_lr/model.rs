//! Models in files, in the text format of LIBLINEAR (Fan et al., 2008).
//!
//! Six lines of a header, then a weight in each line, last that of the intercept, if there is one. The weights are for the
//! first label that the header names.
use super::labels::Labels;
use hectare::orion::{Error, Result};
use hectare_data::new_file;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The kind of model, as the header names it.
const SOLVER: &str = "L2R_LR";
/// All kinds of logistic regression.
const SOLVERS: [&str; 3] = [SOLVER, "L2R_LR_DUAL", "L1R_LR"];

/// Labels and weights.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    pub(crate) labels: Labels,
    pub(crate) weights: Vec<f32>,
    pub(crate) intercept: Option<f32>,
}

impl Model {
    /// The weights of `features` features, and the intercept behind them.
    pub(crate) fn widened(&self, features: usize) -> Vec<f32> {
        let mut weights = self.weights.clone();
        weights.resize(features, 0.0);
        weights.push(self.intercept.unwrap_or(0.0));
        weights
    }

    /// The opposite of [`Model::widened`].
    pub(crate) fn of(labels: Labels, mut weights: Vec<f32>, has_intercept: bool) -> Model {
        let intercept = weights.pop().filter(|_| has_intercept);
        Model { labels, weights, intercept }
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let Labels { negative, positive } = self.labels;
        let (features, bias) = (self.weights.len(), if self.intercept.is_some() { 1 } else { -1 });
        let mut text = format!(
            "solver_type {SOLVER}\nnr_class 2\nlabel {positive} {negative}\nnr_feature {features}\nbias {bias}\nw\n"
        );
        for weight in self.weights.iter().chain(&self.intercept) {
            // Shortest digits that are read as the same bits.
            writeln!(text, "{weight}").expect("text grows");
        }
        new_file::write(path, text)
            .map_err(|error| Error::Invalid(format!("cannot write {}: {error}", path.display())))
    }

    /// Reads a model, LIBLINEAR's too, if it is one of logistic regression between two labels.
    pub(crate) fn read(path: &Path) -> Result<Model> {
        let file = path.display();
        let text = fs::read(path).map_err(|error| Error::Invalid(format!("cannot read {file}: {error}")))?;
        let text = String::from_utf8(text)
            .map_err(|_| Error::Invalid(format!("{file} is no text, and so no model that --save wrote")))?;
        parse(&text).map_err(|Wrong { line, what }| match line {
            0 => Error::Invalid(format!("{file}: {what}")),
            line => Error::Invalid(format!("{file}:{line}: {what}")),
        })
    }
}

/// Why a file is no model; line 0 if that is not the fault of a line.
struct Wrong {
    line: usize,
    what: String,
}

fn wrong<T>(line: usize, what: String) -> std::result::Result<T, Wrong> {
    Err(Wrong { line, what })
}

fn number<T: std::str::FromStr>(line: usize, what: &str, text: &str) -> std::result::Result<T, Wrong> {
    text.trim().parse().or_else(|_| wrong(line, format!("{what}: expected a number, found {text:?}")))
}

fn finite(line: usize, what: &str, text: &str) -> std::result::Result<f32, Wrong> {
    match number::<f32>(line, what, text)? {
        value if value.is_finite() => Ok(value),
        _ => wrong(line, format!("{what}: expected a finite number of 32 bits, found {text:?}")),
    }
}

fn parse(text: &str) -> std::result::Result<Model, Wrong> {
    let mut lines = (1..).zip(text.lines());
    let (mut solver, mut labels, mut features, mut bias) = (None, None, None, -1.0);
    loop {
        let Some((at, line)) = lines.next() else {
            return wrong(0, "expected the header of a model as LIBLINEAR has it, up to a line `w`".into());
        };
        let (key, rest) = line.trim_end().split_once(' ').unwrap_or((line.trim_end(), ""));
        match key {
            "w" => break,
            "solver_type" if SOLVERS.contains(&rest) => solver = Some(()),
            "solver_type" => {
                return wrong(
                    at,
                    format!("a model of {rest}, which is no logistic regression ({})", SOLVERS.join(", ")),
                );
            }
            "nr_class" if rest == "2" => {}
            "nr_class" => return wrong(at, format!("a model of {rest} classes: there have to be 2")),
            "label" => {
                let both: Vec<&str> = rest.split_ascii_whitespace().collect();
                let [first, second] = both[..] else {
                    return wrong(at, format!("expected two labels, found {rest:?}"));
                };
                labels = Some([finite(at, "label", first)?, finite(at, "label", second)?]);
            }
            "nr_feature" => features = Some(number::<usize>(at, key, rest)?),
            "bias" => bias = finite(at, key, rest)?,
            _ => {
                return wrong(
                    at,
                    format!("expected the header of a model as LIBLINEAR has it, found {line:?}"),
                );
            }
        }
    }
    let (Some(()), Some([first, second]), Some(features)) = (solver, labels, features) else {
        return wrong(0, "the header lacks solver_type, label or nr_feature".into());
    };
    if first == second {
        return wrong(0, format!("both labels are {first}"));
    }
    let mut weights = Vec::new();
    let expected = features.saturating_add(usize::from(bias >= 0.0));
    for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        if weights.len() == expected {
            return wrong(
                at,
                format!("more than {expected} weights, which are all that the header tells of"),
            );
        }
        // For the greater label.
        let sign = if first > second { 1.0 } else { -1.0 };
        weights.push(sign * finite(at, "weight", line)?);
    }
    if weights.len() < expected {
        return wrong(0, format!("it ends after {} weights of {expected}: was it cut off?", weights.len()));
    }
    if !text.ends_with('\n') {
        return wrong(0, "the last line has no end: was it cut off?".into());
    }
    let intercept = (bias >= 0.0).then(|| weights.pop().map(|weight| weight * bias)).flatten();
    let labels = Labels { negative: first.min(second), positive: first.max(second) };
    Ok(Model { labels, weights, intercept })
}
