//! Files that a run leaves: the model and predictions.
use super::Options;
use super::labels::Labels;
use super::logistic::probability;
use super::model::Model;
use super::quality::Scored;
use super::training;
use hectare::orion::{Error, Result};
use hectare_data::new_file;
use std::fmt::Write;

/// Finds out whether the files can be written, before anything is learned in vain.
pub(crate) fn try_files(o: &Options) -> Result<()> {
    for (option, file) in
        [("--save", &o.save), ("--predict", &o.predict), ("--predict-labels", &o.predict_labels)]
    {
        let tried = file.as_ref().map_or(Ok(()), |file| training::try_to_write(option, file));
        tried.map_err(|error| Error::Invalid(training::one_line(&error)))?;
    }
    Ok(())
}

/// Saves the model, if that is wanted. `weights` are those of all features, and the intercept.
pub(crate) fn save(o: &Options, labels: Labels, weights: Vec<f32>) -> Result<()> {
    match &o.save {
        Some(path) => Model::of(labels, weights, !o.no_intercept).write(path),
        None => Ok(()),
    }
}

/// Writes predictions, if they are wanted: a line for each example, in the order of its file.
pub(crate) fn predict(o: &Options, labels: Labels, scored: &[Scored]) -> Result<()> {
    let Labels { negative, positive } = labels;
    let write = |path: Option<&std::path::PathBuf>, of: &dyn Fn(f32) -> f32| {
        let Some(path) = path else { return Ok(()) };
        let mut text = String::new();
        for [margin, _label] in scored {
            writeln!(text, "{}", of(*margin)).expect("text grows");
        }
        new_file::write(path, text)
            .map_err(|error| Error::Invalid(format!("cannot write {}: {error}", path.display())))
    };
    write(o.predict.as_ref(), &probability)?;
    write(o.predict_labels.as_ref(), &|margin| if margin > 0.0 { positive } else { negative })
}
