//! The rows to test with: what is predicted for them.
use super::model::Model;
use super::options::Options;
use super::training::{self, say};
use hectare::orion::{Context, Error, Result, parallel_for};
use hectare_data::new_file;
use hectare_data::text::LabelledRow;
use std::fmt::Write;

/// Says how far predictions are from the targets, and writes them, if they are wanted; returns the root of the mean squared error.
/// Collective.
pub(crate) fn measure(
    w: &mut Context<'_>,
    o: &Options,
    rows: &[LabelledRow],
    model: &Model,
    always: bool,
) -> Result<f64> {
    let mut predicted = w.zeros::<f64, 1>([rows.len()])?.named("predicted");
    parallel_for!(w, unordered, write predicted; for row in 0..rows.len() {
        predicted[row] = model.predict(&rows[row].features);
    })?;
    let predicted = predicted.to_vec(w)?;
    let errors = rows.iter().zip(&predicted).map(|(row, value)| (f64::from(row.label) - value).powi(2));
    let error = (errors.sum::<f64>() / rows.len() as f64).sqrt();
    if always || !o.run.quiet {
        w.root(|| say(format_args!("test RMSE {error:.6}")));
    }
    let Some(path) = &o.predict else { return Ok(error) };
    let written = w.root(|| {
        let mut text = String::new();
        predicted.iter().for_each(|value| writeln!(text, "{value}").expect("text grows"));
        new_file::write(path, text)
            .map_err(|error| Error::Invalid(format!("cannot write {}: {error}", path.display())))
    });
    w.broadcast(|| written.unwrap_or(Ok(())))?;
    Ok(error)
}

/// Finds out whether the files can be written, before anything is learned in vain.
pub(crate) fn try_files(o: &Options) -> anyhow::Result<()> {
    let mut files = [("--save", &o.save), ("--predict", &o.predict)].into_iter();
    files.try_for_each(|(option, file)| {
        file.as_ref().map_or(Ok(()), |file| training::try_to_write(option, file))
    })
}
