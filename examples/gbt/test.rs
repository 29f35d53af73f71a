//! The rows to test with: their margins, tree by tree.
use super::data::Rows;
use super::logistic::probability;
use super::loss::Loss;
use super::model::Model;
use super::options::Options;
use super::quality::{Measured, Scored};
use super::training;
use hectare::DistArray;
use hectare::orion::{Context, Error, Result, parallel_for};
use hectare_data::new_file;
use std::fmt::Write;

/// Rows and what is predicted for them so far.
pub(crate) struct Tested {
    rows: Rows,
    scored: DistArray<Scored, 1>,
    loss: Loss,
}

impl Tested {
    /// With the margins of a model. Collective.
    pub(crate) fn new(w: &mut Context<'_>, rows: Rows, model: &Model) -> Result<Tested> {
        let mut scored = w.zeros::<Scored, 1>([rows.len()])?.named("scored");
        let labels = model.labels();
        parallel_for!(w, unordered, write scored; for ((number), row) in rows {
            // The quality of classes is that of signs.
            let label = labels.map_or(row.label, |labels| if row.label == labels.positive { 1.0 } else { -1.0 });
            scored[number] = [model.margin(&row.features), label];
        })?;
        Ok(Tested { rows, scored, loss: model.loss })
    }

    /// Adds the last tree of a model. Collective.
    pub(crate) fn add(&mut self, w: &mut Context<'_>, model: &Model) -> Result<()> {
        let Tested { rows, scored, .. } = self;
        let Some(tree) = model.trees.last() else { return Ok(()) };
        parallel_for!(w, unordered, write scored; for ((number), row) in rows {
            let [margin, label] = scored[number];
            scored[number] = [margin + tree.predict(&row.features), label];
        })
    }

    /// Collective.
    pub(crate) fn measure(&self, w: &mut Context<'_>) -> Result<Measured> {
        Ok(Measured::of(self.loss, &self.scored.to_vec(w)?))
    }

    /// Writes predictions, if they are wanted: a line for each row, in the order of its file. Collective.
    pub(crate) fn write(&self, w: &mut Context<'_>, o: &Options) -> Result<()> {
        let Some(path) = &o.predict else { return Ok(()) };
        let written = w.root(|| {
            let mut text = String::new();
            for [margin, _label] in self.scored.to_vec(w)? {
                let predicted = match self.loss {
                    Loss::Logistic => probability(margin),
                    Loss::Squared => margin,
                };
                writeln!(text, "{predicted}").expect("text grows");
            }
            new_file::write(path, text)
                .map_err(|error| Error::Invalid(format!("cannot write {}: {error}", path.display())))
        });
        w.broadcast(|| written.unwrap_or(Ok(())))?;
        Ok(())
    }
}

/// Finds out whether the files can be written, before anything is learned in vain. Collective.
pub(crate) fn try_files(w: &mut Context<'_>, o: &Options) -> Result<()> {
    let tried = w.root(|| {
        [("--save", &o.save), ("--predict", &o.predict)].into_iter().try_for_each(|(option, file)| {
            file.as_ref()
                .map_or(Ok(()), |file| training::try_to_write(option, file))
                .map_err(training::invalid)
        })
    });
    w.broadcast(|| tried.unwrap_or(Ok(())))?;
    Ok(())
}
