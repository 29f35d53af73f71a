//! Models in files: JSON, as the chapter on this program describes it.
use super::labels::Labels;
use super::loss::Loss;
use super::tree::Tree;
use hectare::orion::{Error, Result};
use hectare_data::new_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The field `format` of a file.
const FORMAT: &str = "hectare gradient-boosted trees, version 1";

/// Trees, and what they predict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    format: String,
    pub(crate) loss: Loss,
    /// The negative and the positive label, of logistic loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    labels: Option<[f32; 2]>,
    pub(crate) features: usize,
    /// The names of the features, if the file learned from has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) names: Option<Vec<String>>,
    /// The margin before the first tree.
    pub(crate) begin: f32,
    pub(crate) trees: Vec<Tree>,
}

impl Model {
    pub(crate) fn new(
        loss: Loss,
        labels: Option<Labels>,
        (features, names): (usize, Option<Vec<String>>),
        begin: f32,
    ) -> Model {
        let labels = labels.map(|Labels { negative, positive }| [negative, positive]);
        Model { format: FORMAT.into(), loss, labels, features, names, begin, trees: Vec::new() }
    }

    pub(crate) fn labels(&self) -> Option<Labels> {
        self.labels.map(|[negative, positive]| Labels { negative, positive })
    }

    /// The margin of a row: what the trees add up to, one after the other, as in training.
    pub(crate) fn margin(&self, row: &[(u32, f32)]) -> f32 {
        self.trees.iter().fold(self.begin, |margin, tree| margin + tree.predict(row))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| {
            Error::Invalid(format!("cannot write {}: {error}", path.display()))
        };
        let text = serde_json::to_string(self).map_err(|error| failed(&error))?;
        // A line for each tree, for those who look at it.
        new_file::write(path, text.replace("{\"nodes\"", "\n{\"nodes\"") + "\n")
            .map_err(|error| failed(&error))
    }

    pub(crate) fn read(path: &Path) -> Result<Model> {
        let file = path.display();
        let wrong = |what: String| Error::Invalid(format!("{file}{what}"));
        let text = fs::read(path).map_err(|error| Error::Invalid(format!("cannot read {file}: {error}")))?;
        let model: Model = serde_json::from_slice(&text).map_err(|error| {
            wrong(format!(":{}: this is no model that --save wrote: {error}", error.line()))
        })?;
        if model.format != FORMAT {
            return Err(wrong(format!(": the format is {:?}, and should be {FORMAT:?}", model.format)));
        }
        if model.labels.is_some() != (model.loss == Loss::Logistic) {
            return Err(wrong(": two labels belong to logistic loss, and to no other".into()));
        }
        if model.names.as_ref().is_some_and(|names| names.len() != model.features) {
            return Err(wrong(format!(
                ": there are not as many names as features, which are {}",
                model.features
            )));
        }
        let faults = model.trees.iter().enumerate();
        match faults.filter_map(|(number, tree)| Some((number, tree.fault(model.features)?))).next() {
            Some((number, fault)) => Err(wrong(format!(": tree {number} is damaged: {fault}"))),
            None => Ok(model),
        }
    }
}
