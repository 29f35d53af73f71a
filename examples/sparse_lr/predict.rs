//! Prediction by a model that was learned before.
use super::data;
use super::model::Model;
use super::quality::{Quality, Scored};
use super::train::judge;
use super::{Options, output, training};
use hectare::orion::{Context, Result};

/// Predicts the examples to test with, and says how good that is. Collective.
pub(crate) fn predict(w: &mut Context<'_>, o: &Options, model: &Model) -> Result<Quality> {
    let tried = w.root(|| output::try_files(o));
    w.broadcast(|| tried.unwrap_or(Ok(())))?;
    let (test, features) = data::tested(w, o, model)?;
    let weights = w.from_slice([features + 1], &model.widened(features))?;
    let mut scored = w.zeros::<Scored, 1>([test.len()])?;
    let quality = judge(w, &test, &weights, (features, 1.0), &mut scored)?;
    let written = w.root(|| output::predict(o, model.labels, &scored.to_vec(w)?));
    w.broadcast(|| written.unwrap_or(Ok(())))?;
    w.root(|| training::say(format_args!("test loss {:.4}, {quality}", quality.loss)));
    Ok(quality)
}
