//! The command line.
use super::model::Model;
use super::planted::Shape;
use super::training::Run;
use anyhow::{bail, ensure};
use clap::{Parser, ValueEnum};
use hectare::orion::{Error, Result};
use std::path::PathBuf;

/// How weights are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rule {
    /// Stochastic gradient descent with a rate that falls from pass to pass; relaxes the weights.
    Sgd,
    /// AdaGrad's rates, corrected for late gradients (McMahan and Streeter, 2014), through a buffer. Needs no tuning.
    AdaRevision,
}

/// Sparse logistic regression; `--serial` runs the loop that one would write without Hectare.
#[derive(Clone, Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: Run,
    /// How weights are changed.
    #[arg(long, value_enum, default_value_t = Rule::AdaRevision)]
    pub(crate) rule: Rule,
    /// Serve the weights: fetch those that the examples of a clock name, instead of copying all.
    #[arg(long)]
    pub(crate) serve: bool,
    /// Examples in LIBSVM's format; generated with RCV1's shape if left out.
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// Examples to test with; those to learn from if left out.
    #[arg(long)]
    pub(crate) test: Option<PathBuf>,
    /// Save the model here, in LIBLINEAR's format.
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) save: Option<PathBuf>,
    /// Begin with the model in this file, of --save or LIBLINEAR; without --data, predict the examples to test with.
    #[arg(long, value_name = "FILE")]
    pub(crate) load: Option<PathBuf>,
    /// Write here for each example to test with how probable it is that it has the positive label, line by line.
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) predict: Option<PathBuf>,
    /// Write here for each example to test with the label that it probably has.
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) predict_labels: Option<PathBuf>,
    /// Generated examples.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) rows: usize,
    /// How many features generated examples have together.
    #[arg(long, default_value_t = Shape::RCV1.features)]
    pub(crate) features: usize,
    /// How many of them each has.
    #[arg(long, default_value_t = Shape::RCV1.per_row)]
    pub(crate) per_row: usize,
    /// Passes over the data.
    #[arg(long, default_value_t = 10)]
    pub(crate) passes: usize,
    /// The size of a step; the default depends on the rule.
    #[arg(long)]
    pub(crate) rate: Option<f32>,
    /// No intercept: an example without features has an even chance.
    #[arg(long)]
    pub(crate) no_intercept: bool,
    /// Regularization: LAMBDA / 2 times the squares of the weights, without the intercept, is added to the mean loss. (C of
    /// scikit-learn and LIBLINEAR is 1 / (LAMBDA * examples), alpha of SGDClassifier is LAMBDA.)
    #[arg(long, value_name = "LAMBDA", default_value_t = 0.0)]
    pub(crate) l2: f32,
    /// The factor of SGD's rate from pass to pass.
    #[arg(long, default_value_t = 0.8)]
    pub(crate) decay: f32,
}

impl Options {
    /// Refuses what cannot be meant.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let l2 = self.l2;
        for (name, value) in [("--rate", self.rate(0)), ("--decay", self.decay)] {
            ensure!(value > 0.0, "{name} {value}: a number above 0");
        }
        ensure!(l2 >= 0.0 && l2.is_finite(), "--l2 {l2}: a finite number, 0 or greater");
        ensure!(self.passes > 0, "--passes 0: at least 1");
        let Shape { features, per_row } = self.shape();
        ensure!(
            per_row <= features / 2,
            "--per-row {per_row}: at most half of all features, which are {features} (--features)"
        );
        match (&self.data, &self.test, &self.load) {
            (None, Some(_), None) => bail!("--test: only with --data to learn from, or --load to predict"),
            (None, None, Some(_)) => {
                bail!("--load: needs --data to go on with the model, or --test to predict")
            }
            (None, Some(_), Some(_)) => ensure!(
                !self.run.serial && !self.run.all && self.save.is_none() && self.run.curve.is_none(),
                "--serial, --all, --save and --curve: only with --data, as nothing is learned else"
            ),
            _ => {}
        }
        Ok(())
    }

    /// Of generated examples.
    pub(crate) fn shape(&self) -> Shape {
        Shape { features: self.features, per_row: self.per_row }
    }

    /// The model to begin with, if there is one.
    pub(crate) fn model(&self) -> Result<Option<Model>> {
        let Some(path) = &self.load else { return Ok(None) };
        let model = Model::read(path)?;
        if self.no_intercept && model.intercept.is_some() {
            return Err(Error::Invalid(format!("--no-intercept: the model in {} has one", path.display())));
        }
        Ok(Some(model))
    }

    /// How weights are changed and reached, if not as usual.
    pub(crate) fn manner(&self) -> Option<&'static str> {
        match (self.rule, self.serve) {
            (Rule::AdaRevision, false) => None,
            (Rule::AdaRevision, true) => Some("served"),
            (Rule::Sgd, false) => Some("SGD"),
            (Rule::Sgd, true) => Some("SGD, served"),
        }
    }

    /// The size of a step in pass `pass`.
    pub(crate) fn rate(&self, pass: usize) -> f32 {
        match self.rule {
            Rule::Sgd => self.rate.unwrap_or(0.5) * self.decay.powi(pass as i32),
            Rule::AdaRevision => self.rate.unwrap_or(0.2),
        }
    }
}
